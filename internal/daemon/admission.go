package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	runtimemetrics "runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/ratelimit"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/store"
)

// requestCounter counts the requests of each tenant that are at work.
type requestCounter struct {
	mu     sync.Mutex
	active map[string]int
}

// beginRequest counts a request of a tenant as at work until end is called. The error
// says that the process or the tenant is at its limit.
func (s *Server) beginRequest(tenant string) (end func(), err error) {
	limits, w := s.config.Limits, &s.requests
	if limits.Memory > 0 && memoryInUse() > uint64(limits.Memory) {
		s.metrics.refused.WithLabelValues("memory").Inc()
		return nil, retryLater(api.Unavailable, "the daemon uses all the memory that it may; try again")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if limits.Requests > 0 && w.active[tenant] >= limits.Requests {
		s.metrics.refused.WithLabelValues("requests").Inc()
		return nil, retryLater(api.TooManyRequests, "%d requests of the tenant are at work, as many as it may have; try again", limits.Requests)
	}
	w.active[tenant]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.active[tenant]--; w.active[tenant] == 0 {
			delete(w.active, tenant)
		}
	}, nil
}

// memoryInUse is how much memory the process has from the system, in bytes.
func memoryInUse() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

// errNoBodyRoom says that the bodies in memory are at their limit.
var errNoBodyRoom = errors.New("no room for the body")

// unmeteredBytes of each body are not counted, so that small requests pass while large
// ones are refused.
const unmeteredBytes = 32 << 10

// meteredBody is a body that needs room in memory as it is read.
type meteredBody struct {
	io.ReadCloser
	reserve func(bytes int) bool
	read    int
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	before := max(0, b.read-unmeteredBytes)
	b.read += n
	if more := max(0, b.read-unmeteredBytes) - before; more > 0 && !b.reserve(more) {
		return 0, errNoBodyRoom
	}
	return n, err
}

// idleTimer notices when the daemon had no request and no job for a while.
type idleTimer struct {
	after time.Duration // 0 for never

	mu     sync.Mutex
	active int         // requests and jobs at work
	timer  *time.Timer // does not run while there are any; nil before start, and for never
}

// start starts the timer. The channel gets a value when the time is over; nil is never.
func (i *idleTimer) start() (expired <-chan time.Time) {
	if i.after <= 0 {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.timer = time.NewTimer(i.after)
	if i.active > 0 {
		i.timer.Stop()
	}
	return i.timer.C
}

// begin counts a request or job as at work until end is called.
func (i *idleTimer) begin() (end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.active++; i.timer != nil {
		i.timer.Stop()
	}
	return i.end
}

func (i *idleTimer) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.active--; i.active == 0 && i.timer != nil {
		i.timer.Reset(i.after)
	}
}

// trackJob counts the runs of a job as use of the daemon.
func (i *idleTimer) trackJob(do job.Handler) job.Handler {
	return func(ctx context.Context, j job.Job) error {
		defer i.begin()()
		return do(ctx, j)
	}
}

// Spending bounds the tokens that each tenant spends on models for summaries and
// decisions: so many at once, and as many more each hour. Beyond that they are made
// without a model. Make one with NewSpending. It is safe for concurrent use.
type Spending struct {
	hourly  int
	tenants *ratelimit.Buckets[string]
	used    atomic.Int64
	denied  atomic.Int64
}

// NewSpending lets each tenant spend so many tokens an hour; 0 for any number. A nil
// clock is time.Now.
func NewSpending(tokens int, now func() time.Time) *Spending {
	if now == nil {
		now = time.Now
	}
	return &Spending{hourly: tokens, tenants: ratelimit.New[string](float64(tokens), time.Hour, now)}
}

// Answers are the stored answers of models to a tenant, which count and bound what it
// spends on new ones.
func (s *Spending) Answers(tenant string, kept store.Answers) *llm.Answers {
	return llm.NewMetered(kept, tenantMeter{s, tenant})
}

// tenantMeter is the llm.Meter of a tenant.
type tenantMeter struct {
	*Spending
	tenant string
}

// Begin implements llm.Meter. It takes the most that a request may use, and gives back
// what it did not use.
func (p tenantMeter) Begin(tokens int) (end func(used int), err error) {
	if p.tenants.Take(p.tenant, float64(tokens)) > 0 {
		p.denied.Add(1)
		return nil, fmt.Errorf("the tenant has spent what it may on models for now (%d tokens an hour)", p.hourly)
	}
	return func(used int) {
		p.used.Add(int64(used))
		p.tenants.Give(p.tenant, float64(tokens-used))
	}, nil
}

// noSpending is the llm.Meter of those who may not spend.
type noSpending struct{}

func (noSpending) Begin(int) (func(int), error) {
	return nil, errors.New("the key gives only the right to read, which asks no model")
}
