package palimpsest

import (
	"math"
	"time"

	"github.com/palimpsest-ai/palimpsest/cost"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/token"
)

// price tells the policy what the tokens of the step's model cost, whether its
// provider has forgotten the prompt, and whether the agent can read again what
// is put aside. With Config.IgnorePrices, or for a model that the table of package token does not hold, it
// knows no prices; a thread that this process has not sent yet is not known to be cold.
func (t *Thread) price(s *policy.State) {
	s.Reachable = t.c.config.Recall != nil
	t.pauses.ttl = 0
	m, err := token.Models().Find(s.Base.Model)
	if s.Base.Model == "" || err != nil || t.c.config.IgnorePrices {
		return
	}
	if rates, ok := cost.Of(m, s.Prompt); ok {
		s.Rates = rates
	}
	if len(m.Cache.TTLs) == 0 {
		return
	}
	if ttl, err := time.ParseDuration(m.Cache.TTLs[0]); err == nil {
		t.pauses.ttl = ttl
		s.Cold, s.Lapse = t.pauses.cold(t.c.config.Now()), t.pauses.lapse()
	}
}

// pauses are those between the requests of a thread, as far as this process has
// sent them.
type pauses struct {
	last          time.Time     // when the provider last read a prompt
	ttl           time.Duration // how long the cache of the step's model keeps it; 0 when not known
	asked, lapsed int           // requests behind another, and those that came too late for the cache
}

// usualAsked: before a thread has told more, one request of so many is taken to
// come too late. The agents of the dev split pause for that long three times in a
// hundred; one that never does must not wait for it for long.
const usualAsked = 100

// cold reports whether the provider has forgotten the last prompt.
func (p *pauses) cold(now time.Time) bool {
	return p.ttl > 0 && !p.last.IsZero() && now.Sub(p.last) > p.ttl
}

// lapse is the chance that the next request comes too late for the cache.
func (p *pauses) lapse() float64 { return float64(p.lapsed+1) / float64(p.asked+usualAsked) }

// read notes that the provider reads a prompt now.
func (p *pauses) read(now time.Time) {
	if !p.last.IsZero() {
		p.asked++
		if p.cold(now) {
			p.lapsed++
		}
	}
	p.last = now
}

// expect notes what a compaction will save where prices are known: in each step,
// as tokens of uncached input, and after how many steps that is more than what
// writing the new prefix costs.
func expect(details map[string]any, s *policy.State, after int) {
	freed := s.Prompt - after
	steps := cost.BreakEven(s.Rates, freed, s.Prompt-s.Fixed, s.Cold)
	if math.IsInf(steps, 1) {
		return
	}
	details["saved_per_step"] = int(s.Rates.Read * float64(freed))
	details["pays_after_steps"] = int(math.Ceil(steps))
}
