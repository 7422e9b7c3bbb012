package token

import (
	"flag"
	"math/bits"
	"os"
	"slices"
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
		{"o200k.vocab", codec.NewO200kBase(), o200k, o200kTokens},
		{"cl100k.vocab", codec.NewCl100kBase(), cl100k, cl100kTokens},
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

// inPairs writes each token as two earlier ones, of all that make it those that take
// the fewest bits.
func inPairs(t *testing.T, texts []string) []byte {
	ids := map[string]int{}
	ones, isLong := make([]byte, singles), make([]byte, (len(texts)-singles+3)/4)
	var out []byte
	free := 0 // bits of the last byte
	write := func(value, width int) {
		for ; width > 0; value, width = value>>1, width-1 {
			if free == 0 {
				out, free = append(out, 0), 8
			}
			out[len(out)-1] |= byte(value&1) << (8 - free)
			free--
		}
	}
	long := func(part int) bool { return part >= 1<<shortBits }
	for id, s := range texts {
		if id < singles {
			if len(s) != 1 {
				t.Fatalf("token %d is %q, want one byte", id, s)
			}
			ones[id] = s[0]
			ids[s] = id
			continue
		}
		width := bits.Len(uint(id))
		parts, least := [2]int{id, id}, 0
		for n := 1; n < len(s); n++ {
			first, ok := ids[s[:n]]
			second, too := ids[s[n:]]
			if !ok || !too {
				continue
			}
			takes := 2 * shortBits
			for _, part := range [2]int{first, second} {
				if long(part) {
					takes += width - shortBits
				}
			}
			if least == 0 || takes < least {
				parts, least = [2]int{first, second}, takes
			}
		}
		if s != "" && least == 0 {
			t.Fatalf("token %d, %q, cannot be written", id, s)
		}
		for i, part := range parts {
			if long(part) {
				isLong[(id-singles)/4] |= 1 << ((id-singles)%4*2 + i)
				write(part, width)
			} else {
				write(part, shortBits)
			}
		}
		if s != "" {
			ids[s] = id
		}
	}
	return slices.Concat(ones, isLong, out, make([]byte, 8))
}
