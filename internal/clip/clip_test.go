package clip

import (
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
