// Package lru is a cache that evicts the least recently used entries beyond a total weight.
package lru

import "sync"

// Cache holds values by key. Weights are in any unit, such as entries or bytes. The most recently used
// entry stays, however heavy it is. It is safe for concurrent use; the zero value holds nothing.
type Cache[K comparable, V any] struct {
	maxWeight int

	mu     sync.Mutex
	weight int
	at     map[K]*entry[K, V]
	ends   entry[K, V] // of the ring of entries: its older one is the newest
}

// entry is small: a cache may have very many.
type entry[K comparable, V any] struct {
	newer, older *entry[K, V]
	key          K
	value        V
	weight       int
}

// New returns an empty cache of at most the given weight; 0 or less holds nothing.
func New[K comparable, V any](most int) *Cache[K, V] { return &Cache[K, V]{maxWeight: most} }

// Get returns the value of a key.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.touch(key); e != nil {
		return e.value, true
	}
	return value, false
}

// GetOrCreate returns the value of a key, or stores and returns that of create, which must not use the
// cache.
func (c *Cache[K, V]) GetOrCreate(key K, weight int, create func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.touch(key); e != nil {
		return e.value
	}
	value := create()
	c.put(&entry[K, V]{key: key, value: value, weight: weight})
	return value
}

// Put stores or replaces the value of a key.
func (c *Cache[K, V]) Put(key K, value V, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.at[key])
	c.put(&entry[K, V]{key: key, value: value, weight: weight})
}

// Grow adds to the weight of an entry if meant is true for its value.
func (c *Cache[K, V]) Grow(key K, by int, meant func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.at[key]; e != nil && meant(e.value) {
		e.weight += by
		c.weight += by
		c.evict()
	}
}

// Delete removes a key, and reports whether it was there: of several callers only one is told so.
func (c *Cache[K, V]) Delete(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.at[key]
	c.remove(at)
	return at != nil
}

// DeleteFunc removes the keys for which del is true.
func (c *Cache[K, V]) DeleteFunc(del func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, at := range c.at {
		if del(key) {
			c.remove(at)
		}
	}
}

// Stats returns the number of entries and their total weight.
func (c *Cache[K, V]) Stats() (entries, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.at), c.weight
}

func (c *Cache[K, V]) touch(key K) *entry[K, V] {
	e := c.at[key]
	if e != nil {
		e.unlink()
		c.link(e)
	}
	return e
}

func (c *Cache[K, V]) put(e *entry[K, V]) {
	if c.at == nil {
		c.at = map[K]*entry[K, V]{}
		c.ends.newer, c.ends.older = &c.ends, &c.ends
	}
	c.at[e.key] = e
	c.link(e)
	c.weight += e.weight
	c.evict()
}

func (c *Cache[K, V]) evict() {
	for c.weight > c.maxWeight && len(c.at) > min(max(c.maxWeight, 0), 1) {
		c.remove(c.ends.newer)
	}
}

func (c *Cache[K, V]) remove(e *entry[K, V]) {
	if e == nil {
		return
	}
	e.unlink()
	delete(c.at, e.key)
	c.weight -= e.weight
}

// link makes an entry the newest.
func (c *Cache[K, V]) link(e *entry[K, V]) {
	e.newer, e.older = &c.ends, c.ends.older
	e.older.newer, c.ends.older = e, e
}

func (e *entry[K, V]) unlink() { e.newer.older, e.older.newer = e.older, e.newer }
