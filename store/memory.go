package store

import (
	"context"
	"fmt"
	"sync"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Memory keeps threads and plans in memory: for tests, and for agents whose
// conversations need not outlive the process. It implements Log and Plans. The
// zero value is empty and ready to use; it is safe for concurrent use and must
// not be copied.
type Memory struct {
	mu      sync.Mutex
	threads map[string]*thread.Thread
	plans   map[string][]*plan.Plan
}

var (
	_ Log   = (*Memory)(nil)
	_ Plans = (*Memory)(nil)
)

// Load implements Log.
func (s *Memory) Load(_ context.Context, id string) (*thread.Thread, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.thread(id), nil
}

func (s *Memory) thread(id string) *thread.Thread {
	if t := s.threads[id]; t != nil {
		return t
	}
	return thread.New(id)
}

// Append implements Log.
func (s *Memory) Append(_ context.Context, id string, version int, messages []thread.Message) (*thread.Thread, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.thread(id)
	rest, err := Skip(t, version, messages)
	if err != nil {
		return nil, err
	}
	next, err := t.Append(rest...)
	if err != nil {
		return nil, err
	}
	if s.threads == nil {
		s.threads = map[string]*thread.Thread{}
	}
	s.threads[id] = next
	return next, nil
}

// Current implements Plans.
func (s *Memory) Current(_ context.Context, id string) (*plan.Plan, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plans := s.plans[id]
	if len(plans) == 0 {
		return nil, 0, nil
	}
	return plans[len(plans)-1], len(plans), nil
}

// Plan implements Plans.
func (s *Memory) Plan(_ context.Context, id string, version int) (*plan.Plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if plans := s.plans[id]; version >= 1 && version <= len(plans) {
		return plans[version-1], nil
	}
	return nil, fmt.Errorf("thread %s: plan %d: %w", id, version, ErrNotFound)
}

// Commit implements Plans.
func (s *Memory) Commit(_ context.Context, id string, expected int, p *plan.Plan) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := len(s.plans[id])
	if have != expected {
		return 0, &ConflictError{ThreadID: id, Want: expected, Have: have}
	}
	if s.plans == nil {
		s.plans = map[string][]*plan.Plan{}
	}
	s.plans[id] = append(s.plans[id], p)
	return have + 1, nil
}
