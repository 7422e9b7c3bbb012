package lru_test

import (
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
)

func is(want int) func(int) bool { return func(v int) bool { return v == want } }

// TestCache: what was not used for longest goes first, by weight.
func TestCache(t *testing.T) {
	c := lru.New[string, int](3)
	for i, key := range []string{"a", "b", "c"} {
		c.Put(key, i, 1)
	}
	if v, ok := c.Get("a"); v != 0 || !ok {
		t.Error("a is lost")
	}
	if v := c.GetOrCreate("d", 1, func() int { return 7 }); v != 7 {
		t.Errorf("d is %d", v)
	}
	if _, ok := c.Get("b"); ok {
		t.Error("b is still there")
	}
	c.Grow("d", 1, is(8)) // it is another one by now
	if n, weight := c.Stats(); n != 3 || weight != 3 {
		t.Errorf("%d entries of %d", n, weight)
	}
	c.Grow("d", 1, is(7))
	if _, ok := c.Get("c"); ok {
		t.Error("c is still there")
	}
	c.Grow("d", 9, is(7))
	if v := c.GetOrCreate("d", 1, func() int { return 9 }); v != 7 {
		t.Error("the entry used last is lost, since it is large")
	}
	c.Put("d", 1, 1)
	if n, weight := c.Stats(); n != 1 || weight != 1 {
		t.Errorf("%d entries of %d", n, weight)
	}
	c.Put("e", 1, 1)
	c.DeleteFunc(func(key string) bool { return key == "d" })
	if c.Delete("x") {
		t.Error("x was there")
	}
	if n, weight := c.Stats(); n != 1 || weight != 1 {
		t.Errorf("%d entries of %d", n, weight)
	}
	if !c.Delete("e") || c.Delete("e") {
		t.Error("e was deleted twice, or not at all")
	}
}

// TestNothing: without room nothing is held.
func TestNothing(t *testing.T) {
	for _, c := range []*lru.Cache[int, int]{lru.New[int, int](0), lru.New[int, int](-1), {}} {
		if v := c.GetOrCreate(1, 1, func() int { return 2 }); v != 2 {
			t.Errorf("%d", v)
		}
		if n, weight := c.Stats(); n != 0 || weight != 0 {
			t.Errorf("%d entries of %d", n, weight)
		}
	}
}

// TestTogether: many may use it at once.
func TestTogether(t *testing.T) {
	c := lru.New[int, int](10)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 500 {
				if v := c.GetOrCreate(i%20, 1, func() int { return i % 20 }); v != i%20 {
					t.Errorf("%d is %d", i%20, v)
				}
				c.Delete((i + n) % 20)
			}
		})
	}
	all.Wait()
	if n, weight := c.Stats(); n > 10 || weight != n {
		t.Errorf("%d entries of %d", n, weight)
	}
}
