package proxy

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Counter is the counter of that name (see token.New), made once: who counts alike shares what was counted.
func (m *Memory) Counter(name string) (*token.Counter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.counters[name]; c != nil {
		return c, nil
	}
	c, err := token.New(name, nil)
	if err == nil {
		m.counters[name] = c
	}
	return c, err
}

// compactors are those of the models, made when they are needed.
type compactors struct {
	*core
	models *models

	mu         sync.Mutex
	compactors map[compactorKey]*palimpsest.Compactor
}

// compactorKey says which models share a compactor: those that count alike, and that are offered the tools
// to read again what was removed, or not.
type compactorKey struct {
	counter *token.Counter
	offers  bool
}

func (cs *compactors) compactor(m token.Model, offers bool) (*palimpsest.Compactor, error) {
	counter, err := cs.models.counter(m)
	if err != nil {
		return nil, err
	}
	key := compactorKey{counter, offers}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.compactors[key]; c != nil {
		return c, nil
	}
	config := cs.options.Config
	config.Counter = counter
	switch {
	case !offers:
		config.Recall = nil
	case config.Recall == nil:
		config.Recall = &palimpsest.Recall{Rehydrate: recall.Rehydration{Disabled: true}} // which would change the prefix for one prompt
	}
	c, err := palimpsest.New(config)
	if err == nil {
		cs.compactors[key] = c
	}
	return c, err
}

func (cs *compactors) allCompactors() []*palimpsest.Compactor {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Collect(maps.Values(cs.compactors))
}

// finished is Proxy.Finished. One of the compactors had the conversation; the others have no metrics of
// it.
func (cs *compactors) finished(id string, o thread.Outcome) (seen quality.Metrics) {
	for _, c := range cs.allCompactors() {
		s := c.Session(id)
		if o != "" {
			s.TaskFinished(o)
		}
		if m := s.Quality(); m.Compactions >= seen.Compactions {
			seen = m
		}
	}
	return seen
}

// releaseSession frees what the compactors remember of a conversation.
func (cs *compactors) releaseSession(log string) {
	for _, c := range cs.allCompactors() {
		c.Session(log).Release()
	}
}

// counter counts as a model does.
func (ms *models) counter(m token.Model) (*token.Counter, error) {
	if c := ms.options.Config.Counter; c != nil {
		return c, nil
	}
	return ms.options.Memory.Counter(cmp.Or(m.Counter, "o200k"))
}
