package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestDataDir: where the data is on each system, whichever this is.
func TestDataDir(t *testing.T) {
	abs := t.TempDir() // absolute on this system
	for _, c := range []struct {
		system, xdg, local, home, want string
	}{
		{"linux", "", "", "/home/a", "/home/a/.local/share/palimpsest"},
		{"linux", abs, "", "/home/a", abs + "/palimpsest"},
		{"linux", "data", "", "/home/a", "/home/a/.local/share/palimpsest"},
		{"linux", "", `C:\Users\a\AppData\Local`, "/home/a", "/home/a/.local/share/palimpsest"},
		{"darwin", "", "", "/Users/a", "/Users/a/Library/Application Support/palimpsest"},
		{"darwin", abs, "", "/Users/a", abs + "/palimpsest"},
		{"windows", "", `C:\Users\a\AppData\Local`, `C:\Users\a`, `C:\Users\a\AppData\Local/palimpsest`},
		{"windows", abs, `C:\Users\a\AppData\Local`, `C:\Users\a`, abs + "/palimpsest"},
		{"windows", "", "", `C:\Users\a`, `C:\Users\a/.local/share/palimpsest`},
		{"linux", "", "", "", ""},
	} {
		env := map[string]string{"XDG_DATA_HOME": c.xdg, "LocalAppData": c.local}
		got, err := dataDir(c.system, func(name string) string { return env[name] }, func() (string, error) {
			if c.home == "" {
				return "", errors.New("no home")
			}
			return c.home, nil
		})
		if got != filepath.FromSlash(c.want) || (err != nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), "set XDG_DATA_HOME") {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}
