package token

import (
	"hash/maphash"
	"sync"
)

// Remembering returns the counter for work that counts the same texts again and again: a long one is
// counted once. It holds a number for each, up to about 10 MB of them, and shares those of before, another
// such counter or nil, if that counts texts in the same way. It is as safe for concurrent use as c.
func (c *Counter) Remembering(before *Counter) *Counter {
	out := *c
	if before != nil && before.base != nil {
		before = before.base
	}
	switch {
	case c.base != nil:
		out.base = c.base.Remembering(before)
	case before != nil && before.name == c.name && before.known != nil:
		out.known = before.known
	default:
		out.known = &knownTexts{seed: maphash.MakeSeed(), counts: map[textKey]int{}}
	}
	return &out
}

const (
	// longText is from how many bytes on a text is remembered: to count a short one takes hardly longer.
	longText = 128
	// maxKnown is how many texts are remembered.
	maxKnown = 1 << 18
)

// knownTexts are the counts of long texts.
type knownTexts struct {
	seed   maphash.Seed
	mu     sync.Mutex
	counts map[textKey]int
}

type textKey struct {
	sum  uint64
	size int
}

// count returns the tokens of a text by c.
func (k *knownTexts) count(c *Counter, s string) int {
	key := textKey{maphash.String(k.seed, s), len(s)}
	k.mu.Lock()
	n, ok := k.counts[key]
	k.mu.Unlock()
	if ok {
		return n
	}
	n = c.text(c.live, s)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.counts) < maxKnown && c.live.Live(0) { // a count that was broken off means nothing
		k.counts[key] = n
	}
	return n
}
