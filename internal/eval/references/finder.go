package references

// finder finds many strings in a text at once, at word boundaries only ("12" is
// not in "312", but "bar.go" is in "foo/bar.go"). Candidates are looked up by the
// first word in them, so that a text is read once.
type finder struct {
	byWord map[string][]candidate
}

type candidate struct {
	ref     int32 // what the caller knows it by
	before  int32 // bytes in front of its first word
	surface string
}

func newFinder() *finder { return &finder{byWord: map[string][]candidate{}} }

// Add makes the finder look for a surface form of the identifier ref.
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

// Find calls found for every place where a candidate stands. Texts that overlap
// are all found.
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

// atWordBoundaries reports whether the piece of text begins and ends at word boundaries;
// a number is not parted at its decimal point.
func atWordBoundaries(text string, at, end int) bool {
	if at > 0 && isWordByte[text[at]] {
		if isWordByte[text[at-1]] && (at < 3 || text[at-3] != symbolLead) {
			return false
		}
		if at > 1 && text[at-1] == '.' && figure(text[at]) && figure(text[at-2]) {
			return false
		}
	}
	if end < len(text) && isWordByte[text[end-1]] {
		if isWordByte[text[end]] {
			return false
		}
		if end+1 < len(text) && text[end] == '.' && figure(text[end-1]) && figure(text[end+1]) {
			return false
		}
	}
	return true
}

func figure(c byte) bool { return c >= '0' && c <= '9' }

// isWordByte marks the bytes of words.
var isWordByte = func() (is [256]bool) {
	for c := range is {
		is[c] = c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 && c != symbolLead
	}
	return is
}()

// symbolLead begins the punctuation from U+2000 on, three bytes each.
const symbolLead = 0xE2

// next is the place behind the byte or symbol at i, which is part of no word.
func next(text string, i int) int {
	if text[i] == symbolLead {
		return min(i+3, len(text))
	}
	return i + 1
}
