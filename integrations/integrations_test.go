package integrations_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/integrations"
	"github.com/palimpsest-ai/palimpsest/internal/hook"
)

// TestFiles: the plugin holds what its parts name, and its command hooks are those that
// the program answers.
func TestFiles(t *testing.T) {
	files := integrations.Plugin("claude-code")
	err := fs.WalkDir(os.DirFS("claude-code"), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && files[name] == "" {
			t.Errorf("%s is in the folder and not in the plugin", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string, v any) {
		t.Helper()
		if err := json.Unmarshal([]byte(files[name]), v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var manifest struct{ Name, Version string }
	read(".claude-plugin/plugin.json", &manifest)
	var market struct {
		Name    string
		Plugins []struct{ Name, Source string }
	}
	read(".claude-plugin/marketplace.json", &market)
	if len(market.Plugins) != 1 || market.Plugins[0].Name != manifest.Name || market.Plugins[0].Source != "./" || manifest.Version == "" {
		t.Errorf("%+v and %+v", manifest, market)
	}
	var hooks struct {
		Modules []string
		Hooks   map[string][]struct {
			Matcher string
			Hooks   []struct{ Type, Command string }
		}
	}
	read("hooks/hooks.json", &hooks)
	for _, name := range hooks.Modules {
		if files["hooks/"+strings.TrimPrefix(name, "./")] == "" {
			t.Errorf("there is no module %s", name)
		}
	}
	agent, err := hook.Find("claude-code")
	if err != nil {
		t.Fatal(err)
	}
	if len(hooks.Hooks) != len(agent.Events) {
		t.Errorf("%d events, the program answers %d", len(hooks.Hooks), len(agent.Events))
	}
	for _, e := range agent.Events {
		groups := hooks.Hooks[e.Name]
		if len(groups) != 1 || groups[0].Matcher != e.Matcher || len(groups[0].Hooks) != 1 || groups[0].Hooks[0].Command != "palimpsest hook claude-code "+e.Name {
			t.Errorf("%s: %+v", e.Name, groups)
		}
	}
}

// TestDeclarations: Claude Code itself checks the plugin against the declarations that it
// ships, so that a version that changes what we rely on is noticed. It needs the program:
// PALIMPSEST_CLAUDE names it (e2e/agents/run.sh claude-plugin does).
func TestDeclarations(t *testing.T) {
	claude := os.Getenv("PALIMPSEST_CLAUDE")
	if claude == "" {
		t.Skip("PALIMPSEST_CLAUDE names no Claude Code")
	}
	dir := filepath.Join(t.TempDir(), "plugin")
	if err := os.CopyFS(dir, os.DirFS("claude-code")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(claude, "plugin", "validate", dir)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "error TS") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{"session.start, session.compact, session.append{door=hook-context}, tool.call", "$.http.fetch", "$.process.run", "$.session.id", "$.session.usage", "$.store.get", "$.tool.register", "SessionStart compact command"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in what Claude Code finds:\n%s", want, out)
		}
	}
}
