package token

import (
	"flag"
	"os"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "write the vocabularies anew")

// TestVocabularies: the files hold what the library holds.
func TestVocabularies(t *testing.T) {
	for _, v := range []struct {
		file   string
		codec  *codec.Codec
		open   func() *encoding
		tokens int
	}{
		{"o200k.vocab", codec.NewO200kBase(), o200k, 200_000},
		{"cl100k.vocab", codec.NewCl100kBase(), cl100k, 100_256},
	} {
		texts := make([]string, v.tokens)
		for id := range texts {
			if s, err := v.codec.Decode([]uint{uint(id)}); err == nil {
				texts[id] = s
			}
		}
		if *update {
			if err := os.WriteFile(v.file, inPairs(t, texts), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		e := v.open()
		if got := len(e.start) - 1; got != v.tokens {
			t.Fatalf("%s has %d tokens, want %d", v.file, got, v.tokens)
		}
		for id, want := range texts {
			if got := e.bytes[e.start[id]:e.start[id+1]]; got != want {
				t.Fatalf("%s: token %d is %q, in the library %q: go test ./token -run %s -update", v.file, id, got, want, t.Name())
			}
		}
	}
}

// inPairs writes each token as two earlier ones.
func inPairs(t *testing.T, texts []string) []byte {
	ids := map[string]int{}
	var out []byte
	for id, s := range texts {
		first, second := id, id
		for n := 1; n < len(s) && first == id; n++ {
			a, ok := ids[s[:n]]
			b, too := ids[s[n:]]
			if ok && too {
				first, second = a, b
			}
		}
		switch {
		case id < 256 && len(s) == 1:
			out = append(out, s[0])
		case id < 256 || first == id && s != "" || second >= 1<<20:
			t.Fatalf("token %d, %q, cannot be written", id, s)
		default:
			out = append(out, byte(first), byte(first>>8), byte(second), byte(second>>8), byte(first>>16|second>>16<<4))
		}
		if s != "" {
			ids[s] = id
		}
	}
	return out
}
