package summarize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// occurs reports whether a word stands in a text and does not go on there, so
// that build-12 is not found in build-123. The beginning of a long hexadecimal
// hash stands for the hash.
func occurs(text, word string) bool {
	hash := len(word) >= 7 && strings.Trim(word, "0123456789abcdef") == ""
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(word)
		before := i == 0 || !wordByte(text[i-1]) || !wordByte(word[0])
		after := end == len(text) || hash || !wordByte(text[end]) && !goesOn(text[end:])
		if before && after {
			return true
		}
		from = i + 1
	}
}

func wordByte(c byte) bool {
	k := charClass[c]
	return k == alpha || k == upper || k == digit || k == under
}

// goesOn reports whether an identifier goes on behind a dot or a dash.
func goesOn(rest string) bool {
	return len(rest) > 1 && (rest[0] == '.' || rest[0] == '-') && wordByte(rest[1])
}

// quotations returns what stands between quotation marks or backquotes.
func quotations(s string) []string {
	var out []string
	for _, q := range [...][2]string{{`"`, `"`}, {"`", "`"}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"「", "」"}} {
		rest := s
		for {
			_, after, ok := strings.Cut(rest, q[0])
			if !ok {
				break
			}
			quoted, next, ok := strings.Cut(after, q[1])
			if !ok {
				break
			}
			if utf8.RuneCountInString(strings.TrimSpace(quoted)) > 1 {
				out = append(out, quoted)
			}
			rest = next
		}
	}
	return out
}

// containsFolded reports whether a text holds a quotation, white space taken as
// one, case and the punctuation at its end aside.
func containsFolded(text, quoted string) bool {
	q := strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(quoted), " ")), ".,;:!?…")
	if q == "" || strings.Contains(text, quoted) {
		return true
	}
	return strings.Contains(strings.ToLower(strings.Join(strings.Fields(text), " ")), q)
}

// ground is a text as numbers and words are looked up in it.
type ground struct {
	text    string
	numbers map[string][]number // by value
	words   map[string]bool
}

func newGround(text string) *ground {
	g := &ground{text: text, numbers: map[string][]number{}, words: map[string]bool{}}
	for _, n := range numbers(text) {
		g.numbers[n.value] = append(g.numbers[n.value], n)
	}
	for w := range stems(text) {
		g.words[w] = true
	}
	return g
}

// number is a number in a text, thousands separators taken out, with its unit.
type number struct {
	value, unit string
	from        int // byte offset
}

// units are the words for units, by what they stand for.
var units = map[string]string{
	"ms": "ms", "msec": "ms", "millisecond": "ms", "milliseconds": "ms", "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"min": "min", "mins": "min", "minute": "min", "minutes": "min", "h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	"d": "d", "day": "d", "days": "d", "week": "w", "weeks": "w", "month": "mo", "months": "mo", "year": "y", "years": "y",
	"kb": "kb", "kib": "kib", "mb": "mb", "mib": "mib", "gb": "gb", "gib": "gib", "tb": "tb", "k": "k", "m": "m", "bytes": "b", "byte": "b",
	"percent": "%", "usd": "$", "eur": "€", "dollars": "$", "euros": "€", "tokens": "tokens", "token": "tokens",
}

// spelled are numbers in words. "One" is mostly none.
var spelled = map[string]string{
	"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11",
	"twelve": "12", "fifteen": "15", "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90", "hundred": "100", "thousand": "1000",
}

// numbers finds the numbers of a text.
func numbers(s string) []number {
	var out []number
	for i := 0; i < len(s); {
		c := s[i]
		if c >= '0' && c <= '9' {
			from := i
			for i < len(s) && (isDigit(s[i]) || (s[i] == '.' || s[i] == ',' || s[i] == ':') && i+1 < len(s) && isDigit(s[i+1])) {
				i++
			}
			value := withoutThousands(s[from:i])
			if from > 0 && s[from-1] == '-' && (from == 1 || strings.IndexByte(" \t\n(=:[", s[from-2]) >= 0) {
				value = "-" + value
			}
			out = append(out, number{value, unitAfter(s[i:]), from})
			continue
		}
		if isLetter(c) {
			from := i
			for i < len(s) && isLetter(s[i]) {
				i++
			}
			if i-from <= 8 {
				if v, ok := spelled[strings.ToLower(s[from:i])]; ok {
					out = append(out, number{v, unitAfter(s[i:]), from})
				}
			}
			continue
		}
		i++
	}
	return out
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// withoutThousands makes 1234 of 1,234 and leaves 1,5 and 1.25 as they are.
func withoutThousands(s string) string {
	groups := strings.Split(s, ",")
	for i, g := range groups {
		if i > 0 && len(g) != 3 || i == 0 && (len(g) > 3 || g == "0") {
			return s
		}
	}
	return strings.Join(groups, "")
}

// unitAfter is the unit that a text begins with, behind a space or a dash at most.
func unitAfter(s string) string {
	if s != "" && (s[0] == ' ' || s[0] == '-') {
		s = s[1:]
	}
	switch {
	case strings.HasPrefix(s, "%"):
		return "%"
	case strings.HasPrefix(s, "€"):
		return "€"
	}
	end := 0
	for end < len(s) && isLetter(s[end]) && end < 16 {
		end++
	}
	return units[strings.ToLower(s[:end])]
}

const (
	// around is how far from a number its words are looked for, in bytes.
	around = 60
	// maxPlaces bounds the places of one number that are looked at.
	maxPlaces = 300
)

// holdsNumber reports whether one of the sources has the number of an item,
// with the same unit where one is given, in a line that holds a third of the
// words around it in the item. Small numbers are everywhere, so their being
// somewhere proves nothing.
func holdsNumber(sources []*ground, item string, n number) bool {
	var near []string
	whole := map[string]bool{} // words, as against pieces of them at the edges
	for w := range stems(item) {
		whole[w] = true
	}
	for w := range stems(wordsAround(item, n.from, around)) {
		if whole[w] {
			near = append(near, w)
		}
	}
	for _, g := range sources {
		for i, m := range g.numbers[n.value] {
			if i == maxPlaces {
				break
			}
			if n.unit != "" && m.unit != n.unit {
				continue
			}
			found := 0
			if len(near) > 0 {
				there := map[string]bool{}
				for w := range stems(lineAround(g.text, m.from)) {
					there[w] = true
				}
				for _, w := range near {
					if there[w] {
						found++
					}
				}
			}
			if 3*found >= len(near) {
				return true
			}
		}
	}
	return false
}

// wordsAround cuts out what stands within so many bytes of a place: whole words,
// in scripts that have spaces.
func wordsAround(s string, at, reach int) string {
	from, to := max(0, at-reach), min(len(s), at+reach)
	if from > 0 {
		if n := strings.IndexByte(s[from:at], ' '); n >= 0 {
			from += n
		}
	}
	if to < len(s) {
		if n := strings.LastIndexByte(s[at:to], ' '); n >= 0 {
			to = at + n
		}
	}
	return s[from:to]
}

// lineAround is the line of a place, of a long one what is near.
func lineAround(s string, at int) string {
	from := strings.LastIndexByte(s[:at], '\n') + 1
	to := len(s)
	if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
		to = at + n
	}
	if to-from <= 4*around {
		return s[from:to]
	}
	return wordsAround(s[from:to], at-from, 2*around)
}

// measure reports whether a word is a number with its unit, such as 250ms.
func measure(word string) bool {
	unit := strings.TrimLeft(word, "0123456789.,")
	return unit != word && units[strings.ToLower(unit)] != ""
}

// sharesWords reports whether at least half of what a text says is in the
// sources.
func sharesWords(sources []*ground, text string) bool {
	total, found := 0, 0
	for w := range stems(text) {
		total++
		for _, g := range sources {
			if g.words[w] {
				found++
				break
			}
		}
	}
	return 2*found >= total
}

// stems yields what is compared of a text: of words of four letters or more the
// first five, in lower case, and of scripts without spaces each two characters.
func stems(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		emit := func(w string) bool {
			if seen[w] || stopWords[w] {
				return true
			}
			seen[w] = true
			return yield(w)
		}
		var last rune
		start, n := -1, 0 // of the word, in bytes, and its length in characters
		cut := 0          // where its fifth character ends
		flush := func(end int) bool {
			ok := true
			if start >= 0 && n >= 4 {
				if n < 5 {
					cut = end
				}
				ok = emit(strings.ToLower(s[start:cut]))
			}
			start, n = -1, 0
			return ok
		}
		for i, r := range s {
			switch {
			case wide(r):
				if !flush(i) || last != 0 && !emit(string([]rune{last, r})) {
					return
				}
				last = r
				continue
			case unicode.IsLetter(r):
				if start < 0 {
					start = i
				}
				if n++; n == 5 {
					cut = i + utf8.RuneLen(r)
				}
			case !flush(i):
				return
			}
			last = 0
		}
		flush(len(s))
	}
}

// wide reports characters of scripts that put no spaces between words.
func wide(r rune) bool {
	return r >= 0x0e00 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai))
}

// stopWords are frequent words as stems yields them.
var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields("that with this from which were have been will shoul when then also into becau after befor using used uses does done " +
		"some they there their them must only more most than such each other about over under while where whose would could being still " +
		"eine einen einer nicht wird wurde auch dass sind oder dans avec pour cette sont mais plus para como este esta pero") {
		m[w] = true
	}
	return m
}()
