package palimpsest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// maxCuts bounds the places before a refused cut that are tried: the first half of them are the beginnings of
// the nearest units, the others those of turns, which are valid places most often.
const maxCuts = 8

// errRefusedPlan is wrapped by the error of a compaction whose request the API would refuse,
// wherever it is cut. The request then goes out without it.
var errRefusedPlan = errors.New("the API would refuse the compacted request")

// makeValid returns the plan if the API takes its request, or breaks it for nothing that the
// request without a plan does not break too. Else it takes pictures and large results out where
// they are too many, and has the policy cut at the nearest places before.
func makeValid(ctx context.Context, p policy.Policy, s *policy.Situation, f *policy.Fitted) (*policy.Fitted, error) {
	s, f = keepLoadings(ctx, p, s, f)
	f, err := foldToolChanges(s, f)
	if err != nil {
		return nil, err
	}
	broken, size := brokenRules(s.Profile.API, f.Prompt)
	if goal := goalOf(s.Profile.API, f.Prompt.Model, "", size); isLarger(size, goal) {
		if lighter, err := takeOut(ctx, s, f.Plan, size, goal); err == nil {
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
	refusal, cut := firstNew(broken, own), lastHidden(s.Thread, f.Plan)
	if refusal == nil {
		return f, nil
	}
	keep := slices.Clone(s.Keep)
	for n := 0; n < maxCuts && cut >= 0 && ctx.Err() == nil; n++ {
		for first := placeBefore(s, cut, n >= maxCuts/2); cut >= first; cut-- {
			keep = append(keep, cut)
		}
		nearer := *s
		nearer.Keep = slices.Clone(keep)
		next, err := p.Plan(ctx, &nearer)
		if err == nil {
			again, loads := keepLoadings(ctx, p, &nearer, next)
			next, err = foldToolChanges(again, loads)
		}
		if err != nil {
			continue
		}
		next.Summaries = append(slices.Clip(f.Summaries), next.Summaries...)
		if broken, _ = brokenRules(s.Profile.API, next.Prompt); firstNew(broken, own) == nil {
			return next, nil
		}
		f.Summaries = next.Summaries
	}
	return nil, &policy.FailedError{Summaries: f.Summaries, Err: fmt.Errorf("%w: %w", errRefusedPlan, *refusal)}
}

// keepLoadings has the policy plan anew, with the last loading of each tool that it hides, until it hides none: loadings behind
// what it hides come too late for calls before them. Where the policy then finds no plan, the last one found stays.
func keepLoadings(ctx context.Context, p policy.Policy, s *policy.Situation, f *policy.Fitted) (*policy.Situation, *policy.Fitted) {
	for range maxCuts {
		kept, actions := *s, f.Plan.Actions()
		kept.Keep = slices.Clone(s.Keep)
		end := lastHidden(s.Thread, f.Plan) + 1
		for end < s.Thread.Len() && s.Thread.At(end).IsInstruction() { // no call stands before these
			end++
		}
		for _, i := range strategy.Instructions(s.Thread.Messages()[:end]) {
			if m := s.Thread.At(i); actions[m.ID].Action != plan.Include && len(hosted.Loads(m)) > 0 {
				kept.Keep = append(kept.Keep, i)
			}
		}
		if len(kept.Keep) == len(s.Keep) {
			break
		}
		next, err := p.Plan(ctx, &kept)
		if err != nil {
			break
		}
		next.Summaries = append(slices.Clip(f.Summaries), next.Summaries...)
		s, f = &kept, next
	}
	return s, f
}

// foldToolChanges drops changes of tools that what the plan hides has repeated or undone.
func foldToolChanges(s *policy.Situation, f *policy.Fitted) (*policy.Fitted, error) {
	keep := slices.Clone(s.Keep)
	for _, id := range f.Plan.Pinned {
		if i, ok := s.Thread.Index(id); ok {
			keep = append(keep, i)
		}
	}
	undone := strategy.UndoneToolChanges(s.Thread, s.Pairs(), f.Plan.Actions(), lastHidden(s.Thread, f.Plan), keep)
	if undone == nil {
		return f, nil
	}
	var ids []thread.ID
	tokens := 0
	for _, i := range undone {
		ids, tokens = append(ids, s.Thread.At(i).ID), tokens+s.PlainSizes[i]
	}
	span, err := thread.NewSpan(s.Thread, ids...)
	if err != nil {
		return nil, err
	}
	folded := f.Plan.Clone()
	folded.Add(plan.Removal{Span: span, Origin: plan.Origin{Strategy: "tools", Reason: "later changes of the tools repeat or undo them", TokensBefore: tokens}})
	next, err := s.Render(folded)
	if err != nil {
		return nil, err
	}
	folded.CompactedTokens = next.Tokens
	next.Summaries, next.Pinned, next.Tail, next.Proposals = f.Summaries, f.Pinned, f.Tail, f.Proposals
	return next, nil
}

// placeBefore is where the unit, or the turn, begins that the message at a position is in.
func placeBefore(s *policy.Situation, at int, ofTurn bool) int {
	if call, ok := s.Pairs().Call(at); ok && len(s.Pairs().Late(at)) == 0 {
		at = call
	}
	at, _ = s.Pairs().Unit(at)
	for ofTurn && at > 0 && !s.Thread.At(at).StartsTurn() {
		at--
	}
	return at
}

// brokenRules are the rules that the request breaks, and its size. Of an API that is not known
// nothing is broken.
func brokenRules(api string, p *prompt.Prompt) ([]wire.Problem, wire.Size) {
	size, codec := sizeOf(p), apicodec.For(api)
	if codec == nil {
		return nil, size
	}
	short, cut := outline(p)
	body, err := codec.Encode(short)
	if most := wire.LimitsOf(api, p.Model).Bytes; err == nil && cut > 0 && most > 0 && len(body)+mostEscaped*cut > most {
		cut = 0 // it may be too large
		body, err = codec.Encode(p)
	}
	if err != nil {
		return []wire.Problem{{Rule: "encode", Message: err.Error()}}, size
	}
	size.Bytes = len(body) + cut
	return slices.DeleteFunc(codec.Validate(body), func(b wire.Problem) bool { return b.Advice }), size
}

// mostEscaped is how many bytes one byte of a text can take in JSON.
const mostEscaped = 6

// outline is the prompt with its long texts cut, and how many bytes were cut. No rule of an API asks what
// stands in the middle of a text, and most of a prompt is texts. Those that the client wrote itself keep
// their bytes, which are only copied.
func outline(p *prompt.Prompt) (short *prompt.Prompt, cut int) {
	out := *p
	out.Messages = slices.Clone(p.Messages)
	for i := range out.Messages {
		if m := &out.Messages[i]; m.Frame == nil {
			var less int
			m.Parts, less = outlineParts(m.Parts)
			cut += less
		}
	}
	return &out, cut
}

// outlineParts are the parts with their long texts cut; the same list if there are none.
func outlineParts(parts []thread.Part) (short []thread.Part, cut int) {
	short = parts
	for i, part := range parts {
		less := 0
		switch p := part.(type) {
		case thread.Text:
			if p.Raw == "" {
				p.Text, less = outlineText(p.Text)
				part = p
			}
		case thread.ToolResult:
			if p.Raw == "" {
				p.Content, less = outlineParts(p.Content)
				part = p
			}
		}
		if less == 0 {
			continue
		}
		if cut == 0 {
			short = slices.Clone(parts)
		}
		short[i], cut = part, cut+less
	}
	return short, cut
}

// outlineText is a text without its middle.
func outlineText(s string) (short string, cut int) {
	const longText, end = 512, 64
	if len(s) < longText || strings.TrimSpace(s) == "" { // a blank text is a rule's business
		return s, 0
	}
	short = s[:clip.Boundary(s, end)] + "…" + s[clip.Boundary(s, len(s)-end):]
	return short, len(s) - len(short)
}

// foundValid is up to which message the requests under a plan have kept the rules of an API.
type foundValid struct {
	plan *plan.Plan
	api  string
	last thread.ID
}

// refusedSince is the rule that the request under the plan in force breaks by what came after the plan, and
// would keep without it: nil for none. It looks only at what is new since the last step and has to do with
// something before the plan: what answers only what came behind it stands as it would without. The lock is held.
func refusedSince(k *sessionState, l snapshot, s *policy.Situation) (broken, err error) {
	if l.plan.Empty() || l.log.Len() == 0 {
		return nil, nil
	}
	now, first := foundValid{l.plan, s.Profile.API, l.log.Last()}, l.plan.ThreadVersion
	if before := k.foundValid; before.plan == now.plan && before.api == now.api {
		if i, ok := l.log.Index(before.last); ok {
			first = i + 1
		}
	}
	start := firstAnswered(s, first)
	if start >= l.plan.ThreadVersion {
		k.foundValid = now
		return nil, nil
	}
	if refusals := brokenSince(s, s.Rendered, start); len(refusals) > 0 {
		plain := *s
		plain.Current = l.plan.WithoutRecords(l.log)
		whole, err := policy.Situate(plain)
		if err != nil {
			return nil, err
		}
		if b := firstNew(refusals, brokenSince(whole, whole.Rendered, start)); b != nil {
			return fmt.Errorf("%w: %w", errRefusedPlan, *b), nil
		}
	}
	k.foundValid = now
	return nil, nil
}

// firstAnswered is the position of the first message that those from a position on have to do with: the
// answer before them, or the calls whose results come late.
func firstAnswered(s *policy.Situation, from int) int {
	if from >= s.Thread.Len() {
		return from
	}
	start := from
	for start > 0 && (start == from || s.Thread.At(start).Role != thread.Assistant || s.Thread.At(start-1).Role == thread.Assistant) {
		start--
	}
	if _, whole := thread.PairFrom(s.Thread, start); !whole {
		for i := from; i < s.Thread.Len(); i++ {
			call, ok := s.Pairs().Call(i)
			if first, _ := s.Pairs().Unit(i); !ok || first < call {
				call = first
			}
			start = min(start, call, i)
			for _, late := range s.Pairs().Late(i) {
				start = min(start, late.At)
			}
		}
	}
	return start
}

// brokenSince are the rules that the end of a rendering breaks by itself, from a position in the log on.
func brokenSince(s *policy.Situation, f *policy.Fitted, start int) []wire.Problem {
	at := len(f.Prompt.Messages)
	for at > 0 {
		if i, ok := s.Thread.Index(f.Manifest.Messages[at-1].ID); ok && i < start {
			break
		}
		at--
	}
	end := prompt.Prompt{Model: cmp.Or(f.Prompt.Model, "any"), MaxOutput: 1, Messages: f.Prompt.Messages[at:]}
	if len(end.Messages) > 0 && end.Messages[0].Role != thread.User { // who speaks first is the whole's business
		end.Messages = append([]thread.Message{thread.NewMessage(thread.User, "before")}, end.Messages...)
	}
	broken, _ := brokenRules(s.Profile.API, &end)
	return broken
}

// firstNew is the first broken rule that is not among a request's own; nil for none.
func firstNew(broken, own []wire.Problem) *wire.Problem {
	at := slices.IndexFunc(broken, func(b wire.Problem) bool {
		return !slices.ContainsFunc(own, func(o wire.Problem) bool { return o.Rule == b.Rule })
	})
	if at < 0 {
		return nil
	}
	return &broken[at]
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

// isTooLarge reports whether the API takes no request of this many bytes or pictures, or has refused it for
// them. Where the log is far below the limits, as nearly always, the messages are not looked at: what a plan
// adds is small beside the half that is left for it.
func isTooLarge(s *policy.Situation) bool {
	p := s.Rendered.Prompt
	around := *p
	around.Messages = nil
	most := wire.LimitsOf(s.Profile.API, p.Model).Bytes
	if log := s.LogSize; s.Refusal == "" && log.Bytes > 0 && log.Pictures == 0 && (most == 0 || log.Bytes+sizeOf(&around).Bytes <= most/2) {
		return false
	}
	size := sizeOf(p)
	return isLarger(size, goalOf(s.Profile.API, p.Model, s.Refusal, size))
}

// goalOf is what a request of that size must come down to, so that the next ones fit as well: to half
// of the pictures that its API takes for the model, and three quarters of the bytes. Where it is small enough, or
// nothing is known, there is no bound.
func goalOf(api, model string, refusal llm.Kind, size wire.Size) wire.Size {
	limits, goal := wire.LimitsOf(api, model), wire.Size{Bytes: math.MaxInt, Pictures: math.MaxInt, Side: math.MaxInt}
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
// large results, then answers with large results of the provider's tools, which have no shorter form, or
// large arguments; the oldest first. What the model has not seen yet stays. The error wraps
// policy.ErrNothing if nothing can go.
func takeOut(ctx context.Context, s *policy.Situation, base *plan.Plan, size, goal wire.Size) (*policy.Fitted, error) {
	next := s.Draft("size")
	for _, r := range base.Records() {
		next.Add(r)
	}
	if base != nil {
		next.Policy = cmp.Or(base.Policy, next.Policy)
	}
	actions, unseen, added := next.Actions(), strategy.Unseen(s.Thread), false
	for _, fields := range []thread.Fields{{plan.MediaField: true}, nil} {
		for i := range s.Thread.Len() {
			m := s.Thread.At(i)
			_, isResult := m.Result()
			if !isResult && (m.Role != thread.User || fields == nil) || s.Pairs().Open(i) {
				continue
			}
			var w wire.Size
			var ids []thread.ID
			freed, tokens, stays := 0, 0, false
			for _, at := range together(s, i) {
				m := s.Thread.At(at)
				one, inMedia := weigh(m)
				if fields == nil {
					inMedia = one.Bytes
				}
				w = wire.Size{Pictures: w.Pictures + one.Pictures, Side: max(w.Side, one.Side)}
				ids, freed, tokens = append(ids, m.ID), freed+inMedia, tokens+s.PlainSizes[at]
				stays = stays || m.IsInstruction() || actions[m.ID].Action != plan.Include || slices.Contains(unseen, at) || slices.Contains(s.Keep, at) || slices.Contains(next.Pinned, m.ID)
			}
			goes := freed >= largeResult && size.Bytes > goal.Bytes || fields != nil && (w.Side > goal.Side || w.Pictures > 0 && size.Pictures > goal.Pictures)
			if !goes || stays {
				continue
			}
			span, err := thread.NewSpan(s.Thread, ids...)
			if err != nil {
				return nil, err
			}
			record := plan.Clearing{Span: span, PreservedFields: fields, Origin: tooLarge(tokens)}
			next.Add(record)
			for _, id := range ids {
				actions[id] = plan.Ref{Action: plan.Clear}
			}
			size.Bytes, size.Pictures, added = size.Bytes-freed, size.Pictures-w.Pictures, true
		}
	}
	for i := 0; i < s.Thread.Len() && size.Bytes > goal.Bytes; i++ {
		freed, tokens, stays := 0, 0, false
		var messages []thread.Message
		for _, at := range answer(s, i) {
			m := s.Thread.At(at)
			one, _ := weigh(m)
			messages, freed, tokens = append(messages, *m), freed+one.Bytes, tokens+s.PlainSizes[at]
			stays = stays || actions[m.ID].Action != plan.Include || slices.Contains(s.Keep, at) || slices.Contains(next.Pinned, m.ID)
		}
		if stays || freed < largeResult {
			continue
		}
		text, err := (&summarize.Extractive{Counter: s.Counter.Text}).Summarize(ctx, summarize.Input{Messages: messages, Budget: answerText})
		if err != nil {
			return nil, err
		}
		next.Add(plan.Summarization{Span: text.Span, Summary: text.Summary, SummaryTokens: s.Counter.Text(text.Render()), Origin: tooLarge(tokens)})
		size.Bytes, added = size.Bytes-freed, true
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

// together are the positions that change with the one at i: itself or, where it is the first result for the
// program of a hosted call, all of them. It is empty for the others.
func together(s *policy.Situation, i int) (all []int) {
	first, last := s.Pairs().Unit(i)
	if first == last {
		return []int{i}
	}
	for at := first; at <= last; at++ {
		if _, isResult := s.Thread.At(at).Result(); !isResult || s.Pairs().Hosted(at) {
			continue
		}
		if all = append(all, at); all[0] != i {
			return nil
		}
	}
	return all
}

// answerText is how many tokens may stay of an answer of which large results or arguments go.
const answerText = 400

// answer are the positions of the whole answer that begins at i, with all its results. It is empty for
// anything else, for an answer that still runs, and for the last one.
func answer(s *policy.Situation, i int) (all []int) {
	first, last := s.Pairs().Unit(i)
	if s.Thread.At(i).Role != thread.Assistant || first != i || s.Pairs().Open(i) {
		return nil
	}
	for at := first; at <= last; at++ {
		all = append(all, at)
		all = append(all, s.Pairs().Results(at)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	isLast := !slices.ContainsFunc(s.Thread.Messages()[all[len(all)-1]+1:], func(m thread.Message) bool { return m.Role == thread.Assistant })
	if isLast || slices.ContainsFunc(all, func(at int) bool { return s.Thread.At(at).IsInstruction() }) {
		return nil
	}
	return all
}

// tooLarge is why takeOut takes something out.
func tooLarge(tokens int) plan.Origin {
	return plan.Origin{Strategy: "size", Reason: "the API takes no more pictures or bytes", TokensBefore: tokens}
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
	goal := goalOf(s.Profile.API, s.Rendered.Prompt.Model, s.Refusal, size)
	f, err := takeOut(ctx, s, s.Current, size, goal)
	if s.Refusal == llm.ErrBytes && (err != nil || sizeOf(f.Prompt).Bytes > goal.Bytes) {
		return p.Policy.Plan(ctx, s)
	}
	return f, err
}
