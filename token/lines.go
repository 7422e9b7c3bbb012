package token

import (
	"cmp"
	"strings"
	"sync"
)

// lineMemo counts texts that share most of their lines, and only pays for new lines.
//
// The byte-pair encodings split a text before they merge bytes, always also where a line ends
// and the next begins with a visible character other than a slash, with or without blanks
// before it. So the count of a text is the sum over such pieces, which are cached. Estimates are
// not sums, and are not cached.
//
// It is safe for concurrent use.
type lineMemo struct {
	counter *Counter
	raw     textCounter // nil: counts are not sums over lines

	mu       sync.Mutex
	now, old map[string]int
	bytes    int // about the size of now
}

const (
	// maxLines is the size of the younger half of the cache, in bytes, with lineFrame for each
	// entry of the map.
	maxLines  = 8 << 20
	lineFrame = 64
	// shortText is the length in bytes up to which a text is counted directly.
	shortText = 512
)

// TextMemo returns a function that counts as Text does, and is fast for texts that share most of
// their lines with earlier ones, such as growing versions of a summary. It takes about 16 MB at most.
// It is safe for concurrent use.
func (c *Counter) TextMemo() func(string) int { return newLineMemo(c).text }

func newLineMemo(c *Counter) *lineMemo {
	l := &lineMemo{counter: c, now: map[string]int{}}
	if base := cmp.Or(c.base, c); base.name == "o200k" || base.name == "cl100k" {
		l.raw = base.text
	}
	return l
}

func (l *lineMemo) text(s string) int {
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
func (l *lineMemo) line(s string) int {
	n, ok := l.now[s]
	if ok {
		return n
	}
	if n, ok = l.old[s]; !ok {
		n = l.raw(nil, s)
	}
	if l.bytes > maxLines {
		l.now, l.old, l.bytes = map[string]int{}, l.now, 0
	}
	l.now[strings.Clone(s)] = n // s keeps a long text alive
	l.bytes += len(s) + lineFrame
	return n
}

// lineEnd returns the end of the first piece of s that the encodings never join with what
// follows.
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
