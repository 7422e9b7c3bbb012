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
	thread  *thread.Thread
	now     *seen          // right after the compaction
	earlier *seen          // the summary of the compaction before; nil without one
	said    []summary.Item // sentences of the person, before and after it
	found   []Loss
}

// Find lists what the compaction lost, what matters most first: Most things at most. The only errors are those of
// ctx. It panics if the boundary does not lie within the thread.
func Find(ctx context.Context, t *thread.Thread, b Boundary) ([]Loss, error) {
	f := &finder{Boundary: b, thread: t}
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

// add adds what stands in some messages, if the model saw it before the compaction and does not any more: it was said
// since the compaction before, or the summary of that told it. Of more than Most it adds none.
func (f *finder) add(l Loss, of []thread.ID, told func(*seen) bool) {
	recent := func(id thread.ID) bool {
		at, known := f.thread.Index(id)
		return known && at >= f.Previous && at < f.At
	}
	if len(f.found) < Most && len(of) > 0 && !told(f.now) && (slices.ContainsFunc(of, recent) || f.earlier != nil && told(f.earlier)) {
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
	clauses := map[int]int{}   // of a message
	var decisions, rules []int // positions in f.said
	for i, it := range f.said {
		at, known := f.thread.Index(it.Sources[0])
		if !known || at >= f.At {
			continue
		}
		if _, counted := clauses[at]; !counted {
			clauses[at] = len(standing.Clauses(injected.UserWords(f.thread.At(at)), ""))
		}
		if it.Asked != "" && f.thread.At(at).Role == thread.Tool {
			decisions = append(decisions, i)
		} else if it.Asked == "" && it.Score >= leastRule && !strings.HasSuffix(it.Text, "?") && clauses[at] <= mostClauses {
			rules = append(rules, i)
		}
	}
	slices.SortStableFunc(rules, func(a, b int) int { return cmp.Compare(f.said[b].Score, f.said[a].Score) })
	all := append(decisions, rules...)
	for _, i := range all[:min(len(all), mostCandidates)] {
		it, l := f.said[i], Loss{Kind: Rule, Text: f.said[i].Text, Turn: f.said[i].Turn}
		if it.Asked != "" {
			l.Kind, l.Why = Decision, "the answer to: "+it.Asked
		}
		changed := func(later summary.Item) bool { return standing.Changes(later.Text, it.Text) > 0 }
		f.add(l, it.Sources, func(s *seen) bool {
			return s.sentence(it.Text) || it.Asked != "" && s.sentence(it.Asked+" "+it.Text) || ctx.Err() != nil || slices.ContainsFunc(f.said[i+1:], changed)
		})
	}
}

// recentTurns is for how many turns a changed file is news: later, the person may have gone on with it elsewhere.
const recentTurns = 6

// beside are folders of files that are none of the work: temporary ones, and the agents' own.
var beside = scan.WordSet("tmp T scratchpad .claude .codex")

// addWork adds what the state of the work tells: the branch and the pull request, where they are not those of any
// work, and files that were changed and not seen to be committed.
func (f *finder) addWork(w *state.Work) {
	for _, v := range []struct {
		state.Seen
		why  string
		kind ident.Type
	}{{w.Branch, "the git branch", ident.Name}, {w.PullRequest, "the pull request", ident.URL}} {
		if strings.ContainsAny(v.Text, "/-_0123456789") { // not main
			f.add(Loss{Kind: Value, Text: v.Text, Why: v.why, Turn: v.Turn}, append(v.Sources, f.naming(v.Text)...), func(s *seen) bool { return s.name(v.kind, v.Text) })
		}
	}
	others := len(f.found)
	for _, e := range slices.Backward(w.Edited) {
		aside := slices.ContainsFunc(strings.Split(path.Dir(e.Path), "/"), func(folder string) bool { return beside[folder] })
		if !e.PerhapsCommitted && e.Operation != "deleted" && e.Turn+recentTurns > f.thread.At(f.At).Turn && !aside && len(f.found) < others+mostFiles {
			f.add(Loss{Kind: File, Text: e.Path, Why: e.Operation + ", no commit was seen", Turn: e.Turn}, e.Sources, func(s *seen) bool {
				return s.name(ident.Path, e.Path) || f.tellsOf(s, path.Base(e.Path))
			})
		}
	}
}

// naming are the messages since the compaction before in which something is named.
func (f *finder) naming(name string) (ids []thread.ID) {
	for i := f.Previous + 1; i < f.At; i++ {
		if m := f.thread.At(i); slices.ContainsFunc(texts(m), func(text string) bool { return strings.Contains(text, name) }) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// tellsOf reports whether a text names something that stands in the calls for a file: what was changed may be told
// by its functions.
func (f *finder) tellsOf(s *seen, file string) bool {
	for _, m := range f.thread.Prefix(f.At).Messages() {
		for _, c := range m.Calls() {
			if strings.Contains(c.Arguments, file) && slices.ContainsFunc(ident.All(strings.ReplaceAll(c.Arguments, `"`, " ")), func(x ident.Ident) bool {
				return x.Type == ident.Symbol && len(x.Norm) >= leastSymbol && !strings.Contains(file, x.Norm) && s.name(x.Type, x.Norm)
			}) {
				return true
			}
		}
	}
	return false
}

// leastSymbol is how long the name of a function is at least that says something, in bytes. It is longer than those of
// the members of a call.
const leastSymbol = 12
