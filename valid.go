package palimpsest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
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
	if limits := wire.LimitsOf(s.Profile.API); slices.ContainsFunc(broken, isSizeRule) {
		most := excess{bytes: size - limits.Bytes*3/4}
		if slices.ContainsFunc(broken, func(b wire.Problem) bool { return b.Rule == wire.PicturesRule }) {
			most.pictures = countPictures(s.Thread, f.Plan) - limits.Pictures/2
		}
		if lighter, err := takeOut(s, f.Plan, most); err == nil {
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

// brokenRules are the rules that the request breaks, and its size in bytes. Of an API that is not
// known nothing is broken.
func brokenRules(api string, p *prompt.Prompt) ([]wire.Problem, int) {
	codec := apicodec.For(api)
	if codec == nil {
		return nil, 0
	}
	body, err := codec.Encode(p)
	if err != nil {
		return []wire.Problem{{Rule: "encode", Message: err.Error()}}, 0
	}
	return slices.DeleteFunc(codec.Validate(body), func(b wire.Problem) bool { return b.Advice }), len(body)
}

func isSizeRule(b wire.Problem) bool { return b.Rule == wire.BytesRule || b.Rule == wire.PicturesRule }

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

// excess is what a request has too much, in pictures and in bytes.
type excess struct{ pictures, bytes int }

// largeResult is from how many bytes on a result counts when bytes are to be taken out.
const largeResult = 64 << 10

// countPictures counts those that the plan, which may be nil, leaves in the request.
func countPictures(t *thread.Thread, p *plan.Plan) (n int) {
	actions := (&plan.Plan{}).Actions()
	if p != nil {
		actions = p.Actions()
	}
	for i := range t.Len() {
		if m := t.At(i); actions[m.ID].Action == plan.Include {
			n += weigh(m).pictures
		}
	}
	return n
}

// weigh counts the pictures of a message and the bytes of what it says.
func weigh(m *thread.Message) (w excess) {
	parts := m.Parts
	if r, ok := m.Result(); ok {
		parts = r.Content
	}
	for _, part := range parts {
		switch part := part.(type) {
		case thread.Media:
			if part.Type == thread.Image {
				w.pictures++
			}
			w.bytes += len(part.Data) + len(part.URL) + len(part.Text)
		case thread.Text:
			w.bytes += len(part.Text)
		}
	}
	return w
}

// takeOut adds to a plan what takes that many pictures and bytes out of the request: results with
// pictures first, then large ones, the oldest first. What the model has not seen yet stays. The
// error wraps policy.ErrNothing if nothing can go.
func takeOut(s *policy.Situation, base *plan.Plan, most excess) (*policy.Fitted, error) {
	next := s.Draft("size")
	if base != nil {
		for _, ref := range base.Refs() {
			next.Add(base.Record(ref))
		}
		if base.Policy != "" {
			next.Policy = base.Policy
		}
	}
	actions, unseen, added := next.Actions(), strategy.Unseen(s.Thread), false
	for _, pictures := range []bool{true, false} {
		for i := range s.Thread.Len() {
			m := s.Thread.At(i)
			_, isResult := m.Result()
			w := weigh(m)
			first, last := s.Pairs().Unit(i)
			switch {
			case most.pictures <= 0 && most.bytes <= 0, !isResult, first != last, s.Pairs().Open(i), actions[m.ID].Action != plan.Include,
				slices.Contains(unseen, i), slices.Contains(next.Pinned, m.ID),
				pictures != (w.pictures > 0), !pictures && (most.bytes <= 0 || w.bytes < largeResult):
				continue
			}
			span, err := thread.NewSpan(s.Thread, m.ID)
			if err != nil {
				return nil, err
			}
			next.Add(plan.Clearing{Span: span, Origin: plan.Origin{Strategy: "size", Reason: "the API takes no more pictures or bytes", TokensBefore: s.PlainSizes[i]}})
			most.pictures, most.bytes, added = most.pictures-w.pictures, most.bytes-w.bytes, true
		}
	}
	if !added {
		return nil, fmt.Errorf("no result with pictures or of %d bytes can go: %w", largeResult, policy.ErrNothing)
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

// fewerPictures is the policy for a provider that refused a request for its pictures: half of
// them go, or what is over the API's limit and half of it, and nothing else is compacted.
type fewerPictures struct{ policy.Policy }

// planner is the policy that plans for the request.
func (q planRequest) planner(c *Compactor) policy.Policy {
	if q.pictures {
		return fewerPictures{c.config.Policy}
	}
	return c.config.Policy
}

// Unwrap gives the limits of the session's own policy.
func (f fewerPictures) Unwrap() policy.Policy { return f.Policy }

// Plan takes the pictures out.
func (fewerPictures) Plan(_ context.Context, s *policy.Situation) (*policy.Fitted, error) {
	n := countPictures(s.Thread, s.Current)
	most := (n + 1) / 2
	if limit := wire.LimitsOf(s.Profile.API).Pictures; limit > 0 {
		most = max(most, n-limit/2)
	}
	return takeOut(s, s.Current, excess{pictures: most})
}
