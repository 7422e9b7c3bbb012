package main

import (
	"testing"

	pkoukk "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
	"github.com/tiktoken-go/tokenizer"

	"github.com/palimpsest-ai/palimpsest/internal/test/cputime"
	"github.com/palimpsest-ai/palimpsest/token"
)

// BenchmarkTokenizer counts the o200k tokens of the same texts with ours and with
// the two libraries of Go.
func BenchmarkTokenizer(b *testing.B) {
	ours, err := token.New("o200k", nil)
	if err != nil {
		b.Fatal(err)
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		b.Fatal(err)
	}
	pkoukk.SetBpeLoader(loader.NewOfflineLoader())
	other, err := pkoukk.GetEncoding("o200k_base")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		count func(string) (int, error)
	}{
		{"palimpsest", func(s string) (int, error) { return ours.Text(s), nil }},
		{"tiktoken-go/tokenizer", codec.Count},
		{"pkoukk/tiktoken-go", func(s string) (int, error) { return len(other.EncodeOrdinary(s)), nil }},
	} {
		for _, text := range texts {
			s, err := readText("../..", text.globs)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(text.name+"/"+c.name, func(b *testing.B) {
				if _, err := c.count(s[:1000]); err != nil { // builds the vocabulary
					b.Fatal(err)
				}
				b.SetBytes(int64(len(s)))
				n := 0
				var clock cputime.Clock
				clock.Start()
				for b.Loop() {
					if n, err = c.count(s); err != nil {
						b.Fatal(err)
					}
				}
				clock.Report(b)
				b.ReportMetric(float64(n), "tokens")
			})
		}
	}
}
