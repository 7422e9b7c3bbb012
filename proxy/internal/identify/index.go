package identify

import (
	"cmp"
	"container/list"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// Index remembers the requests that were read last, by their bytes, so that the next step of a
// conversation costs what the step adds. It is bounded in bytes, over all tenants and for each, and
// forgets the least recently used. It is safe for concurrent use.
type Index struct {
	maxBytes, maxTenantBytes int
	seed                     maphash.Seed // of the hashes of bodies

	mu      sync.Mutex
	bytes   int
	recent  list.List // of *entry, the most recently used first
	entries uint64    // the number of the last entry
}

// NewIndex returns an index of about so many bytes, over all tenants and for each.
func NewIndex(all, each int) *Index {
	return &Index{maxBytes: all, maxTenantBytes: min(all, each), seed: maphash.MakeSeed()}
}

// maxRequests bounds the requests of a tenant: all are compared to find the one that a body continues.
const maxRequests = 256

// A request takes its body, about twice as much decoded, its messages and, once its log is known, the
// memory of the log and its last rendering.
const (
	decodedFactor = 2
	messageBytes  = 512
	loggedFactor  = 2
)

// Tenant is one tenant's part of an index.
type Tenant struct {
	index   *Index
	onEvict func(log string)

	bytes   int
	entries []*entry // the most recently used last
}

type entry struct {
	number  uint64 // counting from 1
	tenant  *Tenant
	request *Request
	log     string // that the request continues; empty if not known yet
	bytes   int
	element *list.Element
}

// Tenant returns the part of a new tenant. onEvict is called with the log of each request that is
// forgotten, so that its owner can forget more of the conversation.
func (x *Index) Tenant(onEvict func(log string)) *Tenant { return &Tenant{index: x, onEvict: onEvict} }

// Bytes is about how much memory the index holds.
func (x *Index) Bytes() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.bytes
}

// Read reads a body, by what it adds to the most similar request if there is one. The error says that it
// is no request of the API, or is that of canceled.
func (t *Tenant) Read(codec wire.Codec, s Similar, canceled Canceled) (*Request, error) {
	before := t.numbered(s.entry)
	if before == nil {
		again := t.Similar(codec.API(), s.String())
		before, s.same = t.numbered(again.entry), again.same
	}
	var r *Request
	if before != nil {
		r = before.request.extend(codec, s.Body, s.same, canceled)
	}
	if r == nil {
		before = nil
		var err error
		if r, err = Read(codec, s.String(), canceled); err != nil {
			return nil, err
		}
	}
	var known []uint64
	if before != nil {
		known = before.request.hashes[:min(s.same/PieceSize, len(before.request.hashes))]
	}
	r.unmarked, r.hashes = s.Unmarked, r.Body.hashPieces(t.index.seed, known)
	r.objects = s.Objects - strings.Count(r.Body.slice(r.messagesEnd, r.Body.size), "{")
	t.remember(r, before)
	return r, nil
}

// numbered is the entry with a number; nil if it is forgotten.
func (t *Tenant) numbered(number uint64) *entry {
	t.index.mu.Lock()
	defer t.index.mu.Unlock()
	if i := slices.IndexFunc(t.entries, func(e *entry) bool { return e.number == number }); i >= 0 {
		return t.entries[i]
	}
	return nil
}

// remember adds a request, in place of the one that it continues.
func (t *Tenant) remember(r *Request, before *entry) {
	e := &entry{tenant: t, request: r}
	t.index.update(func() []*entry {
		if before != nil && before.element != nil {
			e.log = before.log
			before.remove()
		}
		e.add()
		return t.evict()
	})
}

// SetLog notes the log that a request continues, for onEvict.
func (t *Tenant) SetLog(r *Request, log string) {
	r = cmp.Or(r.asRead, r)
	t.index.update(func() []*entry {
		e := &entry{tenant: t, request: r}
		if i := slices.IndexFunc(t.entries, func(e *entry) bool { return e.request == r }); i >= 0 {
			e = t.entries[i]
			e.remove()
		}
		e.log = log
		e.add()
		return t.evict()
	})
}

// update makes a change, and then calls onEvict for what it evicted.
func (x *Index) update(f func() []*entry) {
	x.mu.Lock()
	evicted := f()
	x.mu.Unlock()
	for _, e := range evicted {
		if e.log != "" && e.tenant.onEvict != nil {
			e.tenant.onEvict(e.log)
		}
	}
}

func (e *entry) add() {
	t := e.tenant
	if e.number == 0 {
		t.index.entries++
		e.number = t.index.entries
	}
	e.bytes = e.request.Body.Len() + e.request.decodedBytes + messageBytes*len(e.request.IDs)
	if e.log != "" {
		e.bytes += loggedFactor * e.request.Body.Len()
	}
	e.element = t.index.recent.PushFront(e)
	t.entries = append(t.entries, e)
	t.bytes += e.bytes
	t.index.bytes += e.bytes
}

func (e *entry) remove() {
	t := e.tenant
	t.index.recent.Remove(e.element)
	e.element = nil
	i := slices.Index(t.entries, e)
	t.entries = slices.Delete(t.entries, i, i+1)
	t.bytes -= e.bytes
	t.index.bytes -= e.bytes
}

// evict removes what is too much: of this tenant, except its last, and then of all.
func (t *Tenant) evict() (evicted []*entry) {
	for len(t.entries) > maxRequests || t.bytes > t.index.maxTenantBytes && len(t.entries) > 1 {
		evicted = append(evicted, t.entries[0])
		t.entries[0].remove()
	}
	for t.index.bytes > t.index.maxBytes {
		e := t.index.recent.Back().Value.(*entry)
		evicted = append(evicted, e)
		e.remove()
	}
	return evicted
}
