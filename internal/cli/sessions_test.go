package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSessions: sessions are found where the agents keep them, by home and by the
// agents' own variables, the newest first, and a number gives a path.
func TestSessions(t *testing.T) {
	home, codex := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("CODEX_HOME", codex)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("PI_CODING_AGENT_DIR", "")
	t.Setenv("XDG_DATA_HOME", "")
	run := func(args ...string) (int, string, string) {
		var out, err bytes.Buffer
		status := Run(context.Background(), append([]string{"sessions"}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &err})
		return status, out.String(), err.String()
	}
	if status, out, _ := run(); status != 0 || out != "no sessions were found\n" {
		t.Errorf("nowhere: status %d, %q", status, out)
	}
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.Local)
	for i, name := range []string{
		filepath.Join(home, ".claude/projects/-src-shop/one.jsonl"),
		filepath.Join(codex, "sessions/2026/05/01/rollout-2026-05-01.jsonl"),
		filepath.Join(home, ".pi/agent/sessions/--src-shop--/three.jsonl"),
		filepath.Join(home, ".gemini/tmp/shop/chats/session-4.json"),
		filepath.Join(home, ".gemini/tmp/shop/logs.json"),      // no session
		filepath.Join(home, ".codex/sessions/rollout-5.jsonl"), // not where the variable says
	} {
		name = filepath.FromSlash(name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("{}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, now, now.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	status, out, _ := run()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 5 {
		t.Fatalf("status %d:\n%s", status, out)
	}
	for i, want := range []string{"gemini-cli", "pi", "codex", "claude-code"} {
		if !strings.Contains(lines[i+1], want) {
			t.Errorf("line %d is %q", i+1, lines[i+1])
		}
	}
	if _, out, _ := run("--json"); !strings.Contains(out, `"project":"-src-shop"`) || !strings.Contains(out, `"project":"shop"`) {
		t.Errorf("the projects are not named:\n%s", out)
	}
	if status, out, _ := run("4"); status != 0 || out != filepath.Join(home, ".claude", "projects", "-src-shop", "one.jsonl")+"\n" {
		t.Errorf("number 4: status %d, %q", status, out)
	}
	if _, out, _ := run("--json", "--agent", "codex"); !strings.Contains(out, `"agent":"codex"`) && !strings.Contains(out, `"agent": "codex"`) {
		t.Errorf("json: %s", out)
	}
	if _, out, _ := run("--most", "1"); !strings.Contains(out, "and 3 more") {
		t.Errorf("most: %s", out)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{{[]string{"9"}, 1, "4 sessions"}, {[]string{"x"}, 2, "no number and no id"}, {[]string{"1", "2"}, 2, "at most"}, {[]string{"--agent", "emacs"}, 2, "emacs"}} {
		if status, _, err := run(c.args...); status != c.status || !strings.Contains(err, c.says) {
			t.Errorf("%v: status %d, %q", c.args, status, err)
		}
	}
}
