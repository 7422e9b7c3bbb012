package eval

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// found says of one need whether the prompt holds it, holds it with what tells
// what it is, and whether one lookup brings it back.
type found struct {
	direct, bound bool
	// strict: what tells what it is stood beside it at its first mention.
	strict bool
	// lookup is by the answer of one recall, first by its best hit alone.
	lookup, first bool
}

// scan says what is found in what is shown.
func (m *moment) scan(s *shown) []found {
	out := make([]found, len(m.refs))
	kept := make([]bool, m.at)
	for _, i := range s.kept {
		kept[i] = true
	}
	at := map[int32]int{}
	for i, n := range m.refs {
		at[n.id] = i
		for _, seen := range n.seen {
			if seen.pos < m.at && kept[seen.pos] {
				out[i].direct, out[i].bound = true, true
				out[i].strict = out[i].strict || seen.strict
			}
		}
	}
	for i := range s.other {
		text, _ := sayings(&s.other[i])
		m.find.find(text, func(id int32, from, to int) {
			i, ok := at[id]
			if !ok || out[i].strict {
				return
			}
			bound, strict := m.refs[i].boundAt(text, from, to)
			out[i].direct = true
			out[i].bound = out[i].bound || bound
			out[i].strict = strict
		})
	}
	return out
}

// lookupTokens is the most that one lookup may bring, in tokens; lookupHits and
// lookupExcerpt are the size of an answer of the recall tool that fits in.
const (
	lookupTokens  = 2000
	lookupHits    = recall.DefaultLimit
	lookupExcerpt = recall.DefaultExcerpt
)

// lookups asks, for what is not bound in the prompt, what one search brings. The
// question is made of what the agent knows at that step: the user's last message,
// its own words and the other arguments of the step.
func (m *moment) lookups(s *shown, out []found, counter *token.Counter) {
	if s.engine == nil {
		return
	}
	var index *recall.Index
	for i := range out {
		if out[i].bound {
			continue
		}
		if index == nil {
			index = recall.NewIndex(recall.Removed(s.engine.thread, s.engine.plan))
		}
		if index.Len() == 0 {
			return
		}
		n := m.refs[i]
		hits := index.Search(m.question(n), &recall.Options{Limit: lookupHits, Excerpt: lookupExcerpt})
		room := lookupTokens
		for rank, h := range hits {
			room -= counter.Text(h.Excerpt)
			if room < 0 {
				break
			}
			m.find.find(h.Excerpt, func(id int32, _, _ int) {
				if id == n.id {
					out[i].lookup = true
					out[i].first = out[i].first || rank == 0
				}
			})
			if out[i].lookup {
				break
			}
		}
	}
}

// longestQuestion bounds a question, in bytes: an agent asks in a line or two.
const longestQuestion = 1000

// question is the query of a lookup, without the identifier itself.
func (m *moment) question(n need) string {
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
