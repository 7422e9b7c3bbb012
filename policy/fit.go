package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ErrOverBudget is wrapped by the error of a compaction that cannot meet its budget.
var ErrOverBudget = errors.New("the budget cannot be met")

// BudgetError lists the parts of a request that no plan can remove, and their sizes.
type BudgetError struct {
	// Budget and Need are tokens of the whole request. Need is a budget that can be met.
	Budget, Need int
	Parts        []Part
	// Err is what the rungs of the ladder reported; may be nil.
	Err error
}

// errNothingLeft refuses a plan that fits: every provider wants a message, and a model has to
// know what it is asked.
var errNothingLeft = errors.New("neither a request nor a summary would be left")

// Part is a piece of a request that must stay.
type Part struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
}

// Error names the parts.
func (e *BudgetError) Error() string {
	parts := make([]string, len(e.Parts))
	for i, p := range e.Parts {
		parts[i] = fmt.Sprintf("%s %d", p.Name, p.Tokens)
	}
	return fmt.Sprintf("%v: it is %d tokens, what must stay takes %d (%s); raise the budget or shorten these parts",
		ErrOverBudget, e.Budget, e.Need, strings.Join(parts, ", "))
}

// Class is "over_budget", for events: whoever set the budget is to blame.
func (e *BudgetError) Class() string { return "over_budget" }

// Is makes every BudgetError match ErrOverBudget.
func (e *BudgetError) Is(target error) bool { return target == ErrOverBudget }

// Unwrap returns what the rungs reported.
func (e *BudgetError) Unwrap() error { return e.Err }

const (
	// maxFitAttempts bounds how often a plan is made again because the rendered request is
	// larger than the planner's sum (repairs of the log add a little).
	maxFitAttempts = 5
	// slackStep is what each further attempt leaves free, in tokens times the square of
	// its number: a smaller room can be filled a little differently.
	slackStep = 4
	// minSummaryTokens is room in which nearly every stretch fits a summary, in tokens;
	// many need only half. A refusal is tried with it.
	minSummaryTokens = 340
	// needGrowth is the factor on the room for summaries while no plan is found.
	needGrowth = 1.25
)

// FailedError says that there is no plan. Summaries are the reports of those that were
// asked for on the way: a model may have been paid for them.
type FailedError struct {
	Summaries []summarize.Report
	Err       error
}

// Error is that of Err.
func (e *FailedError) Error() string { return e.Err.Error() }

// Class is that of Err, for events.
func (e *FailedError) Class() string { return event.ErrorClass(e.Err) }

// Unwrap returns Err.
func (e *FailedError) Unwrap() error { return e.Err }

// SummariesOf returns the reports of the summaries that a call of Plan or Fit asked for,
// whether it made a plan or failed.
func SummariesOf(f *Fitted, err error) []summarize.Report {
	if failed, ok := errors.AsType[*FailedError](err); ok {
		return failed.Summaries
	}
	if f == nil {
		return nil
	}
	return f.Summaries
}

// withReports adds reports to an error, if there are any.
func withReports(err error, reports []summarize.Report) error {
	if err == nil || len(reports) == 0 {
		return err
	}
	return &FailedError{reports, err}
}

// Fit climbs a ladder until the whole request takes at most the first of budgets that can be
// met, in tokens; of those after the first only larger ones are tried. The plan grows out of
// the one in force: it keeps that one's records and adds new ones. Its summaries are made
// anew, from the log, where they would take more than half of the room or where the request
// does not fit otherwise. What the model has not seen yet stays whole, for which the request
// may take more than the budget, up to whole tokens (0 for none). Fit tries the levels of
// protection, the most generous first; a plan that drops messages is taken only when no level
// does without.
//
// An error that wraps ErrOverBudget is a *BudgetError. One that wraps ErrNothing says that
// nearly all of the request has just arrived, so that no plan makes it smaller.
// SummariesOf the error has the reports of summaries that were asked for in vain.
func Fit(ctx context.Context, s *Situation, name string, ladder strategy.Ladder, whole int, budgets ...int) (*Fitted, error) {
	if ladder.IsFresh() { // of what happened it tells nothing that a model could say better
		s = s.byCode()
	}
	c := &fitter{situation: s, name: name, ladder: ladder, whole: whole, grows: whole > budgets[0] && ladder.Grows()}
	c.askOnce()
	f, err := c.fitFirst(ctx, c.candidates(budgets...))
	if over, ok := errors.AsType[*BudgetError](err); ok {
		c.findNeed(ctx, over)
	}
	if err != nil {
		return nil, withReports(err, c.reports)
	}
	f.Summaries = c.reports
	return f, nil
}

// askOnce has no attempt ask a model about what it told of for another or in the compaction before. About
// that it is asked anew where the user wants something of this summary.
func (c *fitter) askOnce() {
	s := *c.situation
	if _, byRule := s.Summarizer.(*summarize.Extractive); byRule || s.Summarizer == nil {
		return
	}
	once := &summarize.Once{Inner: s.Summarizer}
	for i := 0; s.Current != nil && s.Instructions == "" && i < len(s.Current.Summarizations); i++ {
		if told := s.Current.Summarizations[i].Summary.Told; told != nil {
			once.Told = summary.Merge(once.Told, *told)
		}
	}
	s.Summarizer, c.situation = once, &s
}

// fill is Fit for a budget that somebody asked for (Situation.Fill), all of which may be
// taken. An error that wraps ErrNothing says that the request fits already.
func fill(ctx context.Context, s *Situation, name string, ladder strategy.Ladder) (*Fitted, error) {
	if s.PromptTokens <= s.Budget {
		return nil, fmt.Errorf("policy %s: the request takes %d tokens, the budget is %d: %w", name, s.PromptTokens, s.Budget, ErrNothing)
	}
	return Fit(ctx, s, name, ladder, s.Budget, s.Budget)
}

// byCode is the situation with the summarizer that asks no model.
func (s *Situation) byCode() *Situation {
	if _, is := s.Summarizer.(*summarize.Extractive); is { // it has read the messages already
		return s
	}
	own := *s
	own.Summarizer = &summarize.Extractive{Counter: s.Counter.Text}
	return &own
}

// candidate is one way to make a plan.
type candidate struct {
	ladder strategy.Ladder
	budget int // what it costs: the tokens that the request may take
	// onCurrent keeps the summaries of the plan in force.
	onCurrent bool
	// unseen are the messages that stay whole, externalizeFirst those that are externalized
	// before anything else.
	unseen, externalizeFirst []int
}

// candidates lists the ways to meet each budget, the one that is liked best first: by the
// rungs that the turn allows; with what the model has not seen yet whole, in the budget or in
// as little more as it takes, if that leaves room for the user's words and for a summary of
// the rest; on the summaries of the plan in force. What has not been seen and does not fit
// whole is externalized first; where there is no more room than the budget, rungs do that.
func (c *fitter) candidates(budgets ...int) (all []candidate) {
	s, unseen, onCurrent := c.situation, strategy.Unseen(c.situation.Thread), []bool{true, false}
	allowed := slices.DeleteFunc(slices.Clone(c.ladder), func(rung strategy.Strategy) bool { return !s.Rehydrated.Allows(rung.Name()) })
	ladders := []strategy.Ladder{allowed, c.ladder}
	if len(allowed) == len(c.ladder) {
		ladders = ladders[1:]
	}
	if s.Current == nil || len(s.Current.Summarizations) == 0 || c.ladder.IsFresh() {
		onCurrent = onCurrent[1:]
	}
	for i, budget := range budgets {
		if i > 0 && budget <= budgets[0] {
			continue
		}
		var ways []candidate
		for _, more := range slices.Compact([]int{budget, (budget + c.whole) / 2, c.whole}) {
			if more >= budget && len(unseen) > 0 && leavesRoom(s, unseen, more-s.Fixed, c.whole > budget) {
				ways = append(ways, candidate{budget: more, unseen: unseen})
			}
		}
		last := candidate{budget: budget}
		if c.whole > budget {
			last.externalizeFirst = unseen
		}
		for _, ladder := range ladders {
			for _, one := range append(ways, last) {
				for _, one.onCurrent = range onCurrent {
					one.ladder = ladder
					all = append(all, one)
				}
			}
		}
	}
	return all
}

// fitFirst makes the plan of the first candidate that fits; one on the plan in force must not
// drop more than that, and one that drops the user's first or latest request is only taken if no
// other fits, and not for a size that somebody asked for. Any error but ErrOverBudget ends the search.
func (c *fitter) fitFirst(ctx context.Context, all []candidate) (f *Fitted, err error) {
	s := c.situation
	var without *Fitted // the first that fits, but only without a request
	for _, one := range all {
		f, err = c.fit(ctx, one)
		if err == nil && c.droppedRequest(f.Plan) >= 0 {
			without = cmp.Or(without, f)
			continue
		}
		switch {
		case ctx.Err() == nil && (errors.Is(err, ErrOverBudget) || one.onCurrent && (err != nil || len(f.Plan.Drops) != len(s.Current.Drops))):
			continue
		case err == nil && len(one.unseen) > 0 && f.Tokens >= s.PromptTokens && s.PromptTokens <= c.whole:
			return nil, fmt.Errorf("policy %s: nearly all of the %s tokens have just come: %w", c.name, clip.Number(s.PromptTokens), ErrNothing)
		}
		return f, err
	}
	switch {
	case without == nil:
		return nil, err
	case s.Fill: // whoever asked for this size is told why it cannot be had
		return nil, budgetError(s, all[0].budget, nil, c.droppedRequest(without.Plan))
	}
	return without, nil
}

// findNeed raises what a refusal says is needed until there is a plan for it, or lowers it
// while there is one for half of the rest. The extractive summarizer stands in for models
// here: theirs are no larger. Each look is a climb of the whole ladder, so this is only
// for the refusal that is returned.
func (c *fitter) findNeed(ctx context.Context, e *BudgetError) {
	s := c.situation.byCode()
	rest := &e.Parts[len(e.Parts)-1]
	refused := func(need int) bool {
		try := &fitter{situation: s, name: c.name, ladder: c.ladder, whole: max(c.whole, need)}
		_, err := try.fitFirst(ctx, try.candidates(need))
		return errors.Is(err, ErrOverBudget)
	}
	change := func(tokens int) {
		rest.Tokens += tokens
		e.Need += tokens
	}
	raised := false
	for e.Need < s.UncompactedTokens() && ctx.Err() == nil && refused(e.Need) {
		change(min(int(float64(rest.Tokens)*(needGrowth-1)), s.UncompactedTokens()-e.Need))
		raised = true
	}
	for less := rest.Tokens / 2; !raised && less > 0 && e.Need-less > e.Budget && ctx.Err() == nil && !refused(e.Need-less); less = rest.Tokens / 2 {
		change(-less)
	}
}

// What the model has not seen may take maxUnseenShare of the room, as a ratio, and
// the calls that asked for it maxCallShare. In a window, which is more
// than a compaction aims at, it may take more if minRoomLeft tokens, or minShareLeft
// of a small window, are left for what the user said and for a summary of the rest.
const (
	maxUnseenShare = 0.35
	maxCallShare   = 0.2
	minRoomLeft    = 16_000
	minShareLeft   = 0.25
)

// leavesRoom reports whether messages may stay whole in a room, in tokens.
func leavesRoom(s *Situation, positions []int, room int, window bool) bool {
	unseen, calls := 0, 0
	counted := map[int]bool{}
	for _, i := range positions {
		unseen += s.ChangedSizes[i]
		// Its call stays with it, and may be the larger of the two: a file written.
		if call, ok := s.Pairs().Call(i); ok && !counted[call] {
			counted[call] = true
			calls += s.ChangedSizes[call]
		}
	}
	left := min(minRoomLeft, int(minShareLeft*float64(room)))
	fits := float64(unseen) <= maxUnseenShare*float64(room) && float64(calls) <= maxCallShare*float64(room)
	return fits || window && room-unseen-calls >= left
}

// fitter makes a plan (see Fit), in as many attempts as it takes.
type fitter struct {
	situation *Situation
	name      string
	ladder    strategy.Ladder
	whole     int
	// grows: later compactions add to the plan, since this one does not fill what there is.
	grows bool
	// reports are of all attempts, since models are paid for all of them.
	reports []summarize.Report
}

// arrivedCount is plan.Plan's Arrived: the messages since the last change of what was
// sent, where the plan only adds records for messages that no model has been sent, and no
// tools and no note come with it.
func arrivedCount(s *Situation, p *plan.Plan) int {
	if s.SentBase != nil && (len(s.SentBase.Tools) != len(s.Base.Tools) || len(s.SentBase.System) != len(s.Base.System)) {
		return 0
	}
	fresh := p.Since(s.Current)
	if len(p.Refs()) != len(s.Current.Refs())+len(fresh) {
		return 0
	}
	sent := sentCount(s)
	for _, r := range fresh {
		for _, id := range r.Covers().MessageIDs {
			if i, _ := s.Thread.Index(id); i < sent {
				return 0
			}
		}
	}
	return p.ThreadVersion - s.Current.Rewritten()
}

// sentCount is how many messages a model has been sent.
func sentCount(s *Situation) int {
	i := s.Thread.Len()
	for i > 0 && s.Thread.At(i-1).Role != thread.Assistant {
		i--
	}
	return i
}

// given is what a view of the situation is made from, but for its room.
func (s *Situation) given() strategy.Given {
	return strategy.Given{
		Thread: s.Thread, Pairs: s.Pairs(), Profile: s.Profile,
		Count: s.Counter.Message, CountText: s.Counter.Lines, Sizes: s.ChangedSizes,
		Tools: s.Tools, Current: s.CurrentSource, Summarizer: s.Summarizer, Correction: s.Correction, Name: s.Namer,
		Answers: s.Answers, Instructions: s.Instructions, InstructionsBy: s.InstructionsBy, Sent: cachedRequest(s), Pins: s.pinnedPositions(),
	}
}

// fit makes the plan of a candidate.
func (c *fitter) fit(ctx context.Context, one candidate) (*Fitted, error) {
	s, budget := c.situation, one.budget
	var failed error
	var withDrops *Fitted // the first that fits but leaves something out
	input := s.given()
	input.Grows = c.grows
	levels := strategy.Protections()
	if len(one.unseen) > 0 {
		levels = levels[:strategy.LastStep] // less protects too little of what was said before
	}
	fixed := s.Fixed + s.Counter.Text(s.Draft(c.name).NotesText())
	for _, level := range levels {
		room := budget - fixed
		for n := range maxFitAttempts {
			input.Room = room
			if room <= 0 {
				break
			}
			v := strategy.NewView(input)
			v.Keep(s.Current, one.onCurrent)
			v.ExternalizeLarge(one.externalizeFirst)
			v.Protect(level, one.unseen...)
			if one.onCurrent && !v.LeavesSummaryRoom() {
				return nil, budgetError(s, budget, nil)
			}
			fits, err := one.ladder.Climb(ctx, v)
			c.reports = append(c.reports, v.Summaries()...)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if !fits {
				failed = errors.Join(failed, err)
				break
			}
			p := s.Draft(c.name)
			for _, record := range v.Records() {
				p.Add(record)
			}
			s.keepCleared(p)
			p.Arrived = arrivedCount(s, p)
			f, err := s.Render(p)
			if err != nil {
				return nil, err
			}
			if s.Thread.Len() > 0 && (len(f.Prompt.Messages) == 0 || len(p.Drops) > 0 && !tellsTask(s, f)) {
				// What is too large to be protected was all there was, or all that was asked.
				failed = errors.Join(failed, errNothingLeft)
				break
			}
			if f.Tokens <= budget {
				p.CompactedTokens = f.Tokens
				f.Pinned, f.Tail, f.Proposals = v.PinnedPositions(), v.Tail, v.Proposed()
				if len(p.Drops) == 0 {
					return f, nil
				}
				if len(one.unseen) == 0 && (withDrops == nil || c.droppedRequest(withDrops.Plan) >= 0 && c.droppedRequest(p) < 0) {
					withDrops = f
				}
				break
			}
			if len(v.Records()) == 0 {
				// As it was sent it is larger than its parts, since the provider's reasoning
				// goes once anything changes: something must.
				room = v.Total() - 1
				continue
			}
			room -= f.Tokens - budget + n*n*slackStep
		}
	}
	if withDrops != nil {
		return withDrops, nil
	}
	return nil, budgetError(s, budget, failed)
}

// droppedRequest is the position of the user's first or latest request if a plan drops it, which the one in force
// does not; else -1.
func (c *fitter) droppedRequest(p *plan.Plan) int {
	s := c.situation
	for _, i := range s.firstAndLast((*thread.Message).StartsTurn) {
		if id := s.Thread.At(i).ID; isDropped(p, id) && !isDropped(s.Current, id) {
			return i
		}
	}
	return -1
}

func isDropped(p *plan.Plan, id thread.ID) bool {
	return p != nil && slices.ContainsFunc(p.Drops, func(d plan.Removal) bool { return slices.Contains(d.Span.MessageIDs, id) })
}

// tellsTask reports whether a request still has something that the user said, or a summary. A
// thread in which nobody asked anything needs neither.
func tellsTask(s *Situation, f *Fitted) bool {
	if len(f.Plan.Summarizations) > 0 {
		return true
	}
	for i := range f.Prompt.Messages {
		m := &f.Prompt.Messages[i]
		// A note of ours in the user's role has the id of the message that it stands for.
		at, logged := s.Thread.Index(m.ID)
		if injected.UserWords(m) != "" || m.Kind == thread.Recap && logged && s.Thread.At(at).Kind == m.Kind {
			return true
		}
	}
	return !slices.ContainsFunc(s.Thread.Messages(), func(m thread.Message) bool { return injected.UserWords(&m) != "" })
}

// cachedRequest is the request under the plan in force, if the provider still has it in
// its cache; else nil.
func cachedRequest(s *Situation) *prompt.Prompt {
	if !s.Cached || s.CacheExpired || s.Rendered == nil {
		return nil
	}
	return s.Rendered.Prompt
}

// budgetError lists what must stay: system, tools, what the user has pinned, calls that
// wait for their results, a request of the user's that could only be dropped, and a small
// summary of each stretch between these calls, which also holds the user's words.
func budgetError(s *Situation, budget int, failed error, requests ...int) error {
	e := &BudgetError{Budget: budget, Err: failed}
	add := func(name string, tokens int) {
		if tokens > 0 {
			e.Parts = append(e.Parts, Part{name, tokens})
			e.Need += tokens
		}
	}
	add("system prompt", s.Counter.System(s.Base.System))
	add("tool definitions", s.Counter.Tools(s.Base.Tools))
	add("framing of the request", s.Fixed-e.Need)
	waits := make([]bool, s.Thread.Len())
	for i := range s.Thread.Len() {
		if s.Pairs().Open(i) {
			waits[i] = true
			for _, result := range s.Pairs().Results(i) { // of other calls of the message
				waits[result] = true
			}
		}
	}
	instructions, pinned, waiting, stretches := 0, 0, 0, 0
	for _, i := range s.pinnedPositions() {
		if !waits[i] {
			pinned += s.ChangedSizes[i]
		}
	}
	for i, m := range s.Thread.All() {
		if waits[i] {
			waiting += s.ChangedSizes[i]
			continue
		}
		if m.IsInstruction() {
			instructions += s.ChangedSizes[i]
		}
		if i == 0 || waits[i-1] {
			stretches++
		}
	}
	add("instructions in the conversation", instructions)
	add("pinned messages", pinned)
	add("calls that wait for results", waiting)
	for _, i := range requests {
		name := "the user's latest request"
		if !slices.ContainsFunc(s.Thread.Messages()[:i], func(m thread.Message) bool { return m.StartsTurn() }) {
			name = "the user's first request"
		}
		add(name, s.ChangedSizes[i])
	}
	add("a summary of the rest", max(stretches, 1)*minSummaryTokens)
	return e
}
