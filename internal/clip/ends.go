package clip

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// HeadAndTail returns the head and the tail of s within about limit bytes, with a note between them on how
// many characters are missing. It cuts at the end of a line or word if there is one near.
func HeadAndTail(s string, limit int) string {
	return HeadAndTailOf(s, limit, utf8.RuneCountInString)
}

// HeadAndTailOf is HeadAndTail of a text in which some characters stand for more of them: count says
// for how many a part of it stands.
func HeadAndTailOf(s string, limit int, count func(string) int) string {
	const slack = 48 // size of the note
	if len(s) <= limit || len(s) <= slack {
		return s
	}
	room := max(limit-slack, 16)
	head := CutBefore(s, room*6/10)
	tail := cutAfter(s, len(s)-(room-room*6/10))
	if tail <= head {
		return s
	}
	before, after := strings.TrimRight(s[:head], " \t\n"), strings.TrimLeft(s[tail:], " \t\n")
	between := s[len(before) : len(s)-len(after)]
	left := count(between) + omittedBefore(between)
	return before + " " + OmittedNote(left) + " " + after
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
	if i := strings.IndexByte(s[n:min(n+60, len(s))], '\n'); i >= 0 {
		return n + i + 1
	}
	if i := strings.IndexByte(s[n:min(n+24, len(s))], ' '); i >= 0 {
		return n + i + 1
	}
	return Boundary(s, n)
}
