package eval

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/lab/eval/ledger"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// agentLoop replays a session through a policy as an agent's loop does, step by step,
// by the clock of the record.
type agentLoop struct {
	*replay
	ctx       context.Context
	counter   *token.Counter
	policy    policy.Policy
	tools     int // size of the recall tools, in tokens
	compactor *palimpsest.Compactor
	thread    *palimpsest.Session
	plans     store.Memory
	now       time.Time
	base      prompt.Prompt
	seen      int // messages that the session has
	version   int // of the plan in force
	frozen    int
	seed      maphash.Seed
}

// answerRoom is what is kept free of the window for an answer, in tokens.
const answerRoom = 20_000

func (r *replay) agentLoop(ctx context.Context, p policy.Policy, counter *token.Counter) (*agentLoop, error) {
	h := &agentLoop{replay: r, ctx: ctx, policy: p, counter: counter.Remembering(nil), now: references.PlanTime(), base: *r.Base, seed: maphash.MakeSeed()}
	h.base.Model = r.model.Name
	var err error
	h.compactor, err = palimpsest.New(palimpsest.Config{
		Policy: p, Counter: counter, Store: store.Tenant{Log: &h.plans, Plans: &h.plans}, Recall: &palimpsest.Recall{},
		Now: func() time.Time { return h.now },
	})
	if err == nil {
		h.thread = h.compactor.Session(r.Thread.ID())
	}
	return h, err
}

func (h *agentLoop) send(k int) (request, error) {
	a := h.requests[k]
	messages := h.replay.Thread.Messages()
	h.now = references.PlanTime().Add(a.when)
	sent, err := h.thread.PrepareStep(h.ctx, palimpsest.Step{
		Base: &h.base, Messages: withoutTimes(messages[h.seen:a.at]), Profile: references.Profile(), Window: h.model.Window, Output: answerRoom,
	})
	if err != nil {
		return request{}, fmt.Errorf("%s: %w", h.Name, err)
	}
	p, version, err := h.plans.Current(h.ctx, h.replay.Thread.ID())
	if err != nil {
		return request{}, err
	}
	q := request{head: h.requestHead(sent.Prompt), body: make([]ledger.Block, len(sent.Messages)), compacted: version != h.version}
	changed := 0
	for n := range sent.Messages {
		block, plain := h.block(&sent.Messages[n])
		if q.body[n] = block; !plain {
			changed = n + 1
		}
	}
	h.tools = max(h.tools, q.head.Tokens-h.Fixed)
	if q.compacted {
		h.version, h.frozen = version, changed
		if q.shown, err = h.shownHistory(k, p); err != nil {
			return q, err
		}
	}
	q.frozen = h.frozen
	h.now = references.PlanTime().Add(a.answered)
	h.seen = a.end
	return q, h.thread.FinishStep(h.ctx, nil, wire.Usage{}, withoutTimes(messages[a.at:a.end])...)
}

// withoutTimes returns the messages without times, so that they get those of the replay's clock.
func withoutTimes(messages []thread.Message) []thread.Message {
	out := slices.Clone(messages)
	for i := range out {
		out[i].Time = time.Time{}
	}
	return out
}

// shownHistory is what a plan leaves of the history of a request.
func (h *agentLoop) shownHistory(k int, p *plan.Plan) (*references.Shown, error) {
	history := h.replay.Thread.Prefix(h.requests[k].at)
	res, err := h.compactor.Render(p, palimpsest.Request{Thread: history, Base: &h.base, Profile: references.Profile()})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Name, err)
	}
	m := references.Moment{Session: h.Session}
	return m.ShownBy(history, res.Prompt, res.Manifest, res.After), nil
}

// sizesAfter is, for each step, the size of the whole request if the policy compacts the
// uncompacted history there.
func (h *agentLoop) sizesAfter() ([]int, error) {
	messages := h.replay.Thread.Messages()
	out := make([]int, len(h.requests))
	fresh, err := h.replay.agentLoop(h.ctx, h.policy, h.counter)
	if err != nil {
		return nil, err
	}
	for k := range h.requests {
		p, err := fresh.thread.Plan(h.ctx, palimpsest.Step{
			Base: &h.base, Messages: messages[:h.requests[k].at], Profile: references.Profile(), Window: h.model.Window, Output: answerRoom,
		})
		size := h.Fixed + h.historyTokens(k)
		if err == nil {
			size = p.CompactedTokens + h.tools
		} else if !errors.Is(err, policy.ErrNothing) {
			return nil, fmt.Errorf("%s: %w", h.Name, err)
		}
		out[k] = size
	}
	return out, nil
}

// block is a message of a prompt; plain says that it is unchanged from the log.
func (h *agentLoop) block(m *thread.Message) (b ledger.Block, plain bool) {
	if i, ok := h.replay.Thread.Index(m.ID); ok {
		if own := h.replay.Thread.At(i).Parts; len(own) == len(m.Parts) && len(own) > 0 && &own[0] == &m.Parts[0] {
			return h.blocks[i], true
		}
	}
	return ledger.Block{Hash: h.hash(m.Role, m.Parts)<<8 | madeBlock, Tokens: h.counter.Message(m)}, false
}

func (h *agentLoop) requestHead(sent *prompt.Prompt) ledger.Block {
	whole := prompt.Prompt{System: sent.System, Tools: sent.Tools}
	return ledger.Block{Hash: h.hash(sent.System, sent.Tools)<<8 | headBlock, Tokens: h.counter.Prompt(&whole)}
}

func (h *agentLoop) hash(what ...any) uint64 {
	var sum maphash.Hash
	sum.SetSeed(h.seed)
	fmt.Fprintf(&sum, "%+v", what)
	return sum.Sum64()
}
