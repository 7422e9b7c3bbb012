package proxy

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/retry"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/quality"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Transport is the exchange of a Proxy as an http.RoundTripper, for the
// http.Client of an SDK in one process. It is safe for concurrent use.
type Transport struct {
	options     Options
	models      token.ModelSet
	log         store.Log
	plans       store.Plans
	requests    *identify.Tenant
	openLookups openLookups
	providerIDs *lru.Cache[string, string] // the provider's ids of responses, by the client's
	// lostConversations are conversations of which something could not be kept, so that what the
	// documents say of them is not true any more.
	lostConversations *lru.Cache[string, bool]
	windows           records[knownWindow]
	// beginnings list conversations by the message that they begin with.
	beginnings  records[[]string]
	retry       retry.Policy // of further requests for an answer
	tokenSecret secret
	responses   responseLog
	lineage     lineage

	mu         sync.Mutex
	compactors map[string]*palimpsest.Compactor // by the name of the counter
	memos      map[*token.Counter]*token.Memo   // of native compaction

	byVendor [vendors]atomic.Int64 // of requests

	asked, edited, compactions, recovered, faults, tokensBefore, tokensSent atomic.Int64
}

// countRequest counts a request that asks a model.
func (t *Transport) countRequest(e endpoint) {
	t.asked.Add(1)
	t.byVendor[e.dialect.vendor].Add(1)
}

// maxProviderIDs bounds the responses that have another id for the client.
const maxProviderIDs = 10_000

// Totals are sums over the requests that ask a model.
type Totals struct {
	// Requests counts them, Edited those that did not go on as they came.
	Requests, Edited int64
	// Compactions counts new plans, Recovered how often a provider took a request
	// that it had refused as too long, further requests that no client sees
	// included.
	Compactions, Recovered int64
	// Faults counts requests that passed untouched because something failed here.
	Faults int64
	// TokensBefore is what the edited requests would have taken as they came,
	// about, and TokensSent what they took, with the further requests that the
	// client does not see.
	TokensBefore, TokensSent int64
}

// NewTransport returns a Transport. The error says which of the options cannot
// be used.
func NewTransport(o *Options) (*Transport, error) {
	if o == nil {
		o = &Options{}
	}
	t := &Transport{options: *o, compactors: map[string]*palimpsest.Compactor{}, memos: map[*token.Counter]*token.Memo{}}
	t.options.Rounds = cmp.Or(o.Rounds, defaultRounds)
	t.options.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	t.setUpJobs()
	t.options.Deadline = cmp.Or(t.options.Deadline, defaultDeadline)
	t.retry = o.retry
	t.retry.Total = cmp.Or(t.retry.Total, maxRetryTime)
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
	t.requests = t.options.Memory.index.Tenant(t.releaseSession)
	t.models = token.Models()
	if o.Models != nil {
		t.models = *o.Models
	}
	var err error
	if t.options.Emulate, err = native.APIs(o.Emulate); err != nil {
		return nil, fmt.Errorf("proxy.NewTransport: emulate: %w", err)
	}
	c := &t.options.Config
	kept := &store.Memory{}
	if c.Log == nil {
		c.Log = kept
	}
	if c.Plans == nil {
		c.Plans = kept
	}
	if c.Memory == nil {
		c.Memory = t.options.Memory.sessions
	}
	if c.Answers == nil {
		c.Answers = llm.NewAnswers(nil) // one for all counters
	}
	t.log, t.plans = c.Log, c.Plans
	if c.Documents == nil {
		c.Documents = o.Documents
	}
	documents := o.Documents
	if documents == nil {
		documents = kept
	}
	t.responses.records, t.beginnings, t.windows, t.lineage = responsesIn(documents), beginningsIn(documents), windowsIn(documents), lineageIn(documents)
	t.lostConversations = lru.New[string, bool](maxProviderIDs)
	t.openLookups.logs, t.providerIDs = lru.New[string, bool](maxSessions), lru.New[string, string](maxProviderIDs)
	if _, err := palimpsest.New(t.options.Config); err != nil {
		return nil, fmt.Errorf("proxy.NewTransport: %w", err)
	}
	return t, nil
}

// CloseIdleConnections closes the connections to providers that nobody uses.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.options.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Totals are what was done since the transport was made.
func (t *Transport) Totals() Totals {
	return Totals{
		Requests: t.asked.Load(), Edited: t.edited.Load(), Compactions: t.compactions.Load(),
		Recovered: t.recovered.Load(), Faults: t.faults.Load(),
		TokensBefore: t.tokensBefore.Load(), TokensSent: t.tokensSent.Load(),
	}
}

// compactor returns the compactor that counts as the model does, and that offers
// what was removed or does not.
func (t *Transport) compactor(m token.Model, offers bool) (*palimpsest.Compactor, error) {
	name := cmp.Or(m.Counter, "o200k")
	key := fmt.Sprint(name, offers)
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.compactors[key]; c != nil {
		return c, nil
	}
	config := t.options.Config
	switch {
	case !offers:
		config.Recall = nil
	case config.Recall == nil:
		config.Recall = &palimpsest.Recall{Rehydrate: rehydrate.Options{Disabled: true}} // what came back by itself would change the prefix for one prompt
	}
	if config.Counter == nil {
		counter, err := t.options.Memory.counter(name)
		if err != nil {
			return nil, err
		}
		config.Counter = counter
	}
	c, err := palimpsest.New(config)
	if err == nil {
		t.compactors[key] = c
	}
	return c, err
}

// releaseSession gives up what the compactors hold of a conversation beside the stores.
func (t *Transport) releaseSession(log string) {
	for _, c := range t.allCompactors() {
		c.Session(log).Release()
	}
}

func (t *Transport) allCompactors() []*palimpsest.Compactor {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.compactors))
}

// finished is Finished of all compactors. One of them has had the conversation; the
// others have nothing to tell of it.
func (t *Transport) finished(id string, o thread.Outcome) (seen quality.Metrics) {
	for _, c := range t.allCompactors() {
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

// model finds what the table and the options say of a model; the name alone where
// they say nothing.
func (t *Transport) model(name string) token.Model {
	m, err := t.models.Find(name)
	if err != nil {
		m = token.Model{Name: name, Window: t.options.DefaultWindow}
	}
	if t.options.Window > 0 {
		m.Window, m.MaxInput = t.options.Window, 0
	}
	return m
}
