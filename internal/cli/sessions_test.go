package cli

import (
	"bytes"
	"context"
	"database/sql"
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
		filepath.Join(home, ".codex/sessions/rollout-5.jsonl"), // not where the variable says, but usual
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
	if status != 0 || len(lines) != 6 {
		t.Fatalf("status %d:\n%s", status, out)
	}
	for i, want := range []string{"codex", "gemini-cli", "pi", "codex", "claude-code"} {
		if !strings.Contains(lines[i+1], want) {
			t.Errorf("line %d is %q", i+1, lines[i+1])
		}
	}
	if _, out, _ := run("--json"); !strings.Contains(out, `"project":"-src-shop"`) || !strings.Contains(out, `"project":"shop"`) {
		t.Errorf("the projects are not named:\n%s", out)
	}
	if status, out, _ := run("5"); status != 0 || out != filepath.Join(home, ".claude", "projects", "-src-shop", "one.jsonl")+"\n" {
		t.Errorf("number 5: status %d, %q", status, out)
	}
	if _, out, _ := run("--json", "--agent", "codex"); !strings.Contains(out, `"agent":"codex"`) && !strings.Contains(out, `"agent": "codex"`) {
		t.Errorf("json: %s", out)
	}
	if _, out, _ := run("--most", "1"); !strings.Contains(out, "and 4 more") {
		t.Errorf("most: %s", out)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{{[]string{"9"}, 2, "no session number 9; the list last shown has 5"}, {[]string{"x"}, 2, "neither the number nor the id"}, {[]string{"1", "2"}, 2, "at most"}, {[]string{"--agent", "emacs"}, 2, "emacs"}} {
		if status, _, err := run(c.args...); status != c.status || !strings.Contains(err, c.says) {
			t.Errorf("%v: status %d, %q", c.args, status, err)
		}
	}
}

// TestSessionsOfDatabase: a session in opencode's database is listed, and stands for a
// FILE by its id and by its path.
func TestSessionsOfDatabase(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	file := filepath.Join(data, "opencode", "opencode.db")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE session (id, parent_id, directory, title, time_updated);
		CREATE TABLE message (id, session_id, time_created, data);
		CREATE TABLE part (id, message_id, session_id, data);
		INSERT INTO session VALUES ('ses_1234', NULL, '/src/shop', 'Prices', 1777000000000);
		INSERT INTO message VALUES ('m1', 'ses_1234', 1, '{"role":"user"}'), ('m2', 'ses_1234', 2, '{"role":"assistant"}');
		INSERT INTO part VALUES ('p1', 'm1', 'ses_1234', '{"type":"text","text":"Round prices to cents."}'), ('p2', 'm2', 'ses_1234', '{"type":"text","text":"Done."}')`); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := run(t, "sessions", "--agent", "opencode"); status != exitDone || !strings.Contains(out, "ses_1234") || !strings.Contains(out, "Prices") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	for _, name := range []string{"ses_1234", file + "#ses_1234"} {
		if status, out, errs := run(t, "inspect", name); status != exitDone || !strings.Contains(out, "opencode · 2 messages · 1 turn") {
			t.Errorf("%s: status %d: %s%s", name, status, out, errs)
		}
	}
	for _, name := range []string{"1", "ses_12"} { // the command says what that means
		if status, _, errs := run(t, "inspect", name); status != exitDone || !strings.Contains(errs, "palimpsest: "+name+" is the session ses_1234 of opencode, changed ") || !strings.Contains(errs, `"Prices"`) {
			t.Errorf("%s: status %d: %s", name, status, errs)
		}
	}
	if status, _, errs := run(t, "inspect", file+"#ses_0"); status == exitDone || !strings.Contains(errs, `no session "ses_0"`) {
		t.Errorf("status %d: %s", status, errs)
	}
}

// TestNearestName: a name that is neither a file's nor a session's is told with the nearest one.
func TestNearestName(t *testing.T) {
	sessionOnMachine(t)
	putFile(t, "prompt.json", "{}", 0o600)
	putFile(t, "p", "{}", 0o600)
	const none, lists = "there is no file, no session and no stored conversation ", ": `palimpsest sessions` and `palimpsest threads` list what there is\n"
	for name, want := range map[string]string{
		"promt.json":      none + "promt.json (did you mean prompt.json?)" + lists,
		"./promt.json":    none + "./promt.json (did you mean ./prompt.json?)" + lists,
		"91bfefb3":        none + "91bfefb3 (did you mean 91bfefb2?)" + lists,
		onlyID[:35] + "7": none + onlyID[:35] + "7 (did you mean " + onlyID + "?)" + lists,
		"0cf3db51":        none + "0cf3db51" + lists,
	} {
		for _, command := range []string{"inspect", "lost", "explain"} {
			if status, _, said := run(t, command, name); status != exitFailed || said != "palimpsest: "+want {
				t.Errorf("%s %s: exit status %d: %s", command, name, status, said)
			}
		}
	}
}
