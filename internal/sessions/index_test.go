package sessions_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// ccSession is a session of Claude Code in a folder, of two messages.
func ccSession(id, dir, first string) string {
	return fmt.Sprintf(`{"type":"user","uuid":"u","sessionId":%[1]q,"cwd":%[2]q,"message":{"role":"user","content":%[3]q}}
{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":%[1]q,"message":{"role":"assistant","id":"m","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":5,"cache_read_input_tokens":1000,"output_tokens":7}}}
{"type":"ai-title","sessionId":%[1]q,"aiTitle":"About %[3]s"}
`, id, dir, first)
}

// finder makes a finder of sessions of Claude Code, in two folders of settings.
func finder(t *testing.T) (f *sessions.Finder, folder string) {
	t.Helper()
	folder = projects(t)
	other := t.TempDir()
	write(t, folder, map[string]string{
		"-src-shop/0a0a0a0a-0001.jsonl": ccSession("0a0a0a0a-0001", "/src/shop", "plums"),
		"-src-bank/0a0a0a0a-0002.jsonl": ccSession("0a0a0a0a-0002", "/src/bank", "interest"),
	})
	write(t, other, map[string]string{"projects/-src-old/0b0b0b0b-0003.jsonl": ccSession("0b0b0b0b-0003", "/src/old", "pears")})
	return &sessions.Finder{Folders: map[string][]string{"claude-code": {other, filepath.Dir(folder)}}, Keep: t.TempDir()}, folder
}

// list finds and describes all sessions, by their ids.
func list(t *testing.T, f *sessions.Finder) map[string]sessions.Session {
	t.Helper()
	all, err := f.Find("")
	if err != nil {
		t.Fatal(err)
	}
	f.Describe(all)
	f.Shown(all)
	found := map[string]sessions.Session{}
	for _, s := range all {
		found[s.ID] = s
	}
	if len(found) != len(all) {
		t.Errorf("listed twice: %v", all)
	}
	return found
}

// TestDescribe: a session's title, first words, folder and tokens are found, in each folder of settings.
func TestDescribe(t *testing.T) {
	f, _ := finder(t)
	found := list(t, f)
	if len(found) != 3 || found["0b0b0b0b-0003"].Dir != "/src/old" {
		t.Errorf("%v", found)
	}
	want := sessions.About{Title: "About plums", First: "plums", Dir: "/src/shop", Tokens: 1012}
	if got := found["0a0a0a0a-0001"].About; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestDescribeLarge: of a large file the beginning and the end tell.
func TestDescribeLarge(t *testing.T) {
	f, folder := finder(t)
	const id = "0c0c0c0c-0004"
	line := `{"type":"user","uuid":"u%d","parentUuid":"u%d","sessionId":"` + id + `","message":{"role":"user","content":"` + strings.Repeat("word ", 300) + `"}}` + "\n"
	text := ccSession(id, "/src/large", "quinces")
	for n := range 1000 {
		text += fmt.Sprintf(line, n, n-1)
	}
	text += strings.NewReplacer("quinces", "figs", `"output_tokens":7`, `"output_tokens":70`, `"a"`, `"b"`).Replace(ccSession(id, "/src/large", "quinces"))
	write(t, folder, map[string]string{"-src-large/" + id + ".jsonl": text})
	want := sessions.About{Title: "About figs", First: "quinces", Dir: "/src/large", Tokens: 1075}
	if got := list(t, f)[id].About; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestIndex: what was read is not read again while the file has its size and time, and is when they change.
func TestIndex(t *testing.T) {
	f, folder := finder(t)
	list(t, f)
	path := filepath.Join(folder, "-src-shop", "0a0a0a0a-0001.jsonl")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	same := strings.Repeat(" ", int(info.Size()))
	for _, step := range []struct {
		text, title string
		changed     time.Time
	}{
		{same, "About plums", info.ModTime()},
		{same, "", info.ModTime().Add(time.Second)},
		{ccSession("0a0a0a0a-0001", "/src/shop", "apples"), "About apples", info.ModTime().Add(2 * time.Second)},
	} {
		if err := os.WriteFile(path, []byte(step.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, step.changed, step.changed); err != nil {
			t.Fatal(err)
		}
		if got := list(t, f)["0a0a0a0a-0001"].Title; got != step.title {
			t.Errorf("%q, want %q", got, step.title)
		}
	}
	kept := filepath.Join(f.Keep, "sessions.json")
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the index: %v, %v", info.Mode(), err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	list(t, f)
	if data, err := os.ReadFile(kept); err != nil || strings.Contains(string(data), "apples") {
		t.Errorf("what is deleted is still there: %s, %v", data, err)
	}
	for _, broken := range []string{"", "{", "[]", `{"version":0,"files":{}}`} {
		if err := os.WriteFile(kept, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := list(t, f); len(got) != 2 || got["0a0a0a0a-0002"].Title != "About interest" {
			t.Errorf("%q: %v", broken, got)
		}
	}
}

// TestExclude: sessions of a project that is left out are not found, and nothing of them is kept.
func TestExclude(t *testing.T) {
	f, _ := finder(t)
	list(t, f)
	kept := func() (text string) {
		t.Helper()
		files, err := os.ReadDir(f.Keep)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(filepath.Join(f.Keep, file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			text += string(data)
		}
		return text
	}
	if !strings.Contains(kept(), "interest") {
		t.Fatal("nothing is kept")
	}
	f.Exclude = []string{"/src/bank", "/src/sho"}
	for range 2 { // the second time from the index
		if _, found, err := f.Resolve("0a0a0a0a-0002"); found || err != nil {
			t.Errorf("it is found: %v", err)
		}
		if text := kept(); strings.Contains(text, "interest") || strings.Contains(text, "/src/bank/") {
			t.Errorf("kept: %s", text)
		}
		if got := list(t, f); len(got) != 2 || got["0a0a0a0a-0001"].Title == "" {
			t.Errorf("%v", got)
		}
	}
	f.Exclude = nil
	if got := list(t, f); len(got) != 3 || got["0a0a0a0a-0002"].Title != "About interest" {
		t.Errorf("%v", got)
	}
}

// TestResolve: a name is the number in the list last shown, an id or the beginning of one.
func TestResolve(t *testing.T) {
	f, folder := finder(t)
	t.Chdir(t.TempDir())
	write(t, ".", map[string]string{"2": ccSession("x", "/x", "x")})
	older := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(folder, "-src-shop", "0a0a0a0a-0001.jsonl"), older, older); err != nil {
		t.Fatal(err)
	}
	list(t, f)
	write(t, folder, map[string]string{"-src-new/0d0d0d0d-0005.jsonl": ccSession("0d0d0d0d-0005", "/src/new", "new")}) // it moves no numbers
	for _, tt := range []struct {
		name, id, wrong string
	}{
		{"3", "0a0a0a0a-0001", ""},
		{"2", "", ""}, // a file
		{"4", "", "there is no session number 4; the list last shown has 3"},
		{"0a0a0a0a-0001", "0a0a0a0a-0001", ""},
		{"0d0d0d", "0d0d0d0d-0005", ""},
		{"0d0d0", "", ""}, // too short
		{"0a0a0a0a", "", `2 ids of sessions begin with "0a0a0a0a": 0a0a0a0a-000`},
		{"nothing-like-it", "", ""},
		{"-", "", ""},
	} {
		s, found, err := f.Resolve(tt.name)
		if s.ID != tt.id || found != (tt.id != "") || (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: %q, %v, %v", tt.name, s.ID, found, err)
		}
	}
}

// TestNote: what somebody found out of a session is kept until the session changes, and not of projects that are left out.
func TestNote(t *testing.T) {
	f, folder := finder(t)
	s := list(t, f)["0a0a0a0a-0001"]
	if got := f.Noted(&s); got != nil {
		t.Errorf("noted before: %s", got)
	}
	f.Note(&s, []byte(`{"lost":2}`))
	if got := f.Noted(&s); string(got) != `{"lost":2}` {
		t.Errorf("noted: %s", got)
	}
	without := *f
	without.Exclude = []string{"/src/shop"}
	list(t, &without)
	if got := f.Noted(&s); got != nil {
		t.Errorf("kept of a project that is left out: %s", got)
	}
	s = list(t, f)["0a0a0a0a-0001"]
	f.Note(&s, []byte(`{"lost":2}`))
	if err := os.WriteFile(filepath.Join(folder, "-src-shop", "0a0a0a0a-0001.jsonl"), []byte(ccSession("0a0a0a0a-0001", "/src/shop", "cherries and plums")), 0o644); err != nil {
		t.Fatal(err)
	}
	s = list(t, f)["0a0a0a0a-0001"]
	if got := f.Noted(&s); got != nil {
		t.Errorf("kept of a session that changed: %s", got)
	}
	(&sessions.Finder{}).Note(&s, []byte(`{}`)) // keeps nothing
}
