package summarize

// Identifier characters, by class.
const (
	sep   = iota // ends a word
	alpha        // lower case letter, or any letter beyond ASCII
	upper
	digit
	joint // inside an identifier, not at its ends: . / : - @ # % + ~ $ \
	under
)

var charClass = func() (t [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		t[c] = alpha
	}
	for c := 'A'; c <= 'Z'; c++ {
		t[c] = upper
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = digit
	}
	for c := 0x80; c < 256; c++ {
		t[c] = alpha
	}
	t[0xe2] = sep // arrows, quotes, boxes, dashes
	for _, c := range "./:-@#%+~$\\" {
		t[c] = joint
	}
	t['_'] = under
	return t
}()

// scanIdentifiers calls yield with each word of s[p.from:p.to] that is likely a
// name or a number that was given, not a word of a language: it holds a digit,
// an underscore, a slash, an inner dot or a capital inside.
func scanIdentifiers(s string, p span, yield func(span)) {
	i := p.from
	for i < p.to {
		for i < p.to && charClass[s[i]] == sep {
			if s[i] == 0xe2 {
				i += 2 // the whole character
			}
			i++
		}
		if i >= p.to {
			return
		}
		from := i
		var digits, letters, unders, slashes, dots, humps int
		prev := uint8(sep)
		for i < p.to {
			c := charClass[s[i]]
			if c == sep {
				break
			}
			switch c {
			case digit:
				digits++
			case alpha:
				letters++
			case upper:
				letters++
				if prev == alpha {
					humps++
				}
			case under:
				unders++
			case joint:
				switch s[i] {
				case '/', '\\':
					slashes++
				case '.':
					dots++
				case ':':
					// "path:12", "key:value" are two words, "a::b" and "http://" one.
					if !(i+1 < p.to && (s[i+1] == ':' || s[i+1] == '/')) && !(i > from && s[i-1] == ':') {
						goto word
					}
				}
			}
			prev = c
			i++
		}
	word:
		to := i
		if i < p.to {
			i++
		}
		for from < to && charClass[s[from]] == joint && s[from] != '/' && s[from] != '~' && s[from] != '.' && s[from] != '@' && s[from] != '#' {
			from++
		}
		for to > from && charClass[s[to-1]] == joint {
			if s[to-1] == '.' {
				dots--
			}
			if s[to-1] == '/' {
				slashes--
			}
			to--
		}
		for from+2 < to && s[from] == '.' && s[from+1] == '/' {
			from += 2
			dots--
			slashes--
		}
		n := to - from
		switch {
		case n < 4 || n > 200:
		case letters == 0:
			if digits >= 4 && slashes+dots+unders == 0 || digits >= 5 {
				yield(span{from, to})
			}
		case digits > 0 && n >= 5, unders > 0 && n >= 5, slashes > 0 && n >= 5, humps > 0 && n >= 5, dots > 0 && n >= 5:
			yield(span{from, to})
		}
	}
}
