// Package lru holds what was used last, up to a weight, and forgets first what was
// not used for longest. It is how everything here that remembers for speed is
// bounded.
package lru

import (
	"container/list"
	"sync"
)

// Cache holds values by key. Its weight is counted in whatever the caller counts:
// entries, bytes. The entry that was used last stays, however heavy it is: it would
// be made again at each use. Safe for concurrent use; the zero value holds nothing.
type Cache[K comparable, V any] struct {
	most int

	mu     sync.Mutex
	weight int
	at     map[K]*list.Element
	recent list.List // of *entry[K, V], the one used last in front
}

type entry[K comparable, V any] struct {
	key    K
	value  V
	weight int
}

// New returns an empty cache of at most so much weight; 0 or less holds nothing.
func New[K comparable, V any](most int) *Cache[K, V] { return &Cache[K, V]{most: most} }

// Get returns what is held under a key.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.used(key); e != nil {
		return e.value, true
	}
	return value, false
}

// Of returns what is held under a key; where nothing is, what create returns is put
// there. It is called once for a key, and must not use the cache.
func (c *Cache[K, V]) Of(key K, weight int, create func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.used(key); e != nil {
		return e.value
	}
	value := create()
	c.put(&entry[K, V]{key, value, weight})
	return value
}

// Put holds a value under a key, in place of one that is there.
func (c *Cache[K, V]) Put(key K, value V, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at[key]; at != nil {
		c.drop(at)
	}
	c.put(&entry[K, V]{key, value, weight})
}

// Grow adds to the weight of the entry under a key, if it is still the one meant.
func (c *Cache[K, V]) Grow(key K, by int, meant func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at[key]; at != nil && meant(at.Value.(*entry[K, V]).value) {
		at.Value.(*entry[K, V]).weight += by
		c.weight += by
		c.fit()
	}
}

// Delete forgets what is held under a key.
func (c *Cache[K, V]) Delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at[key]; at != nil {
		c.drop(at)
	}
}

// DeleteFunc forgets what is held under the keys for which del is true.
func (c *Cache[K, V]) DeleteFunc(del func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, at := range c.at {
		if del(key) {
			c.drop(at)
		}
	}
}

// Held is how many entries there are, and what they weigh.
func (c *Cache[K, V]) Held() (entries, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.at), c.weight
}

func (c *Cache[K, V]) used(key K) *entry[K, V] {
	at := c.at[key]
	if at == nil {
		return nil
	}
	c.recent.MoveToFront(at)
	return at.Value.(*entry[K, V])
}

func (c *Cache[K, V]) put(e *entry[K, V]) {
	if c.at == nil {
		c.at = map[K]*list.Element{}
	}
	c.at[e.key] = c.recent.PushFront(e)
	c.weight += e.weight
	c.fit()
}

func (c *Cache[K, V]) fit() {
	for c.weight > c.most && c.recent.Len() > min(max(c.most, 0), 1) {
		c.drop(c.recent.Back())
	}
}

func (c *Cache[K, V]) drop(at *list.Element) {
	e := c.recent.Remove(at).(*entry[K, V])
	delete(c.at, e.key)
	c.weight -= e.weight
}
