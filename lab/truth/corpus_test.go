package truth_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/lab/truth"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// To see what is untrue of one session:
//
//	go test ./lab/truth -run TestShow -v -session long-4cff -budget 8000 [-kind 'gone line']
//	PALIMPSEST_LONG=1 go test ./lab/truth -run TestNothingUntrue -v
var (
	session = flag.String("session", "", "for TestShow: what the path of the transcript contains")
	number  = flag.Int("number", -1, "for TestShow: which conversation of the file; -1 is all")
	budget  = flag.Int("budget", 8000, "for TestShow: the budget of the summary in tokens")
	kind    = flag.String("kind", "", "for TestShow: only findings of this kind")
)

var budgets = []int{4000, 8000, 16000, 32000}

// tail is how many messages stand beside the summary.
const tail = 6

// files are the transcripts of the corpus.
func files(t *testing.T) []string {
	dir := corpus.Dir(t, "transcripts")
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(path) != "index.json" && (strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".json")) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

func open(t *testing.T, path string) []transcript.Transcript {
	f, err := transcript.Open(path, nil)
	if errors.Is(err, transcript.ErrEmpty) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return f.Transcripts
}

// judge summarises all but the last messages and checks it.
func judge(t *testing.T, log []thread.Message, budget int) (truth.Report, summarize.Result, bool) {
	end := len(log) - tail
	for end > 0 && log[end].Role == thread.Tool {
		end-- // a call is not parted from its result
	}
	if end < 4 {
		return truth.Report{}, summarize.Result{}, false
	}
	var e summarize.Extractive
	s, err := e.Summarize(context.Background(), summarize.Input{Messages: log[:end], Log: log, Context: log[end:], Budget: budget})
	if errors.Is(err, summarize.ErrBudget) {
		return truth.Report{}, summarize.Result{}, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return truth.Check(log, end, s.Summary), s, true
}

func TestNothingUntrue(t *testing.T) {
	paths := files(t)
	faults := known
	if !corpus.Long() {
		faults = knownOfSome
		var some []string
		for _, p := range paths {
			for _, name := range sample {
				if strings.Contains(p, name) {
					some = append(some, p)
				}
			}
		}
		paths = some
	}
	var all truth.Report
	for _, path := range paths {
		for n, tr := range open(t, path) {
			if !corpus.Long() && n >= 12 {
				break
			}
			log := tr.Thread.Messages()
			for _, b := range budgets {
				if report, _, ok := judge(t, log, b); ok {
					for _, f := range report.Findings {
						t.Logf("%s %s, %d tokens: %s", filepath.Base(path), tr.Name, b, f)
					}
					report.Findings = nil
					all.Add(report)
				}
			}
		}
	}
	t.Logf("%d files\n%s", len(paths), all)
	compare(t, all, faults)
}

// compare fails when more is untrue than is known.
func compare(t *testing.T, r truth.Report, faults map[truth.Kind]fault) {
	var table strings.Builder
	for _, k := range slices.Sorted(maps.Keys(r.Counts)) {
		c := r.Counts[k]
		if c.False+c.Unproved > 0 {
			fmt.Fprintf(&table, "\t%q: {%d, %d},\n", k, c.False, c.Unproved)
		}
		f := faults[k]
		if c.False > f.untrue {
			t.Errorf("%s: %d statements are false, %d are known", k, c.False, f.untrue)
		}
		if c.Unproved > f.unproved {
			t.Errorf("%s: %d statements are unproved, %d are known", k, c.Unproved, f.unproved)
		}
		if c.False < f.untrue || c.Unproved < f.unproved {
			t.Logf("%s: %d false and %d unproved, %d and %d are known: lower the table", k, c.False, c.Unproved, f.untrue, f.unproved)
		}
	}
	if t.Failed() {
		t.Logf("the table as it would be:\n%s", &table)
	}
}

// TestShow prints what is untrue of one session.
func TestShow(t *testing.T) {
	if *session == "" {
		return
	}
	for _, path := range files(t) {
		if !strings.Contains(path, *session) {
			continue
		}
		for n, tr := range open(t, path) {
			if *number >= 0 && n != *number {
				continue
			}
			report, _, ok := judge(t, tr.Thread.Messages(), *budget)
			if !ok {
				continue
			}
			t.Logf("%s %s, %d tokens\n%s", filepath.Base(path), tr.Name, *budget, report)
			for _, f := range report.Findings {
				if *kind == "" || string(f.Kind) == *kind {
					t.Logf("%s", f)
				}
			}
		}
	}
}

// fault is how many statements of a kind are untrue today.
type fault struct{ untrue, unproved int }
