package palimpsest

import (
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// index is what a search goes over: what the plan of a version removed, and what the
// earlier conversations hold.
type index struct {
	version int
	earlier []string
	made    chan struct{} // closed once the rest is there
	search  *recall.Index
	err     error
}

func (x *index) is(version int, earlier []string) bool {
	return x != nil && x.version == version && slices.Equal(x.earlier, earlier)
}

// indexAhead has the index made while the model answers, so that its first question
// does not wait for it. One is made at a time: that of a newer plan waits for the
// next step.
func (s *Session) indexAhead(ctx context.Context, log *thread.Thread, p *plan.Plan, version int) {
	if s.c.config.Recall == nil || p.Empty() && len(s.earlier) == 0 {
		return // there is nothing to ask for
	}
	r := &s.cached().removed
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.making == nil {
		s.index(ctx, r, log, p, version)
	}
}

// indexOf is the index over what a plan removed, and over what earlier threads
// hold. It is made once for each plan.
func (s *Session) indexOf(ctx context.Context, log *thread.Thread, p *plan.Plan, version int) (*recall.Index, error) {
	r := &s.cached().removed
	r.mu.Lock()
	x := s.index(ctx, r, log, p, version)
	r.mu.Unlock()
	select {
	case <-x.made:
		return x.search, x.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// index returns the index of a version, which may still be made. It is called with
// r locked.
func (s *Session) index(ctx context.Context, r *removed, log *thread.Thread, p *plan.Plan, version int) *index {
	if r.making.is(version, s.earlier) {
		return r.making
	}
	if x, _ := s.c.config.Memory.indexes.Get(s.conversation()); x.is(version, s.earlier) {
		return x
	}
	x := &index{version: version, earlier: s.earlier, made: make(chan struct{})}
	r.making = x
	go func() {
		// At last, since whoever has waited for it may make the next one at once.
		defer close(x.made)
		bytes := 0
		x.search, bytes, x.err = s.newIndex(context.WithoutCancel(ctx), log, p)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.making != x {
			return // a newer one is wanted, or the thread was deleted
		}
		r.making = nil
		if x.err == nil {
			s.c.config.Memory.indexes.Put(s.conversation(), x, bytes)
		}
	}()
	return x
}

// newIndex makes the index, and says how many bytes of text it holds.
// A text that breaks it is an error of the question, and ends no program.
func (s *Session) newIndex(ctx context.Context, log *thread.Thread, p *plan.Plan) (made *recall.Index, bytes int, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("index what was removed: %v", broken)
		}
	}()
	lost, err := s.lost(ctx, log, p)
	if err != nil {
		return nil, 0, err
	}
	entries := append(lost, recall.Removed(log, p)...)
	for i := range entries {
		bytes += len(entries[i].Text)
	}
	made, err = recall.NewIndexContext(ctx, entries)
	return made, bytes, err
}
