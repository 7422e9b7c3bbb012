package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPluginFiles: a plugin of one file is put where its agent looks for it, starts this
// very program, and is taken away again.
func TestPluginFiles(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, filepath.Join(home, "palimpsest")); err != nil {
		t.Skip("no links here: ", err)
	}
	t.Setenv("PATH", home)
	for agent, place := range map[string]struct{ variable, usual, inFolder string }{
		"opencode": {"OPENCODE_CONFIG_DIR", ".config/opencode/plugins/palimpsest.js", "plugins/palimpsest.js"},
		"pi":       {"PI_CODING_AGENT_DIR", ".pi/agent/extensions/palimpsest.js", "extensions/palimpsest.js"},
	} {
		folder := t.TempDir()
		for _, c := range []struct{ variable, path string }{
			{"", filepath.Join(home, place.usual)},
			{folder, filepath.Join(folder, place.inFolder)},
		} {
			t.Setenv(place.variable, c.variable)
			for range 2 { // the second puts the new one in place of the old one
				if status, out, errs := run(t, "plugin", "install", agent); status != done || !strings.Contains(out, c.path) {
					t.Fatalf("%s: status %d, %s%s", agent, status, out, errs)
				}
			}
			text, err := os.ReadFile(c.path)
			if err != nil || !strings.Contains(string(text), "const PROGRAM = \"palimpsest\"\n") {
				t.Errorf("%s: %v, it does not start the program: %.600s", agent, err, text)
			}
			for _, want := range []string{"Removed ", "is not installed"} {
				if status, out, errs := run(t, "plugin", "remove", agent); status != done || !strings.Contains(out, want) {
					t.Errorf("%s: status %d, %s%s", agent, status, out, errs)
				}
			}
			if _, err := os.Stat(c.path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", agent, err)
			}
		}
	}
	if status, _, errs := run(t, "plugin", "install", "emacs"); status != usage || !strings.Contains(errs, "opencode") {
		t.Errorf("status %d, %s", status, errs)
	}
	for _, f := range pluginFiles {
		if text := calls(`/opt/a "b"/palimpsest`).Replace(f.text); !strings.Contains(text, `const PROGRAM = "/opt/a \"b\"/palimpsest"`) {
			t.Errorf("%s: it does not start a program elsewhere: %.900s", f.agent, text)
		}
	}
}
