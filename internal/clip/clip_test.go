package clip

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
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

func TestEnds(t *testing.T) {
	family := "👨‍👩‍👧‍👦"
	long := "The beginning stays. " + strings.Repeat("middle words ", 200) + "The end stays."
	got := HeadAndTail(long, 200)
	if !strings.HasPrefix(got, "The beginning stays.") || !strings.HasSuffix(got, "The end stays.") || !strings.Contains(got, "[… 2,") || len(got) > 260 {
		t.Errorf("Ends: %q", got)
	}
	again := HeadAndTail(got, 120)
	if strings.Count(again, "left out") != 1 {
		t.Errorf("trimmed twice: %q", again)
	}
	// What the mark says and what is left add up to the original.
	figure, _, _ := strings.Cut(strings.SplitN(again, leftOpen, 2)[1], leftClose)
	kept := len([]rune(again)) - len([]rune(leftOpen+figure+leftClose))
	if n := omittedBefore(leftOpen+figure+leftClose) + len([]rune(leftOpen+figure+leftClose)); kept+n < len([]rune(long))-6 || kept+n > len([]rune(long))+6 {
		t.Errorf("the mark says %s, kept %d, the original has %d", figure, kept, len([]rune(long)))
	}
	for limit := 50; limit < 400; limit++ {
		cut := HeadAndTail(strings.Repeat(family, 40), limit)
		for _, part := range strings.FieldsFunc(cut, func(r rune) bool { return r == '[' || r == ']' }) {
			if !strings.HasPrefix(part, "…") && strings.ReplaceAll(strings.TrimSpace(part), family, "") != "" {
				t.Fatalf("limit %d cuts inside a character: %q", limit, cut)
			}
		}
	}
	if s := HeadAndTail("short", 3); s != "short" {
		t.Errorf("a text that a mark would make longer is changed: %q", s)
	}
}

// TestEndsOfSentences: a text is cut between its sentences where some end near, and at a word where none does.
func TestEndsOfSentences(t *testing.T) {
	middle := strings.Repeat("words of no end ", 20)
	for s, want := range map[string]string{
		"Make it the id and a hash of the body, please. " + middle + "and so on. Keep the readable prefix.": "Make it the id and a hash of the body, please. [… 332 characters left out …] Keep the readable prefix.",
		"Make it this. And then " + middle + "keep it":                                                      "Make it this. [… 314 characters left out …] words of no end keep it",
		middle + "end": "words of no end words of no end [… 269 characters left out …] end words of no end end",
		"See e.g. 1. and 2. of " + middle + "for v1.2 of it": "See e.g. 1. and 2. of words of no [… 299 characters left out …] of no end for v1.2 of it",
	} {
		if got := HeadAndTail(s, 110); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBrief: what is cut says so, even if little but white space was.
func TestBrief(t *testing.T) {
	wide := strings.Repeat(" ", 40)
	for _, tt := range []struct {
		s     string
		limit int
		want  string
	}{
		{"", 9, ""}, {" a\n\tb ", 9, "a b"}, {wide + "a" + wide, 9, "a"}, {"123456789", 9, "123456789"}, {"1234567890", 9, "123456…"},
		{"a" + wide + "b", 9, "a…"}, {"a b" + wide + "c", 9, "a b…"}, {"1234 6789" + wide + "c", 9, "1234…"},
	} {
		if got := Brief(tt.s, tt.limit); got != tt.want {
			t.Errorf("Brief(%q, %d) = %q, want %q", tt.s, tt.limit, got, tt.want)
		}
	}
}

// TestEndsCounts: what is trimmed at a cut is counted as left out.
func TestEndsCounts(t *testing.T) {
	s := "head" + strings.Repeat(" ", 300) + "tail of it all"
	got := HeadAndTail(s, 90)
	before, rest, _ := strings.Cut(got, " "+leftOpen)
	n, after, _ := strings.Cut(rest, leftClose+" ")
	if want := fmt.Sprint(len(s) - len(before) - len(after)); n != want {
		t.Errorf("%q says %s, want %s", got, n, want)
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", -7: "-7", 999: "999", 1000: "1,000", -1000: "-1,000", 123456: "123,456", 36573: "36,573", 1234567: "1,234,567"} {
		if got := Number(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		text    string
		columns int
		want    []string
	}{
		{"", 10, []string{""}},
		{" one  two ", 7, []string{"one two"}},
		{"one two three", 7, []string{"one two", "  three"}},
		{"zwölf größe", 11, []string{"zwölf größe"}},
		{"one averylongword two", 5, []string{"one", "  averylongword", "  two"}},
	} {
		if got := Wrap(tt.text, tt.columns, "  "); !slices.Equal(got, tt.want) {
			t.Errorf("%q at %d: %q, want %q", tt.text, tt.columns, got, tt.want)
		}
	}
}
