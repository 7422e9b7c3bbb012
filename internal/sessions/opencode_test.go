package sessions_test

import (
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// database makes one like opencode's, with a session of one turn, the session of a
// sub-agent and an empty one.
func database(t *testing.T, path string) {
	t.Helper()
	fill(t, path,
		`PRAGMA journal_mode = WAL`,
		`CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, title text NOT NULL, model text, revert text, time_updated integer NOT NULL)`,
		`CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, data text NOT NULL)`,
		`CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, data text NOT NULL)`,
		`INSERT INTO session VALUES ('ses_one', NULL, '/src/shop', 'Prices', '{"id":"claude-sonnet-4-5","providerID":"anthropic"}', NULL, 1777000000000),
			('ses_sub', 'ses_one', '/src/shop', 'Looking', NULL, NULL, 1777000000001), ('ses_empty', NULL, '/src/shop', 'New', NULL, NULL, 1777000000002)`,
		`INSERT INTO message VALUES ('msg_1', 'ses_one', 1, '{"role":"user"}'), ('msg_2', 'ses_one', 2, '{"role":"assistant","modelID":"claude-sonnet-4-5","providerID":"anthropic"}'), ('msg_3', 'ses_sub', 1, '{"role":"user"}')`,
		`INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_one', '{"type":"text","text":"Round prices to cents."}'),
			('prt_2', 'msg_2', 'ses_one', '{"type":"step-start"}'), ('prt_3', 'msg_2', 'ses_one', '{"type":"tool","tool":"bash","callID":"c1","state":{"status":"completed","input":{"command":"ls"},"output":"price.go"}}'),
			('prt_4', 'msg_2', 'ses_one', '{"type":"text","text":"Done."}'), ('prt_5', 'msg_3', 'ses_sub', '{"type":"text","text":"Look."}')`,
	)
}

// TestOpenCode: sessions of opencode's database are listed without those of its
// sub-agents, and read as its export is.
func TestOpenCode(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("XDG_DATA_HOME", "")
	if all, err := new(sessions.Finder).Find("opencode"); err != nil || len(all) > 0 {
		t.Fatal("nothing is there:", all, err)
	}
	path := filepath.Join(home, ".local", "share", "opencode", "opencode.db")
	database(t, path)
	all, err := new(sessions.Finder).Find("")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	s := all[0]
	if s.ID != "ses_one" || s.Agent != "opencode" || s.Project != "/src/shop" || s.Bytes < 150 || s.Changed.UnixMilli() != 1777000000000 {
		t.Errorf("%+v", s)
	}
	if first := s.FirstRequest(); first != "Round prices to cents." {
		t.Errorf("%q", first)
	}
	file, err := sessions.Open(pathOf(t, "ses_one"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := file.Transcripts[0]
	if file.Format != "opencode" || got.Title != "Prices" || got.Dir != "/src/shop" || got.Model != "claude-sonnet-4-5" || got.Thread.ID() != "ses_one" || got.Thread.Len() != 3 {
		t.Errorf("%s %+v", file.Format, got)
	}
	if calls := len(got.Thread.At(1).Calls()); calls != 1 {
		t.Error(calls, "calls")
	}
	for name, want := range map[string]string{"ses_two": `no session "ses_two"`, "ses_empty": "no messages"} {
		if _, err := sessions.Open(path+"#"+name, nil); err == nil || name == "ses_two" && !errors.Is(err, sessions.ErrName) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	t.Chdir(filepath.Dir(path))
	if _, err := sessions.Open("opencode.db#ses_one", nil); err != nil {
		t.Error("by a relative path:", err)
	}
	if _, err := sessions.Open(path+"#ses_one", &transcript.Options{MaxLine: 50}); !errors.Is(err, transcript.ErrTooLong) {
		t.Error(err)
	}
	// What is there and is no database of sessions is named.
	other := filepath.Join(t.TempDir(), "opencode", "opencode.db")
	if err := errors.Join(os.MkdirAll(filepath.Dir(other), 0o755), os.WriteFile(other, []byte("no database at all"), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_DATA_HOME", filepath.Dir(filepath.Dir(other)))
	if _, unread, err := new(sessions.Finder).Search("opencode"); err != nil || len(unread) != 1 || !strings.Contains(unread[0].Error(), other) {
		t.Error(unread, err)
	}
}

// TestOpenCode2: what version 2 keeps is the session, and tables from before an upgrade are its past. Sessions
// that are only there are read from there.
func TestOpenCode2(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_DATA_HOME", home)
	path := filepath.Join(home, "opencode", "opencode.db")
	database(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, do := range []string{
		`INSERT INTO session VALUES ('ses_old', NULL, '/src/old', 'Old', NULL, NULL, 1777000000003)`,
		`INSERT INTO message VALUES ('msg_4', 'ses_old', 1, '{"role":"user"}')`,
		`INSERT INTO part VALUES ('prt_6', 'msg_4', 'ses_old', '{"type":"text","text":"Only in the old tables."}')`,
		`CREATE TABLE session_v2 (id text PRIMARY KEY, parent_id text, fork_session_id text, directory text NOT NULL, title text, revert text, model text, time_updated integer NOT NULL)`,
		`CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL, data text NOT NULL)`,
		`INSERT INTO session_v2 VALUES ('ses_one', NULL, NULL, '/src/shop', 'Prices', NULL, '{"id":"claude-opus-5-5","providerID":"anthropic"}', 1777000000009),
			('ses_agent', 'ses_one', NULL, '/src/shop', NULL, NULL, NULL, 1777000000010), ('ses_fork', NULL, 'ses_one', '/src/shop', NULL, '{"messageID":"m9"}', NULL, 1777000000011)`,
		`INSERT INTO session_message VALUES ('m2', 'ses_one', 'assistant', 2, '{"content":[{"type":"tool","id":"c1","name":"read","state":{"status":"completed","input":{"filePath":"a"},"content":[{"type":"text","text":"5544"}]}},{"type":"text","text":"Read."}]}'),
			('m1', 'ses_one', 'user', 1, '{"text":"Now in the new tables."}'), ('m3', 'ses_agent', 'user', 1, '{"text":"Look."}'),
			('m8', 'ses_fork', 'user', 1, '{"text":"Forked."}'), ('m9', 'ses_fork', 'user', 2, '{"text":"Taken back."}')`,
	} {
		if _, err := db.Exec(do); err != nil {
			t.Fatalf("%s: %v", do, err)
		}
	}
	all, err := new(sessions.Finder).Find("opencode")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range all {
		got[s.ID] = s.FirstRequest()
		if want := map[string]int{"ses_one": 1}[s.ID]; s.Subagents != want {
			t.Errorf("%s has %d sub-agents", s.ID, s.Subagents)
		}
	}
	want := map[string]string{"ses_one": "Now in the new tables.", "ses_old": "Only in the old tables.", "ses_fork": "Forked."}
	if len(all) != len(want) || !maps.Equal(got, want) {
		t.Errorf("%d sessions: %v, want %v", len(all), got, want)
	}
	one, err := sessions.Open(path+"#ses_one", nil)
	if err != nil {
		t.Fatal(err)
	}
	if tr := one.Transcripts[0]; tr.Thread.Len() != 4 || tr.Model != "claude-opus-5-5" || len(one.Report.Warnings) > 0 {
		t.Errorf("%d messages by %s, %v", tr.Thread.Len(), tr.Model, one.Report.Warnings)
	}
	fork, err := sessions.Open(path+"#ses_fork", nil)
	if err != nil {
		t.Fatal(err)
	}
	if tr := fork.Transcripts[0]; tr.Thread.Len() != 1 || len(tr.Side) != 1 || len(fork.Report.Warnings) != 1 || !strings.Contains(fork.Report.Warnings[0].Text, "forked from the session ses_one") {
		t.Errorf("%d messages, %v", tr.Thread.Len(), fork.Report.Warnings)
	}
	if _, err := sessions.Open(path+"#ses_one", &transcript.Options{MaxLine: 50}); !errors.Is(err, transcript.ErrTooLong) {
		t.Error(err)
	}
}

// TestUpgraded: of the case's upgraded database the live session is read.
func TestUpgraded(t *testing.T) {
	dir := corpus.Dir(t, "cases/agents/opencode-2")
	for _, name := range []string{"xdg-both", "xdg-v2", ""} {
		path := filepath.Join(dir, "export-v2.json")
		if name != "" {
			t.Setenv("XDG_DATA_HOME", filepath.Join(dir, name))
			if path = pathOf(t, "ses_orchard01"); path == "" {
				t.Fatalf("%s: not found", name)
			}
		}
		f, err := sessions.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr := f.Transcripts[0]
		if first := tr.Thread.At(0).Text(); !strings.Contains(first, "port 5544") || tr.Thread.Len() != 20 || tr.Dir != "/srv/orchard" || len(f.Report.Warnings) > 0 {
			t.Errorf("%s: %d messages in %s, the first is %q; %v", name, tr.Thread.Len(), tr.Dir, first, f.Report.Warnings)
		}
	}
}

// TestOpenCodeUndone: what was undone stands beside the session.
func TestOpenCodeUndone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "opencode.db")
	database(t, path)
	for revert, want := range map[string][2]int{`{"messageID":"msg_2"}`: {1, 2}, `{"messageID":"msg_2","partID":"prt_4"}`: {3, 1}} {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec(`UPDATE session SET revert = ? WHERE id = 'ses_one'`, revert)
		if err = errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		file, err := sessions.Open(path+"#ses_one", nil)
		if err != nil {
			t.Fatal(err)
		}
		got := file.Transcripts[0]
		if len(got.Side) != 1 || got.Thread.Len() != want[0] || got.Side[0].Thread.Len() != want[1] {
			t.Errorf("%s: %d messages, beside it %+v", revert, got.Thread.Len(), got.Side)
		}
	}
}
