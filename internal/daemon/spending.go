package daemon

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/store"
)

// Spending bounds the tokens that models are asked for each tenant, for summaries and
// decisions: so many at once, and so many more each hour. Beyond that they are made
// without a model. It is safe for concurrent use; make one with NewSpending. Nil
// bounds nothing.
type Spending struct {
	hourly float64
	now    func() time.Time
	used   atomic.Int64
	denied atomic.Int64

	mu      sync.Mutex
	tenants map[string]bucket
}

// NewSpending lets each tenant spend so many tokens an hour; 0 any number. A nil clock
// is time.Now.
func NewSpending(tokens int, now func() time.Time) *Spending {
	if now == nil {
		now = time.Now
	}
	return &Spending{hourly: float64(tokens), now: now, tenants: map[string]bucket{}}
}

// Answers are what models answered a tenant before, and asks what it may.
func (s *Spending) Answers(tenant string, kept store.Answers) *llm.Answers {
	if s == nil {
		return llm.NewAnswers(kept)
	}
	return llm.NewMetered(kept, purse{s, tenant})
}

// purse is the llm.Meter of a tenant.
type purse struct {
	*Spending
	tenant string
}

// Begin implements llm.Meter. It takes what the question may use, and gives back what
// it did not.
func (p purse) Begin(tokens int) (end func(used int), err error) {
	want := float64(tokens)
	if !p.take(want) {
		p.denied.Add(1)
		return nil, fmt.Errorf("the tenant has asked models as much as it may for now (%.0f tokens an hour)", p.hourly)
	}
	return func(used int) {
		p.used.Add(int64(used))
		p.add(want - float64(used))
	}, nil
}

func (p purse) take(tokens float64) bool {
	if p.hourly <= 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.filled()
	if b.tokens < tokens {
		return false
	}
	b.tokens -= tokens
	p.tenants[p.tenant] = b
	return true
}

func (p purse) add(tokens float64) {
	if p.hourly <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.filled()
	b.tokens = min(p.hourly, b.tokens+tokens)
	p.tenants[p.tenant] = b
}

// filled is the bucket of the tenant as it is now. The caller holds the lock.
func (p purse) filled() bucket {
	now := p.now()
	b, known := p.tenants[p.tenant]
	if !known {
		b.tokens = p.hourly
	} else if passed := now.Sub(b.at).Hours(); passed > 0 {
		b.tokens = min(p.hourly, b.tokens+passed*p.hourly)
	}
	b.at = now
	return b
}
