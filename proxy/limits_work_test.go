package proxy

import (
	"strings"
	"testing"
)

// TestCanBeHeld: what decides is how many objects a request has for its bytes, not what stands in
// its texts.
func TestCanBeHeld(t *testing.T) {
	for _, tt := range []struct {
		name string
		body string
		want bool
	}{
		{"small", `{"messages":[` + strings.Repeat(`{"role":"user","content":"a"},`, 10_000) + `{}]}`, true},
		{"tiny messages", `{"messages":[` + strings.Repeat(`{"role":"user","content":"a"},`, 200_000) + `{}]}`, false},
		{"messages of a usual size", `{"messages":[` + strings.Repeat(`{"role":"user","content":"`+strings.Repeat("a", 1000)+`"},`, 6_000) + `{}]}`, true},
		{"a long session of short steps", `{"messages":[` + strings.Repeat(`{"role":"user","content":"`+strings.Repeat("a", 180)+`"},`, 60_000) + `{}]}`, true},
		{"braces in a text", `{"content":"` + strings.Repeat(`{\"a\\\":{`, 1_000_000) + `"}`, true},
		{"a text without an end", `{"content":"` + strings.Repeat("{", 6_000_000), true},
	} {
		if got := canBeHeld(tt.body); got != tt.want {
			t.Errorf("%s: %t for %d objects in %d bytes", tt.name, got, objects(tt.body), len(tt.body))
		}
	}
	if n := objects(`{"a{":"\\\"{","b":[{},{"c":"\\"}]}`); n != 3 {
		t.Errorf("%d objects", n)
	}
}
