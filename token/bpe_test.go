package token

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
)

// oracle counts tokens the slow and plain way: the published regular expression
// run by the standard library, and merges by rank over a map, for comparison.
//
// The expressions' \s is Unicode white space, which is [\t-\r \x85\pZ] here, and
// their two last alternatives need a look ahead, which is written out.
type oracle struct {
	words *regexp.Regexp
	ranks map[string]int
}

const contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`

var oracles = map[string]func() *oracle{
	"o200k": sync.OnceValue(func() *oracle {
		return newOracle(codec.NewO200kBase(), 199_998, `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`+contractions+`?`+
			`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`+contractions+`?`+
			`|\p{N}{1,3}| ?[^\t-\r \x{85}\pZ\p{L}\p{N}]+[\r\n/]*|[\t-\r \x{85}\pZ]*[\r\n]+`)
	}),
	"cl100k": sync.OnceValue(func() *oracle {
		return newOracle(codec.NewCl100kBase(), 100_256, contractions+`|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}`+
			`| ?[^\t-\r \x{85}\pZ\p{L}\p{N}]+[\r\n]*|[\t-\r \x{85}\pZ]*[\r\n]+`)
	}),
}

func newOracle(c *codec.Codec, tokens int, words string) *oracle {
	o := &oracle{words: regexp.MustCompile(`^(?:` + words + `)`), ranks: map[string]int{}}
	for id := range tokens {
		if s, err := c.Decode([]uint{uint(id)}); err == nil {
			o.ranks[s] = id
		}
	}
	return o
}

func (o *oracle) pieces(s string) []string {
	var pieces []string
	for s != "" {
		n := len(o.words.FindString(s))
		if n == 0 { // \s+(?!\S)|\s+
			n = len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace))
			if _, last := utf8.DecodeLastRuneInString(s[:n]); n < len(s) && last < n {
				n -= last
			}
		}
		pieces = append(pieces, s[:n])
		s = s[n:]
	}
	return pieces
}

func (o *oracle) count(s string) int {
	n := 0
	for _, p := range o.pieces(string([]rune(s))) {
		if _, ok := o.ranks[p]; ok {
			n++
			continue
		}
		var parts []string
		for i := range len(p) {
			parts = append(parts, p[i:i+1])
		}
		for {
			best, lowest := -1, 0
			for i := range len(parts) - 1 {
				if r, ok := o.ranks[parts[i]+parts[i+1]]; ok && (best < 0 || r < lowest) {
					best, lowest = i, r
				}
			}
			if best < 0 {
				break
			}
			parts[best] += parts[best+1]
			parts = slices.Delete(parts, best+1, best+2)
		}
		n += len(parts)
	}
	return n
}

var exact = map[string]func() *encoding{"o200k": o200k, "cl100k": cl100k}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

func sameAsOracle(t fataler, s string) {
	t.Helper()
	for name, o := range oracles {
		if got, want := exact[name]().count(nil, s), o().count(s); got != want {
			t.Fatalf("%s counts %d tokens in %q, the plain reading of the rules %d", name, got, s, want)
		}
	}
}

// tricky are texts at the edges of the splitting rules.
var tricky = []string{
	"", " ", "  ", "\n", " \n", "\n ", "a", " a", "  a", "a  ", "\t\ta", "a\r\n\r\n b", " \n \n x", "  \n\n  ", "x \n",
	"it's IT'S we'LL they've I'd 'tis 's ''s 'S' don'T y'all'd've it'ſ 'ſ", "'", "''", "'r", "'re", "'Re'", "a'r", "a'l", "a'lL",
	"HelloWorld helloWORLD ABCdef ABC", "ÀÉÎ àéî ÀÉîo", "ǅabc", "漢字かな交じり文", "ABC漢字ABC", "漢ABC漢", "ABCʰDEF", "ʰ", " ʰ",
	"é́́x", "\u0301abc", " \u0301abc", "A\u0301", "A\u0301B", "A\u0301BC d", "\u0301", "\u0301ABC", "x\u0301\u0301 \u0301",
	"12345 1 22 333 4444 ٣٤٥٦ ½¼ⅷ", "a1b2c3", "1a", "3.14159", "0x1F600",
	"///// // a/b/c /\n/\n x/", "https://example.com/a?b=c&d=%20", "{\"a\": [1, 2, {\"b\": null}]}", "!!!\n\n\n", " !!!\r\n/", "-----", " -----", "  -----",
	"<|endoftext|>", "<|im_start|>user", "\u00a0\u00a0x", "\u2028\u2029", "\u3000漢", "x\u0085y", "\v\f", "\u200b\u200d", "👨‍👩‍👧‍👦 🇩🇪 👍🏽", "𝔘𝔫𝔦", "𐐀𐐨", "🄰", "\ufeffbom",
	"\x00\x01\x02", "\x80\xff", "a\xc3", "\xe2\x82", "ab\xf0\x9f\x98cd", "\u0600\u0601", "हिन्दी ภาษาไทย עברית العربية",
}

func TestExactEdges(t *testing.T) { // A13
	for _, s := range tricky {
		sameAsOracle(t, s)
		for _, u := range tricky {
			sameAsOracle(t, s+u)
		}
	}
}

// text draws text in which the classes of the rules meet each other often.
func text() *rapid.Generator[string] {
	runes := rapid.StringOf(rapid.RuneFrom([]rune("aAbZsTé É漢あʰǅ\u0301'\"1٣½ \t\n\r\u00a0/!-_{}👍\u200d<|>\x7f")))
	piece := rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return rapid.String().Draw(t, "any")
		case 1:
			return rapid.SampledFrom(tricky).Draw(t, "tricky")
		case 2:
			return strings.Repeat(runes.Draw(t, "unit"), rapid.IntRange(1, 40).Draw(t, "times"))
		case 3:
			return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		}
		return runes.Draw(t, "runes")
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 1, 4).Draw(t, "pieces"), "")
	})
}

func TestExactAgreesWithRules(t *testing.T) { // A13
	property.Check(t, func(t *rapid.T) { sameAsOracle(t, text().Draw(t, "text")) })
}

// The library's own counting is a second witness. Version 0.10.0 departs from
// the expressions in two places, which are left out here: it drops U+007F, and
// where white space holds several separate newlines it cuts after the first
// one, although the vocabularies have tokens (such as " \n \n") that only the
// cut after the last one can give.
var libraryDeparts = regexp.MustCompile(`\x7f|[\r\n][\t\v\f \x{85}\pZ]+[\r\n]`)

func TestExactAgreesWithLibrary(t *testing.T) { // A13
	library := map[string]*codec.Codec{"o200k": codec.NewO200kBase(), "cl100k": codec.NewCl100kBase()}
	property.Check(t, func(t *rapid.T) {
		s := string([]rune(text().Draw(t, "text")))
		if libraryDeparts.MatchString(s) {
			t.Skip("the library departs from the rules here")
		}
		for name, c := range library {
			want, err := c.Count(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := exact[name]().count(nil, s); got != want {
				t.Fatalf("%s counts %d tokens in %q, the library %d", name, got, s, want)
			}
		}
	})
	for name, e := range exact {
		if e().rank(" \n \n") == noRank {
			t.Errorf("%s has no token for a blank line between newlines, so the library's cut may be right", name)
		}
	}
}

func FuzzExact(f *testing.F) {
	for _, s := range tricky {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 2000 {
			t.Skip("the plain reading is quadratic")
		}
		sameAsOracle(t, s)
	})
}

// Long runs make one piece, or make one rule look far ahead; short and long
// pieces are merged by different code.
func TestExactLongRuns(t *testing.T) {
	units := []string{"a", "A", " ", "\n", "\t ", "漢", "0", "/", "=-", "ab", "ABCd", "é", "\u0301", "👍", " \n", "AAAA漢", "zq", "x'"}
	for i, u := range units {
		for j, n := range []int{shortPiece - 1, shortPiece, shortPiece + 1, 200, 600} {
			for k, tail := range []string{"", "a", " ", "\n"} {
				if (i+j+k)%2 > 0 && !corpus.Long() {
					continue // the oracle takes most of the time
				}
				sameAsOracle(t, strings.Repeat(u, n/len(u)+1)+tail)
			}
		}
	}
}

// The work on a text is linear but for the logarithm of the heap. Nothing is
// timed: a quadratic step would not come to an end on a megabyte.
func TestLongRunsComeToAnEnd(t *testing.T) {
	for _, unit := range []string{"a", " ", "\n", "A", " \n", "AAAAAAA漢", "漢A", "\u0301A", "!", "' ", "1", "\t"} {
		size := 1 << 17
		if len(unit) == 1 {
			size = 1 << 20
		}
		if !corpus.Long() {
			size /= 4
		}
		s := strings.Repeat(unit, size/len(unit))
		for name, e := range exact {
			enc := e()
			pieces := 0
			for i := 0; i < len(s); pieces++ {
				end := enc.split(enc.classes, s, i)
				if end <= i || end < len(s) && !utf8.RuneStart(s[end]) {
					t.Fatalf("%s: the piece from %d on ends at %d in a run of %q", name, i, end, unit)
				}
				i = end
			}
			if n := enc.count(nil, s); n < pieces || n > len(s) {
				t.Errorf("%s: %d tokens in %d bytes and %d pieces of %q", name, n, len(s), pieces, unit)
			}
		}
	}
}
