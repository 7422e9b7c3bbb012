package texttable

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestGrid: what is too wide stands in parts, each with the names, and nothing is
// lost or wider than a terminal.
func TestGrid(t *testing.T) {
	g := Table{Head: []string{"contender"}}
	row := []string{"a contender with a long name"}
	for n := range 9 {
		g.Head = append(g.Head, "column "+string(rune('a'+n)))
		row = append(row, "0.12…0.4"+string(rune('0'+n)))
	}
	g.Row(row...)
	var b strings.Builder
	g.Write(&b)
	text := b.String()
	for _, cell := range append(g.Head[1:], row[1:]...) {
		if strings.Count(text, cell) != 1 {
			t.Errorf("%q stands %d times in\n%s", cell, strings.Count(text, cell), text)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if n := utf8.RuneCountInString(line); n > Width || line != strings.TrimRight(line, " ") {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if n := strings.Count(text, row[0]); n != 3 {
		t.Errorf("%d parts, want 3:\n%s", n, text)
	}
}

func TestList(t *testing.T) {
	var b strings.Builder
	List(&b, "Over: ", nil)
	List(&b, "Over: ", []string{"one"})
	List(&b, "Over: ", []string{strings.Repeat("x", 50), strings.Repeat("y", 50), "z"})
	want := "Over: one\nOver: " + strings.Repeat("x", 50) + ",\n  " + strings.Repeat("y", 50) + ", z\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
