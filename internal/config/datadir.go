package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// DataDir returns where the program keeps a user's data: palimpsest under $XDG_DATA_HOME,
// else under ~/.local/share, on macOS ~/Library/Application Support, on Windows
// %LocalAppData%. The error says which variable to set.
func DataDir() (string, error) {
	// The XDG specification has relative paths ignored.
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "palimpsest"), nil
	}
	if runtime.GOOS == "windows" {
		if data := os.Getenv("LocalAppData"); data != "" {
			return filepath.Join(data, "palimpsest"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%w; set XDG_DATA_HOME or name a store", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "palimpsest"), nil
	}
	return filepath.Join(home, ".local", "share", "palimpsest"), nil
}
