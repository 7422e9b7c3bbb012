package truth_test

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/lab/truth"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// To see what is untrue of one session:
//
//	go test ./lab/truth -run TestShow -v -session long-4cff -budget 8000 [-kind 'file']
//	PALIMPSEST_LONG=1 go test ./lab/truth -run TestNothingUntrue -v
var (
	session = flag.String("session", "", "for TestShow: what the path of the transcript contains")
	number  = flag.Int("number", -1, "for TestShow: which conversation of the file; -1 is all")
	budget  = flag.Int("budget", 8000, "for TestShow: the budget of the summary in tokens")
	kind    = flag.String("kind", "", "for TestShow: only findings of this kind")
)

// sample are the transcripts of a default run.
var sample = []string{"long-4cff", "mid-a4a8", "mid-00c9", "long-38346", "full-session-two", "short-3f0f", "tau-bench"}

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

// spanEnd is where what is summarised ends; a call is not parted from its result.
func spanEnd(log []thread.Message) int {
	end := len(log) - tail
	for end > 0 && log[end].Role == thread.Tool {
		end--
	}
	return end
}

// summaries gives the summary of the first end messages at each budget.
func summaries(t *testing.T, log []thread.Message, end int, budgets ...int) iter.Seq2[int, summary.Summary] {
	return func(yield func(int, summary.Summary) bool) {
		if end < 4 {
			return
		}
		var e summarize.Extractive
		for _, budget := range budgets {
			s, err := e.Summarize(context.Background(), summarize.Input{Messages: log[:end], Log: log, Context: log[end:], Budget: budget})
			if errors.Is(err, summarize.ErrBudget) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if !yield(budget, s.Summary) {
				return
			}
		}
	}
}

func TestNothingUntrue(t *testing.T) {
	paths := files(t)
	if !corpus.Long() {
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
	var untrue []truth.Finding
	for _, path := range paths {
		for n, tr := range open(t, path) {
			if !corpus.Long() && n >= 12 {
				break
			}
			log := tr.Thread.Messages()
			end := spanEnd(log)
			read := truth.Read(log, end)
			for budget, s := range summaries(t, log, end, budgets...) {
				report := read.Check(s)
				for _, f := range report.Findings {
					untrue = append(untrue, f)
					t.Logf("%s %s, %d tokens: %s", filepath.Base(path), tr.Name, budget, f)
				}
				report.Findings = nil
				all.Add(report)
			}
		}
	}
	t.Logf("%d files\n%s", len(paths), all)
	if n := len(untrue); n > 0 {
		t.Errorf("%d statements are false", n)
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
			log := tr.Thread.Messages()
			end := spanEnd(log)
			for _, s := range summaries(t, log, end, *budget) {
				report := truth.Read(log, end).Check(s)
				t.Logf("%s %s, %d tokens\n%s", filepath.Base(path), tr.Name, *budget, report)
				for _, f := range report.Findings {
					if *kind == "" || f.Kind == *kind {
						t.Logf("%s", f)
					}
				}
			}
		}
	}
}
