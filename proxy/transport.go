package proxy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/emulate"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/retry"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Transport is a Proxy as an http.RoundTripper, for the http.Client of an SDK in the same process. It is
// safe for concurrent use.
type Transport struct {
	*core
	models        *models
	compactors    *compactors
	conversations *conversations
	histories     *histories
	parser        *parser
	stepper       *stepper
	sender        *sender
	emulator      *emulate.Emulator // nil for none
	retry         retry.Policy      // of further requests for an answer
}

// countRequest counts a request that asks a model.
func (co *core) countRequest(e endpoint) {
	co.asked.Add(1)
	co.byVendor[e.dialect.Vendor].Add(1)
}

// maxProviderIDs bounds the responses that have another id for the client, and the conversations that
// are lost.
const maxProviderIDs = 10_000

// Totals are sums over the requests that ask a model.
type Totals struct {
	// Requests counts them, and Edited those that did not pass as they came.
	Requests, Edited int64
	// Compactions counts new plans. Recovered counts requests that the provider took after it had
	// refused them as too long, also those that the client does not see.
	Compactions, Recovered int64
	// Faults counts failures of our own part.
	Faults int64
	// TokensBefore is about what the edited requests would have taken as they came, and TokensSent
	// what they took, with the further requests that the client does not see.
	TokensBefore, TokensSent int64
}

// NewTransport returns a Transport. The error says which option is invalid.
func NewTransport(o *Options) (*Transport, error) {
	if o == nil {
		o = &Options{}
	}
	all := &core{options: *o}
	ms := &models{core: all, models: token.Models(), toldWindows: lru.New[string, int](maxWindows), assumed: lru.New[string, token.Model](maxWindows)}
	cs := &compactors{core: all, models: ms, compactors: map[compactorKey]*palimpsest.Compactor{}}
	cv := &conversations{core: all, openLookups: openLookups{logs: lru.New[string, bool](maxSessions)}}
	hs := &histories{core: all, conversations: cv, providerIDs: lru.New[string, string](maxProviderIDs), lostConversations: lru.New[string, bool](maxProviderIDs)}
	ps := &parser{core: all, models: ms, conversations: cv}
	t := &Transport{
		core: all, models: ms, compactors: cs, conversations: cv, histories: hs, retry: o.retry,
		parser: ps, stepper: &stepper{core: all, models: ms, compactors: cs, conversations: cv, parser: ps},
		sender: &sender{core: all, models: ms, histories: hs},
	}
	if o.Models != nil {
		t.models.models = *o.Models
	}
	t.retry.Total = cmp.Or(t.retry.Total, maxRetryTime)
	t.options.Rounds = cmp.Or(o.Rounds, defaultRounds)
	t.options.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	t.setUpJobs()
	t.options.Deadline = cmp.Or(t.options.Deadline, defaultDeadline)
	if o.Base == nil {
		base := http.DefaultTransport.(*http.Transport).Clone()
		base.DisableCompression = true
		base.MaxIdleConnsPerHost = 64
		base.ResponseHeaderTimeout = 0
		t.options.Base = base
	}
	if o.Memory == nil {
		t.options.Memory = NewMemory(nil)
	}
	t.requests = t.options.Memory.index.Tenant(t.compactors.releaseSession)
	apis, err := native.APIs(o.Emulate)
	if err != nil {
		return nil, fmt.Errorf("proxy.NewTransport: emulate: %w", err)
	}
	t.setUpStores()
	if len(apis) > 0 {
		t.emulator = t.newEmulator(apis)
	}
	if _, err := palimpsest.New(t.options.Config); err != nil {
		return nil, fmt.Errorf("proxy.NewTransport: %w", err)
	}
	return t, nil
}

// setUpStores puts a store in memory in place of those that the options do not have.
func (t *Transport) setUpStores() {
	c, inMemory := &t.options.Config, &store.Memory{}
	if c.Log == nil {
		c.Log = inMemory
	}
	if c.Plans == nil {
		c.Plans = inMemory
	}
	if c.Memory == nil {
		c.Memory = t.options.Memory.sessions
	}
	if c.Answers == nil {
		c.Answers = llm.NewAnswers(nil) // one for all counters
	}
	if c.Documents == nil {
		c.Documents = t.options.Documents
	}
	documents := t.options.Documents
	if documents == nil {
		documents = inMemory
	}
	t.conversations.log, t.conversations.plans = c.Log, c.Plans
	t.histories.responses.records, t.conversations.beginnings, t.models.windows, t.conversations.lineage = responsesIn(documents), beginningsIn(documents), windowsIn(documents), lineageIn(documents)
	t.models.reasoningRules = reasoningRulesIn(documents)
}

// CloseIdleConnections closes idle connections to providers.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.options.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Totals are the sums since the transport was made.
func (t *Transport) Totals() Totals {
	return Totals{
		Requests: t.asked.Load(), Edited: t.edited.Load(), Compactions: t.compactions.Load(),
		Recovered: t.recovered.Load(), Faults: t.faults.Load(),
		TokensBefore: t.tokensBefore.Load(), TokensSent: t.tokensSent.Load(),
	}
}

// compactorKey says which models share a compactor: those that count alike, and that are offered the tools
// to read again what was removed, or not.
type compactorKey struct {
	counter *token.Counter
	offers  bool
}

// counter counts as a model does.
func (ms *models) counter(m token.Model) (*token.Counter, error) {
	if c := ms.options.Config.Counter; c != nil {
		return c, nil
	}
	return ms.options.Memory.counter(cmp.Or(m.Counter, "o200k"))
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
		config.Recall = &palimpsest.Recall{Rehydrate: rehydrate.Options{Disabled: true}} // which would change the prefix for one prompt
	}
	c, err := palimpsest.New(config)
	if err == nil {
		cs.compactors[key] = c
	}
	return c, err
}

// releaseSession frees what the compactors remember of a conversation.
func (cs *compactors) releaseSession(log string) {
	for _, c := range cs.allCompactors() {
		c.Session(log).Release()
	}
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

// assumedModel is what is assumed of a model that the table does not know: the figures of its
// family, which an event tells once, and the default window.
func (ms *models) assumedModel(name string) token.Model {
	m, known := ms.assumed.Get(name)
	if !known {
		var err error
		if m, err = ms.models.Like(name); err != nil {
			m = token.Model{Name: name}
		}
		ms.assumed.Put(name, m, 1)
		if err == nil && ms.options.Window == 0 && ms.options.DefaultWindow == 0 {
			event.Emit(context.Background(), ms.options.Config.Events, event.Event{
				Type: event.ModelAssumed, TenantID: ms.options.Config.Requester.TenantID,
				Details: map[string]any{"model": name, "window": m.Window, "figures": m.Source},
			})
		}
	}
	if ms.options.DefaultWindow > 0 {
		m.Window, m.MaxInput = ms.options.DefaultWindow, 0
	}
	return m
}

// model is what the table and the options say of a model; only its name if they say nothing.
func (ms *models) model(name string) token.Model {
	m, err := ms.models.Find(name)
	if err != nil {
		m = ms.assumedModel(name)
	}
	if ms.options.Window > 0 {
		m.Window, m.MaxInput = ms.options.Window, 0
	}
	return m
}

// givesWindow reports whether the window of a model is of the options, and not of the built-in
// table.
func (ms *models) givesWindow(m token.Model) bool {
	if m.Window == 0 || ms.options.Window > 0 {
		return m.Window > 0
	}
	if _, err := ms.models.Find(m.Name); err != nil {
		return ms.options.DefaultWindow > 0
	}
	builtin, err := token.Models().Find(m.Name)
	return err != nil || m.Window != builtin.Window
}
