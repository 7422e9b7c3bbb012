package sqlstore

import (
	"fmt"
	"testing"
)

// TestCache: what is in memory is bounded, also by threads that are asked for and
// not there, and by plans that follow each other; the thread that was used last
// stays, however large it is.
func TestCache(t *testing.T) {
	c := newCache(10 * emptyBytes)
	at := func(n int) name { return name{"t", fmt.Sprint(n)} }
	holds := func(when string, threads, bytes int) {
		t.Helper()
		if n, size := c.Stats(); n != threads || size != bytes {
			t.Errorf("%s: %d threads of %d bytes, want %d of %d", when, n, size, threads, bytes)
		}
	}
	for n := range 1000 {
		c.get(at(n))
	}
	holds("after a thousand that are not there", 10, 10*emptyBytes)
	k := c.get(at(999))
	for range 1000 {
		c.planned(k, 3*emptyBytes)
	}
	holds("after a thousand plans of one", 7, 10*emptyBytes)
	c.grew(k, 1000*emptyBytes)
	if holds("with a large one", 1, 1004*emptyBytes); c.get(at(999)) != k {
		t.Error("the large one is forgotten")
	}
	c.get(at(1))
	holds("after the next", 1, emptyBytes)
	c.grew(k, emptyBytes)
	holds("when a forgotten one grows", 1, emptyBytes)
	c.get(name{"other", "x"})
	c.forgetTenant("t")
	holds("without the tenant", 1, emptyBytes)
	if c = newCache(-1); c.get(at(1)) == nil {
		t.Error("nothing is known where nothing is kept")
	}
	holds("where none are kept", 0, 0)
}
