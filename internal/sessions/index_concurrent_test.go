package sessions_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/sessions"
)

// indexed are the sessions in the index, by their ids.
func indexed(t *testing.T, f *sessions.Finder) (ids string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.Keep, "sessions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ix struct {
		Files map[string]struct{ About *sessions.About }
	}
	if err := json.Unmarshal(data, &ix); err != nil {
		t.Fatal(err)
	}
	for n := range 9 {
		for path, file := range ix.Files {
			if strings.HasSuffix(path, fmt.Sprintf("-000%d.jsonl", n)) && file.About != nil {
				ids += fmt.Sprint(n)
			}
		}
	}
	return ids
}

// TestIndexMeanwhile: what two commands note at once stays, what is deleted goes, and projects that one of
// them leaves out do not come back with the other.
func TestIndexMeanwhile(t *testing.T) {
	f, folder := finder(t)
	all, err := f.Find("")
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	for i := range all { // each by a command of its own, which began before the others ended
		one := all[i : i+1]
		sessions.WhileOpen(f, one, func() {
			if i == 0 {
				list(t, f)
				write(t, folder, map[string]string{"-src-new/0d0d0d0d-0005.jsonl": ccSession("0d0d0d0d-0005", "/src/new", "medlars")})
				list(t, f)
			}
		})
	}
	if got := indexed(t, f); got != "1235" {
		t.Errorf("%s are indexed", got)
	}
	if err := os.Remove(filepath.Join(folder, "-src-new", "0d0d0d0d-0005.jsonl")); err != nil {
		t.Fatal(err)
	}
	list(t, f)
	if got := indexed(t, f); got != "123" {
		t.Errorf("one was deleted, %s are indexed", got)
	}
	bank, err := f.Find("")
	if err != nil {
		t.Fatal(err)
	}
	sessions.WhileOpen(f, bank, func() {
		without := *f
		without.Exclude = []string{"/src/bank"}
		list(t, &without)
	})
	if got := indexed(t, f); got != "13" {
		t.Errorf("/src/bank is left out, %s are indexed", got)
	}
}

// TestIndexProcesses: processes that list at once all list everything, and leave a whole index and nothing else.
func TestIndexProcesses(t *testing.T) {
	if os.Getenv("INDEX_KEEP") != "" {
		f := &sessions.Finder{Keep: os.Getenv("INDEX_KEEP"), Folders: map[string][]string{"claude-code": {os.Getenv("INDEX_HOME")}}}
		for range 20 {
			if found := list(t, f); len(found) != 2 {
				t.Fatalf("%d sessions", len(found))
			}
			if err := os.Remove(filepath.Join(f.Keep, "sessions.json")); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		list(t, f)
		return
	}
	f, folder := finder(t)
	var running []*exec.Cmd
	for range 3 {
		c := exec.Command(os.Args[0], "-test.run=^TestIndexProcesses$")
		c.Env = append(os.Environ(), "INDEX_KEEP="+f.Keep, "INDEX_HOME="+filepath.Dir(folder))
		c.Stdout = new(strings.Builder)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, c)
	}
	for _, c := range running {
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %s", err, c.Stdout)
		}
	}
	f.Folders = nil
	list(t, f)
	if got := indexed(t, f); got != "12" {
		t.Errorf("%s are indexed", got)
	}
	left, err := os.ReadDir(f.Keep)
	if err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}
