package proxy

import (
	"cmp"
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

const (
	// timesBytes is how much memory the work on a request may take, in multiples of its bytes.
	timesBytes = 12
	// freeBytes may be taken by any request.
	freeBytes = 96 << 20
	// defaultMaxBody is Options.MaxBody, where that is 0.
	defaultMaxBody = 64 << 20
	// tooMuchWork is more than any room.
	tooMuchWork = math.MaxInt
)

// bytesOfObject is what the work takes for each JSON object of a request, however small: a message, a part or a
// call, and what is found in it. Of the Responses API a call and its output are a message each.
func bytesOfObject(api string) int {
	if api == wire.Responses {
		return 3 << 10
	}
	return 2 << 10
}

// workBytes is about how much memory the work on a request takes, besides its body; 0 for a small one,
// which is not counted, and tooMuchWork if it is more than a request of its size may take. Recorded
// requests of agents have more than 220 bytes to an object, of the Responses API more than 400, also the
// longest; one of very many tiny messages, parts or calls would take a hundred times its bytes.
func workBytes(api string, body *identify.Similar) int {
	usual := timesBytes * body.Len()
	most := max(usual, freeBytes)
	need := func() int { return body.Len() + bytesOfObject(api)*body.Objects }
	if need() > usual { // braces in texts are no objects
		body.Objects = objects(body.String())
	}
	work := need()
	switch {
	case work > most:
		return tooMuchWork
	case body.Len() < 256<<10:
		return 0
	}
	return max(usual, work)
}

// readBody reads the body of a request, compares it with those before it, and decompresses it. whole says that nothing
// was left of it.
func (t *Transport) readBody(x *received, reserve func(bytes int) bool) (whole bool, err error) {
	r, api, limit := x.request, x.endpoint.dialect.API(), t.options.MaxBody
	if httpbody.Encoding(r.Header) != "" {
		body, whole, err := httpbody.Read[string](r.Body, limit, r.ContentLength, reserve)
		plain := ""
		if err == nil && whole {
			plain, x.decompressErr = httpbody.Decompress(r.Header, body, limit, reserve)
		}
		x.body, x.plain = identify.NewBody(body), t.requests.Similar(api, plain)
		x.work = workBytes(api, &x.plain)
		return whole, err
	}
	similar := t.requests.Compare(api)
	rest, whole, err := httpbody.ReadRest[string](r.Body, limit, r.ContentLength, reserve, similar.IsKnown)
	x.plain = similar.End(rest)
	x.body, x.work = x.plain.Body, workBytes(api, &x.plain)
	return whole, err
}

// objects counts the objects of a JSON document.
func objects(doc string) (n int) {
	for {
		quote := strings.IndexByte(doc, '"')
		if quote < 0 {
			return n + strings.Count(doc, "{")
		}
		n += strings.Count(doc[:quote], "{")
		doc = doc[quote+1:]
		for {
			end := strings.IndexByte(doc, '"')
			if end < 0 {
				return n
			}
			escapes := end - len(strings.TrimRight(doc[:end], `\`))
			doc = doc[end+1:]
			if escapes%2 == 0 {
				break
			}
		}
	}
}

// Memory bounds what proxies hold in memory. It is safe for concurrent use, and the proxies of many
// tenants may share one.
//
// Conversations are remembered so that a step costs what it adds. Beyond the bound the least recently
// used are forgotten; their next step takes longer, with the same result. Requests at work
// cannot be forgotten: if there are too many, further ones are answered with 503 and Retry-After,
// on which clients ask again.
type Memory struct {
	index *identify.Index

	sessions *palimpsest.Memory

	mu              sync.Mutex
	freeBodyBytes   int            // for all request bodies
	tenantBodyBytes int            // the bound for one tenant
	bodyBytes       map[string]int // reserved, by tenant
	counters        map[string]*token.Counter
	allWork         int           // for the work on all requests, in bytes
	freeWork        int           // of that
	workEnded       chan struct{} // closed when some of it ends
}

// MemoryOptions are the bounds of a Memory, in bytes. Zero fields are the defaults.
type MemoryOptions struct {
	// All bounds what is remembered of conversations, by default 256 MB, and Tenant what one
	// proxy may have of that, by default 128 MB.
	All, Tenant int
	// Bodies bounds the bodies of requests at work, by default 512 MB, and TenantBodies those of
	// one tenant (Options.Config.Requester), by default as many. A request takes several times
	// its body while it is decoded.
	Bodies, TenantBodies int
	// Work bounds what the work on large requests takes together before they are sent, by an
	// estimate, by default 2 GB. A request waits for room, and passes unchanged if there is none.
	Work int
	// Sessions is what compactions remember between steps, for proxies whose Config has none; nil
	// is one of palimpsest.DefaultMemory.
	Sessions *palimpsest.Memory
}

// NewMemory returns a Memory with these bounds; nil options are the defaults.
func NewMemory(o *MemoryOptions) *Memory {
	o = cmp.Or(o, &MemoryOptions{})
	room, sessions := cmp.Or(o.Bodies, 512<<20), o.Sessions
	if sessions == nil {
		sessions = palimpsest.NewMemory(0)
	}
	return &Memory{
		index:         identify.NewIndex(cmp.Or(o.All, 256<<20), cmp.Or(o.Tenant, 128<<20)),
		freeBodyBytes: room, tenantBodyBytes: cmp.Or(o.TenantBodies, room), bodyBytes: map[string]int{},
		counters: map[string]*token.Counter{}, sessions: sessions,
		allWork: cmp.Or(o.Work, 2<<30), freeWork: cmp.Or(o.Work, 2<<30), workEnded: make(chan struct{}),
	}
}

// beginWork waits until there is room for work that takes so many bytes, until end is called. The
// error is that of ctx.
func (m *Memory) beginWork(ctx context.Context, bytes int) (end func(), err error) {
	for {
		m.mu.Lock()
		ended, fits := m.workEnded, bytes <= m.freeWork
		if fits {
			m.freeWork -= bytes
		}
		m.mu.Unlock()
		if fits {
			return func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.freeWork += bytes
				close(m.workEnded)
				m.workEnded = make(chan struct{})
			}, nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Reserve reserves room for a part of a tenant's request body, and reports whether there was room. Give
// it back with Release.
func (m *Memory) Reserve(tenant string, bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.freeBodyBytes < bytes || m.tenantBodyBytes-m.bodyBytes[tenant] < bytes {
		return false
	}
	m.freeBodyBytes -= bytes
	m.bodyBytes[tenant] += bytes
	return true
}

// Release gives back reserved room.
func (m *Memory) Release(tenant string, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freeBodyBytes += bytes
	if m.bodyBytes[tenant] -= bytes; m.bodyBytes[tenant] == 0 {
		delete(m.bodyBytes, tenant)
	}
}

// reservation is the room that one body has in a Memory. It is safe for concurrent use.
type reservation struct {
	memory *Memory
	tenant string
	held   atomic.Int64
}

func (co *core) newReservation() *reservation {
	return &reservation{memory: co.options.Memory, tenant: co.options.Config.Requester.TenantID}
}

func (r *reservation) reserve(bytes int) bool {
	ok := r.memory.Reserve(r.tenant, bytes)
	if ok {
		r.held.Add(int64(bytes))
	}
	return ok
}

func (r *reservation) release() { r.memory.Release(r.tenant, int(r.held.Swap(0))) }

// Bodies is how many bytes of request bodies are at work.
func (m *Memory) Bodies() (all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, bytes := range m.bodyBytes {
		all += bytes
	}
	return all
}

// Bytes is about how much memory the known requests take.
func (m *Memory) Bytes() int { return m.index.Bytes() }
