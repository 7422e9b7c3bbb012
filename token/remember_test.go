package token

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/thread"
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
			if known.Remembering(nil).known != known.known {
				t.Errorf("%s: what remembers already remembers anew", c.Name())
			}
			if c.base == nil && (again.known != known.known || len(known.known.now) != 2) {
				t.Errorf("%s: %d texts remembered", c.Name(), len(known.known.now))
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

// TestLines: counting line by line gives what counting at once does, for real text
// and for every mixture of what the encodings treat in a way of their own at the
// end of a line; a second time too.
func TestLines(t *testing.T) {
	pieces := []string{
		"\n", "\r\n", "\r", " ", "  ", "\t", "/", "//", ".", "...", "(", "x", "Word", "'s", "9", "12345", "\v", "\f", "\u0085", "\u00a0", "\u2028",
		"é", "字", "\u0301", "\xff", "\xe5\xad", "\x00", "- ", "*/", "\n\n", "\n/", "\n  /", " \n", ".\n", "\n  ", "😀",
	}
	random := rand.New(rand.NewPCG(7, 11))
	texts := 500
	if corpus.Long() {
		texts = 2_000
	}
	for _, name := range []string{"o200k", "cl100k", "claude", "gemini", "bytes/3"} {
		c, err := New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Counter{c, c.Scaled(1.3)} {
			known := c.Remembering(nil)
			check := func(s string) {
				t.Helper()
				for range 2 {
					if got, want := known.Lines(s), c.Text(s); got != want {
						t.Fatalf("%s: %d tokens, want %d: %q", c.Name(), got, want, s)
					}
				}
			}
			check("")
			check(sample()[:200_000])
			for range texts {
				var b strings.Builder
				for b.Len() <= shortText+100 {
					b.WriteString(pieces[random.IntN(len(pieces))])
				}
				check(b.String())
			}
		}
	}
}

// TestRememberingIsBounded: what is held is bounded, forgetting changes no count, and several may count at once.
func TestRememberingIsBounded(t *testing.T) {
	c := counter(t, "chars/4")
	known := c.Remembering(nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 2*maxKnown + 1 {
				if s := fmt.Sprintf("%0*d", longText+i%97, i); known.Text(s) != c.Text(s) {
					t.Errorf("%.20s: %d tokens, want %d", s, known.Text(s), c.Text(s))
					return
				}
			}
		})
	}
	group.Wait()
	if k := known.known; len(k.now) > maxKnown || len(k.old) > maxKnown || len(k.old) == 0 {
		t.Errorf("%d and %d texts are held", len(k.now), len(k.old))
	}
}

// A text counted before is found, not counted again.
func TestRememberingCountsOnce(t *testing.T) {
	counted := 0
	c := (&Counter{text: func(_ *effort.Budget, s string) int { counted++; return len(s) }}).Remembering(nil)
	for range 3 {
		for i := range 5 {
			c.Message(&thread.Message{Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("%0*d", longText, i)}}})
		}
	}
	if counted != 5 {
		t.Errorf("%d counts for 5 texts", counted)
	}
}

func BenchmarkLines(b *testing.B) {
	c, err := New("o200k", nil)
	if err != nil {
		b.Fatal(err)
	}
	s := sample()[:64_000]
	b.Run("whole", func(b *testing.B) {
		b.SetBytes(int64(len(s)))
		for b.Loop() {
			c.Text(s)
		}
	})
	b.Run("known", func(b *testing.B) {
		known := c.Remembering(nil)
		b.SetBytes(int64(len(s)))
		for b.Loop() {
			known.Lines(s)
		}
	})
}

func BenchmarkRemembering(b *testing.B) {
	s := sample()
	var messages []thread.Message
	for i := 0; i+2000 < 400_000; i += 2000 {
		messages = append(messages, thread.Message{ID: thread.ID(fmt.Sprint(i)), Parts: []thread.Part{thread.Text{Text: s[i : i+2000]}}})
	}
	known := counter(b, "o200k").Remembering(nil)
	b.SetBytes(400_000)
	b.ReportAllocs()
	for b.Loop() {
		for i := range messages {
			known.Message(&messages[i])
		}
	}
}
