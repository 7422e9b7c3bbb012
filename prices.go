package palimpsest

import (
	"time"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// withPrices adds what the tokens of the model cost, whether the provider's prompt cache
// has expired, and the chance that it will by the next step. A model that the table of
// package token does not know has the prices of its family (token.ModelSet.Like), or none, and none has with Config.IgnorePrices.
func (c *Compactor) withPrices(log *thread.Thread, firstNew int, situation *policy.Situation) *policy.Situation {
	out := *situation
	last := lastPromptRead(log, firstNew)
	out.Cached = !last.IsZero()
	m, err := token.Models().Like(situation.Base.Model)
	if situation.Base.Model == "" || err != nil || c.config.IgnorePrices {
		return &out
	}
	out.Rates, _ = m.Rates(situation.PromptTokens)
	if ttl := m.Cache.Life(); ttl > 0 {
		out.CacheLife = ttl
		out.CacheExpired = out.Cached && situation.Now.Sub(last) > ttl
		out.ExpiryChance = expiryChance(log, ttl)
	}
	return &out
}

// lastPromptRead is when the provider last read a prompt of the log: with the messages
// before those from position first on. It is zero where there was none.
func lastPromptRead(log *thread.Thread, first int) time.Time {
	for i := first - 1; i >= 0; i-- {
		if log.At(i).Role == thread.Assistant {
			return log.At(first - 1).Time
		}
	}
	return time.Time{}
}

const (
	// assumedRequests: until a conversation has had more requests, one of so many is
	// assumed to come too late. Agents in the dev split pause that long three times in a
	// hundred.
	assumedRequests = 100
	// recentMessages bounds how far back pauses are looked for.
	recentMessages = 1000
)

// expiryChance is the chance that the next request comes too late for a cache with that
// time to live, judged by the pauses so far.
func expiryChance(log *thread.Thread, ttl time.Duration) float64 {
	asked, late := 0, 0
	var last time.Time
	for i := max(1, log.Len()-recentMessages); i < log.Len(); i++ {
		m, before := log.At(i), log.At(i-1)
		if m.Role != thread.Assistant || before.Role == thread.Assistant || before.Time.IsZero() {
			continue
		}
		if !last.IsZero() {
			asked++
			if before.Time.Sub(last) > ttl {
				late++
			}
		}
		last = before.Time
	}
	return float64(late+1) / float64(asked+assumedRequests)
}
