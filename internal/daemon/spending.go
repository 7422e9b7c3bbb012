package daemon

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/ratelimit"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/store"
)

// Spending bounds the tokens that each tenant spends on models for summaries and
// decisions: so many at once, and as many more each hour. Beyond that they are made
// without a model. Make one with NewSpending. It is safe for concurrent use.
type Spending struct {
	hourly  int
	tenants *ratelimit.Buckets[string]
	used    atomic.Int64
	denied  atomic.Int64
}

// NewSpending lets each tenant spend so many tokens an hour; 0 for any number. A nil
// clock is time.Now.
func NewSpending(tokens int, now func() time.Time) *Spending {
	if now == nil {
		now = time.Now
	}
	return &Spending{hourly: tokens, tenants: ratelimit.New[string](float64(tokens), time.Hour, now)}
}

// Answers are the stored answers of models to a tenant, which count and bound what it
// spends on new ones.
func (s *Spending) Answers(tenant string, kept store.Answers) *llm.Answers {
	return llm.NewMetered(kept, tenantMeter{s, tenant})
}

// tenantMeter is the llm.Meter of a tenant.
type tenantMeter struct {
	*Spending
	tenant string
}

// Begin implements llm.Meter. It takes the most that a request may use, and gives back
// what it did not use.
func (p tenantMeter) Begin(tokens int) (end func(used int), err error) {
	if p.tenants.Take(p.tenant, float64(tokens)) > 0 {
		p.denied.Add(1)
		return nil, fmt.Errorf("the tenant has spent what it may on models for now (%d tokens an hour)", p.hourly)
	}
	return func(used int) {
		p.used.Add(int64(used))
		p.tenants.Give(p.tenant, float64(tokens-used))
	}, nil
}

// noSpending is the llm.Meter of those who may not spend.
type noSpending struct{}

func (noSpending) Begin(int) (func(int), error) {
	return nil, errors.New("the key gives only the right to read, which asks no model")
}
