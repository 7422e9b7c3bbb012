package token

import (
	"hash/maphash"
	"strings"
	"sync"
)

// Remembering returns the counter for work that counts the same texts again and again: a long one is
// counted once. It shares what it knows with before, another such counter or nil, if that counts texts in
// the same way; it is c itself if c remembers already. It takes up to about 12 MB, and is as safe for
// concurrent use as c.
func (c *Counter) Remembering(before *Counter) *Counter {
	if before != nil && before.base != nil {
		before = before.base
	}
	out := *c
	switch {
	case c.base != nil:
		out.base = c.base.Remembering(before)
	case c.known != nil:
		return c
	case before != nil && before.name == c.name && before.known != nil:
		out.known = before.known
	default:
		out.known = &knownTexts{seed: maphash.MakeSeed(), now: map[textKey]int{}}
	}
	return &out
}

const (
	// longText is from how many bytes on a text is remembered: to count a short one takes hardly longer.
	longText = 128
	// shortText is up to how many bytes one is not looked at line by line.
	shortText = 512
	// maxKnown is how many texts the younger half of a memory holds.
	maxKnown = 1 << 17
)

// knownTexts are the counts of texts and lines: those in now, and those in old that are not used again
// before now is full.
type knownTexts struct {
	seed     maphash.Seed
	mu       sync.Mutex
	now, old map[textKey]int
}

type textKey struct {
	sum  uint64
	size int
}

// Lines is Text for texts that share most of their lines with earlier ones, such as growing versions of
// a summary: a counter that remembers counts only the new ones. Estimates are no sums over lines.
func (c *Counter) Lines(s string) int {
	switch {
	case c.base != nil:
		return c.scale(c.base.Lines(s))
	case c.known == nil || len(s) <= shortText || c.name != "o200k" && c.name != "cl100k":
		return c.Text(s)
	}
	n := 0
	for s != "" {
		end := lineEnd(s)
		n += c.known.count(c, s[:end])
		s = s[end:]
	}
	return n
}

// count returns the tokens of a text by c.
func (k *knownTexts) count(c *Counter, s string) int {
	key := textKey{maphash.String(k.seed, s), len(s)}
	k.mu.Lock()
	n, inNow := k.now[key]
	inOld := false
	if !inNow {
		n, inOld = k.old[key]
	}
	k.mu.Unlock()
	if inNow {
		return n
	}
	if !inOld {
		n = c.text(c.live, s)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.now) >= maxKnown {
		k.now, k.old = map[textKey]int{}, k.now
	}
	if c.live.Live(0) { // a count that was broken off means nothing
		k.now[key] = n
	}
	return n
}

// lineEnd returns the end of the first piece of s that the encodings never join with what
// follows: they split a text before they merge bytes, always also where a line ends and the
// next begins with a visible character other than a slash, with or without blanks before it.
// So the count of a text is the sum over such pieces.
func lineEnd(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '\n')
		if i < 0 {
			return len(s)
		}
		end := from + i + 1
		next := end
		for next < len(s) && (s[next] == ' ' || s[next] == '\t') {
			next++
		}
		if next < len(s) && s[next] > ' ' && s[next] < 0x7f && (next > end || s[next] != '/') {
			return end
		}
		from = end
	}
}
