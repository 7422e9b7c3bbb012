package token

import (
	"strings"
	"sync"
)

// Lines counts texts that have most of their lines in common, such as the same
// summary with a few lines more, at the cost of the lines that are new. It counts
// exactly as Counter.Text does.
//
// The byte-pair encodings cut a text before they merge bytes, and always cut it
// where a line ends and the next begins with a visible character that is no slash,
// blanks or not; so their count is the sum over such pieces, and those are
// remembered. Estimates are no sums: they are counted whole.
//
// It holds about 16 MB at most, and forgets what was not asked for longest. Safe
// for concurrent use.
type Lines struct {
	counter *Counter
	raw     func(string) int // nil: not a sum of lines

	mu       sync.Mutex
	now, old map[string]int
	bytes    int // about what now takes
}

const (
	// maxLines is what the younger half of the lines may take, in bytes, each with
	// lineFrame for its place in the map.
	maxLines  = 8 << 20
	lineFrame = 64
	// shortText is the length in bytes up to which a text is counted directly.
	shortText = 512
)

// NewLines returns a Lines that remembers nothing yet.
func NewLines(c *Counter) *Lines {
	l := &Lines{counter: c, now: map[string]int{}}
	base := c
	if c.base != nil {
		base = c.base
	}
	switch base.name {
	case "o200k", "cl100k":
		l.raw = base.text
	}
	return l
}

// Text returns what the counter's Text returns.
func (l *Lines) Text(s string) int {
	if l.raw == nil || len(s) <= shortText {
		return l.counter.Text(s)
	}
	n := 0
	l.mu.Lock()
	for s != "" {
		end := lineEnd(s)
		n += l.line(s[:end])
		s = s[end:]
	}
	l.mu.Unlock()
	if l.counter.base != nil {
		return l.counter.scale(n)
	}
	return n
}

// line counts one piece; the caller holds the lock.
func (l *Lines) line(s string) int {
	n, ok := l.now[s]
	if ok {
		return n
	}
	if n, ok = l.old[s]; !ok {
		n = l.raw(s)
	}
	if l.bytes > maxLines {
		l.now, l.old, l.bytes = map[string]int{}, l.now, 0
	}
	l.now[strings.Clone(s)] = n // s is a part of a long text
	l.bytes += len(s) + lineFrame
	return n
}

// lineEnd returns the end of the first piece of s that the encodings never join
// with what follows.
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
