package web

import (
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// history is how the requests of the thread grew, with nothing removed and as they were sent: under the
// plans that were in force, and behind the compactions of the agent itself. cached says that their prices are known.
func history(s Input) (plans []view.Plan, steps []view.Step, cached bool) {
	plans, steps = []view.Plan{}, []view.Step{}
	none := &palimpsest.Result{Manifest: s.Result.Manifest, Before: s.Result.Before, After: s.Result.Before, Fixed: s.Result.Fixed}
	before := none
	at := 0
	for _, p := range s.Plans {
		made := p.Result.Plan
		at = max(at, firstMessageUnder(s.Thread, made))
		shown := view.Plan{
			Version: p.Version, CreatedAt: made.CreatedAt, ThreadVersion: made.ThreadVersion, Policy: made.Policy, Records: map[string]int{},
			Before: made.OriginalTokens, After: p.Result.After, At: at, Prefix: commonPrefixTokens(s, before, p.Result),
		}
		if made.Counter != "" && made.Counter != s.Counter.Name() {
			shown.After, shown.Counter = made.CompactedTokens, made.Counter
		}
		for _, ref := range made.Refs() {
			shown.Records[ref.Action.String()]++
		}
		plans = append(plans, shown)
		before = p.Result
	}
	messages := s.Thread.Messages()
	behind := make([]int, len(messages)+1) // tokens of the messages from i on
	for i := len(messages) - 1; i >= 0; i-- {
		behind[i] = behind[i+1] + s.Result.Sizes[i]
	}
	var whole, sent runningBill
	if price, known := s.Model.Price(s.Result.Before); known {
		if whole.rates, known = s.Model.Rates(s.Result.Before); known {
			whole.price = price.Input / 1e6
		}
	}
	sent.rates, sent.price = whole.rates, whole.price
	lifetime := s.Model.Cache.Life()
	inForce := 0 // how many plans were put in force so far
	own := 0     // how many compactions the agent itself has made
	var last time.Time
	for i := 0; i <= len(messages); i++ { // the last is the next request
		if i < len(messages) && (messages[i].Role != thread.Assistant || i > 0 && messages[i-1].Role == thread.Assistant) {
			continue
		}
		kept := -1 // tokens of the last prompt's prefix, when a plan changed it
		for ; inForce < len(plans) && plans[inForce].At <= i; inForce++ {
			if kept < 0 || plans[inForce].Prefix < kept {
				kept = plans[inForce].Prefix
			}
		}
		under := none
		if inForce > 0 {
			under = s.Plans[inForce-1].Result
		}
		step := view.Step{At: i, Whole: s.Result.Before - behind[i], Sent: max(under.After-behind[i], s.Result.Fixed)}
		for ; own < len(s.Marks) && s.Marks[own].At <= i; own++ {
			kept = s.Result.Fixed
		}
		if own > 0 && inForce == 0 { // what stands before it was sent no more
			step.Sent = step.Whole - (behind[0] - behind[s.Marks[own-1].At])
		}
		cold := false
		if i < len(messages) && !messages[i].Time.IsZero() {
			cold = lifetime > 0 && !last.IsZero() && messages[i].Time.Sub(last) > lifetime
			last = messages[i].Time
		}
		step.WholeUSD = whole.addRequest(step.Whole, -1, cold)
		step.SentUSD = sent.addRequest(step.Sent, kept, cold)
		steps = append(steps, step)
	}
	return plans, steps, whole.price > 0
}

// firstMessageUnder is the position of the first message after a plan came into force.
func firstMessageUnder(t *thread.Thread, p *plan.Plan) int {
	at := p.ThreadVersion
	for at < t.Len() && !t.At(at).Time.IsZero() && t.At(at).Time.Before(p.CreatedAt) {
		at++
	}
	return at
}

// commonPrefixTokens is the size of the prefix that two prompts of the thread share. A
// nil prompt is the log itself.
func commonPrefixTokens(s Input, a, b *palimpsest.Result) int {
	common := s.Result.Fixed
	for n := range b.Prompt.Messages {
		origin := b.Manifest.Messages[n]
		if a.Prompt == nil {
			i, ok := s.Thread.Index(origin.ID)
			if !ok || i != n || origin.Synthetic || origin.Record.Action != plan.Include {
				break
			}
		} else if n >= len(a.Prompt.Messages) || !sameMessage(a, b, n) {
			break
		}
		common += b.PromptSizes[n]
	}
	return common
}

// sameMessage reports whether two prompts have the same message at a position. Messages
// that are not from the log are compared by their text.
func sameMessage(a, b *palimpsest.Result, n int) bool {
	x, y := a.Manifest.Messages[n], b.Manifest.Messages[n]
	if x.ID != y.ID || x.Synthetic != y.Synthetic || x.Record.Action != y.Record.Action {
		return false
	}
	return x.Record.Action == plan.Include && !x.Synthetic || Text(&a.Prompt.Messages[n]) == Text(&b.Prompt.Messages[n])
}

// runningBill is what the requests of a conversation cost when the provider caches each
// one for the next.
type runningBill struct {
	rates token.Rates
	price float64 // of one token of uncached input, in dollars
	last  int     // the size of the request before
}

// addRequest returns what the input of a request costs. kept is how much of the last
// request it begins with, -1 for all of it; cold says that the cache has expired.
func (b *runningBill) addRequest(size, kept int, cold bool) float64 {
	read := min(b.last, size)
	if kept >= 0 {
		read = min(kept, read)
	}
	if cold {
		read = 0
	}
	b.last = size
	return (b.rates.Read*float64(read) + b.rates.Write*float64(size-read)) * b.price
}
