package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUninstallRemains: the data directory that stays is told once nothing is installed any more.
func TestUninstallRemains(t *testing.T) {
	home := agentsHome(t)
	if status, _, errs := run(t, "install", "codex", "cursor", "--yes"); status != exitDone {
		t.Fatal(errs)
	}
	putFile(t, filepath.Join(home, ".local/share/palimpsest/palimpsest.db"), strings.Repeat("x", 3<<19), 0o600)
	for _, step := range []struct {
		agent string
		told  bool
	}{{"codex", false}, {"cursor", true}, {"cursor", true}} {
		_, out, errs := run(t, "uninstall", step.agent, "--yes")
		if strings.HasSuffix(out, "\nleft: ~/.local/share/palimpsest (1.5 MB of conversations)\n") != step.told || strings.Contains(out, "left:") != step.told {
			t.Errorf("%s: %s%s", step.agent, out, errs)
		}
	}
}

// TestMeantAgent: a name that is no agent's is told with the agent that was meant, if any is like it.
func TestMeantAgent(t *testing.T) {
	for name, want := range map[string]string{"claude": "`palimpsest uninstall` (did you mean claude-code?): want", "codx": "(did you mean codex?)", "xyzxyz": "`palimpsest uninstall`: want"} {
		if status, _, errs := run(t, "uninstall", name); status != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d: %s", name, status, errs)
		}
	}
}

// TestInstallWithoutAgent: what is installed for an agent that is not there waits for it, which is told. No output
// begins with an empty line.
func TestInstallWithoutAgent(t *testing.T) {
	home := agentsHome(t)
	for _, folder := range []string{".pi", ".codex"} {
		if err := os.RemoveAll(filepath.Join(home, folder)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ command, warning string }{
		{"plugin install pi", "palimpsest: warning: pi was not found (no program pi on the PATH, no folder ~/.pi/agent): what is installed waits for it\n"},
		{"hook install codex", "palimpsest: warning: codex was not found (no program codex on the PATH, no folder ~/.codex): what is installed waits for it\n"},
		{"hook install codex", ""}, // its folder is there now
		{"hook install gemini-cli", ""},
		{"install cursor --yes", ""},
		{"install cursor --yes", ""}, // nothing to change
		{"uninstall --yes", ""},
	} {
		if status, out, said := run(t, strings.Fields(step.command)...); status != exitDone || said != step.warning || strings.HasPrefix(out, "\n") || strings.Contains(out, "\n\n\n") {
			t.Errorf("%s: exit status %d: %s%s", step.command, status, out, said)
		}
	}
}
