package summarize

import (
	"iter"
	"strings"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// occurs reports whether a text contains a word as a whole: build-12 is not in build-123. The
// beginning of a hash counts as the hash.
func (g *grounds) occurs(text, word string) bool {
	hash := len(word) >= 7 && strings.Trim(word, "0123456789abcdef") == ""
	for from := 0; word != ""; {
		i := strings.Index(text[from:], word)
		looked := i
		if i < 0 {
			looked = len(text) - from
		}
		if !g.effort.Spend(comparing+looked/searching) || i < 0 {
			return false
		}
		i += from
		end := i + len(word)
		before := i == 0 || !scan.WordByte(text[i-1]) || !scan.WordByte(word[0])
		after := end == len(text) || hash || !scan.WordByte(text[end]) && !goesOn(text[end:])
		if before && after {
			return true
		}
		from = i + 1
	}
	return false
}

// goesOn reports whether an identifier goes on after a dot or a dash.
func goesOn(rest string) bool {
	return len(rest) > 1 && (rest[0] == '.' || rest[0] == '-') && scan.WordByte(rest[1])
}

// holdsIdentifier reports whether the messages hold an identifier, or the parts that it is made of:
// package.Name of package and Name. "reading/writing" is no path but words.
func (g *grounds) holdsIdentifier(x ident.Ident) bool {
	text, occurs := g.all, g.occurs
	if occurs(text, x.Surface) || x.Norm != x.Surface && occurs(text, x.Norm) {
		return true
	}
	// ".../a/b.go" leaves out the folder, "./cmd/..." means everything below.
	if x.Type == ident.Path {
		short := strings.TrimSuffix(x.Surface, "/...")
		for _, opening := range []string{".../", "…/", "./"} {
			short = strings.TrimPrefix(short, opening)
		}
		if len(short) < len(x.Surface) && strings.Contains(short, "/") && occurs(text, short) {
			return true
		}
	}
	var parts []string
	switch {
	case x.Type == ident.Path && !strings.ContainsAny(x.Surface, ".~") && x.Surface[0] != '/' && strings.ContainsAny(x.Surface, "0123456789"):
		parts = strings.Split(x.Surface, "/") // "WP3/WP4"
	case x.Type == ident.Symbol:
		parts = strings.FieldsFunc(x.Surface, func(r rune) bool { return r == '.' || r == ':' })
	case x.Type == ident.ID:
		parts = strings.Split(x.Surface, "-")
	case x.Type == ident.Path && !strings.ContainsAny(x.Surface, "._~0123456789") && x.Surface[0] != '/':
		return true
	}
	for _, p := range parts {
		if !occurs(text, p) {
			return false
		}
	}
	return len(parts) > 1
}

// inSentence reports whether the messages hold an identifier that is only a part of a name in its
// sentence: a prefix, "TestParse_*", or the second of two calls, "stop()/start()".
func (g *grounds) inSentence(sentence string, x ident.Ident) bool {
	end := x.At + len(x.Surface)
	if end < len(sentence) && sentence[end] == '*' {
		return g.effort.Spend(len(g.all)/searching) && strings.Contains(g.all, x.Surface)
	}
	return x.At > 0 && sentence[x.At-1] == ')' && g.occurs(g.all, strings.TrimPrefix(x.Surface, "/"))
}

// folded normalizes a text to look up quotations: its words in lower case, with one space
// around each.
func folded(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte(' ')
	space := true
	for _, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(unicode.ToLower(r))
			space = false
		case r == '\'' || r == '’': // don't, don’t and dont
		case !space:
			b.WriteByte(' ')
			space = true
		}
	}
	if !space {
		b.WriteByte(' ')
	}
	return b.String()
}

// quotation is the text between quotation marks, and where it begins.
type quotation struct {
	text string
	from int
}

var quotationMarks = [...][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"「", "」"}}

// quotations returns what a sentence quotes.
func quotations(s string) []quotation {
	var out []quotation
	for _, q := range quotationMarks {
		for from, to := range between(s, q[0], q[1]) {
			out = append(out, quotation{s[from:to], from})
		}
	}
	return out
}

// between yields the beginnings and ends of the texts between two marks.
func between(s, opening, closing string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for from := 0; ; {
			i := strings.Index(s[from:], opening)
			if i < 0 {
				return
			}
			from += i + len(opening)
			n := strings.Index(s[from:], closing)
			if n < 0 || !yield(from, from+n) {
				return
			}
			from += n + len(closing)
		}
	}
}

// unquoted replaces quotations by spaces.
func unquoted(s string) string {
	for _, q := range quotationMarks {
		s = blanked(s, q[0], q[1])
	}
	return s
}

// blanked replaces the texts between two marks by as many spaces.
func blanked(s, opening, closing string) string {
	blank := []byte(s)
	for from, to := range between(s, opening, closing) {
		copy(blank[from:to], strings.Repeat(" ", to-from))
	}
	return string(blank)
}

// quoted is a quotation, folded, and its pieces between omissions: text in square brackets and
// "..." stand for these.
type quoted struct {
	whole  string
	pieces []string
}

func parsed(text string) quoted {
	q := quoted{whole: folded(text)}
	for _, piece := range strings.FieldsFunc(strings.NewReplacer("...", "\x00", "…", "\x00", "[", "\x00\x01", "]", "\x00").Replace(text), func(r rune) bool { return r == 0 }) {
		if piece = strings.TrimSpace(piece); piece != "" && piece[0] != 1 {
			q.pieces = append(q.pieces, folded(piece))
		}
	}
	return q
}

// in reports whether a folded text holds the quotation.
func (q *quoted) in(text string) bool {
	if strings.Contains(text, q.whole) {
		return true
	}
	for _, piece := range q.pieces {
		if strings.Count(piece, " ") < leastPiece+1 || !strings.Contains(text, piece) {
			return false
		}
	}
	return len(q.pieces) > 0
}

// leastPiece is how many words a part of a quotation between omissions must have.
const leastPiece = 2

// number is a number in a text, without thousands separators, and its unit.
type number struct {
	value, unit string
	from        int // byte offset
}

// units maps words to the units that they stand for.
var units = scan.Inverted(map[string]string{
	"ms": "ms msec millisecond milliseconds", "s": "s sec secs second seconds", "min": "min mins minute minutes", "h": "h hr hrs hour hours",
	"d": "d day days", "w": "week weeks", "mo": "month months", "y": "year years",
	"b": "byte bytes", "k": "k", "kb": "kb", "kib": "kib", "m": "m", "mb": "mb", "mib": "mib", "gb": "gb", "gib": "gib", "tb": "tb",
	"%": "percent", "$": "usd dollars", "€": "eur euros", "tokens": "token tokens",
})

// numbers finds the numbers of a text.
func numbers(s string, yield func(number)) {
	for i := 0; i < len(s); i++ {
		if !scan.IsDigit(s[i]) {
			continue
		}
		from := i
		for i < len(s) && (scan.IsDigit(s[i]) || (s[i] == '.' || s[i] == ',' || s[i] == ':') && i+1 < len(s) && scan.IsDigit(s[i+1])) {
			i++
		}
		yield(number{withoutThousands(s[from:i]), unitAfter(s[i:]), from})
	}
}

// withoutThousands makes 1234 of 1,234 and leaves 1,5 and 1.25 as they are.
func withoutThousands(s string) string {
	if strings.IndexByte(s, ',') < 0 {
		return s
	}
	groups := strings.Split(s, ",")
	for i, g := range groups {
		if i > 0 && len(g) != 3 || i == 0 && (len(g) > 3 || g == "0") {
			return s
		}
	}
	return strings.Join(groups, "")
}

// unitAfter is the unit at the beginning of a text, after a space or a dash at most.
func unitAfter(s string) string {
	if s != "" && (s[0] == ' ' || s[0] == '-') {
		s = s[1:]
	}
	for _, sign := range [...]string{"%", "€"} {
		if strings.HasPrefix(s, sign) {
			return sign
		}
	}
	end := 0
	for end < len(s) && scan.IsLetter(s[end]) && end < 16 {
		end++
	}
	if end < len(s) && scan.WordByte(s[end]) {
		return "" // the d in "WP4 d08e1e5" does not mean days
	}
	return units[strings.ToLower(s[:end])]
}
