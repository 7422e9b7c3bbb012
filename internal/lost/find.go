package lost

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"unicode"

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
		changed := func(later summary.Item) bool {
			return standing.Changes(standing.Read(later.Text), standing.Read(it.Text)) > 0 && (!f.Verbatim || shareRare(later.Text, it.Text))
		}
		f.add(l, it.Sources, func(s *seen) bool {
			return f.Verbatim && s.half(it.Text) || !f.Verbatim && s.sentence(it.Text) || it.Asked != "" && s.sentence(it.Asked+" "+it.Text) || ctx.Err() != nil || slices.ContainsFunc(f.said[i+1:], changed)
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

// seen is text that the model sees, for the question whether something is told in it in any wording. In doubt it is.
type seen struct {
	letters string          // all of it as lettersOf writes it, texts parted by a space
	stems   map[uint64]bool // of its words
	foreign bool            // it is in another language than the person's: names alone tell
}

const (
	// passageBytes is how much of a text is read at once for its stems.
	passageBytes = 240
	// leastShared is how much of the words of the person, counted as often as they say them, stands at least in a
	// text of their language. Of English ones .48 or more stood in the summaries of 29 English sessions, and .26 of
	// others in one of 75 words; of sentences in eight other languages .14 or fewer in all but one.
	leastShared = 0.2
)

// see reads texts. said is what the person says.
func see(texts []string, said []summary.Item) *seen {
	s := &seen{stems: map[uint64]bool{}}
	var letters strings.Builder
	for _, text := range texts {
		letters.WriteString(" " + lettersOf(text))
		for len(text) > 0 {
			end := max(1, clip.CutBefore(text, passageBytes))
			for _, stem := range standing.Stems(text[:end]) {
				s.stems[stem] = true
			}
			text = text[end:]
		}
	}
	s.letters = letters.String()
	shared, all := 0, 0
	for _, it := range said {
		for _, stem := range standing.Stems(it.Text) {
			all++
			if s.stems[stem] {
				shared++
			}
		}
	}
	s.foreign = float64(shared) < leastShared*float64(all)
	return s
}

// texts are the texts of a message, with the arguments and results of calls.
func texts(m *thread.Message) []string {
	all := []string{m.Text()}
	for _, c := range m.Calls() {
		all = append(all, c.Arguments)
	}
	if r, ok := m.Result(); ok {
		all = append(all, r.Text())
	}
	return all
}

// lettersOf is a text as letters, digits and number signs in lower case: what is written apart, joined or with other
// marks is the same.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '#' {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// testMarks are what the names of tests have beside those of what they test.
var testMarks = strings.NewReplacer("_test", "", "test_", "", ".test", "", "-test", "", ".spec", "", "_spec", "")

// name reports whether a thing is told in any spelling: a file by its name without the ending, a pull request by its
// number, an address without its scheme, a hash by its beginning.
func (s *seen) name(kind ident.Type, text string) bool {
	base := path.Base(strings.ReplaceAll(text, `\`, "/"))
	names := []string{text[strings.Index(text, "//")+1:]}
	switch {
	case kind == ident.Path:
		names = []string{testMarks.Replace(strings.TrimSuffix(base, path.Ext(base)))}
	case kind == ident.URL && strings.Trim(base, "0123456789") == "":
		names = []string{"#" + base, "pr" + base, "mr" + base, "request" + base, "pull" + base, "issue" + base}
	case kind == ident.Hex:
		names = []string{text[:min(len(text), 7)]}
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(s.letters, lettersOf(name)) })
}

const (
	// usual is how rare a word is at most, by the table of package standing, that says nothing of what a sentence
	// is about; what is rarer weighs by how much. rareWord is how rare one is that is counted.
	usual, rareWord = 80, 112
	// mostTold is how much of the rare words of a sentence may stand in what is told where the sentence is missing,
	// and leastMissing how many must not stand there.
	mostTold, leastMissing = 0.45, 2
)

func shareRare(a, b string) bool {
	of := standing.Stems(a)
	return slices.ContainsFunc(standing.Stems(b), func(stem uint64) bool {
		return int(standing.Learned()[standing.RareAt(stem)]) >= rareWord && slices.Contains(of, stem)
	})
}

// half reports whether the first or the second half of a sentence stands in what is told.
func (s *seen) half(text string) bool {
	letters := []rune(lettersOf(text))
	at := len(letters) / 2
	return strings.Contains(s.letters, string(letters[:at])) || strings.Contains(s.letters, string(letters[at:]))
}

// sentence reports whether a sentence is told, in its words or others: a name in it is, or many of its rare words.
func (s *seen) sentence(text string) bool {
	named := false
	for _, x := range ident.All(text) {
		if x.Type == ident.Quoted {
			continue
		}
		if named = true; s.name(x.Type, x.Norm) {
			return true
		}
	}
	if s.foreign {
		return !named
	}
	whole, told, missing, table := 0, 0, 0, standing.Learned()
	for _, stem := range standing.Stems(text) {
		rare := int(table[standing.RareAt(stem)])
		whole += max(0, rare-usual)
		if s.stems[stem] {
			told += max(0, rare-usual)
		} else if rare >= rareWord {
			missing++
		}
	}
	return float64(told) > mostTold*float64(whole) || missing < leastMissing
}
