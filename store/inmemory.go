package store

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Memory stores the data of one tenant in memory: for tests, and for agents whose
// conversations need not outlive the process. It implements Log, Plans, Catalog, Events
// and Documents. The zero value is empty and ready to use; it is safe for concurrent use
// and must not be copied.
type Memory struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	mu        sync.Mutex
	threads   map[string]*threadData
	documents map[[2]string]Document
}

var (
	_ Log       = (*Memory)(nil)
	_ Plans     = (*Memory)(nil)
	_ Catalog   = (*Memory)(nil)
	_ Events    = (*Memory)(nil)
	_ Documents = (*Memory)(nil)
)

// threadData is all data of a thread. Its info.Created is zero until the first write.
type threadData struct {
	info   Info
	log    *thread.Thread
	plans  []*plan.Plan
	marks  map[thread.ID]int
	events [][]byte
}

// thread returns the data of a thread, or that of an empty one.
func (s *Memory) thread(id string) *threadData {
	if r := s.threads[id]; r != nil {
		return r
	}
	return &threadData{info: Info{ID: id}, log: thread.New(id)}
}

// changed updates the info of a thread after a write.
func (s *Memory) changed(r *threadData) {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	if t := now().UTC(); t.After(r.info.Changed) {
		r.info.Changed = t
	}
	if r.info.Created.IsZero() {
		r.info.Created = r.info.Changed
	}
	r.info.Messages, r.info.Plans, r.info.Events = r.log.Len(), len(r.plans), len(r.events)
	if s.threads == nil {
		s.threads = map[string]*threadData{}
	}
	s.threads[r.info.ID] = r
}

// Load implements Log.
func (s *Memory) Load(_ context.Context, id string) (*thread.Thread, error) {
	if err := CheckThread(id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.thread(id).log, nil
}

// Append implements Log.
func (s *Memory) Append(_ context.Context, id string, version int, messages []thread.Message) (*thread.Thread, error) {
	if err := CheckThread(id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.thread(id)
	rest, err := Skip(r.log, version, messages)
	if err != nil {
		return nil, err
	}
	next, err := r.log.Append(rest...)
	if err != nil || len(rest) == 0 {
		return next, err
	}
	r.log = next
	s.changed(r)
	return next, nil
}

// Current implements Plans.
func (s *Memory) Current(_ context.Context, id string) (*plan.Plan, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plans := s.thread(id).plans
	if len(plans) == 0 {
		return nil, 0, nil
	}
	return plans[len(plans)-1], len(plans), nil
}

// Plan implements Plans.
func (s *Memory) Plan(_ context.Context, id string, version int) (*plan.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if plans := s.thread(id).plans; version >= 1 && version <= len(plans) {
		return plans[version-1], nil
	}
	return nil, fmt.Errorf("thread %s: plan %d: %w", id, version, ErrNotFound)
}

// Commit implements Plans.
func (s *Memory) Commit(_ context.Context, id string, expected int, c Commit) (int, error) {
	if err := CheckThread(id); err != nil {
		return 0, err
	}
	if err := c.Check(); err != nil {
		return 0, err
	}
	encoded, err := encode(c.Events)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.thread(id)
	if have := len(r.plans); have != expected {
		return 0, &ConflictError{ThreadID: id, Want: expected, Have: have}
	}
	if err := s.expect(c.Documents); err != nil {
		return 0, err
	}
	for _, d := range c.Documents {
		s.put(d)
	}
	r.plans = append(r.plans, c.Plan.Clone())
	r.events = append(r.events, encoded...)
	r.mark(c.Plan)
	s.changed(r)
	return expected + 1, nil
}

// mark updates the marks for a plan that was just added.
func (r *threadData) mark(p *plan.Plan) {
	marks := map[thread.ID]int{}
	for id := range p.Actions() {
		if _, held := r.log.Index(id); !held {
			continue
		}
		marks[id] = len(r.plans)
		if since := r.marks[id]; since > 0 {
			marks[id] = since
		}
	}
	r.marks = marks
}

// Compacted implements Plans.
func (s *Memory) Compacted(_ context.Context, id string) (map[thread.ID]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	marks := map[thread.ID]int{}
	maps.Copy(marks, s.thread(id).marks)
	return marks, nil
}
