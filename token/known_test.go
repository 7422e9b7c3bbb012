package token

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRemembering: it counts as the counter does, the second time too, and shares with one that counts alike.
func TestRemembering(t *testing.T) {
	texts := []string{"", "short", strings.Repeat("one two three ", 20), strings.Repeat("x", longText), strings.Repeat("x", longText-1)}
	for _, name := range allCounters {
		for _, c := range []*Counter{counter(t, name), counter(t, name).Scaled(1.25)} {
			known := c.Remembering(nil)
			again := c.Remembering(known)
			for range 2 {
				for _, s := range texts {
					if want := c.Text(s); known.Text(s) != want || again.Text(s) != want {
						t.Errorf("%s: %.20s: %d and %d tokens, want %d", c.Name(), s, known.Text(s), again.Text(s), want)
					}
				}
			}
			if c.base == nil && (again.known != known.known || len(known.known.counts) != 2) {
				t.Errorf("%s: %d texts remembered", c.Name(), len(known.known.counts))
			}
		}
	}
	if claude, other := counter(t, "claude").Remembering(nil), counter(t, "o200k"); other.Remembering(claude).known == claude.known {
		t.Error("shared by counters that count in different ways")
	}
}

// TestRememberingEnds: a count that was broken off is not remembered.
func TestRememberingEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := strings.Repeat("all the words of a long text ", 10_000)
	known := counter(t, "o200k").Remembering(nil)
	known.Until(ctx).Text(s)
	if got, want := known.Text(s), counter(t, "o200k").Text(s); got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
}

// TestPieceMemo: pieces count as without a memo, whatever shared their slot before.
func TestPieceMemo(t *testing.T) {
	e, random := o200k(), rand.New(rand.NewPCG(1, 2))
	memo := new(pieceMemo)
	var pieces []string
	for n := range 3 * len(memo) {
		pieces = append(pieces, fmt.Sprintf("%016x", random.Uint64())[:2+n%14], strings.Repeat("é", n%(memoPiece/2)+1))
	}
	for range 2 {
		for _, p := range pieces {
			if got, want := e.mergeKnown(memo, p), e.mergeShort(p); got != want {
				t.Fatalf("%q: %d tokens, want %d", p, got, want)
			}
		}
	}
}
