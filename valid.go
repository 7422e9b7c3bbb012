package palimpsest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// maxCuts bounds the places near a refused cut that are tried.
const maxCuts = 8

// errRefusedPlan is wrapped by the error of a compaction whose request the API would refuse,
// wherever it is cut. The request then goes out without it.
var errRefusedPlan = errors.New("the API would refuse the compacted request")

// makeValid returns the plan if the API takes its request, or breaks it for nothing that the
// request without a plan does not break too. Else it takes pictures and large results out where
// they are too many, and has the policy cut at the nearest places before.
func makeValid(ctx context.Context, p policy.Policy, s *policy.Situation, f *policy.Fitted) (*policy.Fitted, error) {
	broken, size := brokenRules(s.Profile.API, f.Prompt)
	if goal := goalOf(s.Profile.API, "", size); isLarger(size, goal) {
		if lighter, err := takeOut(s, f.Plan, size, goal); err == nil {
			lighter.Summaries, lighter.Pinned, lighter.Tail, lighter.Proposals = f.Summaries, f.Pinned, f.Tail, f.Proposals
			f = lighter
			broken, _ = brokenRules(s.Profile.API, f.Prompt)
		}
	}
	if len(broken) == 0 || f.Plan.Empty() {
		return f, nil
	}
	plain, err := s.Render(s.Draft(p.Name()))
	if err != nil {
		return nil, err
	}
	own, _ := brokenRules(s.Profile.API, plain.Prompt)
	isNew := func(b wire.Problem) bool {
		return !slices.ContainsFunc(own, func(o wire.Problem) bool { return o.Rule == b.Rule })
	}
	at := slices.IndexFunc(broken, isNew)
	if at < 0 {
		return f, nil
	}
	refusal, cut := broken[at], lastHidden(s.Thread, f.Plan)
	var keep []int
	for n := 0; n < maxCuts && cut-n >= 0 && ctx.Err() == nil; n++ {
		keep = append(keep, cut-n)
		nearer := *s
		nearer.Keep = slices.Clone(keep)
		next, err := p.Plan(ctx, &nearer)
		if err != nil {
			continue
		}
		next.Summaries = append(slices.Clip(f.Summaries), next.Summaries...)
		if broken, _ = brokenRules(s.Profile.API, next.Prompt); !slices.ContainsFunc(broken, isNew) {
			return next, nil
		}
		f.Summaries = next.Summaries
	}
	return nil, &policy.FailedError{Summaries: f.Summaries, Err: fmt.Errorf("%w: %w", errRefusedPlan, refusal)}
}

// brokenRules are the rules that the request breaks, and its size. Of an API that is not known
// nothing is broken.
func brokenRules(api string, p *prompt.Prompt) ([]wire.Problem, wire.Size) {
	size, codec := sizeOf(p), apicodec.For(api)
	if codec == nil {
		return nil, size
	}
	body, err := codec.Encode(p)
	if err != nil {
		return []wire.Problem{{Rule: "encode", Message: err.Error()}}, size
	}
	size.Bytes = len(body)
	return slices.DeleteFunc(codec.Validate(body), func(b wire.Problem) bool { return b.Advice }), size
}

// lastHidden is the position of the last message that the plan takes away; -1 for none.
func lastHidden(t *thread.Thread, p *plan.Plan) int {
	actions := p.Actions()
	for i := t.Len() - 1; i >= 0; i-- {
		if actions[t.At(i).ID].Action.Removes() {
			return i
		}
	}
	return -1
}

// largeResult is from how many bytes on a result or a file counts when bytes are to be taken out.
const largeResult = 64 << 10

// sizeOf is the size of a request, nearly: what JSON adds to it is left out.
func sizeOf(p *prompt.Prompt) (size wire.Size) {
	for i := range p.System {
		size.Bytes += len(p.System[i].Text)
	}
	for i := range p.Tools {
		size.Bytes += len(p.Tools[i].Description) + len(p.Tools[i].Schema)
	}
	for i := range p.Messages {
		all, _ := weigh(&p.Messages[i])
		size = wire.Size{Bytes: size.Bytes + all.Bytes, Pictures: size.Pictures + all.Pictures, Side: max(size.Side, all.Side)}
	}
	return size
}

// weigh is the size of a message, and how many of its bytes are pictures and files.
func weigh(m *thread.Message) (size wire.Size, inMedia int) {
	parts := m.Parts
	if r, ok := m.Result(); ok {
		parts = r.Content
	}
	for _, part := range parts {
		switch part := part.(type) {
		case thread.Media:
			if part.Type == thread.Image {
				w, h, _ := media.Size(part.Data)
				size.Pictures, size.Side = size.Pictures+1, max(size.Side, w, h)
			}
			inMedia += len(part.Data) + len(part.URL) + len(part.Text)
		case thread.Text:
			size.Bytes += len(part.Text)
		case thread.ToolCall:
			size.Bytes += len(part.Arguments)
		case thread.Opaque:
			size.Bytes += len(part.Raw)
		}
	}
	size.Bytes += inMedia
	return size, inMedia
}

// goalOf is what a request of that size must come down to, so that the next ones fit as well: to half
// of the pictures that its API takes, and three quarters of the bytes. Where it is small enough, or
// nothing is known, there is no bound.
func goalOf(api string, refusal llm.Kind, size wire.Size) wire.Size {
	limits, goal := wire.LimitsOf(api), wire.Size{Bytes: math.MaxInt, Pictures: math.MaxInt, Side: math.MaxInt}
	if most := limits.Bytes; most > 0 && size.Bytes > most || refusal == llm.ErrBytes {
		goal.Bytes = min(size.Bytes, cmp.Or(most, size.Bytes)) / 4 * 3
	}
	switch most := limits.Pictures; {
	case limits.Many > 0 && size.Pictures > limits.Many && size.Side > limits.ManySide:
		goal.Pictures = limits.Many / 2
	case most > 0 && size.Pictures > most || refusal == llm.ErrPictures:
		goal.Pictures = min(size.Pictures, cmp.Or(most, size.Pictures)) / 2
	}
	if limits.Side > 0 && size.Side > limits.Side {
		goal.Side = limits.Side
	}
	return goal
}

func isLarger(size, goal wire.Size) bool {
	return size.Bytes > goal.Bytes || size.Pictures > goal.Pictures || size.Side > goal.Side
}

// takeOut adds to a plan what brings a request of that size to the goal: pictures and files first, then
// large results, the oldest first. What the model has not seen yet stays. The error wraps
// policy.ErrNothing if nothing can go.
func takeOut(s *policy.Situation, base *plan.Plan, size, goal wire.Size) (*policy.Fitted, error) {
	next := s.Draft("size")
	if base != nil {
		for _, ref := range base.Refs() {
			next.Add(base.Record(ref))
		}
		next.Policy = cmp.Or(base.Policy, next.Policy)
	}
	actions, unseen, added := next.Actions(), strategy.Unseen(s.Thread), false
	for _, fields := range []thread.Fields{{plan.MediaField: true}, nil} {
		for i := range s.Thread.Len() {
			m := s.Thread.At(i)
			_, isResult := m.Result()
			if !isResult && (m.Role != thread.User || fields == nil) || actions[m.ID].Action != plan.Include || slices.Contains(unseen, i) || slices.Contains(s.Keep, i) || slices.Contains(next.Pinned, m.ID) {
				continue
			}
			w, freed := weigh(m)
			goes := w.Side > goal.Side || w.Pictures > 0 && size.Pictures > goal.Pictures || freed >= largeResult && size.Bytes > goal.Bytes
			if fields == nil {
				freed = w.Bytes
				goes = freed >= largeResult && size.Bytes > goal.Bytes
			}
			if first, last := s.Pairs().Unit(i); !goes || first != last || s.Pairs().Open(i) {
				continue
			}
			span, err := thread.NewSpan(s.Thread, m.ID)
			if err != nil {
				return nil, err
			}
			record := plan.Clearing{Span: span, PreservedFields: fields, Origin: plan.Origin{Strategy: "size", Reason: "the API takes no more pictures or bytes", TokensBefore: s.PlainSizes[i]}}
			next.Add(record)
			actions[m.ID] = plan.Ref{Action: plan.Clear}
			size.Bytes, size.Pictures, added = size.Bytes-freed, size.Pictures-w.Pictures, true
		}
	}
	if !added {
		return nil, fmt.Errorf("no picture, file or result of %d bytes can go: %w", largeResult, policy.ErrNothing)
	}
	if err := next.ValidatePairs(s.Thread, s.Pairs()); err != nil {
		return nil, err
	}
	f, err := s.Render(next)
	if err == nil {
		next.CompactedTokens = f.Tokens
	}
	return f, err
}

// kindOf is the kind of a refusal for another size than the text's; empty for none.
func kindOf(why error) llm.Kind {
	for _, kind := range []llm.Kind{llm.ErrOutput, llm.ErrPictures, llm.ErrBytes} {
		if errors.Is(why, kind) {
			return kind
		}
	}
	return ""
}

// isBySize reports whether less text does not cure a refusal.
func isBySize(kind llm.Kind) bool { return kind == llm.ErrPictures || kind == llm.ErrBytes }

// smaller is the policy for a request that is too large in another way than by its tokens: by what the
// API takes, or as the provider said. Pictures, files and large results go, and nothing else is
// compacted unless bytes are left over.
type smaller struct{ policy.Policy }

// Plan takes them out.
func (p smaller) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	size := sizeOf(s.Rendered.Prompt)
	goal := goalOf(s.Profile.API, s.Refusal, size)
	f, err := takeOut(s, s.Current, size, goal)
	if s.Refusal == llm.ErrBytes && (err != nil || sizeOf(f.Prompt).Bytes > goal.Bytes) {
		return p.Policy.Plan(ctx, s)
	}
	return f, err
}
