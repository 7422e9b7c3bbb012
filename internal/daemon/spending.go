package daemon

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/bucket"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/store"
)

// Spending bounds the tokens that models are asked for each tenant, for summaries and
// decisions: so many at once, and so many more each hour. Beyond that they are made
// without a model. It is safe for concurrent use; make one with NewSpending. Nil
// bounds nothing.
type Spending struct {
	hourly  int
	tenants *bucket.Buckets[string]
	used    atomic.Int64
	denied  atomic.Int64
}

// NewSpending lets each tenant spend so many tokens an hour; 0 any number. A nil clock
// is time.Now.
func NewSpending(tokens int, now func() time.Time) *Spending {
	if now == nil {
		now = time.Now
	}
	return &Spending{hourly: tokens, tenants: bucket.New[string](float64(tokens), time.Hour, now)}
}

// Answers are what models answered a tenant before, and asks what it may.
func (s *Spending) Answers(tenant string, kept store.Answers) *llm.Answers {
	if s == nil {
		return llm.NewAnswers(kept)
	}
	return llm.NewMetered(kept, tenantMeter{s, tenant})
}

// tenantMeter is the llm.Meter of a tenant.
type tenantMeter struct {
	*Spending
	tenant string
}

// Begin implements llm.Meter. It takes what the question may use, and gives back what
// it did not.
func (p tenantMeter) Begin(tokens int) (end func(used int), err error) {
	if p.tenants.Take(p.tenant, float64(tokens)) > 0 {
		p.denied.Add(1)
		return nil, fmt.Errorf("the tenant has asked models as much as it may for now (%d tokens an hour)", p.hourly)
	}
	return func(used int) {
		p.used.Add(int64(used))
		p.tenants.Give(p.tenant, float64(tokens-used))
	}, nil
}
