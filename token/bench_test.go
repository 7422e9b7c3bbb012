package token

import (
	"fmt"
	"strings"
	"testing"
)

// sample is a text of about a megabyte like what agents see: prose, code, JSON
// and listings in turn.
func sample() string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "The %d tests of the parser fail because the reader keeps its buffer; I will look at reader.go first.\n", i)
		fmt.Fprintf(&b, "func (r *Reader) next%d() (Token, error) {\n\tif r.err != nil {\n\t\treturn Token{}, fmt.Errorf(\"read %%q: %%w\", r.name, r.err)\n\t}\n}\n", i)
		fmt.Fprintf(&b, `{"path":"internal/reader/read_%d.go","lines":[%d,%d],"ok":true,"hash":"%x"}`+"\n", i, i*7, i*7+12, i*2654435761)
		fmt.Fprintf(&b, "-rw-r--r--  1 ana ana %6d Nov 12 10:%02d build/out_%03d.log\n", i*97, i%60, i)
	}
	return b.String()
}

// BenchmarkOpen is what the first count of a process takes longer than the next.
func BenchmarkOpen(b *testing.B) {
	b.Run("o200k", func(b *testing.B) {
		for b.Loop() {
			newEncoding(o200kVocabulary, o200kTokens, splitO200k)
		}
	})
	b.Run("cl100k", func(b *testing.B) {
		for b.Loop() {
			newEncoding(cl100kVocabulary, cl100kTokens, splitCl100k)
		}
	})
}

func BenchmarkText(b *testing.B) {
	s := sample()
	for _, name := range []string{"o200k", "cl100k", "claude", "chars/4"} {
		c, err := New(name, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			c.Text(s[:1000]) // build the vocabulary
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				c.Text(s)
			}
		})
	}
}
