// Package store keeps orders and hands them out to workers under leases.
//
// The exported names are imported by the billing job, which lives in another
// repository.
package store

import (
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"example.com/shipq/order"
)

// Errors callers are expected to test for.
var (
	ErrExists    = errors.New("store: order exists")
	ErrNotFound  = errors.New("store: no such order")
	ErrEmpty     = errors.New("store: nothing to claim")
	ErrLeaseLost = errors.New("store: lease lost")
)

// Lease is the right to work on one order until Expires.
type Lease struct {
	Order   order.Order
	Worker  string
	Token   uint64
	Expires time.Time
}

// Stats counts orders by state.
type Stats struct {
	Queued  int `json:"queued"`
	Claimed int `json:"claimed"`
	Shipped int `json:"shipped"`
	Failed  int `json:"failed"`
}

type entry struct {
	order     order.Order
	seq       uint64 // order of arrival, so that Claim is first in, first out
	token     uint64
	expires   time.Time
	notBefore time.Time
}

// Store is an in-memory queue. It is safe for concurrent use.
type Store struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[order.ID]*entry
	seq     uint64
	token   uint64
}

// New returns an empty store. A nil clock means time.Now.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{now: now, entries: make(map[order.ID]*entry)}
}

// Put adds a new order to the queue.
func (s *Store) Put(o order.Order) error {
	if err := o.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.entries[o.ID]; ok {
		return fmt.Errorf("put %s: %w", o.ID, ErrExists)
	}
	if o.CreatedAt.IsZero() {
		o.CreatedAt = s.now()
	}
	o.Status = order.Queued
	s.seq++
	s.entries[o.ID] = &entry{order: o, seq: s.seq}
	return nil
}

// Get returns a copy of an order.
func (s *Store) Get(id order.ID) (order.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[id]
	if !ok {
		return order.Order{}, fmt.Errorf("get %s: %w", id, ErrNotFound)
	}
	return e.order, nil
}

// Claim leases the oldest order that is free: queued, or claimed under a lease
// that has run out.
func (s *Store) Claim(worker string, d time.Duration) (Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var best *entry
	for _, e := range s.entries {
		if !e.free(now) {
			continue
		}
		if best == nil || e.seq < best.seq {
			best = e
		}
	}
	if best == nil {
		return Lease{}, ErrEmpty
	}
	s.token++
	best.token = s.token
	best.expires = now.Add(d)
	best.order.Status = order.Claimed
	best.order.Attempts++
	return Lease{Order: best.order, Worker: worker, Token: best.token, Expires: best.expires}, nil
}

func (e *entry) free(now time.Time) bool {
	switch e.order.Status {
	case order.Queued:
		return true
	case order.Claimed:
		return now.After(e.expires)
	}
	return false
}

// Extend moves the expiry of a lease to now + d.
func (s *Store) Extend(l Lease, d time.Duration) (Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.held(l)
	if err != nil {
		return Lease{}, fmt.Errorf("extend %s: %w", l.Order.ID, err)
	}
	e.expires = s.now().Add(d)
	l.Expires = e.expires
	return l, nil
}

// Ack ends the lease: the order has shipped.
func (s *Store) Ack(l Lease, labelRef string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.held(l)
	if err != nil {
		return fmt.Errorf("ack %s: %w", l.Order.ID, err)
	}
	e.order.Status = order.Shipped
	e.order.LabelRef = labelRef
	return nil
}

// Release ends the lease and puts the order back. It can be claimed again
// after the delay.
func (s *Store) Release(l Lease, delay time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.held(l)
	if err != nil {
		return fmt.Errorf("release %s: %w", l.Order.ID, err)
	}
	e.order.Status = order.Queued
	e.notBefore = s.now().Add(delay)
	return nil
}

// Fail ends the lease: the order will not be tried again.
func (s *Store) Fail(l Lease, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.held(l)
	if err != nil {
		return fmt.Errorf("fail %s: %w", l.Order.ID, err)
	}
	e.order.Status = order.Failed
	e.order.FailReason = reason
	return nil
}

// held returns the entry of a lease that is still the current one.
func (s *Store) held(l Lease) (*entry, error) {
	e, ok := s.entries[l.Order.ID]
	if !ok {
		return nil, ErrNotFound
	}
	if e.order.Status != order.Claimed || e.token != l.Token {
		return nil, ErrLeaseLost
	}
	return e, nil
}

// List returns the orders with a status, or all for the empty status, oldest
// first.
func (s *Store) List(status order.Status) []order.Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	var es []*entry
	for _, e := range s.entries {
		if status == "" || e.order.Status == status {
			es = append(es, e)
		}
	}
	sort.Slice(es, func(i, j int) bool { return es[i].seq < es[j].seq })
	out := make([]order.Order, len(es))
	for i, e := range es {
		out[i] = e.order
	}
	return out
}

// Stats counts the orders.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	var st Stats
	for _, e := range s.entries {
		switch e.order.Status {
		case order.Queued:
			st.Queued++
		case order.Claimed:
			st.Claimed++
		case order.Shipped:
			st.Shipped++
		case order.Failed:
			st.Failed++
		}
	}
	return st
}
