package lost

import (
	"cmp"
	"context"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/standing"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// finder finds the losses of a compaction.
type finder struct {
	Boundary
	thread  *thread.Thread
	now     *seen             // right after the compaction
	earlier *seen             // the summary of the compaction before; nil without one
	place   map[thread.ID]int // of the messages before the compaction
	then    []string          // the messages after it, as letters, once they were asked for
	said    []summary.Item    // sentences of the person, before and after it
	found   []Loss
}

// Find lists what the compaction lost, what matters most first: Most things at most. The only errors are those of
// ctx. It panics if the boundary does not lie within the thread.
func Find(ctx context.Context, t *thread.Thread, b Boundary) ([]Loss, error) {
	f := &finder{Boundary: b, thread: t, place: make(map[thread.ID]int, b.At)}
	for i := range b.At {
		f.place[t.At(i).ID] = i
	}
	reader, before := &summarize.Extractive{}, t.Prefix(b.At).Messages()
	for _, messages := range [][]thread.Message{before, t.Messages()[b.End:]} {
		said, err := reader.Sentences(ctx, summarize.Input{Messages: messages})
		if err != nil {
			return nil, err
		}
		f.said = append(f.said, said...)
	}
	made, err := reader.Summarize(ctx, summarize.Input{Messages: before, Log: before})
	if err != nil {
		return nil, err
	}
	f.now = see(b.after(t), f.said)
	if m := t.At(b.Previous); m.Kind == thread.Recap {
		f.earlier = see(texts(m), f.said)
	}
	f.addSentences(ctx)
	f.addWork(&made.Work)
	return f.found, ctx.Err()
}

// missing reports whether what stands in some messages was in the model's sight before the compaction and is not any
// more: it was said since the compaction before, or the summary of that told it.
func (f *finder) missing(of []thread.ID, told func(*seen) bool) bool {
	recent := func(id thread.ID) bool {
		at, known := f.place[id]
		return known && at >= f.Previous
	}
	return len(of) > 0 && !told(f.now) && (slices.ContainsFunc(of, recent) || f.earlier != nil && told(f.earlier))
}

// add adds a loss, unless there are Most already.
func (f *finder) add(l Loss, of []thread.ID) {
	if len(f.found) < Most {
		l.Text, l.Why, l.Message = clip.Line(l.Text, mostQuoted), clip.Line(l.Why, mostQuoted), of[len(of)-1]
		f.found = append(f.found, l)
	}
}

const (
	// leastRule is the score from which a sentence is a rule if nothing of it is told.
	leastRule = 120
	// mostClauses is up to how many clauses a message holds rules: a longer one is a plan or was put in.
	mostClauses = 12
	// mostCandidates is how many sentences are looked at.
	mostCandidates = 64
)

// addSentences adds the decisions of the person before the compaction, then the rules by their scores.
func (f *finder) addSentences(ctx context.Context) {
	clauses, rank := map[thread.ID]int{}, make([]int, len(f.said))
	for _, it := range f.said {
		clauses[it.Sources[0]]++
	}
	var all []int // positions in f.said
	for i, it := range f.said {
		at, known := f.place[it.Sources[0]]
		decision := it.Asked != "" && known && f.thread.At(at).Role == thread.Tool
		rule := it.Asked == "" && known && it.Score >= leastRule && !strings.HasSuffix(it.Text, "?") && clauses[it.Sources[0]] <= mostClauses
		if rank[i] = it.Score; decision {
			rank[i] = math.MaxInt
		}
		if decision || rule {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
	for _, i := range all[:min(len(all), mostCandidates)] {
		it := f.said[i]
		told := func(s *seen) bool { return s.sentence(it.Text) || it.Asked != "" && s.sentence(it.Asked+" "+it.Text) }
		changed := func(later summary.Item) bool { return standing.Changes(later.Text, it.Text) > 0 }
		if ctx.Err() != nil || !f.missing(it.Sources, told) || slices.ContainsFunc(f.said[i+1:], changed) {
			continue
		}
		l := Loss{Kind: Rule, Text: it.Text, Turn: it.Turn}
		if it.Asked != "" {
			l.Kind, l.Why = Decision, "the answer to: "+it.Asked
		}
		f.add(l, it.Sources)
	}
}

const (
	// leastBranch is the length of a branch's name from which it says something, in bytes.
	leastBranch = 7
	// recentTurns is for how many turns what was done is news: later, the person may have gone on with it elsewhere.
	recentTurns = 6
)

// beside are folders of files that are none of the work: temporary ones, and the agents' own.
var beside = scan.WordSet("tmp T scratchpad .claude .codex")

// addWork adds what the state of the work tells: a branch that a call named, the pull request, files that were changed
// and not seen to be committed, the newest commit.
func (f *finder) addWork(w *state.Work) {
	add := func(l Loss, name string, kind ident.Type, of []thread.ID) {
		if f.missing(of, func(s *seen) bool { return s.name(kind, name) }) && !f.knew(name) {
			f.add(l, of)
		}
	}
	recent := func(turn int) bool { return turn+recentTurns > f.thread.At(f.At).Turn }
	if b := w.Branch; len(b.Text) >= leastBranch && recent(b.Turn) && f.called(b.Text) {
		add(Loss{Kind: Value, Text: b.Text, Why: "the git branch", Turn: b.Turn}, b.Text, ident.Name, b.Sources)
	}
	if r := w.PullRequest; r.Text != "" {
		add(Loss{Kind: Value, Text: r.Text, Why: "the pull request", Turn: r.Turn}, r.Text, ident.URL, r.Sources)
	}
	others := len(f.found)
	for _, e := range slices.Backward(w.Edited) {
		aside := slices.ContainsFunc(strings.Split(path.Dir(e.Path), "/"), func(folder string) bool { return beside[folder] })
		if !e.PerhapsCommitted && e.Operation != "deleted" && recent(e.Turn) && !aside && len(f.found) < others+mostFiles {
			add(Loss{Kind: File, Text: e.Path, Why: e.Operation + ", no commit was seen", Turn: e.Turn}, e.Path, ident.Path, e.Sources)
		}
	}
	for _, c := range w.Commits[max(0, len(w.Commits)-1):] {
		if c.Perhaps.Text == "" && recent(c.Turn) && !f.now.sentence(c.Subject) {
			add(Loss{Kind: Value, Text: c.Hash + " " + c.Subject, Why: "the newest commit", Turn: c.Turn}, c.Hash, ident.Hex, c.Sources)
		}
	}
}

// knew reports whether the model spoke of a thing after the compaction before anybody else did: it knows that from
// elsewhere, such as the rules of the project.
func (f *finder) knew(name string) bool {
	for i := f.End; i < f.thread.Len() && len(f.then) <= i-f.End; i++ {
		f.then = append(f.then, lettersOf(strings.Join(texts(f.thread.At(i)), " ")))
	}
	name = lettersOf(path.Base(name))
	at := slices.IndexFunc(f.then, func(letters string) bool { return strings.Contains(letters, name) })
	return at >= 0 && f.thread.At(f.End+at).Role == thread.Assistant
}

// called reports whether a call named something since the compaction before.
func (f *finder) called(name string) bool {
	return slices.ContainsFunc(f.thread.Messages()[f.Previous:f.At], func(m thread.Message) bool {
		return slices.ContainsFunc(m.Calls(), func(c thread.ToolCall) bool { return strings.Contains(c.Arguments, name) })
	})
}
