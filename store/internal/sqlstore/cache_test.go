package sqlstore

import (
	"fmt"
	"testing"
)

// TestCache: what is in memory is bounded, also by threads that are asked for and
// not there, and by plans that follow each other; the thread that was used last
// stays, however large it is.
func TestCache(t *testing.T) {
	c := newCache(10 * knownBytes)
	at := func(n int) name { return name{"t", fmt.Sprint(n)} }
	for n := range 1000 {
		c.get(at(n))
	}
	if len(c.at) != 10 || c.size != 10*knownBytes {
		t.Errorf("%d threads of %d bytes after a thousand that are not there", len(c.at), c.size)
	}
	k := c.get(at(999))
	for range 1000 {
		c.planned(k, 3*knownBytes)
	}
	if len(c.at) != 7 || k.dropped || c.size != 10*knownBytes {
		t.Errorf("%d threads of %d bytes after a thousand plans of one", len(c.at), c.size)
	}
	c.grew(k, 1000*knownBytes)
	if len(c.at) != 1 || k.dropped || c.get(at(999)) != k {
		t.Errorf("%d threads, the large one dropped: %v", len(c.at), k.dropped)
	}
	if c.get(at(1)); len(c.at) != 1 || !k.dropped || c.size != knownBytes {
		t.Errorf("%d threads of %d bytes after the next", len(c.at), c.size)
	}
	c.get(name{"other", "x"})
	if c.forgetTenant("t"); len(c.at) != 1 || c.size != knownBytes {
		t.Errorf("%d threads of %d bytes without the tenant", len(c.at), c.size)
	}
	if c = newCache(-1); c.get(at(1)) == nil || len(c.at) != 0 || c.size != 0 {
		t.Errorf("%d threads where none are kept", len(c.at))
	}
}
