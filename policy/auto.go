package policy

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Auto is our own default. It compacts in batches, so that the prompt's prefix stays the
// same in between: the newest part stays whole, older messages are summarized
// (strategy.Auto).
//
// When to compact is up to Favor. Where the prices of the model are known, Auto compacts
// as soon as a longer prompt would cost more than the compaction (cycle.steps is the
// square-root law) or, when the provider's cache has expired, as soon as that saves
// something; but never below the size that FavorBalanced tolerates. At the hard mark it
// compacts in any case. Without prices, and with FavorQuality, the hard mark alone
// decides.
//
// The results of the last step, which the model has not seen yet, stay whole. Only a
// result that does not fit beside the user's words and a summary of the rest is
// externalized as it arrives: its beginning, its end and the lines that report failures
// stay, with a pointer. Where neither window nor budget is known, none is.
type Auto struct {
	// Favor says when a session is compacted and how much is kept, unless the fields below
	// do. Default FavorBalanced.
	Favor Favor `file:"trigger.favor" bases:"auto notes" about:"when the thread is compacted and how much is kept: near the window (quality), from 64000 tokens or 45 % of the room in a small window on (balanced), or where it costs least (cost)"`
	// Hard is the share of the room for messages (Situation.Room) at which the session is
	// compacted; Target is the largest share of it that is left afterwards, if the newest
	// results allow it. The defaults are 0.9 and 0.5; with FavorQuality 0.8 and half of
	// Hard. The default target is less where the steps are so large that the next
	// compaction would follow within six requests, down to 0.4. A target that is not below
	// the hard mark counts as half of it.
	Hard   float64 `file:"trigger.hard" unit:"ratio" range:"0.001..1" words:"auto=0" about:"share of the room for messages at which the thread is compacted; auto: 0.9, or as the favor says"`
	Target float64 `file:"trigger.target" unit:"ratio" range:"0.001..1" words:"auto=0" about:"share of the room for messages that is left afterwards, at most; auto: 0.5, or as the favor says, and with policies auto and notes down to 0.4 where steps are large"`
	// Working is what the messages take after a compaction that prices decided, in tokens.
	// Default 20,000; with FavorBalanced as much more as it keeps of the whole request.
	// With FavorQuality it counts only when set.
	Working int `file:"trigger.working" bases:"auto notes" unit:"tokens" range:"1.." words:"auto=0" about:"what the messages take after a compaction that prices decided; auto: 20000, or what the balanced favor keeps"`

	filled float64 // the target that Defaults filled in; nobody has set it while Target is that
}

// Favor is what Auto optimizes for. The zero value, and any unknown word, is
// FavorBalanced.
type Favor string

const (
	// FavorQuality compacts only near the window: when the messages take 80 % of the room
	// for them, and keeps half of that. Prices and an expired cache do not count.
	FavorQuality Favor = "quality"
	// FavorBalanced compacts by prices like FavorCost, but not before the request takes
	// 64,000 tokens, or the messages 45 % of their room in a smaller window, and keeps at
	// least half of the messages. Where the provider has forgotten the prompt, three
	// quarters of them are enough.
	FavorBalanced Favor = "balanced"
	// FavorCost compacts as soon as a longer prompt would cost more than the compaction,
	// with usual prices at about 35,000 tokens, and keeps 20,000 of messages.
	FavorCost Favor = "cost"
)

// Favors lists the values of Favor, the one that keeps most first.
func Favors() []string {
	return []string{string(FavorQuality), string(FavorBalanced), string(FavorCost)}
}

// minWindow is less than any model reads, in tokens: a smaller request was not refused for
// its size.
const minWindow = 1_000

const (
	// balancedMark is the size below which FavorBalanced does not compact, in tokens;
	// balancedShare, a share of the room, takes its place in small windows. balancedKept is
	// the share of the messages at that size that stays at least, balancedCold the share
	// from which a forgotten prompt is compacted. On the dev split three quarters cost 8 % less than the whole,
	// with 3.4 compactions per session for 3.0; compacting as soon as it saves anything
	// costs 14 % less, with 5.1. lab/README.md has the curve of cost over recall.
	balancedMark  = 64_000
	balancedShare = 0.45
	balancedKept  = 0.5
	balancedCold  = 0.75

	// qualityHard and qualityKept are the hard mark of FavorQuality, as a share of the
	// room, and the share of the mark that stays.
	qualityHard = 0.8
	qualityKept = 0.5

	// apart is how many steps there should be room for after a compaction, at the pace of the
	// last paceSteps, where nobody has set the target; leastKept is the share of the room that is
	// kept all the same, with fewer steps then. A step counts as a part of the room at most,
	// 1/maxPace: one large result is no pace.
	apart     = 6
	paceSteps = 12
	leastKept = 0.4
	maxPace   = 8

	// minFree is the share of the room, of balancedMark where that is less, that is free
	// after a compaction; with less, the next one waits.
	minFree = 0.25
)

const (
	defaultHard    = 0.9
	defaultTarget  = 0.5
	defaultWorking = 20_000
	// minGain is how much larger than after a compaction the prompt must be before prices
	// decide for one, as a ratio: a few tokens are not worth a new prefix. A forgotten
	// prompt is written anew anyway, so almost any gain will do (minColdGain; on the dev
	// split it saves 1.3 % over minGain, see lab/README.md).
	minGain     = 1.2
	minColdGain = 1.05
	// growthMessages is how many messages the growth of a step is averaged over. A step
	// counts as maxStepGrowth tokens at most, and usualSteps steps of usualGrowth are
	// added: a conversation begins with reading, and a large file is no sign that the next
	// steps bring as much. On the dev split this removes a third of the cost over the best
	// schedule, see lab/README.md.
	growthMessages = 200
	maxStepGrowth  = 1_500
	usualGrowth    = 500
	usualSteps     = 50
	// refusalShrink is the factor on the target for each refusal by the provider: its own
	// count is larger than ours then.
	refusalShrink = 0.7
)

// Name returns "auto".
func (Auto) Name() string { return "auto" }

// Due reports whether the request has passed the hard mark, or the size beyond which it
// costs more than a compaction.
func (a Auto) Due(s *Situation) (bool, string) {
	a = a.Defaults()
	hard, mark := a.hardMark(s), a.priceMark(s)
	if hard > 0 && s.PromptTokens > hard && (mark == 0 || mark > hard) { // the lower one is what was told before
		return true, fmt.Sprintf("the request takes %d tokens and is over %d of %d", s.PromptTokens, hard, s.Limit())
	}
	switch {
	case mark == 0 || s.PromptTokens <= mark:
		return false, ""
	case mark == a.favorFloor(s):
		return true, fmt.Sprintf("the request takes %d tokens and is over the %d of balanced", s.PromptTokens, mark)
	case s.CacheExpired:
		return true, fmt.Sprintf("the request takes %d tokens, and the provider has forgotten it", s.PromptTokens)
	}
	return true, fmt.Sprintf("the request takes %d tokens and beyond %d costs more than a compaction", s.PromptTokens, mark)
}

// priceMark is the size of the request beyond which compacting is cheaper than going on,
// in tokens, at least the floor; 0 where prices are unknown or do not count.
func (a Auto) priceMark(s *Situation) int {
	if s.Rates.Read <= 0 || a.Favor == FavorQuality {
		return 0
	}
	growth := stepGrowth(s)
	after := float64(a.target(s) + a.unseenExcess(s))
	mark := minColdGain * after
	if !s.CacheExpired {
		mark = minGain * after
		c := cycle{Growth: growth, After: after, Kept: float64(s.Fixed), Uncached: float64(a.unreadTokens(s)), ExpiryChance: s.ExpiryChance}
		mark = max(mark, after+c.steps(s.Rates)*growth)
		if soon := a.target(s) + apart*pace(s); soon >= s.shareOfRoom(a.Hard) { // prices would have it more often
			mark = max(mark, float64(soon))
		}
	}
	return a.moved(s, max(int(min(mark, 1<<40)), a.priceFloor(s), a.target(s)+1))
}

// hardMark is the largest request before a compaction, whatever tokens cost; 0 when the
// limit is unknown.
func (a Auto) hardMark(s *Situation) int { return a.moved(s, s.shareOfRoom(a.Hard)) }

// moved is a mark where the last compaction did not reach the target, or was undone. The next one would
// reach no more, or undo what a person wants, and follow at once: it waits until the request has grown by a part of
// the room or, where little of the room was freed, as long as the model can read the request.
func (a Auto) moved(s *Situation, mark int) int {
	if s.Current == nil || s.Current.CompactedTokens == 0 || mark == 0 {
		return mark
	}
	reached, limit := s.Current.CompactedTokens, s.Limit()
	if reached <= a.target(s) {
		return mark
	}
	if limit == 0 {
		return max(mark, reached+int(minFree*balancedMark))
	}
	if reached > s.shareOfRoom(1-minFree) {
		return max(mark, limit)
	}
	return min(max(mark, reached+int(minFree*float64(min(s.Room(), balancedMark)))), max(mark, limit))
}

// unseenExcess is what would be left beyond the target, in tokens, if the thread were
// compacted now: results that the model has not seen stay whole, and one step later they
// would be freed too.
func (a Auto) unseenExcess(s *Situation) int {
	unseen := 0
	for _, i := range strategy.Unseen(s.Thread) {
		unseen += s.PlainSizes[i]
	}
	return max(0, unseen-int(maxUnseenShare*float64(a.target(s)-s.Fixed)))
}

// stepGrowth is what a step is expected to add, in tokens: the recent average of an answer
// and the results for it, without bursts.
func stepGrowth(s *Situation) float64 {
	tokens, steps := usualGrowth*usualSteps, usualSteps
	for step := range stepSizes(s) {
		tokens += min(step, maxStepGrowth)
		steps++
	}
	return float64(tokens) / float64(steps)
}

// pace is what the last few steps added on average, in tokens; 0 where none is known.
func pace(s *Situation) int {
	tokens, steps := 0, 0
	for step := range stepSizes(s) {
		tokens += min(step, min(s.Room(), balancedMark)/maxPace)
		if steps++; steps == paceSteps {
			break
		}
	}
	return tokens / max(1, steps)
}

// stepSizes are what the last steps added, in tokens, the newest first: an answer and the
// results for it.
func stepSizes(s *Situation) iter.Seq[int] {
	return func(yield func(int) bool) {
		step := 0
		for i := s.Thread.Len() - 1; i >= 0 && i >= s.Thread.Len()-growthMessages; i-- {
			step += s.PlainSizes[i]
			if s.Thread.At(i).Role == thread.Assistant {
				if !yield(step) {
					return
				}
				step = 0
			}
		}
	}
}

// unreadTokens is what no provider has read yet, in tokens: the model's last answer and
// what came after it.
func (a Auto) unreadTokens(s *Situation) int {
	tokens, answered := 0, false
	for i := s.Thread.Len() - 1; i >= 0; i-- {
		if assistant := s.Thread.At(i).Role == thread.Assistant; answered && !assistant {
			break
		} else if assistant {
			answered = true
		}
		tokens += s.PlainSizes[i]
	}
	return tokens
}

// target is what the request may take after a compaction, in tokens.
func (a Auto) target(s *Situation) int {
	a = a.Defaults()
	target := s.shareOfRoom(a.Target)
	if s.Limit() == 0 {
		target = s.ShareOfMessages(s.PromptTokens, a.Target)
	}
	if s.Rates.Read > 0 && a.Favor != FavorQuality || a.Favor == FavorQuality && a.Working > 0 {
		left := s.Fixed + max(cmp.Or(a.Working, defaultWorking), wordsShare*userWordTokens(s))
		if a.Working == 0 {
			left = max(left, s.ShareOfMessages(a.favorFloor(s), balancedKept))
		}
		target = min(target, left)
	}
	if hard := s.shareOfRoom(a.Hard); hard > 0 {
		if target >= hard {
			target = min(s.ShareOfMessages(hard, 0.5), hard-1)
		}
		if a.Target == a.filled {
			target = min(target, max(hard-apart*pace(s), s.shareOfRoom(leastKept)))
		}
	}
	if s.Refusals > 0 && s.PromptTokens >= minWindow {
		target = min(target, s.PromptTokens) // the model reads less than it was thought to
	}
	for range s.Refusals {
		target = s.ShareOfMessages(target, refusalShrink)
	}
	return target
}

// userWordTokens is the larger of the user's first and last message, in tokens. They are
// shortened when they take more than a third of the room, so prices must leave three times
// as much.
func userWordTokens(s *Situation) int {
	words := 0
	for _, i := range s.firstAndLast((*thread.Message).StartsTurn) {
		words = max(words, s.PlainSizes[i])
	}
	return words
}

// firstAndLast are the positions of the first and the last message that match; one where
// they are the same, none where there is none.
func (s *Situation) firstAndLast(matches func(*thread.Message) bool) []int {
	messages := s.Thread.Messages()
	for first := range messages {
		if !matches(&messages[first]) {
			continue
		}
		last := len(messages) - 1
		for last > first && !matches(&messages[last]) {
			last--
		}
		return slices.Compact([]int{first, last})
	}
	return nil
}

const wordsShare = 3

// Plan brings the request down to the target. What the model has not seen yet stays whole
// while the request fits what the model can read. A budget that was asked for takes the
// place of the target (Situation.Fill).
func (a Auto) Plan(ctx context.Context, s *Situation) (*Fitted, error) {
	return a.plan(ctx, s, a.Name(), strategy.Auto())
}

// plan is Plan of a policy of that name with that ladder.
func (a Auto) plan(ctx context.Context, s *Situation, name string, ladder strategy.Ladder) (*Fitted, error) {
	if s.Fill {
		return fill(ctx, s, name, ladder)
	}
	a = a.Defaults()
	target := a.target(s)
	if s.PromptTokens <= target {
		return nil, fmt.Errorf("policy %s: the request takes %s tokens, the target is %s: %w", name, clip.Number(s.PromptTokens), clip.Number(target), ErrNothing)
	}
	whole := s.Limit()
	for range s.Refusals { // the provider counts more than we do
		whole = s.ShareOfMessages(whole, refusalShrink)
	}
	budgets := []int{target}
	if s.Refusals == 0 { // what must stay may be more than prices, or the target, would leave
		hard := s.shareOfRoom(a.Hard)
		budgets = append(budgets, s.shareOfRoom(a.Target), (target+hard)/2, hard)
	}
	return Fit(ctx, s, name, ladder, whole, budgets...)
}

// shareOfRoom is the size of a request whose messages take that share of their room, as a
// ratio, in tokens; 0 when the limit is unknown. Marks and targets are such sizes: system
// and tools are not taken out of what is kept of the conversation.
func (s *Situation) shareOfRoom(ratio float64) int { return s.ShareOfMessages(s.Limit(), ratio) }

// ShareOfMessages is the size of a request whose messages take that share of those of a
// request of so many tokens. Where system and tools alone take as much, it is a share of
// all.
func (s *Situation) ShareOfMessages(request int, ratio float64) int {
	if request <= s.Fixed {
		return int(float64(request) * ratio)
	}
	return s.Fixed + int(float64(request-s.Fixed)*ratio)
}

// Room is what all messages together may take, in tokens: what the model can read, without
// system, tools and framing. It is 0 when the limit is unknown or nothing is left.
func (s *Situation) Room() int { return max(0, s.Limit()-s.Fixed) }

// Limit is what the model can read, in tokens: the smaller of the budget and what its window
// leaves beside its answer; 0 when neither is known.
func (s *Situation) Limit() int {
	return smallerLimit(s.Budget, max(0, s.Window-s.Output))
}

// smallerLimit is the smaller of two limits, in tokens; 0 is none.
func smallerLimit(a, b int) int {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Defaults returns the policy with the defaults of its favor filled in, for display. It
// decides the same. Working stays 0 where the balanced mark also counts.
func (a Auto) Defaults() Auto {
	hard, target := defaultHard, defaultTarget
	switch a.Favor {
	case FavorCost:
		a.Working = cmp.Or(a.Working, defaultWorking)
	case FavorQuality:
		hard = qualityHard
		target = qualityKept * cmp.Or(a.Hard, hard)
	default:
		a.Favor = FavorBalanced
	}
	if a.Target == 0 {
		a.Target, a.filled = target, target
	}
	a.Hard = cmp.Or(a.Hard, hard)
	return a
}

// Marks are sizes of the whole request, in tokens.
type Marks struct {
	// Mark is where the thread is compacted, 0 if unknown. Soft is where a compaction is
	// prepared in the background, given a queue of jobs. Hard is the largest request
	// before a compaction, whatever tokens cost. Soft and Hard are 0 where the window is
	// unknown.
	Soft, Mark, Hard int
	// Target is what the request may take afterwards, at most.
	Target int
	// Priced says that prices decided Mark.
	Priced bool
}

// Marks says when the policy compacts and what it leaves: Target < Mark ≤ Hard, and Hard
// is at most what the model can read.
func (a Auto) Marks(s *Situation) Marks {
	a = a.Defaults()
	m := Marks{Hard: a.hardMark(s), Target: a.target(s)}
	m.Soft, m.Mark = a.moved(s, s.shareOfRoom(min(defaultSoft, a.Hard))), m.Hard
	if priced := a.priceMark(s); priced > 0 && (m.Hard == 0 || priced < m.Hard) {
		m.Mark, m.Priced = priced, true
		m.Soft = min(m.Soft, priced)
	}
	return m
}

// priceFloor is the size below which prices do not decide for a compaction, in tokens.
func (a Auto) priceFloor(s *Situation) int {
	floor := a.favorFloor(s)
	if s.CacheExpired {
		floor = s.ShareOfMessages(floor, balancedCold)
	}
	return floor
}

// favorFloor is the size below which FavorBalanced does not compact, in tokens; 0 with
// FavorCost.
func (a Auto) favorFloor(s *Situation) int {
	switch {
	case a.Favor == FavorCost:
		return 0
	case s.Limit() > 0:
		return min(balancedMark, s.shareOfRoom(balancedShare))
	}
	return balancedMark
}

// defaultSoft leaves room for a few large results while the next plan is made.
const defaultSoft = 0.75

// DueSoon reports whether the request has passed the soft mark: 75 % of the room for
// messages, which is below every hard mark, or the price mark below that. Before the price
// mark nothing is prepared, since that would keep less, or cost more, than the favor asks
// for.
func (a Auto) DueSoon(s *Situation) (bool, string) {
	soft := a.Marks(s).Soft
	if soft == 0 || s.PromptTokens <= soft {
		return false, ""
	}
	return true, fmt.Sprintf("the request takes %d tokens and is over %d of %d, before it has to be", s.PromptTokens, soft, s.Limit())
}

// WaitsForJobs is false: below the hard mark nobody waits.
func (Auto) WaitsForJobs() bool { return false }
