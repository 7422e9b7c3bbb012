package palimpsest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/quality"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Step is what an agent is about to ask its model.
type Step struct {
	// Base gives model, system, tools and the request around the messages; its
	// messages are not used. May be nil.
	Base *prompt.Prompt
	// Messages are those that came since the last step: what the user said, the
	// results of tools.
	Messages []thread.Message
	// Profile is the provider that will read the prompt.
	Profile render.Profile
	// Window is the model's context window and Output what is kept free for its
	// answer, in tokens. Budget bounds the whole request where it should be
	// smaller than that. With neither Window nor Budget only the policy's own
	// limits hold.
	Window, Output, Budget int

	// fixed is what Base takes, in tokens, where a job has only its size.
	fixed int
}

// Thread is a conversation that an agent loop goes on with: the log and the
// plans of it in the stores of a Compactor. A Thread may be used from several
// goroutines; steps of one thread follow each other.
type Thread struct {
	c  *Compactor
	id string

	mu     sync.Mutex
	step   Step        // the last one, for Overflowed and for what FinishStep prepares
	begun  bool        // there was one
	hard   int         // how often in a row the provider refused
	sent   sent        // the last prompt that was handed out
	shown  Shown       // what it was made from
	usage  calibration // what a provider counted of one
	kept   kept        // what is kept of that
	pauses pauses      // between the requests
	deaf   time.Time   // until when the provider is not asked for sizes

	reach      reach
	rehydrator *rehydrate.Rehydrator // nil: nothing comes back by itself
	monitor    *quality.Monitor      // nil: nobody watches
	told       int                   // the version of the plans that the monitor knows
}

// maxHandles bounds the threads that a Compactor remembers between calls of
// Thread. What is forgotten is not lost: cooldowns and quality figures begin
// anew, and usage where there are no Config.Documents.
const maxHandles = 256

// Thread returns the conversation of that id; it need not exist yet. Asked again
// for the same id it returns the same handle, so that steps of one thread follow
// each other whoever takes them.
func (c *Compactor) Thread(id string) *Thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.threads[id]; t != nil {
		return t
	}
	if len(c.threads) >= maxHandles {
		clear(c.threads)
	}
	t := c.handle(id)
	if r := c.config.Recall; r != nil {
		t.rehydrator = t.newRehydrator(r.Rehydrate)
	}
	if q := c.config.Quality; q != nil {
		o := *q
		if o.Events == nil {
			o.Events = c.config.Events
		}
		t.monitor = quality.New(id, &o)
	}
	c.threads[id] = t
	return t
}

// Forget gives up what is remembered of a thread, for a caller who has deleted it
// from the stores. Handles that Thread returned before must not be used after.
func (c *Compactor) Forget(id string) {
	c.mu.Lock()
	delete(c.threads, id)
	c.mu.Unlock()
	c.histories.forget(id)
}

// handle is a Thread that nobody else has: for jobs, which must not wait for
// the step that waits for them.
func (c *Compactor) handle(id string) *Thread { return &Thread{c: c, id: id} }

// Append adds messages to the log without asking for a prompt.
func (t *Thread) Append(ctx context.Context, messages ...thread.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.append(ctx, messages); err != nil {
		return fmt.Errorf("palimpsest.Append(%s): %w", t.id, err)
	}
	return nil
}

// PrepareStep adds the step's messages to the log and returns the prompt to
// send: compacted when the policy finds it due, else under the plan in force, so
// that the prefix stays the same from step to step. A compaction that fails
// never stops the agent: the prompt then is the one without it, and an event
// says so. The error is that of the stores, or of the context.
func (t *Thread) PrepareStep(ctx context.Context, step Step) (*prompt.Prompt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	log, err := t.append(ctx, step.Messages)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.PrepareStep(%s): %w", t.id, err)
	}
	t.step, t.begun, t.hard = step, true, 0
	f, err := t.prepare(ctx, log, false)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.PrepareStep(%s): %w", t.id, err)
	}
	t.pauses.read(t.c.config.Now())
	return f.Prompt, nil
}

// Resume takes up a step that was prepared by another process, or by this one in
// an earlier life, so that Overflowed and CutOff know it. Its messages are in the
// log already, and are not used.
func (t *Thread) Resume(step Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	step.Messages = nil
	t.step, t.begun, t.hard = step, true, 0
}

// FinishStep adds the model's answer to the log. What the provider counted
// corrects the counter for this thread, until the next compaction; the zero
// Usage stands for one that told nothing.
func (t *Thread) FinishStep(ctx context.Context, usage llm.Usage, answer ...thread.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.finish(ctx, usage, answer); err != nil {
		return fmt.Errorf("palimpsest.FinishStep(%s): %w", t.id, err)
	}
	return nil
}

func (t *Thread) finish(ctx context.Context, usage llm.Usage, answer []thread.Message) error {
	t.hard = 0
	if usage.Known && usage.Input > 0 && t.sent.tokens > 0 {
		t.usage = calibration{t.sent, usage.Input}
		t.keepUsage(ctx)
	}
	t.sent = sent{}
	if len(answer) == 0 && t.c.config.Jobs == nil {
		return nil // nothing to be written, and nobody to prepare a plan
	}
	log, err := t.append(ctx, answer)
	if err != nil {
		return err
	}
	if t.c.config.Jobs != nil && t.begun {
		if s, _, err := t.state(ctx, log); err == nil {
			t.ahead(ctx, s)
		}
	}
	return nil
}

// tries bounds how often a write is made again because somebody was faster.
const tries = 5

// append adds messages to the end of the log, whoever else does so.
func (t *Thread) append(ctx context.Context, messages []thread.Message) (*thread.Thread, error) {
	for range tries {
		log, err := t.c.config.Log.Load(ctx, t.id)
		if err != nil || len(messages) == 0 {
			return log, err
		}
		next, err := t.c.config.Log.Append(ctx, t.id, log.Version(), messages)
		if err == nil {
			t.watch(ctx, next, log.Len())
		}
		if !errors.Is(err, store.ErrConflict) {
			return next, err
		}
	}
	return nil, fmt.Errorf("after %d tries: %w", tries, store.ErrConflict)
}
