package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// pointed is a command and its environment with every base URL that an agent
// reads set to the proxy's.
func pointed(args []string, base string, env []string) ([]string, []string) {
	set := func(name, value string) {
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		env = append(env, name+"="+value)
	}
	env = slices.Clone(env)
	for _, name := range []string{
		"ANTHROPIC_BASE_URL", // Claude Code and Anthropic's SDKs
		"ANTHROPIC_API_BASE", // LiteLLM, and so aider
		"GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE",
	} {
		set(name, base)
	}
	for _, name := range []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"} { // OpenAI's SDKs, now and before
		set(name, base+"/v1")
	}
	switch name := strings.TrimSuffix(filepath.Base(args[0]), ".exe"); name {
	case "codex":
		// Its built-in provider has a setting of its own beside the variable.
		args = slices.Insert(slices.Clone(args), 1, "-c", "openai_base_url="+quoted(base+"/v1"))
	case "opencode":
		if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, opencodeConfig+"=") }) {
			set(opencodeConfig, `{"provider":{"anthropic":{"options":{"baseURL":`+quoted(base+"/v1")+`}},"openai":{"options":{"baseURL":`+quoted(base+"/v1")+
				`}},"google":{"options":{"baseURL":`+quoted(base+"/v1beta")+`}}}}`)
		}
	}
	return args, env
}

// opencodeConfig is the variable that opencode merges into its configuration.
const opencodeConfig = "OPENCODE_CONFIG_CONTENT"

// quoted is a string of JSON, which is one of TOML as well.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string always marshals
	return string(b)
}
