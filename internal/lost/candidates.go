package lost

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
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
	thread   *thread.Thread
	now      *seen             // right after the compaction
	earlier  *seen             // the summary of the compaction before; nil without one
	place    map[thread.ID]int // of the messages before the compaction
	then     []string          // the messages after it, as letters, once they were asked for
	said     []summary.Item    // sentences of the person, before and after it
	language string            // that the person uses
	found    []Loss
}

// find lists what was lost, in any order.
func find(ctx context.Context, t *thread.Thread, b Boundary) ([]Loss, error) {
	f := &finder{Boundary: b, thread: t, now: see(b.after(t)), place: make(map[thread.ID]int, b.At)}
	if t.At(b.Previous).Kind == thread.Recap {
		f.earlier = see(texts(t.At(b.Previous)))
	}
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
	var words []string
	for _, it := range f.said {
		words = append(words, it.Text)
	}
	f.language = languageOf(words...)
	for _, c := range f.candidates() {
		if ctx.Err() == nil {
			f.addSentence(c)
		}
	}
	f.addWork(&made.Work)
	return f.found, ctx.Err()
}

// add adds what stands in some messages, if it was in the model's sight before the compaction and is not any more: it
// was said since the compaction before, or the summary of that told it.
func (f *finder) add(l Loss, of []thread.ID, told func(*seen) bool) bool {
	recent := func(id thread.ID) bool {
		at, known := f.place[id]
		return known && at >= f.Previous
	}
	if len(of) == 0 || l.Text == "" || told(f.now) || !slices.ContainsFunc(of, recent) && (f.earlier == nil || !told(f.earlier)) {
		return false
	}
	if (l.Kind == File || l.Kind == Value) && f.knew(l.Text) {
		return false
	}
	l.Text, l.Why, l.Message = clip.Line(l.Text, mostQuoted), clip.Line(l.Why, mostQuoted), of[len(of)-1]
	f.found = append(f.found, l)
	return true
}

// knew reports whether the model spoke of a name after the compaction before anybody else did: it knows that from
// elsewhere, such as the rules of the project.
func (f *finder) knew(name string) bool {
	for i := f.End; i < f.thread.Len() && len(f.then) <= i-f.End; i++ {
		f.then = append(f.then, lettersOf(strings.Join(texts(f.thread.At(i)), " ")))
	}
	name = lettersOf(path.Base(name))
	at := slices.IndexFunc(f.then, func(letters string) bool { return strings.Contains(letters, name) })
	return at >= 0 && f.thread.At(f.End+at).Role == thread.Assistant
}

// What matters more has a higher rank.
const (
	rankDecision = 400
	rankRule     = 300 // with the score
	rankValue    = 240
	rankFile     = 160
	rankCommit   = 90
)

const (
	// leastRule is the score from which a sentence is a rule if nothing of it is told, and leastSettled the one from
	// which what it names is settled.
	leastRule, leastSettled = 120, 180
	// mostClauses is up to how many clauses a message holds rules: a longer one is a plan or was put in.
	mostClauses = 12
	// mostCandidates is how many sentences are looked at, and mostCompared with how many later ones each is compared.
	mostCandidates, mostCompared = 64, 64
)

// candidate is a sentence that may be lost.
type candidate struct {
	Loss
	it    summary.Item
	about string // the sentence, with the question that it answers
	at    int    // its place in finder.said
}

// candidates are the rules and decisions that the person laid down before the compaction, those that matter most.
func (f *finder) candidates() (all []candidate) {
	counted, clauses := -1, 0
	for i, it := range f.said {
		at, known := f.place[it.Sources[0]]
		c := candidate{Loss{Kind: Rule, Text: it.Text, Turn: it.Turn, rank: rankRule + it.Score}, it, it.Text, i}
		switch {
		case !known:
			continue
		case it.Asked != "" && f.thread.At(at).Role == thread.Tool:
			c.Kind, c.Why, c.rank, c.about = Decision, "the answer to: "+it.Asked, rankDecision, it.Asked+" "+it.Text
			all = append(all, c)
			continue
		case it.Asked != "" || it.Score < leastRule || strings.HasSuffix(it.Text, "?"):
			continue
		}
		if counted != at {
			counted, clauses = at, len(standing.Clauses(injected.UserWords(f.thread.At(at)), ""))
		}
		if clauses <= mostClauses {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.rank, a.rank) })
	return all[:min(len(all), mostCandidates)]
}

// addSentence adds a rule or a decision, or the values in it if it is told without them.
func (f *finder) addSentence(c candidate) {
	told := func(s *seen) bool { return s.sentence(c.about, f.language) || s.sentence(c.it.Text, f.language) }
	if takenBack(c.it.Text, f.said[c.at+1:]) || f.add(c.Loss, c.it.Sources, told) || c.it.Score < leastSettled {
		return
	}
	for _, x := range ident.All(c.it.Text) {
		if isValue[x.Type] {
			l := Loss{Kind: Value, Text: x.Surface, Why: "of: " + c.it.Text, Turn: c.Turn, rank: rankValue}
			f.add(l, c.it.Sources, func(s *seen) bool { return s.ident(x) })
		}
	}
}

// isValue are the types of identifiers that a rule settles.
var isValue = map[ident.Type]bool{ident.URL: true, ident.Email: true, ident.ID: true, ident.Number: true, ident.Version: true, ident.Path: true}

// takenBack reports whether a later sentence of the person likely changes a sentence or takes it back, or gives another
// value of a kind for what both are about.
func takenBack(text string, later []summary.Item) bool {
	stems, table, value := standing.Stems(text), standing.Learned(), map[ident.Type]string{}
	for _, x := range ident.All(text) {
		value[x.Type] = x.Norm
	}
	another := func(x ident.Ident) bool {
		old, known := value[x.Type]
		return known && old != x.Norm && !strings.Contains(text, x.Surface)
	}
	compared := 0
	for _, it := range slices.Backward(later) {
		rarest := 0
		for _, stem := range standing.Stems(it.Text) {
			if slices.Contains(stems, stem) {
				rarest = max(rarest, int(table[standing.RareAt(stem)]))
			}
		}
		if rarest == 0 || compared == mostCompared {
			continue
		}
		if compared++; standing.Changes(it.Text, text) > 0 || rarest >= rareWord && slices.ContainsFunc(ident.All(it.Text), another) {
			return true
		}
	}
	return false
}

const (
	// leastBranch is the length of a branch's name from which it says something, in bytes.
	leastBranch = 7
	// recentTurns is for how many turns what was done is news: later, the person may have gone on with it elsewhere.
	recentTurns = 6
)

// beside are folders of files that are none of the work: temporary ones, and the agents' own.
var beside = scan.WordSet("tmp T scratchpad .claude .codex")

// addWork adds what the state of the work tells: files that were changed and not seen to be committed, a branch that a
// call named, the pull request, the newest commit.
func (f *finder) addWork(w *state.Work) {
	recent := func(turn int) bool { return turn+recentTurns > f.thread.At(f.At).Turn }
	for _, e := range w.Edited {
		aside := slices.ContainsFunc(strings.Split(path.Dir(e.Path), "/"), func(folder string) bool { return beside[folder] })
		if !e.PerhapsCommitted && e.Operation != "deleted" && recent(e.Turn) && !aside {
			l := Loss{Kind: File, Text: e.Path, Why: e.Operation + ", no commit was seen", Turn: e.Turn, rank: rankFile}
			f.add(l, e.Sources, func(s *seen) bool { return s.file(e.Path) })
		}
	}
	if b := w.Branch; len(b.Text) >= leastBranch && recent(b.Turn) && f.called(b.Text) {
		l := Loss{Kind: Value, Text: b.Text, Why: "the git branch", Turn: b.Turn, rank: rankValue}
		f.add(l, b.Sources, func(s *seen) bool { return s.name(b.Text) })
	}
	r := w.PullRequest
	f.add(Loss{Kind: Value, Text: r.Text, Why: "the pull request", Turn: r.Turn, rank: rankValue}, r.Sources, func(s *seen) bool { return s.address(r.Text) })
	if n := len(w.Commits); n > 0 && w.Commits[n-1].Perhaps.Text == "" && recent(w.Commits[n-1].Turn) {
		c := w.Commits[n-1]
		l := Loss{Kind: Value, Text: c.Hash + " " + c.Subject, Why: "the newest commit", Turn: c.Turn, rank: rankCommit}
		f.add(l, c.Sources, func(s *seen) bool { return s.name(c.Hash) || s.sentence(c.Subject, s.language) })
	}
}

// called reports whether a call named something since the compaction before.
func (f *finder) called(name string) bool {
	return slices.ContainsFunc(f.thread.Messages()[f.Previous:f.At], func(m thread.Message) bool {
		return slices.ContainsFunc(m.Calls(), func(c thread.ToolCall) bool { return strings.Contains(c.Arguments, name) })
	})
}
