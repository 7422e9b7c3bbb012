package transcript_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// uuidOf is an id that sorts as its number.
func uuidOf(n int) string { return fmt.Sprintf("0199%04d-0000-7000-8000-000000000000", n) }

// codexFile is a rollout: its thread, its own number if it is not the thread's first, and what it
// goes on from.
type codexFile struct {
	folder       string
	thread, part int
	packed       bool
	base         int // a rollout; 0 for none
	end          int // the first record that is not shared
	shift        int // of the offset that the base says
	says         []string
}

func (f codexFile) path(home string) string {
	name := "rollout-2026-11-28T10-00-00-" + uuidOf(f.thread)
	if f.part > 0 {
		name += "_" + uuidOf(f.part)
	}
	if name += ".jsonl"; f.packed {
		name += ".zst"
	}
	return filepath.Join(home, f.folder, name)
}

// writeCodex writes the files, each after those that it goes on from.
func writeCodex(t *testing.T, home string, files ...codexFile) {
	t.Helper()
	ends := map[int]map[int]int{} // by rollout and number of a record: where it begins
	for _, f := range files {
		own := max(f.thread, f.part)
		ends[own] = map[int]int{}
		base := ""
		if f.base > 0 {
			base = fmt.Sprintf(`,"history_base":{"thread_id":%q,"end_ordinal_exclusive":%d,"end_byte_offset":%d}`, uuidOf(f.base), f.end, ends[f.base][f.end]+f.shift)
		}
		n := f.end
		var b strings.Builder
		write := func(kind, payload string) {
			fmt.Fprintf(&b, `{"timestamp":"2026-11-28T10:00:00.000Z","ordinal":%d,"type":%q,"payload":%s}`+"\n", n, kind, payload)
			n++
			ends[own][n] = b.Len()
		}
		write("session_meta", fmt.Sprintf(`{"id":%q,"cwd":"/w"%s}`, uuidOf(f.thread), base))
		for i, text := range f.says {
			role, part := "user", "input_text"
			if i%2 == 1 {
				role, part = "assistant", "output_text"
			}
			write("response_item", fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]}`, role, part, text))
		}
		data := []byte(b.String())
		if f.packed {
			z, err := zstd.NewWriter(nil)
			if err != nil {
				t.Fatal(err)
			}
			data = z.EncodeAll(data, nil)
		}
		path := f.path(home)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCodexThreads: a thread is a path over several files.
func TestCodexThreads(t *testing.T) {
	const day = "sessions/2026/11/28"
	first := codexFile{folder: day, thread: 1, says: []string{"one", "1", "two", "2"}} // records 0 to 4
	archived, packed, lost := first, first, first
	archived.folder, packed.packed, lost.thread = "archived_sessions", true, 7
	fork := codexFile{folder: day, thread: 2, base: 1, end: 3, says: []string{"three", "3"}} // 3 to 5
	rewind := codexFile{folder: day, thread: 1, part: 3, base: 1, end: 3, says: []string{"three", "3"}}
	again := codexFile{folder: day, thread: 1, part: 4, base: 3, end: 4, says: []string{"four", "4"}}
	bySameID := again
	bySameID.base = 1 // the id of the thread stands for any of its rollouts
	shifted := fork
	shifted.shift = -4
	beyond := fork
	beyond.shift = 10_000
	circle := first
	circle.base, circle.end = 2, 1
	for _, tt := range []struct {
		name  string
		files []codexFile // the last is read
		want  string
		says  string
	}{
		{"alone", []codexFile{first}, "one 1 two 2", ""},
		{"a fork", []codexFile{first, fork}, "one 1 three 3", ""},
		{"of an archived thread", []codexFile{archived, fork}, "one 1 three 3", ""},
		{"of a packed thread", []codexFile{packed, fork}, "one 1 three 3", ""},
		{"a packed fork", []codexFile{first, {folder: day, thread: 2, packed: true, base: 1, end: 3, says: fork.says}}, "one 1 three 3", ""},
		{"the user went back", []codexFile{first, rewind}, "one 1 three 3", ""},
		{"and again", []codexFile{first, rewind, again}, "one 1 four 4", ""},
		{"a fork of a fork", []codexFile{first, fork, {folder: day, thread: 5, base: 2, end: 6, says: []string{"five"}}}, "one 1 three 3 five", ""},
		{"the older file", []codexFile{rewind, first}, "one 1 two 2", "the user went back in this thread and on in rollout-2026-11-28T10-00-00-" + uuidOf(1) + "_" + uuidOf(3)},
		{"a missing thread", []codexFile{lost, fork}, "three 3", "line 1: its history goes on from the rollout " + uuidOf(1) + ", which is in no file beside it"},
		{"a missing rollout of a thread", []codexFile{{folder: "elsewhere", thread: 1, says: first.says}, rewind, fork}, "three 3", "which is in no file beside it"},
		{"a circle", []codexFile{circle, fork}, "one three 3", "in a circle"},
		{"fewer records than shared", []codexFile{{folder: day, thread: 1, says: []string{"one"}}, fork}, "one three 3", "the last 1 records that it shares with this thread are missing"},
		{"the offset is beyond the file", []codexFile{first, beyond}, "one 1 three 3", ""},
		{"the offset is within a record", []codexFile{first, shifted}, "one three 3", "records that it shares with this thread are missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			writeCodex(t, home, tt.files...)
			last := tt.files[len(tt.files)-1]
			f, err := transcript.Open(last.path(home), nil)
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, m := range f.Transcripts[0].Thread.All() {
				said = append(said, m.Text())
			}
			if got := strings.Join(said, " "); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if got := warnings(f); !strings.Contains(got, tt.says) || tt.says == "" && got != "" {
				t.Errorf("warnings %q, want %q", got, tt.says)
			}
			if got := f.Transcripts[0].Name; got != uuidOf(last.thread) {
				t.Errorf("the session is %s", got)
			}
		})
	}
	t.Run("without its folder", func(t *testing.T) {
		home := t.TempDir()
		writeCodex(t, home, first, fork)
		data, err := os.ReadFile(fork.path(home))
		if err != nil {
			t.Fatal(err)
		}
		f, err := transcript.Read(strings.NewReader(string(data)), nil)
		if err != nil || !strings.Contains(warnings(f), "is in the rollout "+uuidOf(1)) {
			t.Errorf("%v, %v", f, err)
		}
	})
	t.Run("by the id of the thread", func(t *testing.T) {
		home := t.TempDir()
		writeCodex(t, home, first, rewind)
		writeCodex(t, home, first, rewind, codexFile{folder: day, thread: 1, part: 4, base: 1, end: 5, says: []string{"four"}})
		f, err := transcript.Open(bySameID.path(home), nil)
		if err != nil || f.Transcripts[0].Thread.Len() != 5 {
			t.Errorf("%v, %v", f, err)
		}
	})
}

// TestDamagedZstd: what zstd packed is read up to the damage, or refused; it is never taken for text.
func TestDamagedZstd(t *testing.T) {
	home := t.TempDir()
	f := codexFile{thread: 1, packed: true}
	for n := range 2000 {
		f.says = append(f.says, fmt.Sprint("number ", n*n*7919))
	}
	writeCodex(t, home, f)
	whole, err := os.ReadFile(f.path(home))
	if err != nil {
		t.Fatal(err)
	}
	if read, err := transcript.Read(strings.NewReader(string(whole[:len(whole)/2])), nil); err == nil && !strings.Contains(warnings(read), "cut off") {
		t.Errorf("half of it: %q", warnings(read))
	}
	for i := len(whole) / 4; i < len(whole)/4+40; i++ {
		whole[i] = 0xff
	}
	if read, err := transcript.Read(strings.NewReader(string(whole)), nil); err == nil {
		t.Errorf("damaged: %d messages", read.Transcripts[0].Thread.Len())
	} else if !strings.Contains(err.Error(), "compressed data is broken") {
		t.Error(err)
	}
}

// TestForkAndRewind: what the user laid down before a fork is in it, and what was taken back is not.
func TestForkAndRewind(t *testing.T) {
	day := filepath.Join(corpus.Dir(t, "cases/agents/codex-fork-rewind"), "codex-home", "sessions", "2026", "11", "28")
	files, err := filepath.Glob(filepath.Join(day, "rollout-2026-11-28T14-52-23-*"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		f, err := transcript.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, m := range f.Transcripts[0].Thread.All() {
			all.WriteString(m.Text() + "\n")
		}
		for text, want := range map[string]bool{"never write to the seeds table": true, "port 5544": true, "drop the orchard schema": false} {
			if strings.Contains(all.String(), text) != want {
				t.Errorf("%s: %q: want %t", filepath.Base(path), text, want)
			}
		}
		if len(f.Report.Warnings) > 0 {
			t.Errorf("%s: %s", filepath.Base(path), warnings(f))
		}
	}
}
