// Package cut decides where the old part of a thread ends. Cuts are made only at legal
// points: no tool call is parted from its results, no batch of parallel calls is torn, a
// call that waits for its result stays with what follows, and an aborted call stays
// together with a late result. A hosted call and all that its program called stay together.
package cut

import (
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Points are the legal cut points of a thread. Index i stands for a cut before message i;
// 0 is always legal, and Len unless a call waits for its result.
type Points struct {
	thread *thread.Thread
	legal  []bool
}

// Legal finds the legal cut points of t.
func Legal(t *thread.Thread, pairs *thread.Pairing) *Points {
	messages := t.Messages()
	n := len(messages)
	p := &Points{thread: t, legal: make([]bool, n+1)}
	reach := -1 // the furthest result of any call so far
	for i := range messages {
		m := &messages[i]
		// A tail must not begin with a result: even an orphan would be read as
		// the answer to a call that is not there.
		p.legal[i] = i > reach && m.Role != thread.Tool
		for _, r := range pairs.Results(i) {
			reach = max(reach, r)
		}
		_, last := pairs.Unit(i)
		reach = max(reach, last)
		if pairs.Open(i) {
			reach = n
		}
	}
	p.legal[n] = reach < n
	if n > 0 {
		p.legal[0] = true
	}
	return p
}

// Legal reports whether the thread may be cut before message i.
func (p *Points) Legal(i int) bool { return i >= 0 && i < len(p.legal) && p.legal[i] }

// legalAtOrBefore returns the last legal point at or before i; 0 is always one.
func (p *Points) legalAtOrBefore(i int) int {
	for i > 0 && !p.legal[i] {
		i--
	}
	return i
}

// Policy says how much of the newest part is kept. The four types of this package
// implement it; all are plain values.
type Policy interface {
	// Cut returns the position before which messages are old. tokens gives the size of a
	// message in tokens; policies that do not count do not call it.
	Cut(p *Points, tokens func(i int) int) int
}

// LastMessages keeps at least N messages: from an illegal cut it moves back and keeps
// more.
type LastMessages struct{ N int }

// Cut implements Policy.
func (c LastMessages) Cut(p *Points, _ func(int) int) int {
	return p.legalAtOrBefore(max(0, p.thread.Len()-max(0, c.N)))
}

// LastTurns keeps the last N turns whole. A turn begins with what a person said.
type LastTurns struct{ N int }

// Cut implements Policy.
func (c LastTurns) Cut(p *Points, _ func(int) int) int {
	n, left := p.thread.Len(), c.N
	messages := p.thread.Messages()
	for i := n - 1; i >= 0 && left > 0; i-- {
		if messages[i].StartsTurn() {
			n, left = i, left-1
		}
	}
	if left > 0 {
		n = 0
	}
	return p.legalAtOrBefore(n)
}

// LastTokens keeps at most N tokens, but at least the last legal piece, even when that
// alone is larger. Turns are kept whole unless SplitTurns is set; the last turn is split
// in any case when it alone is larger than N.
type LastTokens struct {
	N          int
	SplitTurns bool
}

// Cut implements Policy.
func (c LastTokens) Cut(p *Points, tokens func(int) int) int {
	messages := p.thread.Messages()
	best, whole, sum := -1, -1, 0
	for i := len(messages) - 1; i >= 0; i-- {
		sum += tokens(i)
		if sum > c.N && best >= 0 {
			break
		}
		if !p.legal[i] {
			continue
		}
		if sum <= c.N || best < 0 {
			best = i
			if i == 0 || messages[i].StartsTurn() {
				whole = i
			}
		}
	}
	if whole >= 0 && !c.SplitTurns {
		return whole
	}
	return max(best, 0)
}

// Ratio keeps the newest share of the thread's tokens: 0.3 keeps three tenths,
// split turns allowed.
type Ratio struct{ Keep float64 }

// Cut implements Policy.
func (c Ratio) Cut(p *Points, tokens func(int) int) int {
	total := 0
	for i := range p.thread.Len() {
		total += tokens(i)
	}
	return LastTokens{N: int(float64(total) * c.Keep), SplitTurns: true}.Cut(p, tokens)
}
