package proxy

import (
	"fmt"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
)

// TestLinksAreBounded: the oldest responses are forgotten, also those of a process
// before this one.
func TestLinksAreBounded(t *testing.T) {
	memory := &store.Memory{}
	save := func(l *links, from, to int) {
		for n := from; n < to; n++ {
			if err := l.save(t.Context(), fmt.Sprintf("resp_%d", n), &link{Made: int64(n + 1)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := &links{documents: memory}
	save(l, 0, maxLinks-10)
	l = &links{documents: memory} // after a restart
	save(l, maxLinks-10, maxLinks+5)
	for n, want := range map[int]bool{0: false, 4: false, 5: true, maxLinks + 4: true} {
		k, err := l.find(t.Context(), fmt.Sprintf("resp_%d", n))
		if err != nil || (k != nil) != want {
			t.Errorf("response %d: %v %v, want %v", n, k, err, want)
		}
	}
	if k, err := l.find(t.Context(), "a\x00name"); k != nil || err != nil {
		t.Errorf("%v %v", k, err)
	}
}

// TestLinksInACircle: links that lead nowhere are as if nobody knew the response.
func TestLinksInACircle(t *testing.T) {
	l := &links{documents: &store.Memory{}}
	l.save(t.Context(), "resp_a", &link{Prev: "resp_b"})
	l.save(t.Context(), "resp_b", &link{Prev: "resp_a"})
	l.save(t.Context(), "resp_c", &link{Prev: "resp_z"})
	for _, id := range []string{"resp_a", "resp_c", "resp_z"} {
		if c, err := l.follow(t.Context(), id); c != nil || err != nil {
			t.Errorf("%s: %v %v", id, c, err)
		}
	}
}
