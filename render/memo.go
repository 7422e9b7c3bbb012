package render

import (
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Memo renders a thread that grows: it gives exactly what Render gives, but a step under
// the same plan costs what is in the prompt, not what is in the history. It remembers only
// the last thread. The zero value is ready to use; it is safe for concurrent use and must
// not be copied.
type Memo struct {
	mu   sync.Mutex
	last *beginning
}

// beginning is the part of a rendering that more messages do not change, as long as they
// contain no results for calls in it. It is never changed.
type beginning struct {
	thread    *thread.Thread
	plan      *plan.Plan
	profile   Profile
	rewritten int // see Options
	actions   plan.Actions
	at        int // the position in the thread where it ends
	written
}

// written is the output of a renderer up to some position.
type written struct {
	out      []thread.Message
	asLogged bool
	manifest Manifest
	current  int
}

func (r *renderer) written() written {
	out := r.out
	if !r.asLogged {
		out = slices.Clone(out)
	}
	m := *r.manifest
	m.Messages, m.Hidden, m.Repairs = slices.Clip(m.Messages), slices.Clip(m.Hidden), slices.Clip(m.Repairs)
	return written{out, r.asLogged, m, r.current}
}

// Render is the function Render. A plan that it was given before must not have been
// changed since.
func (c *Memo) Render(t *thread.Thread, p *plan.Plan, base *prompt.Prompt, o *Options) (*prompt.Prompt, *Manifest, error) {
	o = o.suited(t)
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	at := 0
	r := last.resume(t, p, o)
	if r != nil {
		at = last.at
	} else {
		var err error
		if r, err = begin(t, p, o); err != nil {
			return nil, nil, err
		}
	}
	since := at
	if p != nil {
		since = max(since, p.ThreadVersion)
	}
	r.mark = lastAnswer(r.messages, since)
	r.walk(at)
	c.mu.Lock()
	c.last = &beginning{thread: t, plan: p, profile: o.Profile, rewritten: o.Rewritten, actions: r.actions, at: r.mark, written: r.marked}
	c.mu.Unlock()
	return r.finish(base)
}

// resume makes a renderer that continues after the beginning, or nil when the beginning is
// another thread's or plan's, or was made with other options. What follows has no result for a call in the
// beginning, and no record of the plan touches it, so the plan still holds.
func (b *beginning) resume(t *thread.Thread, p *plan.Plan, o *Options) *renderer {
	if b == nil || b.plan != p || b.profile != o.Profile || b.rewritten != o.Rewritten || !t.Extends(b.thread) {
		return nil
	}
	pairs, whole := thread.PairFrom(t, b.at)
	if !whole {
		return nil
	}
	if p == nil {
		p = &plan.Plan{ThreadID: t.ID(), ThreadVersion: t.Version()}
	}
	added := t.Len() - b.at + 4
	out, manifest := b.out, b.manifest
	if !b.asLogged {
		out = slices.Grow(slices.Clip(out), added)
	}
	manifest.Messages = slices.Grow(manifest.Messages, added)
	return &renderer{
		thread: t, plan: p, pairs: pairs, profile: o.Profile, rewritten: max(p.Rewritten(), o.Rewritten),
		messages: t.Messages(), actions: b.actions, cache: o.Cache, shared: o.Shared,
		shown: map[plan.Ref]bool{}, out: out, asLogged: b.asLogged, room: len(out) + added, manifest: &manifest, current: b.current,
	}
}

// lastAnswer is the position of the last assistant message from a position on, whose
// results may still come, or else the end.
func lastAnswer(messages []thread.Message, from int) int {
	for i := len(messages) - 1; i >= from; i-- {
		if messages[i].Role == thread.Assistant {
			return i
		}
	}
	return len(messages)
}
