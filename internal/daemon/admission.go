package daemon

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	runtimemetrics "runtime/metrics"
	"sync"

	"github.com/palimpsest-ai/palimpsest/api"
)

// work counts the requests of each tenant that are at work.
type work struct {
	each int // at most; 0 for any number

	mu   sync.Mutex
	held map[string]int
}

// begin begins a request of a tenant's; it is false where the tenant has as many at
// work as it may. end ends it.
func (w *work) begin(tenant string) (end func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.each > 0 && w.held[tenant] >= w.each {
		return nil, false
	}
	if w.held == nil {
		w.held = map[string]int{}
	}
	w.held[tenant]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.held[tenant]--; w.held[tenant] == 0 {
			delete(w.held, tenant)
		}
	}, true
}

// begin begins a request of a tenant's, or says why not: the process, or the tenant,
// has as much at work as it may.
func (s *Server) begin(tenant string) (end func(), err error) {
	if limit := s.config.Limits.Memory; limit > 0 && inUse() > uint64(limit) {
		s.metrics.refused.WithLabelValues("memory").Inc()
		return nil, later(api.Unavailable, "the daemon uses all the memory that it may; ask again")
	}
	end, ok := s.busy.begin(tenant)
	if !ok {
		s.metrics.refused.WithLabelValues("requests").Inc()
		return nil, later(api.TooManyRequests, fmt.Sprintf("%d requests of the tenant are at work, as many as it may have; ask again", s.busy.each))
	}
	return end, nil
}

// fail answers with what an error means to whoever asked.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	requestOf(r.Context()).failed(p, err)
	s.refuse(w, r, p)
}

// refuse answers with a problem. Who is to ask again, or sends too much, reads that only
// when all of the request was taken: a connection that ends before is an error of the
// network to him.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if p.RetryAfter > 0 || p.Kind() == api.TooLarge {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, s.config.Limits.Body))
	}
	if p.Kind() == api.OverQuota {
		s.metrics.refused.WithLabelValues("disk").Inc()
	}
	refuse(w, requestID(r.Context()), p)
}

// later is a problem that is over in a while.
func later(kind, detail string) *api.Problem {
	p := problem(kind, detail)
	p.RetryAfter = 1
	return p
}

// inUse is how much memory the process has of the system, in bytes, without what it
// gave back.
func inUse() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

// errBusy says that there is no room for a body.
var errBusy = errors.New("no room for the body")

// freeBody is how much of a body takes no room, in bytes: small requests pass where
// large ones wait.
const freeBody = 32 << 10

// meteredBody is a body for which there has to be room in memory as it comes.
type meteredBody struct {
	io.Reader
	take func(bytes int) bool
	read int
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	before := max(0, b.read-freeBody)
	b.read += n
	if more := max(0, b.read-freeBody) - before; more > 0 && !b.take(more) {
		return 0, errBusy
	}
	return n, err
}
