// Package lru is a cache that evicts the least recently used entries beyond a total weight.
package lru

import (
	"container/list"
	"sync"
)

// Cache holds values by key. Weights are in any unit of the caller, such as entries or bytes. The most
// recently used entry stays, however heavy it is. It is safe for concurrent use; the zero value holds
// nothing.
type Cache[K comparable, V any] struct {
	maxWeight int

	mu     sync.Mutex
	weight int
	at     map[K]*list.Element
	recent list.List // of *entry[K, V], most recently used first
}

type entry[K comparable, V any] struct {
	key    K
	value  V
	weight int
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
	c.put(&entry[K, V]{key, value, weight})
	return value
}

// Put stores or replaces the value of a key.
func (c *Cache[K, V]) Put(key K, value V, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at[key]; at != nil {
		c.remove(at)
	}
	c.put(&entry[K, V]{key, value, weight})
}

// Grow adds to the weight of an entry if meant is true for its value.
func (c *Cache[K, V]) Grow(key K, by int, meant func(V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at[key]; at != nil && meant(at.Value.(*entry[K, V]).value) {
		at.Value.(*entry[K, V]).weight += by
		c.weight += by
		c.evict()
	}
}

// Delete removes a key.
func (c *Cache[K, V]) Delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.at[key]; at != nil {
		c.remove(at)
	}
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
	c.evict()
}

func (c *Cache[K, V]) evict() {
	for c.weight > c.maxWeight && c.recent.Len() > min(max(c.maxWeight, 0), 1) {
		c.remove(c.recent.Back())
	}
}

func (c *Cache[K, V]) remove(at *list.Element) {
	e := c.recent.Remove(at).(*entry[K, V])
	delete(c.at, e.key)
	c.weight -= e.weight
}
