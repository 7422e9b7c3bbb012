package recall

import (
	"slices"
	"strings"
	"testing"
	"time"
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
