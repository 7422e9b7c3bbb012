package recall

import (
	"strings"
	"testing"
)

// TestView: escapes are decoded in JSON, whether it is a whole text, a line of it
// or the arguments of a call, and nowhere else; places lead back to the text.
func TestView(t *testing.T) {
	tests := []struct{ text, want string }{
		{`plain C:\new\table`, `plain C:\new\table`},
		{`{"code":"if a {\n\treturn \"x\"\n}"}`, "{\"code\":\"if a {\n\treturn \"x\"\n}\"}"},
		{"I write it.\n" + `Write {"path":"a.go","content":"package a\nvar B = 1"}` + "\n" + `not \n here`, "I write it.\nWrite {\"path\":\"a.go\",\"content\":\"package a\nvar B = 1\"}\n" + `not \n here`},
		{`["\u00e9 \ud83d\ude00 \\n"]`, "[\"é 😀 \\n\"]"},
		{`["\ud83d"]`, `["\ud83d"]`},
		{`{"open":"\n`, `{"open":"\n`},
		{"", ""},
	}
	for _, tt := range tests {
		got := decodeEscapes(tt.text)
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
		for _, word := range []string{"code", "return", "content", "var", "here"} {
			in, out := strings.Index(tt.text, word), strings.Index(got, word)
			if in < 0 {
				continue
			}
			if at := originalOffset(tt.text, out); at < in-2 || at > in { // \nvar is read from its escape on
				t.Errorf("%q: %q stands at %d, got %d", tt.text, word, in, at)
			}
		}
	}
}

// FuzzView: any text has a view that is no longer, and every place in it is one of
// the text.
func FuzzView(f *testing.F) {
	f.Add(`Edit {"a":"\ud83d\ude00\n\u"}`)
	f.Add("{\"x\":\"\\\\\"}\n[1]\n\\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := decodeEscapes(text)
		if len(got) > len(text) {
			t.Fatalf("%q became %q", text, got)
		}
		last := 0
		for i := range len(got) + 1 {
			at := originalOffset(text, i)
			if at < last || at > len(text) {
				t.Fatalf("byte %d of %q is at %d of %q, the one before at %d", i, got, at, text, last)
			}
			last = at
		}
	})
}
