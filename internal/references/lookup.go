package references

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// lookupTokens is the most that one lookup may bring, in tokens, with all that the
// tool writes around what it found; opened is about as much, in bytes.
const (
	lookupTokens = 2000
	opened       = 6000
)

// recordedSearch searches an index as the tool does, and remembers what it found. It asks
// the whole question, which the tool would cut off after 4,000 bytes.
type recordedSearch struct {
	index    *recall.Index
	question string
	hits     []recall.Hit
}

// Recall implements rehydrate.Recaller.
func (a *recordedSearch) Recall(_ context.Context, _ string, limit int) ([]recall.Hit, error) {
	a.hits = a.index.Search(a.question, &recall.Options{Limit: limit})
	return a.hits, nil
}

// Entries lists all messages of a session as if all were removed.
func (s *Session) Entries() []recall.Entry {
	all := plan.Plan{ThreadID: s.Thread.ID(), ThreadVersion: s.Thread.Version()}
	all.Drops = []plan.Removal{{Span: s.Thread.Range(0, s.Thread.Len())}}
	return recall.Removed(s.Thread, &all)
}

// Lookups asks, for what is not bound in the prompt, what one lookup brings: the
// answer of the tool recall over just what was removed, and the place of its best
// hit, opened.
func (m *Moment) Lookups(ctx context.Context, s *Shown, out []Found, counter *token.Counter) error {
	var a *recordedSearch
	var tool rehydrate.Handler
	for i := range out {
		if out[i].Bound || len(s.removed) == 0 {
			continue
		}
		if a == nil {
			index, err := recall.NewIndexContext(ctx, m.Removed(s))
			if err != nil {
				return err
			}
			a = &recordedSearch{index: index}
			tool.Recaller = a
		}
		n := m.Refs[i]
		holds := func(text string) bool {
			is := false
			m.Find.Find(text, func(id int32, _, _ int) { is = is || id == n.ID })
			return is
		}
		a.question, a.hits = m.lookupQuery(n), nil
		arguments, err := json.Marshal(map[string]string{"query": a.question})
		if err != nil {
			return err
		}
		answer, err := tool.Answer(ctx, thread.ToolCall{Name: rehydrate.Recall, Arguments: string(arguments)})
		if err != nil {
			return err
		}
		out[i].Lookup = holds(firstTokens(answer.Text(), lookupTokens, counter))
		if len(a.hits) > 0 {
			pos, ok := m.Thread.Index(a.hits[0].MessageID)
			out[i].First = ok && holds(openedPart(recall.FullText(uncopied.At(m.Thread, pos)), &a.hits[0]))
		}
		out[i].Lookup = out[i].Lookup || out[i].First
	}
	return nil
}

// Removed are the entries of what a contender took out.
func (m *Moment) Removed(s *Shown) []recall.Entry {
	var out []recall.Entry
	for _, e := range m.Entries {
		if e.Position < m.At && s.removed[e.MessageID] {
			out = append(out, e)
		}
	}
	return out
}

// firstTokens is the beginning of a text that takes at most so many tokens, about.
func firstTokens(text string, tokens int, counter *token.Counter) string {
	if n := counter.Text(text); n > tokens {
		return text[:len(text)*tokens/n]
	}
	return text
}

// unescaper decodes the escapes of JSON strings, as they are in what a prompt shows.
var unescaper = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`)

// openedPart is the part of a text that opening it at a hit shows.
func openedPart(text string, h *recall.Hit) string {
	at := 0
	for range h.Line - 1 {
		at += strings.IndexByte(text[at:], '\n') + 1
	}
	for range h.Column - 1 {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	from := max(0, min(at+len(h.Excerpt)/2-opened/2, len(text)-opened))
	shown := text[from:min(len(text), from+opened)]
	return shown + "\n" + unescaper.Replace(shown)
}

// lookupQuery is the query of a lookup, without the identifier itself.
func (m *Moment) lookupQuery(n Need) string {
	if n.Ask != "" {
		return n.Ask
	}
	pos := m.Steps[n.Step]
	step := uncopied.At(m.Thread, pos)
	var b strings.Builder
	for _, c := range step.Calls() {
		text, _ := values(c.Arguments)
		b.WriteString(c.Name + " " + text + "\n")
	}
	question := b.String() + step.Text() + "\n"
	for i := pos - 1; i >= 0; i-- {
		if msg := uncopied.At(m.Thread, i); msg.Role == thread.User && msg.Kind == thread.Plain {
			question += msg.Text()
			break
		}
	}
	type piece struct{ at, end int }
	var gone []piece
	m.Find.Find(question, func(id int32, at, end int) {
		if id == n.ID {
			gone = append(gone, piece{at, end})
		}
	})
	slices.SortFunc(gone, func(a, b piece) int { return b.at - a.at })
	for _, p := range gone {
		if p.end <= len(question) {
			question = question[:p.at] + " " + question[p.end:]
		}
	}
	return question
}
