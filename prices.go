package palimpsest

import (
	"time"

	"github.com/palimpsest-ai/palimpsest/cost"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/token"
)

// price tells the policy what the tokens of the step's model cost, whether its
// provider has forgotten the prompt, and whether the agent can read again what
// is put aside. A model that the table of package token does not hold has no
// prices; a thread that this process has not sent yet is not known to be cold.
func (t *Thread) price(s *policy.State) {
	s.Reachable = t.c.config.Recall != nil
	m, err := token.Models().Find(s.Base.Model)
	if s.Base.Model == "" || err != nil {
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
