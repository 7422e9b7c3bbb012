package palimpsest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// agentLoop is what an agent does around its model calls: it appends, sends the
// prompt of its current plan, and compacts when that no longer fits.
type agentLoop struct {
	t       testing.TB
	c       *palimpsest.Compactor
	base    *prompt.Prompt
	profile render.Profile
	// hard is what a request may take; a compaction goes down to target, so
	// that the next one is not due at once.
	hard, target int

	thread *thread.Thread
	plan   *plan.Plan
	cycles int
}

func newLoop(t testing.TB, counter *token.Counter, api string, base *prompt.Prompt, hard, target int) *agentLoop {
	t.Helper()
	c, err := palimpsest.New(palimpsest.Config{Counter: counter})
	if err != nil {
		t.Fatal(err)
	}
	return &agentLoop{t: t, c: c, base: base, profile: render.For(api), hard: hard, target: target, thread: thread.New("loop")}
}

func (l *agentLoop) append(messages ...thread.Message) {
	l.t.Helper()
	next, err := l.thread.Append(messages...)
	if err != nil {
		l.t.Fatal(err)
	}
	l.thread = next
}

// request makes the next request and tells whether it had to compact.
func (l *agentLoop) request() (res *palimpsest.Result, compacted bool) {
	l.t.Helper()
	res, compacted, err := l.try()
	if err != nil {
		l.t.Fatalf("cycle %d, %d messages: %v", l.cycles, l.thread.Len(), err)
	}
	return res, compacted
}

// try is request for threads that may be impossible to compact.
func (l *agentLoop) try() (res *palimpsest.Result, compacted bool, err error) {
	l.t.Helper()
	q := palimpsest.Request{Thread: l.thread, Base: l.base, Budget: l.hard, Profile: l.profile}
	res, err = l.c.Render(l.plan, q)
	if err != nil || res.After <= l.hard {
		return res, false, err
	}
	q.Budget = l.target
	res, err = l.c.Compact(l.t.Context(), q)
	if errors.Is(err, palimpsest.ErrOverBudget) {
		q.Budget = l.hard
		res, err = l.c.Compact(l.t.Context(), q)
	}
	if err != nil {
		return nil, false, err
	}
	if res.After > l.hard {
		l.t.Fatalf("cycle %d: %d tokens, the limit is %d", l.cycles+1, res.After, l.hard)
	}
	l.plan = res.Plan
	l.cycles++
	return res, true, nil
}

// replay runs a recorded conversation through the loop, with a request wherever
// the model was asked, and calls check after each compaction.
func (l *agentLoop) replay(messages []thread.Message, check func(*palimpsest.Result)) {
	l.t.Helper()
	for i, m := range messages {
		if m.Role == thread.Assistant && l.thread.Len() > 0 && (i == 0 || messages[i-1].Role != thread.Assistant) {
			if res, compacted := l.request(); compacted {
				check(res)
			}
		}
		m.ID = ""
		l.append(m)
	}
}

// said is what the prompt shows as words of a person, a model or a summary: not
// what tools gave back, where anything may stand by chance.
func said(p *prompt.Prompt) string {
	var b strings.Builder
	for i := range p.Messages {
		if p.Messages[i].Role != thread.Tool {
			b.WriteString(p.Messages[i].Text())
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// shown is everything that the prompt shows, results and arguments included.
func shown(p *prompt.Prompt) string {
	var b strings.Builder
	b.WriteString(said(p))
	for i := range p.Messages {
		m := &p.Messages[i]
		if r, ok := m.Result(); ok {
			b.WriteString(r.Text())
			b.WriteByte('\n')
		}
		for _, c := range m.Calls() {
			b.WriteString(c.Arguments)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
