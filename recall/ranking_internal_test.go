package recall

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestFilterIsAskedOnce: what a filter says of an entry holds for all words of a query, and a word that is
// repeated is looked up once.
func TestFilterIsAskedOnce(t *testing.T) {
	x := NewIndex([]Entry{{ThreadID: "t", Text: "aaaa bbbb"}, {ThreadID: "t", Position: 1, Text: "bbbb"}})
	q := newQuestion(strings.Repeat("aaaa ", 20)+"bbbb file:zz", &Options{}, time.Time{})
	r := x.rank(q)
	_, asked := x.queryTerms(&q)
	x.views[0], x.views[1] = "zz", "zz" // a filter that is asked again admits them now
	for _, missing := range [][]string{r.missing, missingWords(x, r, asked)} {
		if !slices.Equal(missing, []string{"aaaa", "bbbb"}) {
			t.Errorf("%q are missing", missing)
		}
	}
}

// TestSegments: it does not matter how entries are divided, nor which form of a word a segment meets first.
func TestSegments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("deploy deployed deploying agreed agree HTTPServer fooBar foo_bar pkg/x.go x.go 한국어 日本語テスト ошибка Ошибка 12 4567 why? " +
		`{"a":"b\nc"} ` + strings.Repeat("x", 100) + " " + strings.Repeat("ab/Cd_", 60))
	text := func(most int) string {
		var b strings.Builder
		for range r.IntN(most) {
			b.WriteString(words[r.IntN(len(words))] + "  \n "[r.IntN(4):][:1])
		}
		return b.String()
	}
	for range 10 {
		entries := make([]Entry, 1+r.IntN(60))
		for i := range entries {
			entries[i] = Entry{ThreadID: "t", MessageID: thread.ID(strconv.Itoa(i)), Position: i, Text: text(60)}
			if r.IntN(3) == 0 {
				entries[i].Tool, entries[i].Call, entries[i].Summary = "Read", "Read "+text(3), text(3)
			}
		}
		var of [3]*Index
		for n, size := range []int{1, 700, segmentBytes} {
			var err error
			if of[n], err = newIndex(t.Context(), entries, size); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			query := text(8) + "unknown fo*"
			whole := of[2].Search(query, nil)
			for _, x := range of[:2] {
				if got := x.Search(query, nil); !reflect.DeepEqual(got, whole) {
					t.Fatalf("%q in %d segments: %v\nin one: %v", query, len(x.segments), got, whole)
				}
			}
		}
	}
}

// TestFolded: a phrase is found in any case, wherever and whatever its rarest character is.
func TestFolded(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	letters := []rune("aAkKzZ _-éÉяЯ한7")
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	for range 20_000 {
		s, phrase := text(r.IntN(14)), text(1+r.IntN(3))
		want := -1
		for at := 0; at+len(phrase) <= len(s) && want < 0; at++ {
			if utf8.RuneStart(s[at]) && strings.EqualFold(s[at:at+len(phrase)], phrase) {
				want = at
			}
		}
		sought := newFolded(phrase)
		if got := sought.index(s); got != want {
			t.Fatalf("%q in %q: %d, want %d", phrase, s, got, want)
		}
	}
	sought := newFolded("lint")
	for s, want := range map[string]bool{"lint {": true, "splint LINT": true, "splint": false, "llint": false, "splints": false, "": false} {
		if sought.inWord(s) != want {
			t.Errorf("%q has the word: %t", s, !want)
		}
	}
	if a := newFolded("a"); a.inWord("xaa") {
		t.Error("a letter behind a letter is no word")
	}
}
