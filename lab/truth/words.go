package truth

import (
	"regexp"
	"strings"
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

// text is something that was said, with white space normalised.
type text struct {
	raw  string
	norm string
	rec  *records // of JSON; nil when it was not read as such
	read bool     // rec was tried
}

func newText(raw string) text { return text{raw: raw, norm: normal(raw)} }

// normal collapses white space and takes colours off.
func normal(s string) string {
	if strings.Contains(s, "\x1b") {
		s = ansi.ReplaceAllString(s, "")
	}
	return strings.Join(strings.Fields(s), " ")
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

// holds reports whether the words stand in a normalised text, pieces in order.
func holds(norm, words string) bool {
	w := normal(words)
	if w == "" || strings.Contains(norm, w) {
		return true
	}
	if !strings.Contains(words, "…") {
		return false
	}
	for _, p := range pieces(words) {
		i := strings.Index(norm, p)
		if i < 0 {
			return false
		}
		norm = norm[i+len(p):]
	}
	return true
}

// place is where a line stands: bytes of a normalised text.
type place struct{ from, to int }

const maxPlaces = 512

// places finds where a line stands.
func places(norm, line string) []place {
	w := normal(line)
	if w == "" {
		return nil
	}
	var out []place
	for i := 0; i <= len(norm) && len(out) < maxPlaces; {
		n := strings.Index(norm[i:], w)
		if n < 0 {
			break
		}
		out = append(out, place{i + n, i + n + len(w)})
		i += n + 1
	}
	if len(out) > 0 || !strings.Contains(line, "…") {
		return out
	}
	ps := pieces(line)
	if len(ps) == 0 {
		return nil
	}
	for i := 0; i <= len(norm) && len(out) < maxPlaces; {
		n := strings.Index(norm[i:], ps[0])
		if n < 0 {
			break
		}
		at := place{i + n, i + n + len(ps[0])}
		i += n + 1
		found := true
		for _, p := range ps[1:] {
			n := strings.Index(norm[at.to:], p)
			if n < 0 {
				found = false
				break
			}
			at.to += n + len(p)
		}
		if !found {
			break
		}
		out = append(out, at)
	}
	return out
}

// quoted is one line of an item.
type quoted struct {
	text string
	// after says that a gap before it is marked.
	after bool
}

// quotedLines are the lines of an item that hold words, marks of gaps taken out.
func quotedLines(s string) []quoted {
	var out []quoted
	marked := false
	for line := range strings.SplitSeq(s, "\n") {
		t := strings.TrimSpace(line)
		if t == "" {
			continue
		}
		if !wordy(leftOut.ReplaceAllString(t, "")) && strings.Contains(t, "…") {
			marked = true
			continue
		}
		begins, ends := strings.HasPrefix(t, "…") || strings.HasPrefix(t, "[…"), strings.HasSuffix(t, "…") || strings.HasSuffix(t, "…]")
		out = append(out, quoted{t, marked || begins})
		marked = ends
	}
	return out
}

// wordy reports whether a text holds a letter or a digit.
func wordy(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// escaped are ends of lines in a text that stands in JSON.
var escaped = strings.NewReplacer(`\n`, " ", `\r`, " ", `\t`, " ")

// noise reports whether nothing was left out when only this was.
func noise(s string) bool {
	return !wordy(s) || strings.Contains(s, `\`) && !wordy(escaped.Replace(s)) || strings.Contains(s, "```") && !wordy(fence.ReplaceAllString(s, ""))
}

// inOrder finds the lines in a text, in their order and with the fewest gaps that
// no mark tells of. It returns the first such gap; ok is false when they do not
// stand there in order.
func inOrder(norm string, lines []quoted) (gaps int, first string, ok bool) {
	type state struct {
		place
		gaps int
		gap  string
	}
	var now []state
	for i, l := range lines {
		found := places(norm, l.text)
		if len(found) == 0 {
			return 0, "", false
		}
		var next []state
		for _, p := range found {
			if i == 0 {
				next = append(next, state{place: p})
				continue
			}
			best := -1
			var s state
			for k, before := range now {
				if before.to > p.from {
					continue
				}
				n, gap := before.gaps, before.gap
				if left := norm[before.to:p.from]; !l.after && !noise(left) {
					n++
					if gap == "" {
						gap = clip(lines[i-1].text, 60) + "\n" + clip(l.text, 60) + "\nbetween them stands: " + clip(left, 80)
					}
				}
				if best < 0 || n < s.gaps {
					best, s = k, state{p, n, gap}
				}
			}
			if best >= 0 {
				next = append(next, s)
			}
		}
		if len(next) == 0 {
			return 0, "", false
		}
		now = next
	}
	if len(now) == 0 {
		return 0, "", true
	}
	best := now[0]
	for _, s := range now {
		if s.gaps < best.gaps {
			best = s
		}
	}
	return best.gaps, best.gap, true
}

// clip shortens a text for a report.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}

// sameLine reports whether a quoted line, which may be shortened with "…", is a
// line of a file.
func sameLine(quoted, line string) bool {
	if quoted == line {
		return true
	}
	if !strings.Contains(quoted, "…") {
		return false
	}
	parts := leftOut.Split(quoted, -1)
	for i, p := range parts {
		p = strings.TrimSpace(p)
		if p == "" {
			continue
		}
		n := strings.Index(line, p)
		if n < 0 || i == 0 && n > 0 {
			return false
		}
		line = line[n+len(p):]
	}
	last := strings.TrimSpace(parts[len(parts)-1])
	return last == "" || line == ""
}

// tokens are the words and numbers of a text.
func tokens(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
}
