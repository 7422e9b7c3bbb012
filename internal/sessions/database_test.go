package sessions_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// fill makes a database by statements.
func fill(t *testing.T, path string, statements ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, do := range statements {
		if _, err := db.Exec(do); err != nil {
			t.Fatalf("%s: %v", do, err)
		}
	}
}

// crush are the tables of Crush with a session, that of a sub-agent and an empty one.
var crush = []string{
	`CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL, message_count INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0,
		completion_tokens INTEGER NOT NULL DEFAULT 0, cost REAL NOT NULL DEFAULT 0.0, updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL, summary_message_id TEXT)`,
	`CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL,
		updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT, is_summary_message INTEGER DEFAULT 0 NOT NULL)`,
	`INSERT INTO sessions (id, parent_session_id, title, updated_at, created_at) VALUES ('one-11112222', NULL, 'Plums', 1795168820, 1795168800), ('b$$c', 'one-11112222', 'Agent', 1795168821, 1), ('empty', NULL, 'New', 1795168822, 1)`,
	`INSERT INTO messages (id, session_id, role, parts, model, created_at, updated_at, provider) VALUES
		('z', 'one-11112222', 'user', '[{"type":"text","data":{"text":"Count the plums."}}]', '', 1795168800, 1, NULL),
		('a', 'one-11112222', 'assistant', '[{"type":"tool_call","data":{"id":"c","name":"bash","input":"{}"}}]', 'm-1', 1795168800, 1, 'x'),
		('y', 'one-11112222', 'tool', '[{"type":"tool_result","data":{"tool_call_id":"c","name":"bash","content":"412"}}]', '', 1795168801, 1, NULL),
		('q', 'b$$c', 'user', '[{"type":"text","data":{"text":"Look."}}]', '', 1, 1, NULL)`,
}

// goose are the tables of Goose's version 5 with a session of the user's and that of a sub-agent.
var goose = []string{
	`CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '', user_set_name BOOLEAN DEFAULT FALSE, session_type TEXT NOT NULL DEFAULT 'user',
		working_dir TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, extension_data TEXT DEFAULT '{}', total_tokens INTEGER)`,
	`CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,
		timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT)`,
	`INSERT INTO sessions (id, name, session_type, working_dir, updated_at) VALUES ('20261120_1', 'Plums', 'user', '/w/orchard', '2026-11-20 10:00:20'), ('20261120_2', 'Sub', 'sub_agent', '/w/orchard', '2026-11-20 10:00:21')`,
	`INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json) VALUES
		('20261120_1', 'user', '[{"type":"text","text":"Count the plums."}]', 1795168800, NULL),
		('20261120_1', 'assistant', '[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"bash","arguments":{}}}}]', 1795168800, '{"userVisible":true,"agentVisible":true}'),
		('20261120_1', 'user', '[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"412"}],"isError":false}}}]', 1795168801, NULL),
		('20261120_2', 'user', '[{"type":"text","text":"Look."}]', 1, NULL)`,
}

// TestDatabases: sessions in the databases of agents are listed without those of sub-agents, and read with every
// call and result.
func TestDatabases(t *testing.T) {
	for _, tt := range []struct {
		format    transcript.Format
		id, dir   string
		subagents int
		make      func(t *testing.T, data, project string)
	}{
		{"crush", "one-11112222", "PROJECT", 1, func(t *testing.T, data, project string) {
			write(t, data, map[string]string{"crush/projects.json": `{"projects":[{"path":"` + filepath.ToSlash(project) + `","data_dir":"` + filepath.ToSlash(project) + `/.crush"},{"path":"/gone","data_dir":"/gone/.crush"}]}`})
			fill(t, filepath.Join(project, ".crush", "crush.db"), crush...)
		}},
		{"goose", "20261120_1", "/w/orchard", 0, func(t *testing.T, data, _ string) {
			fill(t, filepath.Join(data, "goose", "sessions", "sessions.db"), goose...)
		}},
		{"goose", "20261120_1", "/w/orchard", 0, func(t *testing.T, data, _ string) { // before version 5
			old := append(append([]string{}, goose...), `DELETE FROM messages WHERE session_id = '20261120_2'`, `ALTER TABLE sessions DROP COLUMN session_type`)
			fill(t, filepath.Join(data, "goose", "sessions", "sessions.db"), old...)
		}},
		{"kilo", "ses_one", "/src/shop", 1, func(t *testing.T, data, _ string) { database(t, filepath.Join(data, "kilo", "kilo.db")) }},
	} {
		t.Run(string(tt.format), func(t *testing.T) {
			data, project := t.TempDir(), filepath.ToSlash(t.TempDir())
			t.Setenv("XDG_DATA_HOME", data)
			if all, err := new(sessions.Finder).Find(string(tt.format)); err != nil || len(all) > 0 {
				t.Fatal("nothing is there:", all, err)
			}
			tt.make(t, data, project)
			dir := strings.Replace(tt.dir, "PROJECT", project, 1)
			all, err := new(sessions.Finder).Find(string(tt.format))
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			s := all[0]
			if s.ID != tt.id || s.Agent != string(tt.format) || s.Project != dir || s.Subagents != tt.subagents || s.Bytes < 100 || s.Changed.Year() != 2026 || s.FirstRequest() == "" {
				t.Errorf("%+v", s)
			}
			file, err := sessions.Open(pathOf(t, tt.id), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := file.Transcripts[0]
			if file.Format != tt.format || got.Dir != dir || got.Title == "" || got.Thread.ID() != tt.id || len(file.Report.Warnings) > 0 || got.Thread.Len() < 3 {
				t.Errorf("%s %+v", file.Format, got)
			}
			call := got.Thread.At(1).Calls()
			r, ok := got.Thread.At(2).Result()
			if len(call) != 1 || !ok || r.CallID != call[0].ID || r.Text() == "" {
				t.Errorf("%+v, %+v", call, r)
			}
			if _, err := sessions.Open(s.Path+"9", nil); err == nil {
				t.Error("a session that is not there was read")
			}
			if _, err := sessions.Open(s.Path, &transcript.Options{MaxLine: 60}); err == nil {
				t.Error("a session over the limit was read")
			}
		})
	}
}

// TestMissingSessionOfDatabase: sub-agents whose session was deleted are told, and hide no other session.
func TestMissingSessionOfDatabase(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	path := filepath.Join(data, "kilo", "kilo.db")
	database(t, path)
	fill(t, path, `INSERT INTO session VALUES ('ses_lost', 'ses_gone', '/src/shop', 'Lost', NULL, NULL, 1777000000001)`, `INSERT INTO message VALUES ('msg_9', 'ses_lost', 1, '{"role":"user"}')`)
	found, unread, err := new(sessions.Finder).Search("kilo")
	if err != nil || len(found) != 1 || len(unread) != 1 || !strings.Contains(unread[0].Error(), "1 of sub-agents are not listed") || !strings.Contains(unread[0].Error(), "ses_lost") {
		t.Errorf("%v, %v, %v", found, unread, err)
	}
}

// TestAmp: threads of Amp are found, without deleted ones.
func TestAmp(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	thread := `{"v":1,"id":"T-1","created":1,"messages":[{"role":"user","content":[{"type":"text","text":"Count the plums."}]}]}`
	write(t, data, map[string]string{"amp/threads/T-1.json": thread, "amp/threads/.trash/T-2.json": thread, "amp/session.json": "{}"})
	all, err := new(sessions.Finder).Find("amp")
	if err != nil || len(all) != 1 || all[0].FirstRequest() != "Count the plums." {
		t.Errorf("%+v, %v", all, err)
	}
}
