package jsonedit

import "testing"

func TestEdit(t *testing.T) {
	const doc = `{"a": {"b":[1, 2]},"c":null}`
	for _, tt := range []struct{ got, want string }{
		{Set(doc, "a.b.1", `"x"`), `{"a": {"b":[1, "x"]},"c":null}`},
		{Set(doc, "d", "{}"), `{"a": {"b":[1, 2]},"c":null,"d":{}}`},
		{Set(doc, "", "{}"), doc},
		{Delete(doc, "c"), `{"a": {"b":[1, 2]}}`},
		{Delete(doc, "d"), doc},
		{Delete(doc, ""), doc},
	} {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}
