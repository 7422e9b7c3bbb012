package summarize

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// span is a piece of a string, by byte offsets.
type span struct{ from, to int }

// clean takes out terminal escapes and carriage returns, which carry no meaning
// for a reader. Text without them is returned as it is.
func clean(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 && strings.IndexByte(s, '\r') < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == 0x1b:
			i = escapeEnd(s, i)
		case c == '\r' && i+1 < len(s) && s[i+1] != '\n':
			b.WriteByte('\n') // a progress bar drawn over itself
		case c == '\r':
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// escapeEnd returns the position of the last byte of the terminal escape at i.
func escapeEnd(s string, i int) int {
	if i+1 >= len(s) {
		return i
	}
	switch s[i+1] {
	case '[': // CSI: up to a final byte
		for j := i + 2; j < len(s); j++ {
			if s[j] >= 0x40 && s[j] <= 0x7e {
				return j
			}
		}
		return len(s) - 1
	case ']': // OSC: up to BEL or ST
		for j := i + 2; j < len(s); j++ {
			if s[j] == 0x07 {
				return j
			}
			if s[j] == 0x1b {
				if j+1 < len(s) && s[j+1] != '\\' {
					return j - 1 // the next escape
				}
				return min(j+1, len(s)-1)
			}
		}
		return len(s) - 1
	}
	if s[i+1] < ' ' || s[i+1] > '~' {
		return i // no escape: a lone control character before other text
	}
	return i + 1
}

// nextLine returns the line of s that begins at from, without its end, and
// where the next begins.
func nextLine(s string, from int) (line span, next int) {
	n := strings.IndexByte(s[from:], '\n')
	if n < 0 {
		return span{from, len(s)}, len(s)
	}
	return span{from, from + n}, from + n + 1
}

// trimSpan narrows a span to what is not white space.
func trimSpan(s string, p span) span {
	for p.from < p.to && isSpace(s[p.from]) {
		p.from++
	}
	for p.to > p.from && isSpace(s[p.to-1]) {
		p.to--
	}
	return p
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// sentences calls yield with each sentence of s: up to a line end, or to a
// full stop, question or exclamation mark that is followed by a space and does
// not go on in lower case ("e.g. this").
func sentences(s string, yield func(span)) {
	emit := func(p span) {
		if p = trimSpan(s, p); p.from < p.to {
			yield(p)
		}
	}
	from := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n':
			emit(span{from, i})
			from = i + 1
		case c == '.' || c == '!' || c == '?':
			if i+2 < len(s) && s[i+1] == ' ' && !(s[i+2] >= 'a' && s[i+2] <= 'z') {
				emit(span{from, i + 1})
				from = i + 1
			}
		case c == 0xe3 && strings.HasPrefix(s[i:], "。"), c == 0xef && (strings.HasPrefix(s[i:], "！") || strings.HasPrefix(s[i:], "？")):
			emit(span{from, i + 3})
			from = i + 3
			i += 2
		}
	}
	emit(span{from, len(s)})
}

// trimMiddle keeps the head and the tail of s within about limit bytes and says
// how many characters it left out. Cuts fall on line or word ends where there is
// one near, and never inside a character as a reader sees it.
func trimMiddle(s string, limit int) string {
	const slack = 48 // what the mark itself takes
	if len(s) <= limit || len(s) <= slack {
		return s
	}
	room := max(limit-slack, 16)
	head := cutBefore(s, room*6/10)
	tail := cutAfter(s, len(s)-(room-room*6/10))
	if tail <= head {
		return s
	}
	before, after := strings.TrimRight(s[:head], " \t\n"), strings.TrimLeft(s[tail:], " \t\n")
	between := s[len(before) : len(s)-len(after)]
	left := utf8.RuneCountInString(between) + leftBefore(between)
	return before + " " + leftOpen + thousands(left) + leftClose + " " + after
}

const (
	leftOpen  = "[… "
	leftClose = " characters left out …]"
)

// leftBefore adds up what the marks in a text say was left out before, less the
// marks themselves, so that a text trimmed twice tells the truth.
func leftBefore(s string) int {
	sum := 0
	for {
		_, rest, ok := strings.Cut(s, leftOpen)
		if !ok {
			return sum
		}
		// A figure is short; looking no further keeps hostile text cheap.
		figure, _, ok := strings.Cut(rest[:min(len(rest), 16+len(leftClose))], leftClose)
		if !ok {
			s = rest
			continue
		}
		n, err := strconv.Atoi(strings.ReplaceAll(figure, ",", ""))
		if err != nil || n < 0 || n > 1<<31 {
			s = rest
			continue
		}
		sum += n - utf8.RuneCountInString(leftOpen+figure+leftClose)
		s = rest[len(figure)+len(leftClose):]
	}
}

// clip keeps the first characters of s within limit bytes, on one line.
func clip(s string, limit int) string {
	s = oneLine(s, 2*limit)
	if len(s) <= limit {
		return s
	}
	return strings.TrimRight(s[:cutBefore(s, limit-3)], " ") + "…"
}

// oneLine joins the words of the first limit bytes with single spaces.
func oneLine(s string, limit int) string {
	if len(s) > limit {
		s = s[:cutBefore(s, limit)]
	}
	plain := true
	for i := range len(s) {
		if c := s[i]; c == '\n' || c == '\t' || c == '\r' || c == ' ' && i+1 < len(s) && s[i+1] == ' ' {
			plain = false
			break
		}
	}
	if plain {
		return strings.TrimSpace(s)
	}
	return strings.Join(strings.Fields(s), " ")
}

// cutBefore returns the best place to cut s at or a little before byte n.
func cutBefore(s string, n int) int {
	if n <= 0 {
		return 0
	}
	if n >= len(s) {
		return len(s)
	}
	low := max(n-60, n/2)
	if i := strings.LastIndexByte(s[low:n], '\n'); i > 0 {
		return low + i
	}
	low = max(n-24, n/2)
	if i := strings.LastIndexByte(s[low:n], ' '); i > 0 {
		return low + i
	}
	return boundary(s, n)
}

// cutAfter returns the best place to cut s at or a little after byte n.
func cutAfter(s string, n int) int {
	if n <= 0 {
		return 0
	}
	if n >= len(s) {
		return len(s)
	}
	if i := strings.IndexByte(s[n:min(n+60, len(s))], '\n'); i >= 0 {
		return n + i + 1
	}
	if i := strings.IndexByte(s[n:min(n+24, len(s))], ' '); i >= 0 {
		return n + i + 1
	}
	return boundary(s, n)
}

// boundary returns the last boundary between graphemes at or before byte n. It
// starts from an ASCII letter or space nearby, before which there is always one.
func boundary(s string, n int) int {
	if s[n] < utf8.RuneSelf && s[n-1] < utf8.RuneSelf {
		return n
	}
	start := n - 1
	for start > 0 && n-start < 256 && s[start] >= utf8.RuneSelf {
		start--
	}
	for start > 0 && !utf8.RuneStart(s[start]) {
		start--
	}
	at := start
	for g := graphemes.FromString(s[start:min(n+64, len(s))]); g.Next(); {
		if start+g.End() > n {
			break
		}
		at = start + g.End()
	}
	return at
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
