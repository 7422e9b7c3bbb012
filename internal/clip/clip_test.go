package clip

import (
	"strings"
	"testing"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/property"
)

// TestBoundary: no cut parts what a reader sees as one character, in whatever
// mixture of line ends, plain letters, marks and joined signs.
func TestBoundary(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "Z", " ", "\r", "\n", "\r\n", "e\u0301", "é", "👩‍👩‍👧", "🇩🇪", "한", "\u0301", "\u200d", "\t"}), 1, 12).Draw(t, "pieces")
		s := ""
		for _, p := range pieces {
			s += p
		}
		i := rapid.IntRange(0, len(s)).Draw(t, "at")
		want, at := 0, 0
		for clusters := graphemes.FromString(s); clusters.Next(); {
			if at += len(clusters.Value()); at <= i {
				want = at
			}
		}
		if got := Boundary(s, i); got != want {
			t.Fatalf("Boundary(%q, %d) is %d, want %d", s, i, got, want)
		}
	})
}

func TestSentences(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"One. Two. Three", 12, "One. Two."}, {"One. Two. Three", 99, "One. Two. Three"}, {"a line\nand anoth", 12, "a line"}, {"no end", 3, ""},
		{"version 1.2 is", 12, ""}, {"One. Two", 4, "One."}, {"いい。それは", 12, "いい。"}, {"", 0, ""}, {"One.", 0, ""},
	} {
		if got := Sentences(c.text, c.n); got != c.want {
			t.Errorf("%q, %d: %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// TestShort: what is cut says so, in whole characters.
func TestShort(t *testing.T) {
	for _, tt := range []struct {
		s           string
		n           int
		short, line string
	}{
		{"", 3, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc…", "abc…"},
		{"ab cd", 3, "ab…", "ab …"},
		{"a\n\tb", 3, "a…", "a b"},
		{"äöü", 3, "ä…", "äöü"},
		{"ä\xffü", 9, "ä\xffü", "ä\uFFFDü"},
		{strings.Repeat("x ", 40), 2, "x…", "x …"},
		{"👩‍👩‍👧 family", 4, "…", "…"},
	} {
		if got := Short(tt.s, tt.n); got != tt.short {
			t.Errorf("Short(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.short)
		}
		if got := Line(tt.s, tt.n); got != tt.line {
			t.Errorf("Line(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.line)
		}
	}
}
