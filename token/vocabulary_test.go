package token

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "write the vocabularies anew")

// TestVocabularies: the files hold what the library holds.
func TestVocabularies(t *testing.T) {
	for _, v := range []struct {
		file, have string
		codec      *codec.Codec
		tokens     int
	}{
		{"o200k.vocab", o200kVocabulary, codec.NewO200kBase(), 200_000},
		{"cl100k.vocab", cl100kVocabulary, codec.NewCl100kBase(), 100_256},
	} {
		var lengths, bytes strings.Builder
		for id := range v.tokens {
			s, err := v.codec.Decode([]uint{uint(id)})
			if err != nil {
				s = ""
			}
			if len(s) > 255 {
				t.Fatalf("%s: token %d has %d bytes", v.file, id, len(s))
			}
			lengths.WriteByte(byte(len(s)))
			bytes.WriteString(s)
		}
		want := lengths.String() + bytes.String()
		if *update {
			if err := os.WriteFile(v.file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if v.have != want {
			t.Errorf("%s is not the library's vocabulary: go test ./token -run %s -update", v.file, t.Name())
		}
	}
}
