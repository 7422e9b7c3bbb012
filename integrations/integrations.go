// Package integrations holds the files by which other programs are given Palimpsest as
// their context engine: a folder for each, as that program loads it.
package integrations

import (
	"embed"
	"io/fs"
)

//go:embed all:claude-code
var files embed.FS

// Opencode is the plugin of opencode: one module. In it the program is called palimpsest,
// wherever that stands.
//
//go:embed opencode/palimpsest.js
var Opencode string

// Pi is the extension of pi, likewise.
//
//go:embed pi/palimpsest.js
var Pi string

// ClaudeCode returns the plugin of Claude Code: a folder that is its own marketplace. In
// it the program is called palimpsest, wherever that stands.
func ClaudeCode() fs.FS {
	sub, err := fs.Sub(files, "claude-code")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}
