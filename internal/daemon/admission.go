package daemon

import (
	"errors"
	"io"
	"net/http"
	runtimemetrics "runtime/metrics"
	"sync"

	"github.com/palimpsest-ai/palimpsest/api"
)

// requestCounter counts the requests of each tenant that are at work.
type requestCounter struct {
	limit int // at most; 0 for any number

	mu     sync.Mutex
	active map[string]int
}

// begin counts one more request of a tenant; it is false where the tenant has as many at
// work as it may. end counts it off.
func (w *requestCounter) begin(tenant string) (end func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit > 0 && w.active[tenant] >= w.limit {
		return nil, false
	}
	if w.active == nil {
		w.active = map[string]int{}
	}
	w.active[tenant]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.active[tenant]--; w.active[tenant] == 0 {
			delete(w.active, tenant)
		}
	}, true
}

// beginRequest counts a request of a tenant's as at work, or says why not: the process, or the tenant,
// has as much at work as it may.
func (s *Server) beginRequest(tenant string) (end func(), err error) {
	if limit := s.config.Limits.Memory; limit > 0 && memoryInUse() > uint64(limit) {
		s.metrics.refused.WithLabelValues("memory").Inc()
		return nil, retryLater(api.Unavailable, "the daemon uses all the memory that it may; ask again")
	}
	end, ok := s.requests.begin(tenant)
	if !ok {
		s.metrics.refused.WithLabelValues("requests").Inc()
		return nil, retryLater(api.TooManyRequests, "%d requests of the tenant are at work, as many as it may have; ask again", s.requests.limit)
	}
	return end, nil
}

// answerError answers with what an error means to whoever asked.
func (s *Server) answerError(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	requestOf(r.Context()).setProblem(p, err)
	s.answerProblem(w, r, p)
}

// answerProblem answers with a problem. Who is to ask again, or sends too much, reads that only
// when all of the request was taken: a connection that ends before is an error of the
// network to him.
func (s *Server) answerProblem(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if p.RetryAfter > 0 || p.Kind() == api.TooLarge {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, s.config.Limits.Body))
	}
	if p.Kind() == api.OverQuota {
		s.metrics.refused.WithLabelValues("disk").Inc()
	}
	writeProblem(w, requestID(r.Context()), p)
}

// retryLater is a problem that is over in a while.
func retryLater(kind, format string, args ...any) *api.Problem {
	p := problem(kind, format, args...)
	p.RetryAfter = 1
	return p
}

// memoryInUse is how much memory the process has of the system, in bytes, without what it
// gave back.
func memoryInUse() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

// errNoBodyRoom says that there is no room for a body.
var errNoBodyRoom = errors.New("no room for the body")

// unmeteredBytes is how much of a body takes no room, in bytes: small requests pass where
// large ones wait.
const unmeteredBytes = 32 << 10

// meteredBody is a body for which there has to be room in memory as it comes.
type meteredBody struct {
	io.Reader
	reserve func(bytes int) bool
	read    int
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	before := max(0, b.read-unmeteredBytes)
	b.read += n
	if more := max(0, b.read-unmeteredBytes) - before; more > 0 && !b.reserve(more) {
		return 0, errNoBodyRoom
	}
	return n, err
}
