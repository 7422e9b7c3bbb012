package references

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Found says how far a prompt, or one lookup, gives a need.
type Found struct {
	// Direct: the identifier stands in the prompt. Bound: beside a word that tells what
	// it is. Strict: beside one that stood there at its first mention.
	Direct, Bound, Strict bool
	// First: the best hit of a search, opened, shows it. Lookup: that, or the answer of
	// the tool recall does.
	Lookup, First bool
	// Pointer: something in the prompt stands for a message that holds it.
	Pointer bool
}

// Scan looks for the needs of the moment in a prompt. It asks no lookups.
func (m *Moment) Scan(s *Shown) []Found {
	out := make([]Found, len(m.Needs))
	kept := make([]bool, m.At)
	for _, i := range s.Kept {
		kept[i] = true
	}
	at := map[int32]int{}
	for i, n := range m.Needs {
		at[n.ID] = i
		for _, seen := range n.Seen {
			out[i].Pointer = out[i].Pointer || seen.Pos < m.Tail && s.pointed[m.Thread.At(seen.Pos).ID]
		}
		for _, seen := range n.Seen {
			if seen.Pos < m.At && kept[seen.Pos] {
				out[i].Direct, out[i].Bound = true, true
				out[i].Strict = out[i].Strict || seen.Strict
			}
		}
	}
	for i := range s.Other {
		text, _ := MessageLines(&s.Other[i])
		m.Find.Find(text, func(id int32, from, to int) {
			i, ok := at[id]
			if !ok || out[i].Strict {
				return
			}
			bound, strict := m.Needs[i].isBoundAt(text, from, to)
			out[i].Direct = true
			out[i].Bound = out[i].Bound || bound
			out[i].Strict = strict
		})
	}
	return out
}

// lookupTokens is the most that one lookup may bring, in tokens, with all that the
// tool writes around what it found; openedBytes is about as much.
const (
	lookupTokens = 2000
	openedBytes  = 6000
)

// wholeQuestion searches an index for a whole question: the tool cuts questions off
// after 4,000 bytes. It implements rehydrate.Recaller.
type wholeQuestion struct {
	index    *recall.Index
	question string
	hits     []recall.Hit
}

// Recall implements rehydrate.Recaller.
func (q *wholeQuestion) Recall(_ context.Context, _ string, limit int) ([]recall.Hit, error) {
	q.hits = q.index.Search(q.question, &recall.Options{Limit: limit})
	return q.hits, nil
}

// Lookup returns what the tool recall answers to a question, of at most 2,000 tokens,
// and the hits behind it.
func Lookup(ctx context.Context, index *recall.Index, question string, counter *token.Counter) (string, []recall.Hit, error) {
	q := &wholeQuestion{index: index, question: question}
	arguments, err := json.Marshal(map[string]string{"query": question})
	if err != nil {
		return "", nil, err
	}
	tool := rehydrate.Handler{Recaller: q}
	answer, err := tool.Answer(ctx, thread.ToolCall{Name: recall.RecallTool, Arguments: string(arguments)})
	if err != nil {
		return "", nil, err
	}
	text := answer.Text()
	if n := counter.Text(text); n > lookupTokens {
		text = text[:len(text)*lookupTokens/n]
	}
	return text, q.hits, nil
}

// Entries are the search entries of all messages, as if all were removed.
func (s *Session) Entries() []recall.Entry {
	all := plan.Plan{ThreadID: s.Thread.ID(), ThreadVersion: s.Thread.Version()}
	all.Drops = []plan.Removal{{Span: s.Thread.Range(0, s.Thread.Len())}}
	return recall.Removed(s.Thread, &all)
}

// Lookups asks one lookup for each need that is not bound in the prompt, over just
// what was removed, and adds to out what it brings.
func (m *Moment) Lookups(ctx context.Context, s *Shown, out []Found, counter *token.Counter) error {
	var index *recall.Index
	for i := range out {
		if out[i].Bound || len(s.removed) == 0 {
			continue
		}
		if index == nil {
			var err error
			if index, err = recall.NewIndexContext(ctx, m.Removed(s)); err != nil {
				return err
			}
		}
		n := m.Needs[i]
		holds := func(text string) bool {
			is := false
			m.Find.Find(text, func(id int32, _, _ int) { is = is || id == n.ID })
			return is
		}
		answer, hits, err := Lookup(ctx, index, m.lookupQuery(n), counter)
		if err != nil {
			return err
		}
		if len(hits) > 0 {
			pos, ok := m.Thread.Index(hits[0].MessageID)
			out[i].First = ok && holds(openedPart(recall.FullText(m.Thread.At(pos)), &hits[0]))
		}
		out[i].Lookup = out[i].First || holds(answer)
	}
	return nil
}

// Removed are the search entries of what a contender removed.
func (m *Moment) Removed(s *Shown) []recall.Entry {
	var out []recall.Entry
	for _, e := range m.Entries {
		if e.Position < m.At && s.removed[e.MessageID] {
			out = append(out, e)
		}
	}
	return out
}

// unescaper decodes the escapes of JSON strings.
var unescaper = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`)

// openedPart is what the agent sees when it opens a text at a hit.
func openedPart(text string, h *recall.Hit) string {
	at := 0
	for range h.Line - 1 {
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	for range h.Column - 1 {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	from := max(0, min(at+len(h.Excerpt)/2-openedBytes/2, len(text)-openedBytes))
	shown := text[from:min(len(text), from+openedBytes)]
	return shown + "\n" + unescaper.Replace(shown)
}

// lookupQuery is the question of a lookup: the calls and words of the step that needs
// the identifier and the user's last message, without the identifier itself.
func (m *Moment) lookupQuery(n Need) string {
	if n.Ask != "" {
		return n.Ask
	}
	pos := m.Steps[n.Step]
	step := m.Thread.At(pos)
	var b strings.Builder
	for _, c := range step.Calls() {
		text, _ := values(c.Arguments)
		b.WriteString(c.Name + " " + text + "\n")
	}
	question := b.String() + step.Text() + "\n"
	for i := pos - 1; i >= 0; i-- {
		if msg := m.Thread.At(i); msg.Role == thread.User && msg.Kind == thread.Plain {
			question += msg.Text()
			break
		}
	}
	type place struct{ at, end int }
	var places []place
	m.Find.Find(question, func(id int32, at, end int) {
		if id == n.ID {
			places = append(places, place{at, end})
		}
	})
	slices.SortFunc(places, func(a, b place) int { return b.at - a.at })
	for _, p := range places {
		if p.end <= len(question) {
			question = question[:p.at] + " " + question[p.end:]
		}
	}
	return question
}
