package rawjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

func TestCheck(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	tests := []struct {
		doc  string
		want error
	}{
		{`{"a":[1,"]\\\"}"]}`, nil},
		{`"` + strings.Repeat("[", 5000) + `"`, nil}, // brackets in a string nest nothing
		{deep(rawjson.MaxDepth), nil},
		{deep(rawjson.MaxDepth + 1), rawjson.ErrDepth},
		{strings.Repeat(`{"a":`, 100_000), rawjson.ErrDepth},
		{``, rawjson.ErrSyntax},
		{`{"a":1`, rawjson.ErrSyntax},
		{`{} {}`, rawjson.ErrSyntax},
		{`"abc\`, rawjson.ErrSyntax},
	}
	for _, tt := range tests {
		if err := rawjson.Check(tt.doc); !errors.Is(err, tt.want) {
			t.Errorf("%.40s: %v, want %v", tt.doc, err, tt.want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("plain")
	f.Add("tab\t quote\" slash\\ nul\x00 <html> 漢字 \xff")
	f.Fuzz(func(t *testing.T, s string) {
		quoted := rawjson.Quote(s)
		var back string
		if err := json.Unmarshal([]byte(quoted), &back); err != nil {
			t.Fatal(err)
		}
		// Going over runes makes one U+FFFD of each byte that is no UTF-8.
		if want := string([]rune(s)); back != want {
			t.Fatalf("%q came back as %q, want %q", s, back, want)
		}
		if err := rawjson.Check(quoted); err != nil {
			t.Fatal(err)
		}
	})
}
