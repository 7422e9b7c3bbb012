package summarize

import (
	"iter"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a part of a string, by byte offsets.
type span struct{ from, to int }

// escape matches a terminal escape: CSI up to its final byte, OSC up to BEL or ST, two
// characters, or a lone ESC.
var escape = regexp.MustCompile(`\x1b(?:\[[^@-~]*[@-~]?|\][^\x07\x1b]*(?:\x07|\x1b(?:\\|\z))?|[ -~])?`)

// clean removes terminal escapes and carriage returns. A carriage return inside a line ends
// it: a progress bar overwrites itself.
func clean(s string) string {
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = escape.ReplaceAllString(s, "")
	}
	if strings.IndexByte(s, '\r') >= 0 {
		s = strings.ReplaceAll(strings.TrimSuffix(s, "\r"), "\r\n", "\n")
		s = strings.ReplaceAll(s, "\r", "\n")
	}
	return s
}

// nextLine returns the line of s that begins at from, without its end, and where the next
// line begins.
func nextLine(s string, from int) (line span, next int) {
	n := strings.IndexByte(s[from:], '\n')
	if n < 0 {
		return span{from, len(s)}, len(s)
	}
	return span{from, from + n}, from + n + 1
}

// lineSpans yields the lines of s, trimmed, with their number from 0.
func lineSpans(s string) iter.Seq2[int, span] {
	return func(yield func(int, span) bool) {
		for n, at := 0, 0; at < len(s); n++ {
			var p span
			if p, at = nextLine(s, at); !yield(n, trimSpan(s, p)) {
				return
			}
		}
	}
}

// trimSpan trims white space off a span.
func trimSpan(s string, p span) span {
	for p.from < p.to && isSpace(s[p.from]) {
		p.from++
	}
	for p.to > p.from && isSpace(s[p.to-1]) {
		p.to--
	}
	return p
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// sentences yields the sentences of s: up to a line end, or to a full stop, question or
// exclamation mark that is followed by a space and does not go on in lower case ("e.g.
// this").
func sentences(s string) iter.Seq[span] {
	return func(yield func(span) bool) {
		from := 0
		for i := 0; i <= len(s); i++ {
			end := -1
			switch rest := s[i:]; {
			case rest == "" || rest[0] == '\n':
				end = i
			case rest[0] == '.' || rest[0] == '!' || rest[0] == '?':
				if len(rest) > 2 && rest[1] == ' ' && !isLower(rest[2]) {
					end = i + 1
				}
			case rest[0] >= 0xe3 && (strings.HasPrefix(rest, "。") || strings.HasPrefix(rest, "！") || strings.HasPrefix(rest, "？")):
				end = i + len("。")
			}
			if end < 0 {
				continue
			}
			if p := trimSpan(s, span{from, end}); p.from < p.to && !yield(p) {
				return
			}
			from = end
		}
	}
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isLetter(c byte) bool { return isLower(lower(c)) }

// wordByte reports whether a byte is part of a word or a name: beyond ASCII, every byte but
// 0xE2, which begins punctuation, arrows and box drawing.
func wordByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c >= 0x80 && c != 0xe2
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func hasPrefixFold(s, low string) bool {
	return len(s) >= len(low) && strings.EqualFold(s[:len(low)], low)
}

// matchPhrase reports whether s begins with the phrase; the trailing space of a
// phrase matches the end of a word.
func matchPhrase(s, p string) bool {
	k := 0 // in s; an apostrophe may take three bytes there
	for i := range len(p) {
		end := p[i] == ' ' && i == len(p)-1
		if k >= len(s) {
			return end && k == len(s)
		}
		c := lower(s[k])
		switch {
		case end:
			return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_')
		case c == p[i]:
			k++
		case p[i] == '\'' && strings.HasPrefix(s[k:], "’"):
			k += len("’")
		default:
			return false
		}
	}
	return true
}

// numberAfter reads the number after a prefix.
func numberAfter(line, prefix string) (int, bool) {
	rest, ok := strings.CutPrefix(line, prefix)
	if !ok {
		return 0, false
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	n, err := strconv.Atoi(rest[:min(digits, 9)])
	return n, err == nil
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// wordSet makes a set of the words of a list.
func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// inverted makes a map from each word of the lists to the list's key.
func inverted[V comparable](lists map[V]string) map[string]V {
	m := map[string]V{}
	for v, words := range lists {
		for w := range strings.FieldsSeq(words) {
			m[w] = v
		}
	}
	return m
}

// firstWord is the first word of a text, or "".
func firstWord(s string) string {
	for w := range strings.FieldsSeq(s) {
		return w
	}
	return ""
}

// terms are the content words of the pool, and pairs of neighbours, with their frequency. A
// summary that covers the frequent ones once tells more than one that repeats itself
// (Gillick and Favre 2009, "A Scalable Global Model for Summarization").
type terms struct {
	id    map[string]int32
	count []float32 // how many pieces hold it
	last  []int     // the position of the last message that holds it
}

// termsOf lists the terms of a text.
func termsOf(s string) []string {
	var all []string
	last := ""
	for w := range stems(s) {
		if last != "" {
			all = append(all, last+" "+w)
		}
		all = append(all, w)
		last = w
	}
	return all
}

// add counts the terms of a piece of the message at a position and returns their ids.
func (t *terms) add(at int, all []string) []int32 {
	if t.id == nil {
		t.id = map[string]int32{}
	}
	numbers := make([]int32, len(all))
	for i, s := range all {
		n, ok := t.id[s]
		if !ok {
			n = int32(len(t.count))
			t.id[s], t.count, t.last = n, append(t.count, 0), append(t.last, at)
		}
		t.count[n]++
		t.last[n] = max(t.last[n], at)
		numbers[i] = n
	}
	return numbers
}

// stems yields the different stems of a text: the first five letters, in lower case, of each
// word of four letters or more, and every two neighbouring characters of scripts without
// spaces.
func stems(s string) iter.Seq[string] {
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

// stemsOf is the set of the stems of texts.
func stemsOf(texts ...string) map[string]bool {
	set := map[string]bool{}
	for _, s := range texts {
		for w := range stems(s) {
			set[w] = true
		}
	}
	return set
}

// shared counts the stems of a text, and how many of them a set holds.
func shared(set map[string]bool, s string) (found, total int) {
	for w := range stems(s) {
		total++
		if set[w] {
			found++
		}
	}
	return found, total
}

// wide reports whether a character belongs to a script without spaces between words.
func wide(r rune) bool {
	return r >= 0x0e00 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai))
}

// stopWords are frequent words as stems yields them.
var stopWords = wordSet("that with this from which were have been will shoul when then also into becau after befor using used uses does done " +
	"some they there their them must only more most than such each other about over under while where whose would could being still")
