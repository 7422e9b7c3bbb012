package token

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

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
			l := newLineMemo(c)
			check := func(s string) {
				t.Helper()
				for range 2 {
					if got, want := l.text(s), c.Text(s); got != want {
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

// TestLinesForget: what is held is bounded, and forgetting changes no count.
func TestLinesForget(t *testing.T) {
	c, err := New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	l := newLineMemo(c)
	s := sample()
	for n := range 24 {
		text := strings.ReplaceAll(s, "\n", strings.Repeat("!", n+1)+"\n")
		if n%8 == 0 && l.text(text) != c.Text(text) {
			t.Fatal("another count")
		}
		l.text(text)
		if l.bytes > maxLines+len(s) {
			t.Fatalf("%d bytes are held", l.bytes)
		}
	}
	if len(l.old) == 0 {
		t.Error("nothing was externalized: the test is too small")
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
		l := newLineMemo(c)
		b.SetBytes(int64(len(s)))
		for b.Loop() {
			l.text(s)
		}
	})
}
