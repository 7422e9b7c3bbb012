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
	m, err := token.Models().Find(s.Base.Model)
	if s.Base.Model == "" || err != nil || t.c.config.IgnorePrices {
		return
	}
	if rates, ok := cost.Of(m, s.Prompt); ok {
		s.Rates = rates
	}
	if len(m.Cache.TTLs) == 0 || t.warm.IsZero() {
		return
	}
	if ttl, err := time.ParseDuration(m.Cache.TTLs[0]); err == nil {
		s.Cold = t.c.config.Now().Sub(t.warm) > ttl
	}
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
