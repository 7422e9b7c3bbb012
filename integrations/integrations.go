// Package integrations holds the files by which other programs are given Palimpsest as
// their context engine: a folder for each, as that program loads it. In them the program
// is called palimpsest, wherever that stands.
package integrations

import (
	"embed"
	"io/fs"
	"path"
)

//go:embed all:claude-code opencode pi openclaw hermes/plugin.yaml hermes/__init__.py daemon.js messages.js
var files embed.FS

// ClaudeCode returns the plugin of Claude Code: a folder that is its own marketplace.
func ClaudeCode() fs.FS {
	sub, err := fs.Sub(files, "claude-code")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}

// Opencode returns the plugin of opencode: texts of files by their paths in its folder of
// settings.
func Opencode() map[string]string {
	return named("plugins", map[string]string{"palimpsest.js": "opencode/palimpsest.js", "palimpsest/daemon.js": "daemon.js"})
}

// Pi returns the extension of pi, likewise.
func Pi() map[string]string {
	return named("extensions", map[string]string{"palimpsest.js": "pi/palimpsest.js", "palimpsest/daemon.js": "daemon.js", "palimpsest/messages.js": "messages.js"})
}

// OpenClaw returns the plugin of OpenClaw, likewise.
func OpenClaw() map[string]string {
	return named("extensions/palimpsest", map[string]string{
		"openclaw.plugin.json": "openclaw/openclaw.plugin.json", "package.json": "openclaw/package.json",
		"index.js": "openclaw/index.js", "daemon.js": "daemon.js", "messages.js": "messages.js",
	})
}

// Hermes returns the plugin of Hermes, likewise.
func Hermes() map[string]string {
	return named("plugins/palimpsest", map[string]string{"plugin.yaml": "hermes/plugin.yaml", "__init__.py": "hermes/__init__.py"})
}

// named are the texts of files by their places in a folder.
func named(folder string, sources map[string]string) map[string]string {
	texts := map[string]string{}
	for place, source := range sources {
		text, err := files.ReadFile(source)
		if err != nil {
			panic(err) // the names are constants
		}
		texts[path.Join(folder, place)] = string(text)
	}
	return texts
}
