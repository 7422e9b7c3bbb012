package eval

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// lookupTokens is the most that one lookup may bring, in tokens; opened is about
// as much, in bytes. deep is how many hits are looked through for those that a
// contender removed.
const (
	lookupTokens = 2000
	opened       = 6000
	deep         = 3 * recall.DefaultLimit
)

// searches answers the lookups of one moment. One index over the whole history
// serves all contenders; hits that a contender did not remove are passed over.
// Against an index over the removed messages alone, only the weights of the words
// differ.
type searches struct {
	entries []recall.Entry
	index   *recall.Index
	known   map[int][]hit
}

// hit is a message that a question finds.
type hit struct {
	ids    []thread.ID
	tokens int
	holds  bool // the excerpt holds what is needed
	opened bool // so does the message, opened at the match
}

// entries lists all messages of a session as if all were removed.
func (s *session) entries() []recall.Entry {
	all := plan.Plan{ThreadID: s.thread.ID(), ThreadVersion: s.thread.Version()}
	all.Drops = []plan.Removal{{Span: s.thread.Range(0, s.thread.Len())}}
	return recall.Removed(s.thread, &all)
}

// hits are what the question for a need finds.
func (m *moment) hits(i int, counter *token.Counter) []hit {
	x := m.search
	if found, ok := x.known[i]; ok {
		return found
	}
	if x.index == nil {
		before := slices.IndexFunc(x.entries, func(e recall.Entry) bool { return e.Position >= m.at })
		if before < 0 {
			before = len(x.entries)
		}
		x.index = recall.NewIndex(x.entries[:before:before])
	}
	n := m.refs[i]
	holds := func(text string) bool {
		is := false
		m.find.find(text, func(id int32, _, _ int) { is = is || id == n.id })
		return is
	}
	question := m.question(n)
	var out []hit
	for _, h := range x.index.Search(question, &recall.Options{Limit: deep}) {
		one := hit{ids: append([]thread.ID{h.MessageID}, h.Also...), tokens: counter.Text(h.Excerpt), holds: holds(h.Excerpt)}
		one.opened = one.holds
		if pos, ok := m.thread.Index(h.MessageID); ok && !one.holds {
			one.opened = holds(around(recall.FullText(m.thread.At(pos)), h.Excerpt))
		}
		out = append(out, one)
	}
	x.known[i] = out
	return out
}

// around is the part of a text that opening it at an excerpt shows.
func around(text, excerpt string) string {
	if len(text) <= opened {
		return text
	}
	at := max(0, strings.Index(text, excerpt))
	from := max(0, min(at+len(excerpt)/2-opened/2, len(text)-opened))
	return text[from : from+opened]
}

// lookups asks, for what is not bound in the prompt, what one lookup brings. The
// question is made of what the agent knows at that step: the user's last message,
// its own words and the other arguments of the step.
func (m *moment) lookups(s *shown, out []found, counter *token.Counter) {
	if len(s.removed) == 0 {
		return
	}
	for i := range out {
		if out[i].bound {
			continue
		}
		room, rank := lookupTokens, 0
		for _, h := range m.hits(i, counter) {
			if !slices.ContainsFunc(h.ids, func(id thread.ID) bool { return s.removed[id] }) {
				continue
			}
			if rank == 0 {
				out[i].first = h.opened
				out[i].lookup = h.opened
			}
			room -= h.tokens
			if rank++; rank > recall.DefaultLimit || room < 0 {
				break
			}
			out[i].lookup = out[i].lookup || h.holds
		}
	}
}

// longestQuestion bounds a question, in bytes: an agent asks in a line or two.
const longestQuestion = 1000

// question is the query of a lookup, without the identifier itself.
func (m *moment) question(n need) string {
	if n.ask != "" {
		return n.ask
	}
	pos := m.steps[n.step]
	step := m.thread.At(pos)
	var b strings.Builder
	for _, c := range step.Calls() {
		text, _ := values(c.Arguments)
		b.WriteString(c.Name + " " + text + "\n")
	}
	b.WriteString(clipBytes(visible(step), longestQuestion) + "\n")
	args := b.String()
	user := ""
	for i := pos - 1; i >= 0; i-- {
		if msg := m.thread.At(i); msg.Role == thread.User && msg.Kind == thread.Plain {
			user = clipBytes(msg.Text(), longestQuestion)
			break
		}
	}
	question := clipBytes(args, longestQuestion) + user
	type piece struct{ at, end int }
	var gone []piece
	m.find.find(question, func(id int32, at, end int) {
		if id == n.id {
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

func clipBytes(s string, n int) string { return s[:min(len(s), n)] }
