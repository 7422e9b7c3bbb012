package clip

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// HeadAndTail returns the head and the tail of s within about limit bytes, with a note between them on how
// many characters are missing. It cuts at the end of a sentence, a line or a word if there is one near.
func HeadAndTail(s string, limit int) string {
	return HeadAndTailOf(s, limit, utf8.RuneCountInString)
}

// HeadAndTailOf is HeadAndTail of a text in which some characters, of those for private use, stand for more of them: count
// says for how many a part of it stands. Those at the cut are left out too.
func HeadAndTailOf(s string, limit int, count func(string) int) string {
	const slack = 48 // size of the note
	if len(s) <= limit || len(s) <= slack {
		return s
	}
	room := max(limit-slack, 16)
	reach := max(room/4, min(60, room*2/3))
	head, tail := room*6/10, len(s)-(room-room*6/10)
	head, tail = cmp.Or(endNear(s, head, reach, 1), CutBefore(s, head)), cmp.Or(endNear(s, tail, reach, -1), cutAfter(s, tail))
	if tail <= head {
		return s
	}
	atCut := func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Co, r) }
	before, after := strings.TrimRightFunc(s[:head], atCut), strings.TrimLeftFunc(s[tail:], atCut)
	between := s[len(before) : len(s)-len(after)]
	left := count(between) + omittedBefore(between)
	return before + " " + OmittedNote(left) + " " + after
}

// endNear is where a sentence or line ends less than reach bytes from byte n, in the direction of step if one does; else 0.
func endNear(s string, n, reach, step int) int {
	for _, d := range [...]int{step, -step} {
		for i := n; i > 3 && i < len(s) && max(n-i, i-n) < reach; i += d {
			space := s[i] == ' ' || s[i] == '\n'
			if s[i-1] == '\n' || space && strings.IndexByte(".!?", s[i-1]) >= 0 && strings.IndexByte(". \n", s[i-3]) < 0 { // no "1." or "e.g."
				return i
			}
		}
	}
	return 0
}

const (
	leftOpen  = "[… "
	leftClose = " characters left out …]"
)

// omittedBefore adds up the numbers in the notes of a text, less the notes themselves, so that the note of a
// text that is shortened twice is right.
func omittedBefore(s string) int {
	sum := 0
	for {
		_, rest, ok := strings.Cut(s, leftOpen)
		if !ok {
			return sum
		}
		// A number is short; searching no further keeps hostile text cheap.
		figure, _, ok := strings.Cut(rest[:min(len(rest), 16+len(leftClose))], leftClose)
		n, err := strconv.Atoi(strings.ReplaceAll(figure, ",", ""))
		if !ok || err != nil || n < 0 || n > 1<<31 {
			s = rest
			continue
		}
		sum += n - utf8.RuneCountInString(leftOpen+figure+leftClose)
		s = rest[len(figure)+len(leftClose):]
	}
}

// Brief returns s on one line, or its first words within limit bytes and "…".
func Brief(s string, limit int) string {
	s = strings.TrimSpace(s)
	head, whole := s, len(s) <= 2*limit
	if !whole {
		head = s[:CutBefore(s, 2*limit)] // what is behind it has words too
	}
	var b strings.Builder
	b.Grow(len(head))
	for word := range strings.FieldsSeq(head) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	head = b.String()
	if whole && len(head) <= limit {
		return head
	}
	return strings.TrimRight(head[:CutBefore(head, limit-3)], " ") + "…"
}

// CutBefore returns the best place to cut s at or shortly before byte n: the end of a line or word.
func CutBefore(s string, n int) int {
	if n <= 0 || n >= len(s) {
		return Boundary(s, n)
	}
	low := max(n-60, n/2)
	if i := strings.LastIndexByte(s[low:n], '\n'); i > 0 {
		return low + i
	}
	low = max(n-24, n/2)
	if i := strings.LastIndexByte(s[low:n], ' '); i > 0 {
		return low + i
	}
	return Boundary(s, n)
}

// cutAfter returns the best place to cut s at or shortly after byte n.
func cutAfter(s string, n int) int {
	if i := strings.IndexByte(s[n:min(n+24, len(s))], ' '); i >= 0 {
		return n + i + 1
	}
	return Boundary(s, n)
}
