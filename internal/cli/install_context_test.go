package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestInstallContextTools: with the flag each MCP server offers the context tools, where it was installed
// without them too; an installation without the flag leaves that, and uninstall takes all of it back.
func TestInstallContextTools(t *testing.T) {
	home := agentsHome(t)
	before := homeState(t, home)
	files := []string{
		".local/share/palimpsest/plugins/claude-code/.mcp.json", ".codex/config.toml", ".gemini/settings.json", ".copilot/mcp-config.json",
		".factory/mcp.json", ".config/kilo/kilo.jsonc", ".cursor/mcp.json",
	}
	offered := func() (n int) {
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(home, file))
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(strings.Fields(string(text)), "")
			name := map[string]string{".codex/config.toml": "codex", ".factory/mcp.json": "droid"}[file]
			if strings.Contains(all, `"--agent",`) && strings.Contains(all, `,"--context-tools"]`) && strings.Contains(all, name) {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		args []string
		want int
	}{
		{[]string{"install", "--yes"}, 0},
		{[]string{"install", "--yes", "--context-tools"}, len(files)},
		{[]string{"install", "--yes"}, len(files)},
	} {
		status, out, errs := run(t, step.args...)
		if status != exitDone {
			t.Fatal(errs)
		}
		if told := strings.Contains(out, "changes nothing for opencode, pi, openclaw, hermes"); told != slices.Contains(step.args, "--context-tools") {
			t.Errorf("%q: whose plugins have no such tools: %s", step.args, out)
		}
		if n := offered(); n != step.want {
			t.Errorf("%q: %d of %d servers offer the tools, want %d", step.args, n, len(files), step.want)
		}
	}
	if status, out, errs := run(t, "install", "--yes"); status != exitDone || !strings.Contains(out, "nothing to change") {
		t.Errorf("again: %s\n%s", errs, out)
	}
	if status, _, errs := run(t, "uninstall", "--yes"); status != exitDone || errs != "" {
		t.Error(errs)
	}
	sameHome(t, before, homeState(t, home))
	if status, _, errs := run(t, "plugin", "install", "claude-code", "--context-tools"); status != exitDone {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(filepath.Join(home, files[0]))
	if err != nil || !strings.Contains(string(text), `"--context-tools"`) {
		t.Error(err, string(text))
	}
}
