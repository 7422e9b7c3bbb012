package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/install"
)

// TestHook answers an agent's hooks as the agent asks them.
func TestHook(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	session, err := filepath.Abs("../../testdata/sessions/fix-retry.claude-code.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(in map[string]any, args ...string) (int, string, string) {
		body, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		status := Run(t.Context(), append([]string{"hook"}, args...), Streams{In: strings.NewReader(string(body)), Out: &out, Err: &errs})
		return status, out.String(), errs.String()
	}
	for _, agent := range []string{"claude-code", "codex"} {
		status, out, errs := ask(map[string]any{"session_id": "s", "transcript_path": session, "source": "compact"}, agent, "SessionStart")
		text := gjson.Get(out, "hookSpecificOutput.additionalContext").Str
		if status != exitDone || errs != "" || !strings.Contains(text, "standard library only") {
			t.Errorf("%s: status %d, %s, %.300s", agent, status, errs, out)
		}
	}
	if status, out, _ := ask(map[string]any{"transcript_path": session}, "claude-code", "PreCompact"); status != exitDone || !strings.Contains(out, "why it was made") {
		t.Errorf("status %d: %s", status, out)
	}
	long := map[string]any{"session_id": "s", "tool_response": map[string]any{"stdout": strings.Repeat("a line\n", 10_000)}}
	status, out, _ := ask(long, "claude-code", "PostToolUse")
	kept, _ := filepath.Glob(filepath.Join(data, "palimpsest", "outputs", "s", "*.txt"))
	if status != exitDone || len(kept) != 1 || !strings.Contains(out, kept[0]) {
		t.Errorf("status %d, files %q: %.300s", status, kept, out)
	}
	t.Run("what cannot be removed", func(t *testing.T) {
		if os.Geteuid() == 0 || runtime.GOOS == "windows" {
			t.Skip("here it can be removed")
		}
		old := filepath.Join(data, "palimpsest", "outputs", "old")
		if err := os.MkdirAll(filepath.Join(old, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(old, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(old, 0o500); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(old, 0o700)
		if status, out, errs := ask(long, "claude-code", "PostToolUse"); status != exitDone || !strings.Contains(out, kept[0]) || !strings.Contains(errs, "warning") {
			t.Errorf("status %d: %s: %.300s", status, errs, out)
		}
	})
	if status, out, _ := ask(long, "claude-code", "PostToolUse", "--offload", "100000"); status != exitDone || out != "" {
		t.Errorf("status %d with a higher limit: %.300s", status, out)
	}
	for _, off := range []string{"codex", "91bfefb2"} { // an agent, and a session
		switched := off
		if off != "codex" {
			switched = "s-" + off
		}
		in := map[string]any{"session_id": "s-91bfefb2", "transcript_path": session}
		if err := install.UpdateSwitches(t.Context(), filepath.Join(data, "palimpsest"), func(switches *install.Switches) error {
			switches.Set(switched, true)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if status, out, errs := ask(in, "codex", "SessionStart"); status != exitDone || out != "" || errs != "" {
			t.Errorf("%s is off: status %d, %s %.300s", switched, status, errs, out)
		}
		if status, out, errs := run(t, "on", switched); status != exitDone || !strings.Contains(out, "on for "+switched) {
			t.Errorf("status %d, %s%s", status, out, errs)
		}
		if _, out, _ := ask(in, "codex", "SessionStart"); out == "" {
			t.Errorf("%s is on, and the hook says nothing", switched)
		}
	}
	// Whatever is wrong, nothing is answered, and the status is not the one by which an
	// agent is told to stop.
	for name, args := range map[string][]string{
		"no session":      {"claude-code", "SessionStart"},
		"unknown event":   {"claude-code", "Stop"},
		"unknown agent":   {"emacs", "Stop"},
		"unknown flag":    {"claude-code", "SessionStart", "--wrong"},
		"no event":        {"claude-code"},
		"no such session": {"codex", "SessionStart"},
	} {
		in := map[string]any{}
		if name == "no such session" {
			in["transcript_path"] = filepath.Join(data, "none.jsonl")
		}
		status, out, errs := ask(in, args...)
		if status == exitUsage || out != "" || (status == exitDone) != (name == "no session") || (errs == "") != (status == exitDone) {
			t.Errorf("%s: status %d, %q, %q", name, status, out, errs)
		}
	}
}

// TestHookSettings adds hooks to the settings of agents and takes them out.
func TestHookSettings(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("CODEX_HOME", filepath.Join(home, "elsewhere"))
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(home, "palimpsest")
	if err := os.Symlink(exe, bin); err != nil {
		t.Skip("no links here: ", err)
	}
	t.Setenv("PATH", home)
	for agent, file := range map[string]string{"claude-code": ".claude/settings.json", "codex": "elsewhere/hooks.json", "gemini-cli": ".gemini/settings.json"} {
		path := filepath.Join(home, filepath.FromSlash(file))
		status, out, errs := run(t, "hook", "install", agent)
		text, err := os.ReadFile(path)
		if status != exitDone || err != nil || !strings.Contains(out, "hooks") || !strings.Contains(string(text), `"palimpsest hook `+agent+" ") {
			t.Errorf("%s: status %d, %v, %s %s: %s", agent, status, err, out, errs, text)
		}
		if status, out, _ := run(t, "hook", "install", agent); status != exitDone || !strings.Contains(out, "nothing to change") {
			t.Errorf("%s: status %d: %s", agent, status, out)
		}
		status, _, errs = run(t, "hook", "remove", agent)
		if _, err := os.Stat(filepath.Dir(path)); status != exitDone || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: status %d, %v, %s", agent, status, err, errs)
		}
	}
	if err := os.Mkdir(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude", "settings.json"), []byte("// mine\n{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := run(t, "hook", "install", "claude-code"); status != exitFailed || !strings.Contains(errs, "settings.json") || !strings.Contains(errs, "by hand") {
		t.Errorf("status %d: %s", status, errs)
	}
	if status, _, errs := run(t, "hook", "install", "emacs"); status != exitUsage || !strings.Contains(errs, "claude-code") {
		t.Errorf("status %d: %s", status, errs)
	}
}
