package palimpsest

import (
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// removedIndex is what a search goes over: what the plan of a version removed, and what the
// earlier conversations hold.
type removedIndex struct {
	version int
	earlier []string
	done    chan struct{} // closed once the rest is there
	index   *recall.Index
	err     error
}

func (x *removedIndex) isFor(version int, earlier []string) bool {
	return x != nil && x.version == version && slices.Equal(x.earlier, earlier)
}

// indexInBackground has the index made while the model answers, so that its first question
// does not wait for it. One is made at a time: that of a newer plan waits for the
// next step.
func (s *Session) indexInBackground(ctx context.Context, log *thread.Thread, p *plan.Plan, version int) {
	if s.c.config.Recall == nil || p.Empty() && len(s.earlier) == 0 {
		return // there is nothing to ask for
	}
	r := &s.state().removedContent
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.building == nil {
		s.startIndex(ctx, r, log, p, version)
	}
}

// indexFor is the index over what a plan removed, and over what earlier threads
// hold. It is made once for each plan.
func (s *Session) indexFor(ctx context.Context, log *thread.Thread, p *plan.Plan, version int) (*recall.Index, error) {
	r := &s.state().removedContent
	r.mu.Lock()
	x := s.startIndex(ctx, r, log, p, version)
	r.mu.Unlock()
	select {
	case <-x.done:
		return x.index, x.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// startIndex returns the index of a version, which may still be made. It is called with
// r locked.
func (s *Session) startIndex(ctx context.Context, r *removedContent, log *thread.Thread, p *plan.Plan, version int) *removedIndex {
	if r.building.isFor(version, s.earlier) {
		return r.building
	}
	if x, _ := s.c.config.Memory.indexes.Get(s.conversationKey()); x.isFor(version, s.earlier) {
		return x
	}
	x := &removedIndex{version: version, earlier: s.earlier, done: make(chan struct{})}
	r.building = x
	go func() {
		// At last, since whoever has waited for it may make the next one at once.
		defer close(x.done)
		bytes := 0
		x.index, bytes, x.err = s.buildIndex(context.WithoutCancel(ctx), log, p)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.building != x {
			return // a newer one is wanted, or the thread was deleted
		}
		r.building = nil
		if x.err == nil {
			s.c.config.Memory.indexes.Put(s.conversationKey(), x, bytes)
		}
	}()
	return x
}

// buildIndex makes the index, and says how many bytes of text it holds.
// A text that breaks it is an error of the question, and ends no program.
func (s *Session) buildIndex(ctx context.Context, log *thread.Thread, p *plan.Plan) (made *recall.Index, bytes int, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("index what was removed: %v", broken)
		}
	}()
	lost, err := s.removedEarlier(ctx, log, p)
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
