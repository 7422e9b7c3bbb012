package summarize

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize/internal/work"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestWorkOverTheCorpus folds real sessions and holds each statement against the
// messages that it names: hashes, subjects, verdict lines and reasons stand in
// them, and folding in two pieces says what folding at once says.
func TestWorkOverTheCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t, "transcripts"), "*", "*.gz"))
	if err != nil {
		t.Fatal(err)
	}
	said := state.Omitted{}
	for _, name := range corpus.EveryNth(files, 6) {
		file, err := transcript.Open(name, nil)
		if err != nil {
			continue // one of the formats that these tests do not read
		}
		for n, tr := range file.Transcripts {
			if n > 8 && !corpus.Long() {
				break
			}
			messages := tr.Thread.Messages()
			memo := NewMemory(0)
			w := work.Fold(effort.New(context.Background(), 1<<20), state.Work{}, messages, workOf(func(m *thread.Message) *facts { return memo.facts(nil, m) }))
			said.Commits += len(w.Commits)
			said.Checks += len(w.Checks)
			said.Edited += len(w.Edited)
			said.Operations += len(w.Operations)
			proven(t, filepath.Base(name), messages, w)
			if at := turnAfter(messages, len(messages)/2); at > 0 {
				apart := work.Fold(effort.New(context.Background(), 1<<20), work.Fold(effort.New(context.Background(), 1<<20), state.Work{}, messages[:at], workOf(func(m *thread.Message) *facts { return memo.facts(nil, m) })), messages[at:], workOf(func(m *thread.Message) *facts { return memo.facts(nil, m) }))
				if diff := cmp.Diff(w.Commits, apart.Commits, cmp.Comparer(func(a, b state.Commit) bool { return a.Hash == b.Hash && a.Subject == b.Subject })); diff != "" {
					t.Errorf("%s: commits when folded in two pieces:\n%s", filepath.Base(name), diff)
				}
			}
		}
	}
	t.Logf("%+v", said)
	if said.Commits == 0 || said.Checks == 0 || said.Edited == 0 || said.Operations == 0 {
		t.Errorf("the corpus shows too little: %+v", said)
	}
}

func turnAfter(messages []thread.Message, at int) int {
	for i := at; i < len(messages); i++ {
		if messages[i].StartsTurn() {
			return i
		}
	}
	return 0
}

// proven checks what can be checked of each entry against its messages.
func proven(t *testing.T, name string, messages []thread.Message, w state.Work) {
	t.Helper()
	byID := map[thread.ID]*thread.Message{}
	for i := range messages {
		byID[messages[i].ID] = &messages[i]
	}
	texts := func(sources []thread.ID) string {
		var b strings.Builder
		for _, id := range sources {
			m := byID[id]
			if m == nil {
				t.Errorf("%s: source %q is no message", name, id)
				continue
			}
			b.WriteString(m.Text())
			for _, c := range m.Calls() {
				b.WriteString(c.Arguments)
			}
			if r, ok := m.Result(); ok {
				b.WriteString(scan.Clean(r.Text()))
			}
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	stands := func(what, part string, sources []thread.ID) {
		t.Helper()
		if len(sources) == 0 {
			t.Errorf("%s: %s %q has no source", name, what, part)
		}
		if part = strings.TrimSuffix(part, "…"); !strings.Contains(texts(sources), part) {
			t.Errorf("%s: %s %q stands in none of its messages", name, what, part)
		}
	}
	for _, c := range w.Commits {
		stands("commit", c.Hash, c.Sources)
		if !strings.Contains(texts(c.Sources), "git") {
			t.Errorf("%s: commit %+v of no call of git", name, c)
		}
	}
	for _, c := range w.Checks {
		stands("verdict", c.Line, c.Sources)
		command, _, _ := strings.Cut(c.Command, " ")
		stands("command", command, c.Sources)
	}
	for _, e := range w.Edited {
		stands("file", filepath.Base(e.Path), e.Sources)
	}
	for _, s := range []state.Seen{w.Branch, w.PullRequest, w.Next} {
		if s.Text != "" {
			stands("words", strings.Join(strings.Fields(s.Text), " "), s.Sources)
		}
	}
	for _, list := range [][]state.Seen{w.Refused, w.Running} {
		for _, s := range list {
			if len(s.Sources) != 2 || s.Turn != byID[s.Sources[0]].Turn {
				t.Errorf("%s: origin of %+v", name, s)
			}
		}
	}
	text := summary.RenderWork(w)
	if strings.Count(text, "\n## ") > 0 {
		t.Errorf("%s: a heading inside the section:\n%s", name, text)
	}
	for _, budget := range []int{400, 100, 20} {
		if n := len(summary.RenderWork(summary.FitWork(w, budget, count4))); (n+3)/4 > budget {
			t.Errorf("%s: %d bytes for a budget of %d tokens", name, n, budget)
		}
	}
	if !slices.IsSortedFunc(w.Commits, func(a, b state.Commit) int { return a.Turn - b.Turn }) {
		t.Errorf("%s: commits out of order", name)
	}
}

func count4(s string) int { return (len(s) + 3) / 4 }

// TestRefusalsInSmallPrompts: what a system refused stands in a summary of 2,000
// tokens, with the reason, so that it is not tried again.
func TestRefusalsInSmallPrompts(t *testing.T) {
	file, err := transcript.Open(filepath.Join(corpus.Dir(t, "transcripts"), "tau-bench", "gpt-4o-airline-public.jsonl.gz"), nil)
	if err != nil {
		t.Fatal(err)
	}
	refused, told := 0, 0
	for n, tr := range file.Transcripts {
		if n > 40 && !corpus.Long() {
			break
		}
		messages := tr.Thread.Messages()
		var e Extractive
		s, err := e.Summarize(t.Context(), Input{Messages: messages, Budget: 2000})
		if err != nil {
			t.Fatal(err)
		}
		section := summary.RenderWork(s.Work)
		for _, o := range work.Fold(effort.New(context.Background(), 1<<20), state.Work{}, messages, workOf(read)).Operations {
			if o.Outcome != thread.Failure {
				continue
			}
			refused++
			if strings.Contains(section, o.Tool) && strings.Contains(section, o.Reason[:min(len(o.Reason), 60)]) {
				told++
			} else if len(s.Work.Operations) < 3 {
				t.Errorf("run %d: %s %s (%s) is not told:\n%s", n, o.Tool, o.Input, o.Reason, section)
			}
		}
	}
	t.Logf("%d of %d refusals are told", told, refused)
	if refused < 10 || told*100 < refused*95 {
		t.Errorf("%d of %d refusals are told", told, refused)
	}
}
