package daemon

import (
	"container/list"
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
)

// tenant is what the daemon holds for a tenant: its stores, its compactor, and
// the threads that were used last.
type tenant struct {
	store.Tenant
	name      string
	who       artifact.Requester
	compactor *palimpsest.Compactor
	hub       *hub

	mu      sync.Mutex
	handles map[string]*list.Element
	recent  *list.List // of *handle, the one used last in front
}

// handle is an open thread. Losing one loses only what can be found again.
type handle struct {
	*palimpsest.Thread
	id string

	// turn is held by the step that is being made; see take.
	turn chan struct{}
	// stepped says that the thread knows its last step, as Overflowed needs it. It
	// belongs to who holds the turn.
	stepped bool

	mu sync.Mutex
	// found is the index of what plan and version removed.
	found         *recall.Index
	plan, version int
}

// hold opens a thread and waits for its turn: the steps of a thread follow each
// other. What it returns gives the turn back. Whoever asked may give up waiting.
func (c *call) hold(id string) (h *handle, back func(), err error) {
	h = c.tenant.open(id)
	select {
	case h.turn <- struct{}{}:
		return h, func() { <-h.turn }, nil
	case <-c.r.Context().Done():
		return nil, nil, c.r.Context().Err()
	}
}

// openThreads is how many threads a tenant has open at a time. An open thread
// holds a step's request, of some kilobytes to a megabyte.
const openThreads = 256

func (s *Server) tenant(name string) (*tenant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tenants[name]; t != nil {
		return t, nil
	}
	t := &tenant{
		Tenant: s.config.Store.Tenant(name), name: name, who: artifact.Requester{TenantID: name},
		hub: newHub(), handles: map[string]*list.Element{}, recent: list.New(),
	}
	c := s.config.Compactor
	c.Log, c.Plans = logs{t.Log}, plans{t.Plans, name, t.hub, s.config.Now}
	c.Documents, c.Artifacts, c.Requester = t.Documents, s.config.Artifacts, t.who
	c.Jobs, c.Domain = s.jobs, domainOf(name)
	c.Events = event.Func(func(ctx context.Context, e event.Event) {
		event.Multi(s.counters, event.Func(t.record), s.config.Compactor.Events).Emit(ctx, e)
	})
	c.Now = s.config.Now
	var err error
	if t.compactor, err = palimpsest.New(c); err != nil {
		return nil, err
	}
	s.tenants[name] = t
	return t, nil
}

// open returns the handle of a thread.
func (t *tenant) open(id string) *handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.handles[id]; at != nil {
		t.recent.MoveToFront(at)
		return at.Value.(*handle)
	}
	h := &handle{Thread: t.compactor.Thread(id), id: id, turn: make(chan struct{}, 1)}
	t.handles[id] = t.recent.PushFront(h)
	if t.recent.Len() > openThreads {
		last := t.recent.Back()
		delete(t.handles, last.Value.(*handle).id)
		t.recent.Remove(last)
	}
	return h
}

// forget gives up what is remembered of a thread that was deleted, and ends its
// streams of events.
func (t *tenant) forget(id string) {
	t.mu.Lock()
	if at := t.handles[id]; at != nil {
		delete(t.handles, id)
		t.recent.Remove(at)
	}
	t.mu.Unlock()
	t.compactor.Forget(id)
	t.hub.wake(id)
}

// domainOf is the tenant in the keys of jobs: without a colon, which stands
// between domain and thread.
func domainOf(tenant string) string { return url.QueryEscape(tenant) }

// work does a job for the tenant that it is of.
func (s *Server) work(ctx context.Context, j job.Job) error {
	domain, err := palimpsest.JobDomain(j)
	if err != nil {
		return err
	}
	name, err := url.QueryUnescape(domain)
	if err != nil {
		return fmt.Errorf("job %s: its domain cannot be read: %w", j.Kind, err)
	}
	t, err := s.tenant(name)
	if err != nil {
		return err
	}
	return t.compactor.Work(ctx, j)
}
