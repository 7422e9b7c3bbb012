// Package integrations holds the plugins that make Palimpsest the context engine of other
// programs: a folder for each, as that program loads it. In the files the program is
// called palimpsest, wherever it is installed.
package integrations

import "embed"

//go:embed all:claude-code opencode pi openclaw hermes/plugin.yaml hermes/__init__.py daemon.js messages.js
var files embed.FS

// sources are the files of the plugins: their paths in the agent's own folder, or in that of the
// marketplace which the plugin of Claude Code is, and here.
var sources = map[string]map[string]string{
	"claude-code": {
		".claude-plugin/marketplace.json": "claude-code/.claude-plugin/marketplace.json", ".claude-plugin/plugin.json": "claude-code/.claude-plugin/plugin.json",
		"hooks/hooks.json": "claude-code/hooks/hooks.json", "hooks/register.ts": "claude-code/hooks/register.ts",
		".mcp.json": "claude-code/.mcp.json", "skills/palimpsest/SKILL.md": "claude-code/skills/palimpsest/SKILL.md", "README.md": "claude-code/README.md",
	},
	"opencode": {"plugins/palimpsest.js": "opencode/palimpsest.js", "plugins/palimpsest/daemon.js": "daemon.js"},
	"pi": {
		"extensions/palimpsest.js": "pi/palimpsest.js", "extensions/palimpsest/daemon.js": "daemon.js", "extensions/palimpsest/messages.js": "messages.js",
	},
	"openclaw": {
		"extensions/palimpsest/openclaw.plugin.json": "openclaw/openclaw.plugin.json", "extensions/palimpsest/package.json": "openclaw/package.json",
		"extensions/palimpsest/index.js": "openclaw/index.js", "extensions/palimpsest/daemon.js": "daemon.js", "extensions/palimpsest/messages.js": "messages.js",
	},
	"hermes": {"plugins/palimpsest/plugin.yaml": "hermes/plugin.yaml", "plugins/palimpsest/__init__.py": "hermes/__init__.py"},
}

// Plugin returns the texts of the plugin for claude-code, opencode, pi, openclaw or hermes, by
// their paths in the folder that the agent reads.
func Plugin(agent string) map[string]string {
	texts := map[string]string{}
	for path, source := range sources[agent] {
		text, err := files.ReadFile(source)
		if err != nil {
			panic(err) // the names are constants
		}
		texts[path] = string(text)
	}
	return texts
}
