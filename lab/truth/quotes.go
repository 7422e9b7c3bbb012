package truth

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// withoutNumbers takes off the numbers that tools put before lines of a file, if there are any.
func withoutNumbers(s string) (string, bool) {
	lines, any := strings.Split(s, "\n"), false
	for i, l := range lines {
		if n := numbered.FindString(l); n != "" {
			lines[i], any = l[len(n):], true
		}
	}
	return strings.Join(lines, "\n"), any
}

// holdsFor are the texts that a message holds for quotation: what it says, its
// result with and without line numbers, and the arguments of its calls.
func (x *index) holdsFor(at int) []text {
	if t, ok := x.sources[at]; ok {
		return t
	}
	out := append([]text(nil), x.quotable(at)...)
	if res, ok := x.log[at].Result(); ok {
		body := res.Text()
		out = append(out, newText(body), newText(res.Structured))
		if plain, ok := withoutNumbers(body); ok {
			out = append(out, newText(plain))
		}
	}
	for _, d := range x.callsAt(at) {
		out = append(out, newText(d.Arguments), newText(d.said), newText(d.line))
	}
	x.sources[at] = out
	return out
}

// callsAt are the calls of a message, and the one that it answers.
func (x *index) callsAt(at int) []*call {
	if d := x.ended[at]; d != nil {
		return append([]*call{d}, x.at[at]...)
	}
	return x.at[at]
}

func splitLabel(s string) (label, body string) {
	first, rest, more := strings.Cut(s, "\n")
	if t := strings.TrimSpace(first); more && strings.HasSuffix(t, ":") {
		return strings.TrimSuffix(t, ":"), rest
	}
	return "", s
}

// quoted looks for the lines of an item in the messages that it names, or in those of its turn,
// and for the call that its label names.
func quoted(x *index, it summary.Item, o origin) string {
	from := o.named
	if len(from) == 0 {
		for i := range x.log {
			if m := &x.log[i]; (o.turn == 0 || m.Turn == o.turn) && (m.Role == thread.Tool || m.Role == thread.Assistant || m.Kind == thread.Recap) {
				from = append(from, i)
			}
		}
	}
	label, body := splitLabel(it.Text)
	if label != "" && !x.labelled(label, from) {
		return "no message that it names has to do with " + label
	}
	lines := quotedLines(body)
	var texts []text
	for _, i := range from {
		texts = append(texts, x.holdsFor(i)...)
	}
	gaps, gap, ok := fewestGaps(texts, lines)
	if ok && gaps == 0 {
		return ""
	}
	// Lines between marks may be from different messages.
	for n := 0; n < len(lines); {
		end := n + 1
		for end < len(lines) && !lines[end].after {
			end++
		}
		run := lines[n:end]
		n = end
		g, between, ok := fewestGaps(texts, run)
		if ok && g == 0 {
			continue
		}
		if ok {
			gap = between
		}
		if reason := inRecords(texts, run); reason != "" {
			if ok {
				reason = "lines between these were left out, and nothing marks it:\n" + gap
			}
			return reason
		}
	}
	return ""
}

// fewestGaps finds lines in one of some texts, with the fewest gaps that no mark tells of.
func fewestGaps(texts []text, lines []quotedLine) (best int, gap string, ok bool) {
	for _, t := range texts {
		if n, g, found := inOrder(t.norm(), lines); found && (!ok || n < best) {
			if best, gap, ok = n, g, true; n == 0 {
				break
			}
		}
	}
	return best, gap, ok
}

// inRecords says which of some lines tells no fields of one record, punctuation left out.
func inRecords(texts []text, lines []quotedLine) string {
	flat := len(lines) == 1
	for _, l := range lines {
		verbatim, one, anywhere := false, false, false
		for _, t := range texts {
			if verbatim = l.sought.in(t.norm()); verbatim {
				break
			}
			if rec := t.records(); rec != nil && !one {
				o, a := rec.holds(l.text)
				one, anywhere = one || o, anywhere || a
			}
		}
		switch {
		case verbatim:
		case one:
			flat = true
		case anywhere:
			return "fields of different records stand side by side: " + clip(l.text, 160)
		default:
			return "no message that it names holds the line: " + clip(l.text, 160)
		}
	}
	if !flat {
		return "its lines do not stand in this order in one message"
	}
	return ""
}

// ofOthers are the labels of what stands in the user's name and is not in their words.
var ofOthers = map[string]func(*thread.Message) bool{
	"the agent's earlier summary": func(m *thread.Message) bool { return m.Kind == thread.Recap },
	"an earlier summary":          func(m *thread.Message) bool { return m.Kind == thread.Recap },
	"attached by the user":        func(m *thread.Message) bool { return m.Role == thread.User },
	"another agent":               func(m *thread.Message) bool { return m.Role == thread.User },
}

// labelled reports whether the messages that an item names have to do with its label.
func (x *index) labelled(label string, from []int) bool {
	for begin, is := range ofOthers {
		if strings.HasPrefix(label, begin) {
			return slices.ContainsFunc(from, func(i int) bool { return is(&x.log[i]) })
		}
	}
	name := strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(label, "failed ")), "…")
	return slices.ContainsFunc(from, func(i int) bool {
		return slices.ContainsFunc(x.callsAt(i), func(d *call) bool {
			rest := strings.TrimSpace(strings.TrimPrefix(name, d.Name))
			return tail(d.path(), rest) || d.takes(rest)
		})
	})
}
