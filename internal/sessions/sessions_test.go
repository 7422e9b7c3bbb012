package sessions_test

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestMain hides the sessions of who runs the tests.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		panic(err)
	}
	for _, variable := range []string{"HOME", "USERPROFILE"} {
		os.Setenv(variable, home)
	}
	for _, agent := range sessions.Agents() {
		if variable := transcript.Format(agent).Place().Variable; variable != "" {
			os.Unsetenv(variable)
		}
	}
	status := m.Run()
	os.RemoveAll(home)
	os.Exit(status)
}

// pathOf is the path of the session that a name means.
func pathOf(t *testing.T, name string) string {
	t.Helper()
	s, _, err := new(sessions.Finder).Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	return s.Path
}

// projects makes Claude Code's folder with a session in each of some projects.
func projects(t *testing.T, names ...string) (folder string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", home)
	folder = filepath.Join(home, "projects")
	for _, name := range names {
		dir := filepath.Join(folder, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".jsonl"), []byte("{}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestLinkedFolder: a folder of sessions may be a link to where they are.
func TestLinkedFolder(t *testing.T) {
	folder := projects(t, "a", "b")
	if err := os.Rename(folder, folder+"-elsewhere"); err != nil {
		t.Fatal(err)
	}
	if found, err := new(sessions.Finder).Find("claude-code"); err != nil || len(found) > 0 {
		t.Errorf("nothing is there: %v, %v", found, err)
	}
	if err := os.Symlink(folder+"-elsewhere", folder); err != nil {
		t.Skip("no links here: ", err)
	}
	found, err := new(sessions.Finder).Find("claude-code")
	if err != nil || len(found) != 2 || found[0].Project == found[1].Project {
		t.Errorf("%v, %v", found, err)
	}
}

// TestUnreadableFolder: one folder that cannot be read does not hide the others, and is an
// error where nothing else is found.
func TestUnreadableFolder(t *testing.T) {
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("here all folders can be read")
	}
	folder := projects(t, "a", "b", "c")
	closed := func(name string) {
		t.Helper()
		dir := filepath.Join(folder, name)
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o755) })
	}
	closed("a")
	found, err := new(sessions.Finder).Find("claude-code")
	if err != nil || len(found) != 2 {
		t.Errorf("%v, %v", found, err)
	}
	closed("b")
	closed("c")
	if found, err := new(sessions.Finder).Find("claude-code"); err == nil || len(found) > 0 {
		t.Errorf("nothing can be read: %v, %v", found, err)
	}
}

// write makes the files of a folder, by their paths.
func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSubagents: what another agent started is no session of its own; the session that it works for
// counts it.
func TestSubagents(t *testing.T) {
	home := t.TempDir()
	for _, variable := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(variable, home)
	}
	for _, variable := range []string{"CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR", "KIMI_CODE_HOME"} {
		t.Setenv(variable, "")
	}
	const (
		main, thread = "0b0f0000-1111-4222-8333-000000000001", "0199aaaa-0000-7000-8000-000000000001"
		sub, nested  = "0199aaaa-0000-7000-8000-000000000002", "0199aaaa-0000-7000-8000-000000000003"
		side         = `{"type":"user","uuid":"u","isSidechain":true,"agentId":"a","sessionId":"` + main + `","message":{"role":"user","content":"Look."}}` + "\n"
	)
	of := func(id, parent string) string {
		return `{"type":"session_meta","payload":{"id":"` + id + `","source":{"subagent":{"thread_spawn":{"parent_thread_id":"` + parent + `"}}}}}` + "\n"
	}
	write(t, home, map[string]string{
		".claude/projects/-w/" + main + ".jsonl":                      `{"type":"user","uuid":"u","sessionId":"` + main + `","message":{"role":"user","content":"Hi."}}` + "\n",
		".claude/projects/-w/" + main + "/subagents/agent-1.jsonl":    side,
		".claude/projects/-w/" + main + "/tool-results/3f.jsonl":      "{}\n",
		".claude/projects/-w/agent-2.jsonl":                           side, // where older versions kept them
		".codex/sessions/2026/11/28/rollout-x-" + thread + ".jsonl":   `{"type":"session_meta","payload":{"id":"` + thread + `"}}` + "\n",
		".codex/sessions/2026/11/28/rollout-x-" + sub + ".jsonl":      of(sub, thread),
		".codex/archived_sessions/rollout-x-" + nested + ".jsonl":     of(nested, sub),
		".gemini/tmp/w/chats/session-1.json":                          `{"sessionId":"g","projectHash":"h","messages":[]}`,
		".gemini/tmp/w/chats/session-2.json":                          `{"sessionId":"h","projectHash":"h","kind":"subagent","messages":[]}`,
		".codex/sessions/2026/11/28/not-a-rollout-" + thread + ".txt": "{}",
	})
	all, err := new(sessions.Finder).Find("")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, s := range all {
		got[s.ID] = s.Subagents
	}
	if want := map[string]int{main: 2, thread: 2, "1": 0}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestKimi: the main agent's log is the session, under the name of its folder.
func TestKimi(t *testing.T) {
	home := t.TempDir()
	t.Setenv("KIMI_CODE_HOME", home)
	said := `{"type":"context.append_message","time":1,"message":{"role":"user","content":[{"type":"text","text":"Count the plums."}]}}` + "\n"
	write(t, home, map[string]string{
		"sessions/wd_shop_1a2b/session_7c/agents/main/wire.jsonl":    said,
		"sessions/wd_shop_1a2b/session_7c/agents/agent-0/wire.jsonl": said,
		"sessions/wd_shop_1a2b/session_7c/logs/kimi.log":             "started",
		"sessions/wd_shop_1a2b/session_7c/state.json":                `{"title":"Plums","cwd":"/src/shop"}`,
	})
	for folder, want := range map[string]int{"/src": 0, "/src/sho": 1} { // a project that is left out
		if all, err := (&sessions.Finder{Exclude: []string{folder}}).Find("kimi-code"); err != nil || len(all) != want {
			t.Errorf("without %s: %v, %v", folder, all, err)
		}
	}
	f := new(sessions.Finder)
	all, err := f.Find("kimi-code")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if s := all[0]; s.ID != "session_7c" || s.Project != "wd_shop_1a2b" || s.Subagents != 1 || s.FirstRequest() != "Count the plums." {
		t.Errorf("%+v", s)
	}
	if f.Describe(all); all[0].Title != "Plums" || all[0].Dir != "/src/shop" {
		t.Errorf("%+v", all[0].About)
	}
}

// TestCursor: transcripts lie below one folder of a project, in one of their own or not, with their sub-agents.
func TestCursor(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	said := `{"role":"user","message":{"content":[{"type":"text","text":"<user_query>\nCount the plums.\n</user_query>"}]}}` + "\n"
	write(t, filepath.Join(home, ".cursor", "projects", "src-shop"), map[string]string{
		"agent-transcripts/7c/7c.jsonl":           said,
		"agent-transcripts/7c/subagents/8d.jsonl": said,
		"agent-transcripts/9e.jsonl":              said,
		"terminals/1.jsonl":                       said,
	})
	f := new(sessions.Finder)
	all, err := f.Find("cursor")
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for _, s := range all {
		if s.Project != "src-shop" || s.FirstRequest() != "Count the plums." || s.Subagents != map[string]int{"7c": 1}[s.ID] {
			t.Errorf("%+v", s)
		}
	}
	f.Exclude = []string{"/src/shop"}
	if all, err := f.Find("cursor"); err != nil || len(all) > 0 {
		t.Error(all, err)
	}
}

// TestMissingSession: sub-agents whose session is not there are told.
func TestMissingSession(t *testing.T) {
	folder := projects(t, "a")
	write(t, folder, map[string]string{
		"a/a/subagents/agent-1.jsonl":    "{}\n",
		"a/gone/subagents/agent-2.jsonl": "{}\n",
		"a/gone/subagents/agent-3.jsonl": "{}\n",
	})
	found, unread, err := new(sessions.Finder).Search("claude-code")
	if err != nil || len(found) != 1 || found[0].Subagents != 1 || len(unread) != 1 || !strings.Contains(unread[0].Error(), "2 of sub-agents are not listed") {
		t.Errorf("%v, %v, %v", found, unread, err)
	}
}

// TestThreads: a thread of Codex is one session, under the id by which Codex resumes it.
func TestThreads(t *testing.T) {
	t.Setenv("CODEX_HOME", filepath.Join(corpus.Dir(t, "cases/agents/codex-fork-rewind"), "codex-home"))
	all, err := new(sessions.Finder).Find("codex")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range all {
		got[s.ID] = s.FirstRequest()
	}
	want := map[string]string{
		"01a222a4-9c98-7213-a1af-7eebc22b1557": "In this fork, add an index on yield(day).",
		"01a222a4-9b58-7790-b15c-303b2f7cdf08": "Rule: never write to the seeds table. Use port 5544 for the orchard database.",
		"01a222a4-12c1-75d0-ab02-ba45b5c29842": "Rule: never touch the seeds table. Rename the harvest table to yield.",
		"01a222a4-adb5-7400-8021-d554c5d29e98": "Archived talk about pruning.",
	}
	if len(all) != len(want) || !maps.Equal(got, want) {
		t.Errorf("%d sessions: %v, want %v", len(all), got, want)
	}
	file, err := sessions.Open(pathOf(t, "01a222a4-9b58-7790-b15c-303b2f7cdf08"), nil)
	if err != nil || file.Transcripts[0].Thread.Len() != 10 {
		t.Errorf("%v, %v", file, err)
	}
}
