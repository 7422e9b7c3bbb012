package token

// The OpenAI encodings first split a text into pieces by a regular expression, and then merge
// bytes inside each piece. The two functions below are those expressions written by hand: one
// pass, with linear cost for any text. Tests compare them with the reference tokenizer.

// splitter returns the end of the piece that starts at s[i].
type splitter func(t *classTable, s string, i int) int

// splitO200k follows
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitO200k(t *classTable, s string, i int) int {
	c, n := t.at(s, i)
	word := i
	if c == other || c == space {
		word = i + n // the one leading character that a word may have
	}
	if c != number && c != newline {
		if end := wordO200k(t, s, word); end > word {
			return end + contraction(s, end)
		}
	}
	switch c {
	case number:
		return digits(t, s, i)
	case other:
		return slashes(s, t.run(s, i, symbols))
	}
	if s[i] == ' ' && i+1 < len(s) {
		if end := t.run(s, i+1, symbols); end > i+1 {
			return slashes(s, end)
		}
	}
	return blankRun(t, s, i)
}

// wordO200k returns the end of the word at s[i], or i if there is none. A word is upper-case
// letters, then lower-case ones; letters without case and marks belong to both. If no lower-case
// letter follows the first run, it must end in a caseless one if it has any, because the first
// alternative is tried first.
func wordO200k(t *classTable, s string, i int) int {
	caseless, j := -1, i
	for j < len(s) {
		c, n := t.at(s, j)
		if c == lower {
			return t.run(s, j+n, lowerRun)
		}
		if !c.in(upperRun) {
			break
		}
		j += n
		if c != upper {
			caseless = j
		}
	}
	if caseless >= 0 {
		return caseless
	}
	return j
}

// slashes extends a run of symbols over following newlines and slashes.
func slashes(s string, i int) int {
	for i < len(s) && (s[i] == '\r' || s[i] == '\n' || s[i] == '/') {
		i++
	}
	return i
}

// splitCl100k follows
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitCl100k(t *classTable, s string, i int) int {
	if n := contraction(s, i); n > 0 {
		return i + n
	}
	c, n := t.at(s, i)
	switch {
	case c == number:
		return digits(t, s, i)
	case c.in(letters):
		return t.run(s, i+n, letters)
	case c != newline:
		if end := t.run(s, i+n, letters); end > i+n {
			return end
		}
	}
	if c.in(symbols) {
		return t.run(s, t.run(s, i, symbols), endsLines)
	}
	if s[i] == ' ' && i+1 < len(s) {
		if end := t.run(s, i+1, symbols); end > i+1 {
			return t.run(s, end, endsLines)
		}
	}
	return blankRun(t, s, i)
}

// digits ends a group of one to three numbers.
func digits(t *classTable, s string, i int) int {
	for k := 0; k < 3 && i < len(s); k++ {
		c, n := t.at(s, i)
		if c != number {
			break
		}
		i += n
	}
	return i
}

// blankRun ends a run of white space: after its last newline if it has one; else before its last
// character, which belongs to the next word, unless the text ends here or the run has only one.
func blankRun(t *classTable, s string, i int) int {
	line, last, j := -1, i, i
	for j < len(s) {
		c, n := t.at(s, j)
		if !c.in(blanks) {
			break
		}
		last = j
		j += n
		if c == newline {
			line = j
		}
	}
	switch {
	case line >= 0:
		return line
	case j == len(s) || last == i:
		return j
	}
	return last
}

// contraction returns the length of an English contraction at s[i] ('s, 't,
// 're, 've, 'm, 'll, 'd in any case), or 0. The long s folds to s, as it does
// in the expression.
func contraction(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return 0
	}
	first := s[i+1] | 0x20
	switch first {
	case 's', 't', 'm', 'd':
		return 2
	}
	if i+2 >= len(s) {
		return 0
	}
	if s[i+1] == "ſ"[0] && s[i+2] == "ſ"[1] {
		return 3
	}
	switch second := s[i+2] | 0x20; {
	case first == 'r' && second == 'e', first == 'v' && second == 'e', first == 'l' && second == 'l':
		return 3
	}
	return 0
}
