package dir_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store/dir"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestTornLine: whatever a crash leaves of the last line, the lines before it
// are read, the loss is reported by every reader, and saving again mends it
// without touching the rest.
func TestTornLine(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, nil)
	th, p := session(t, "t")
	if err := s.Save(t.Context(), th, p); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, "threads", "t", "removed.jsonl")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	start := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	last := th.At(5).ID
	for end := start; end < len(whole); end++ {
		if err := os.WriteFile(file, whole[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		entries, damage, err := s.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		// Without its newline the line is still whole; without a byte it is not there.
		torn := end > start && end < len(whole)-1
		if complete := end == len(whole)-1; len(entries) != 3 && !complete || complete && len(entries) != 4 || torn != (len(damage) == 1) {
			t.Fatalf("cut at %d of %d: %d entries, damage %v", end-start, len(whole)-start, len(entries), damage)
		}
		if torn {
			if damage[0].Line != 4 || damage[0].Path != "threads/t/removed.jsonl" {
				t.Fatalf("damage %+v", damage)
			}
			if _, damage, _ := s.Recall(t.Context(), "quokka", nil); len(damage) != 1 {
				t.Fatal("Recall reports nothing")
			}
			if _, err := s.Artifact(t.Context(), string(last), ""); !errors.Is(err, artifact.ErrNotFound) || !strings.Contains(err.Error(), "removed.jsonl:4") {
				t.Fatalf("Artifact: %v", err)
			}
			if damage, err := s.Check(t.Context()); err != nil || len(damage) < 2 { // the line, and the plan that needs it
				t.Fatalf("check: %v, %v", damage, err)
			}
		}
		if err := s.Save(t.Context(), th, p); err != nil {
			t.Fatal(err)
		}
		if c, err := s.Artifact(t.Context(), string(last), ""); err != nil || !strings.Contains(c.Text, "marmoset") {
			t.Fatalf("after saving again: %+v, %v", c, err)
		}
		now, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(now, whole[:end]) {
			t.Fatalf("what was there was changed: %v", err)
		}
	}
}

// TestDamage: each kind of damage is reported by Check and hides nothing else.
func TestDamage(t *testing.T) {
	th, p := session(t, "t")
	id := p.Externalizations[0].ArtifactID
	content := filepath.Join("artifacts", id[4:6], id)
	removed := filepath.Join("threads", "t", "removed.jsonl")
	write := func(name, text string) func(string) error {
		return func(path string) error { return os.WriteFile(filepath.Join(path, name), []byte(text), 0o600) }
	}
	tests := map[string]struct {
		harm    func(path string) error
		where   string
		entries int
	}{
		"unfinished file":     {write(filepath.Join("threads", "t", ".tmp-0123"), "{"), ".tmp-0123", 4},
		"other content":       {write(content, "something else"), id + ".json", 4},
		"no content":          {func(path string) error { return os.Remove(filepath.Join(path, content)) }, id + ".json", 4},
		"no metadata":         {func(path string) error { return os.Remove(filepath.Join(path, content+".json")) }, content, 4},
		"half metadata":       {write(content+".json", `{"artifact_id": "art`), id + ".json", 4},
		"half plan":           {write(filepath.Join("threads", "t", "plans", "1.json"), `{"schema_v`), "plans/1.json", 4},
		"empty plan file":     {write(filepath.Join("threads", "t", "plans", "2.json"), ""), "plans/2.json", 4},
		"plan of the future":  {write(filepath.Join("threads", "t", "plans", "2.json"), `{"schema_version": 99}`), "plans/2.json", 4},
		"line of the future":  {write(removed, `{"v":2,"message_id":"x"}`+"\n"), "removed.jsonl:1", 0},
		"no line":             {write(removed, "\n\n[1]\n"), "removed.jsonl:3", 0},
		"unknown action":      {write(removed, `{"v":1,"message_id":"x","action":"burn"}`+"\n"), "removed.jsonl:1", 0},
		"zeros after a crash": {write(removed, "\x00\x00\x00"), "removed.jsonl:1", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			s := open(t, path, nil)
			if err := s.Save(t.Context(), th, p); err != nil {
				t.Fatal(err)
			}
			if err := tt.harm(path); err != nil {
				t.Fatal(err)
			}
			damage, err := s.Check(t.Context())
			if err != nil || !slices.ContainsFunc(damage, func(d dir.Damage) bool { return strings.Contains(d.String(), filepath.ToSlash(tt.where)) }) {
				t.Errorf("check: %v, %v", damage, err)
			}
			entries, _, err := s.List(t.Context(), "")
			if err != nil || len(entries) != tt.entries {
				t.Errorf("%d entries, %v", len(entries), err)
			}
			if err := s.Save(t.Context(), th, p); err != nil {
				t.Fatal(err)
			}
			for _, i := range []int{0, 2, 4, 5} {
				if c, err := s.Artifact(t.Context(), string(th.At(i).ID), ""); err != nil || c.Text == "" {
					t.Errorf("message %d after saving again: %v", i, err)
				}
			}
		})
	}
}

// TestSweepUnfinished leaves young temporary files to those who write them.
func TestSweepUnfinished(t *testing.T) {
	path := t.TempDir()
	s := open(t, path, nil)
	old, young := filepath.Join(path, ".tmp-old"), filepath.Join(path, ".tmp-young")
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, before, before); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
}

// TestOpen: a store is made in a new or empty directory only, privately, and
// what is none is left alone.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	if _, err := dir.Open(path, &dir.Options{ReadOnly: true}); !errors.Is(err, dir.ErrNotStore) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	s := open(t, path, nil)
	th, p := session(t, "t")
	if err := s.Save(t.Context(), th, p); err != nil {
		t.Fatal(err)
	}
	open(t, path, &dir.Options{ReadOnly: true})
	files := 0
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		if !e.IsDir() {
			files++
		}
		return nil
	})
	if err != nil || files != 6 { // README, first words, content, metadata, removed.jsonl, plan
		t.Errorf("%d files, %v", files, err)
	}

	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open(other, nil); !errors.Is(err, dir.ErrNotStore) || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("a directory with other files: %v", err)
	}
	if _, err := dir.Open(filepath.Join(other, "thesis.txt", "store"), nil); err == nil || !strings.Contains(err.Error(), "choose a directory") {
		t.Errorf("below a file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(path, "README.txt"), []byte("palimpsest store, format 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open(path, nil); !errors.Is(err, dir.ErrNotStore) {
		t.Errorf("a later format: %v", err)
	}
}

func TestUnwritable(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("the superuser may write anywhere, and Windows has no such modes")
	}
	path := t.TempDir()
	if err := os.Chmod(path, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Open(path, nil); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "choose a directory") {
		t.Errorf("got %v", err)
	}
}

func TestDefault(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	if got, err := dir.Default(); err != nil || got != filepath.Join(data, "palimpsest") {
		t.Errorf("got %s, %v", got, err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	t.Setenv("XDG_DATA_HOME", "relative")
	t.Setenv("HOME", data)
	if got, err := dir.Default(); err != nil || got != filepath.Join(data, ".local", "share", "palimpsest") {
		t.Errorf("got %s, %v", got, err)
	}
	t.Setenv("HOME", "")
	if got, err := dir.Default(); err == nil {
		t.Errorf("without a home: %s", got)
	}
}

// TestForgedNames: no thread id leads out of the store or into another thread.
func TestForgedNames(t *testing.T) {
	parent := t.TempDir()
	s := open(t, filepath.Join(parent, "store"), nil)
	ids := []string{"..", ".", "../../x", "/etc/passwd", `..\x`, "C:", "con", "CON.txt", "a", "A", "a.", "a ", "%", "%2e", "%2e%2e", "\x00", "x\x00y", "ü", "u\u0308",
		strings.Repeat("long", 100), strings.Repeat("long", 101), "plans", "removed.jsonl", "README.txt", ".tmp-1"}
	for _, id := range ids {
		th := newThread(t, id, say(thread.User, "of "+id), say(thread.Assistant, "rest"))
		if err := s.Save(t.Context(), th, &plan.Plan{ThreadID: id, ThreadVersion: 2, Drops: []plan.Removal{{Span: th.Range(0, 1)}}}); err != nil {
			t.Fatalf("%q: %v", id, err)
		}
	}
	for _, id := range ids {
		entries, damage, err := s.List(t.Context(), id)
		if err != nil || len(damage) > 0 || len(entries) != 1 || entries[0].Text != "of "+id || entries[0].ThreadID != id {
			t.Errorf("%q: %+v, %v, %v", id, entries, damage, err)
		}
		if plans, _, err := s.Plans(t.Context(), id); err != nil || len(plans) != 1 {
			t.Errorf("%q: %d plans, %v", id, len(plans), err)
		}
	}
	outside, err := os.ReadDir(parent)
	if err != nil || len(outside) != 1 {
		t.Errorf("beside the store: %v, %v", outside, err)
	}
	folders, err := os.ReadDir(filepath.Join(parent, "store", "threads"))
	if err != nil || len(folders) != len(ids) {
		t.Errorf("%d folders of %d threads, %v", len(folders), len(ids), err)
	}
}

// TestProcesses: several processes save the same and different plans of one
// thread at a time; nothing is lost or torn and every plan has its number.
func TestProcesses(t *testing.T) {
	const processes, rounds = 4, 5
	if path := os.Getenv("PALIMPSEST_TEST_STORE"); path != "" {
		saveRounds(t, path, os.Getenv("PALIMPSEST_TEST_WRITER"), rounds)
		return
	}
	path := t.TempDir()
	s := open(t, path, nil)
	var running []*exec.Cmd
	for n := range processes {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$")
		cmd.Env = append(os.Environ(), "PALIMPSEST_TEST_STORE="+path, fmt.Sprint("PALIMPSEST_TEST_WRITER=", n))
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if damage, err := s.Check(t.Context()); err != nil || len(damage) > 0 {
		t.Errorf("check: %v, %v", damage, err)
	}
	entries, _, err := s.List(t.Context(), "shared")
	if want := processes*rounds + 1; err != nil || len(entries) != want {
		t.Errorf("%d entries, want %d, %v", len(entries), want, err)
	}
	plans, _, err := s.Plans(t.Context(), "shared")
	if err != nil || len(plans) != processes*rounds {
		t.Errorf("%d plans, %v", len(plans), err)
	}
}

// saveRounds saves plans over a message that all writers share and one that is
// this writer's alone.
func saveRounds(t *testing.T, path, writer string, rounds int) {
	s := open(t, path, nil)
	for round := range rounds {
		own := say(thread.Assistant, strings.Repeat(fmt.Sprintf("writer %s round %d ", writer, round), 5000))
		th := newThread(t, "shared", say(thread.User, strings.Repeat("of all ", 20_000)), own, say(thread.User, "end"))
		p := &plan.Plan{ThreadID: "shared", ThreadVersion: 3,
			Drops:            []plan.Removal{{Span: th.Range(1, 2)}},
			Externalizations: []plan.Externalization{{Span: th.Range(0, 1), ArtifactID: artifact.IDOf("shared", th.At(0).Text())}},
		}
		if err := s.Save(t.Context(), th, p); err != nil {
			t.Error(err)
		}
	}
}

// FuzzRemoved: no file of lines makes a reader fail or panic; what it cannot
// read it reports.
func FuzzRemoved(f *testing.F) {
	f.Add([]byte(`{"v":1,"thread_id":"t","message_id":"m","action":"drop","text":"x"}` + "\n"))
	f.Add([]byte(`{"v":1,"message_id":"m","action":"externalize","artifact_id":"../../x","text_in_artifact":true}` + "\n{"))
	f.Add([]byte("\n\x00\n[]\n{}\n"))
	path := f.TempDir()
	s := open(f, path, nil)
	folder := filepath.Join(path, "threads", "t")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(folder, "removed.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		entries, damage, err := s.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(data)) > 0 && len(entries)+len(damage) == 0 {
			t.Fatal("lines were lost silently")
		}
		for _, e := range entries {
			if _, err := s.Artifact(t.Context(), string(e.MessageID), ""); err != nil && len(damage) == 0 && e.MessageID != "" {
				var ambiguous *dir.AmbiguousError
				if !errors.As(err, &ambiguous) {
					t.Fatal(err)
				}
			}
		}
		if _, _, err := s.Recall(t.Context(), "x", nil); err != nil {
			t.Fatal(err)
		}
	})
}
