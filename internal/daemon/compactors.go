package daemon

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/token"
)

// compactors are those of a tenant, a pair for each way in which models count.
type compactors struct {
	usual compactorPair
	name  string // of the counter of the usual ones
	make  func(*token.Counter) (compactorPair, error)
	// counter is that of a name, for all tenants.
	counter func(name string) (*token.Counter, error)
	// models say how a model counts; nil where all count alike.
	models *token.ModelSet

	mu        *sync.Mutex
	byCounter map[string]compactorPair
}

// compactorPair are two compactors that count alike. offline asks no provider.
type compactorPair struct{ online, offline *palimpsest.Compactor }

func newCompactors(o *Config, c palimpsest.Config, known store.Answers) (compactors, error) {
	cs := compactors{name: c.Counter.Name(), counter: o.Memory.Counter, mu: &sync.Mutex{}, byCounter: map[string]compactorPair{}}
	if o.countsByModel {
		cs.models = o.Models
	}
	cs.make = func(counter *token.Counter) (pair compactorPair, err error) {
		c := c
		c.Counter = counter
		if pair.online, err = palimpsest.New(c); err == nil {
			pair.offline, err = palimpsest.New(offlineConfig(c, known))
		}
		return pair, err
	}
	var err error
	cs.usual, err = cs.make(c.Counter)
	return cs, err
}

// of are the compactors that count as a model does, the usual ones where that is unknown.
func (cs *compactors) of(model string) compactorPair {
	if cs.models == nil || model == "" {
		return cs.usual
	}
	m, err := cs.models.Find(model)
	if err != nil {
		m, err = cs.models.Like(model)
	}
	if err != nil || m.Counter == "" {
		return cs.usual
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if pair, made := cs.byCounter[m.Counter]; made {
		return pair
	}
	pair := cs.usual
	if counter, err := cs.counter(m.Counter); err == nil && counter.Name() != cs.name {
		if own, err := cs.make(counter); err == nil {
			pair = own
		}
	}
	cs.byCounter[m.Counter] = pair
	return pair
}

// all are those that were made, each once and always in the same order.
func (cs *compactors) all() []compactorPair {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	all := []compactorPair{cs.usual}
	for _, name := range slices.Sorted(maps.Keys(cs.byCounter)) {
		if pair := cs.byCounter[name]; pair != cs.usual {
			all = append(all, pair)
		}
	}
	return all
}

// delete calls remove, which deletes a thread from the stores, while no compactor has a step of it at work, and then
// frees what all remember of it.
func (cs *compactors) delete(ctx context.Context, id string, remove func(context.Context) error) error {
	for _, pair := range cs.all() {
		inner := remove
		remove = func(ctx context.Context) error {
			defer pair.offline.Session(id).Release()
			return pair.online.Session(id).Delete(ctx, inner)
		}
	}
	return remove(ctx)
}
