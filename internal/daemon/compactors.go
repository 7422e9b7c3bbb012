package daemon

import (
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

// release frees what the compactors remember of a thread.
func (cs *compactors) release(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, pair := range append(slices.Collect(maps.Values(cs.byCounter)), cs.usual) {
		pair.online.Session(id).Release()
		pair.offline.Session(id).Release()
	}
}
