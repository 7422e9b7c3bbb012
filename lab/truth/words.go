package truth

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

var (
	// leftOut are the marks of words that were left out.
	leftOut = regexp.MustCompile(`\[… ?[\d,.]+ [a-z]+ left out ?…\]|\[…\]|…`)
	ansi    = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?")
	// numbered is the number that tools put before a line of a file.
	numbered = regexp.MustCompile(`^ *(\d+)(?:→|\t)`)
	fence    = regexp.MustCompile("```[A-Za-z0-9_+-]*")
)

// text is something that was said: norm is it as normal makes it, records those of JSON, nil for other
// texts. Both are made once, when they are asked for.
type text struct {
	raw     string
	norm    func() string
	records func() *records
}

func newText(raw string) text {
	return text{raw, sync.OnceValue(func() string { return normal(raw) }), sync.OnceValue(func() *records { return readRecords(raw) })}
}

// normal collapses white space, and takes off colours and what a rendered summary may put in or
// take out so that nothing passes for its frame.
func normal(s string) string {
	if strings.Contains(s, "\x1b") {
		s = ansi.ReplaceAllString(s, "")
	}
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		switch {
		case r == '\\' || r == '\uFFFD':
		case unicode.IsSpace(r):
			space = true
		case r >= 0x80 && unicode.Is(unicode.Cf, r) || unicode.IsControl(r):
		default:
			if space && b.Len() > 0 {
				b.WriteByte(' ')
			}
			space = false
			b.WriteRune(r)
		}
	}
	return b.String()
}

// pieces are the parts of a text between marks of elision.
func pieces(s string) []string {
	var out []string
	for _, p := range leftOut.Split(s, -1) {
		if p = normal(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// sought are words that are looked for: whole, or where "…" marks what was left out, in pieces.
type sought struct {
	whole  string
	pieces []string
}

func seek(words string) sought {
	s := sought{whole: normal(words)}
	if strings.Contains(words, "…") {
		s.pieces = pieces(words)
	}
	return s
}

// in reports whether the words stand in a normalised text, pieces in order.
func (s sought) in(norm string) bool { return s.whole == "" || len(s.places(norm, 1)) > 0 }

// inAny reports whether they stand in one of some texts.
func (s sought) inAny(texts []text) bool {
	return slices.ContainsFunc(texts, func(t text) bool { return s.in(t.norm()) })
}

// holds reports whether the words stand in a normalised text, pieces in order.
func holds(norm, words string) bool { return seek(words).in(norm) }

// place is where a line stands: bytes of a normalised text.
type place struct{ from, to int }

const maxPlaces = 512

// places finds where they stand: whole, or the pieces in order.
func (s sought) places(norm string, most int) (out []place) {
	for _, parts := range [][]string{{s.whole}, s.pieces} {
		for i := 0; len(parts) > 0 && parts[0] != "" && len(out) < most; {
			n := strings.Index(norm[i:], parts[0])
			if n < 0 {
				break
			}
			at := place{i + n, i + n + len(parts[0])}
			i = at.from + 1
			for _, p := range parts[1:] {
				if n = strings.Index(norm[at.to:], p); n < 0 {
					return out
				}
				at.to += n + len(p)
			}
			out = append(out, at)
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// quotedLine is one line of an item.
type quotedLine struct {
	text   string
	sought sought
	// after says that a gap before it is marked.
	after bool
}

// quotedLines are the lines of an item that hold words, marks of gaps taken out.
func quotedLines(s string) []quotedLine {
	var out []quotedLine
	marked := false
	for line := range strings.SplitSeq(s, "\n") {
		t := strings.TrimSpace(line)
		if !wordy(leftOut.ReplaceAllString(t, "")) {
			marked = marked || strings.Contains(t, "…")
			continue
		}
		begins, ends := strings.HasPrefix(t, "…") || strings.HasPrefix(t, "[…"), strings.HasSuffix(t, "…") || strings.HasSuffix(t, "…]")
		out = append(out, quotedLine{t, seek(t), marked || begins})
		marked = ends
	}
	return out
}

// wordy reports whether a text holds a letter or a digit.
func wordy(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// escaped are ends of lines in a text that stands in JSON, without the backslash.
var escaped = regexp.MustCompile(`\b[nrt]+\b`)

// noise reports whether nothing was left out when only this was.
func noise(s string) bool {
	return !wordy(s) || len(s) < 80 && !wordy(escaped.ReplaceAllString(s, "")) || strings.Contains(s, "```") && !wordy(fence.ReplaceAllString(s, ""))
}

// inOrder finds the lines in a text, in their order and with the fewest gaps that
// no mark tells of. It returns the first such gap; ok is false when they do not
// stand there in order.
func inOrder(norm string, lines []quotedLine) (gaps int, first string, ok bool) {
	type state struct {
		to, gaps int
		gap      string
	}
	now := []state{{}}
	for i, l := range lines {
		var next []state
		for _, p := range l.sought.places(norm, maxPlaces) {
			best := state{gaps: -1}
			for _, s := range now {
				if s.to > p.from {
					continue
				}
				if left := norm[s.to:p.from]; i > 0 && !l.after && !noise(left) {
					if s.gaps++; s.gap == "" {
						s.gap = clip(lines[i-1].text, 60) + "\n" + clip(l.text, 60) + "\nbetween them stands: " + clip(left, 80)
					}
				}
				if best.gaps < 0 || s.gaps < best.gaps {
					best = state{p.to, s.gaps, s.gap}
				}
			}
			if best.gaps >= 0 {
				next = append(next, best)
			}
		}
		if now = next; len(now) == 0 {
			return 0, "", false
		}
	}
	best := slices.MinFunc(now, func(a, b state) int { return a.gaps - b.gaps })
	return best.gaps, best.gap, true
}

// matched is the first group of a pattern in a text, "" where it does not match.
func matched(p *regexp.Regexp, text string) string {
	if m := p.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// clip shortens a text for a report.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}

// sameLine reports whether a quoted line, which may be shortened with "…", is a line, both as
// normal makes them.
func sameLine(quoted, line string) bool {
	head, _, cut := strings.Cut(quoted, "…")
	return quoted == line || cut && strings.HasPrefix(line, strings.TrimSpace(head)) && holds(line, quoted)
}

// tokens are the words and numbers of a text.
func tokens(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
}
