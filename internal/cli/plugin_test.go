package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/integrations"
	"github.com/palimpsest-ai/palimpsest/internal/install"
)

// TestPluginFiles: a plugin of files is put where its agent looks for it, starts this very
// program, and is taken away again.
func TestPluginFiles(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_DATA_HOME", "")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, filepath.Join(home, "palimpsest")); err != nil {
		t.Skip("no links here: ", err)
	}
	t.Setenv("PATH", home)
	for agent, place := range map[string]struct{ variable, usual, loaded, starts, next string }{
		"opencode": {"OPENCODE_CONFIG_DIR", ".config/opencode", "plugins/palimpsest.js", "plugins/palimpsest/daemon.js", ""},
		"pi":       {"PI_CODING_AGENT_DIR", ".pi/agent", "extensions/palimpsest.js", "extensions/palimpsest/daemon.js", ""},
		"openclaw": {"OPENCLAW_STATE_DIR", ".openclaw", "extensions/palimpsest", "extensions/palimpsest/daemon.js", "openclaw: now run `openclaw config set plugins.slots.contextEngine palimpsest && openclaw config set agents.defaults.compaction.provider palimpsest`\n"},
		"hermes":   {"HERMES_HOME", ".hermes", "plugins/palimpsest", "plugins/palimpsest/__init__.py", "hermes: now run `hermes plugins enable palimpsest && hermes config set context.engine palimpsest`\n"},
	} {
		folder := t.TempDir()
		for variable, below := range map[string]string{"": filepath.Join(home, place.usual), folder: folder} {
			t.Setenv(place.variable, variable)
			path := filepath.Join(below, place.loaded)
			for _, want := range []string{"installed; new sessions will use it", "nothing to change"} {
				if status, out, errs := run(t, "plugin", "install", agent); status != exitDone || !strings.Contains(out, want) || strings.HasPrefix(want, "installed") && !strings.HasSuffix(out, place.next) {
					t.Fatalf("%s: status %d, %s%s", agent, status, out, errs)
				}
			}
			text, err := os.ReadFile(filepath.Join(below, place.starts))
			if err != nil || !strings.Contains(string(text), "PROGRAM = \"palimpsest\"\n") {
				t.Errorf("%s: %v, it does not start the program: %.600s", agent, err, text)
			}
			if err := os.MkdirAll(filepath.Join(below, filepath.Dir(place.starts), "__pycache__"), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{agent + ": taken back", "nothing is installed"} {
				if status, out, errs := run(t, "plugin", "remove", agent); status != exitDone || !strings.Contains(out, want) {
					t.Errorf("%s: status %d, %s%s", agent, status, out, errs)
				}
			}
			for _, gone := range []string{path, filepath.Dir(filepath.Join(below, place.starts))} {
				if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %s is left: %v", agent, gone, err)
				}
			}
		}
	}
	if status, _, errs := run(t, "plugin", "install", "emacs"); status != exitUsage || !strings.Contains(errs, "opencode") {
		t.Errorf("status %d, %s", status, errs)
	}
	for _, agent := range install.Names(install.Plugin) {
		started := 0
		for _, text := range integrations.Plugin(agent) {
			started += strings.Count(install.ProgramReplacer("palimpsest", `/opt/a "b"/palimpsest`).Replace(text), `PROGRAM = "/opt/a \"b\"/palimpsest"`)
		}
		if started != 1 {
			t.Errorf("%s: %d of its files start a program elsewhere", agent, started)
		}
	}
}

// TestPluginWithoutAgent: without the program of Claude Code, the error says that, and where the plugin is.
func TestPluginWithoutAgent(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_HOME", "")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, filepath.Join(home, "palimpsest")); err != nil {
		t.Skip("no links here: ", err)
	}
	t.Setenv("PATH", home)
	status, out, said := run(t, "plugin", "install", "claude-code")
	if status != exitFailed || strings.Contains(said, ": :") || strings.Contains(said, ": ;") || !strings.Contains(said, "; the plugin is in "+home) {
		t.Errorf("exit status %d: %s%s", status, out, said)
	}
}
