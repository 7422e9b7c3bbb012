package references

// finder finds many strings in a text at once, at word boundaries only ("12" is
// not in "312", but "bar.go" is in "foo/bar.go"). Candidates are looked up by their
// first word, so that a text is read once.
type finder struct {
	byWord map[string][]candidate
}

type candidate struct {
	ref     int32 // of the caller
	before  int32 // bytes before its first word
	surface string
}

func newFinder() *finder { return &finder{byWord: map[string][]candidate{}} }

// Add adds a form in which the identifier ref is written.
func (f *finder) Add(ref int32, surface string) {
	start := 0
	for start < len(surface) && !isWordByte[surface[start]] {
		start++
	}
	end := start
	for end < len(surface) && isWordByte[surface[end]] {
		end++
	}
	if start == end {
		return
	}
	key := surface[start:end]
	f.byWord[key] = append(f.byWord[key], candidate{ref, int32(start), surface})
}

// Find calls found for every occurrence of a candidate, overlapping ones too.
func (f *finder) Find(text string, found func(ref int32, at, end int)) {
	for i := 0; i < len(text); {
		if !isWordByte[text[i]] {
			i = next(text, i)
			continue
		}
		start := i
		for i < len(text) && isWordByte[text[i]] {
			i++
		}
		for _, c := range f.byWord[text[start:i]] {
			at := start - int(c.before)
			end := at + len(c.surface)
			if at >= 0 && end <= len(text) && text[at:end] == c.surface && atWordBoundaries(text, at, end) {
				found(c.ref, at, end)
			}
		}
	}
}

// atWordBoundaries reports whether a piece of the text begins and ends at word
// boundaries. The decimal point of a number is none.
func atWordBoundaries(text string, at, end int) bool {
	if at > 0 && isWordByte[text[at]] {
		if isWordByte[text[at-1]] && (at < 3 || text[at-3] != symbolLead) {
			return false
		}
		if at > 1 && text[at-1] == '.' && isDigit(text[at]) && isDigit(text[at-2]) {
			return false
		}
	}
	if end < len(text) && isWordByte[text[end-1]] {
		if isWordByte[text[end]] {
			return false
		}
		if end+1 < len(text) && text[end] == '.' && isDigit(text[end-1]) && isDigit(text[end+1]) {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWordByte marks the bytes of words.
var isWordByte = func() (is [256]bool) {
	for c := range is {
		is[c] = c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 && c != symbolLead
	}
	return is
}()

// symbolLead is the first byte of the punctuation from U+2000 on, three bytes each.
const symbolLead = 0xE2

// next is the position after the byte or symbol at i, which belongs to no word.
func next(text string, i int) int {
	if text[i] == symbolLead {
		return min(i+3, len(text))
	}
	return i + 1
}
