package proxy

import (
	"cmp"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/emulate"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// core is what all stages have: the settings, what was read last, and the totals.
type core struct {
	options  Options // with the defaults filled in
	requests *identify.Tenant

	byVendor [dialect.Vendors]atomic.Int64 // of requests

	asked, unanswered, edited, compactions, recovered, faults, tokensBefore, tokensSent atomic.Int64
}

// Transport is a Proxy as an http.RoundTripper, for the http.Client of an SDK in the same process. It is
// safe for concurrent use.
type Transport struct {
	*core
	models        *models
	compactors    *compactors
	conversations *conversations
	histories     *histories
	stepper       *stepper
	asker         *asker
	lookups       *lookups
	emulator      *emulate.Emulator // nil for none
}

// maxProviderIDs bounds the responses that have another id for the client, and the conversations that
// are lost.
const maxProviderIDs = 10_000

// Totals are sums over the requests that ask a model.
type Totals struct {
	// Requests counts them, Unanswered those whose provider gave no answer, not even an error, and
	// Edited those that did not pass as they came.
	Requests, Unanswered, Edited int64
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
	o = cmp.Or(o, &Options{})
	all := &core{options: *o}
	ms := &models{core: all, models: token.Models(), toldWindows: lru.New[string, int](maxModels), assumed: lru.New[string, token.Model](maxModels)}
	cs := &compactors{core: all, models: ms, compactors: map[compactorKey]*palimpsest.Compactor{}}
	cv := &conversations{core: all, models: ms, asked: lru.New[thread.ID, string](maxAsked), openLookups: lru.New[string, bool](maxSessions)}
	hs := &histories{core: all, conversations: cv, providerIDs: lru.New[string, string](maxProviderIDs), lostConversations: lru.New[string, bool](maxProviderIDs)}
	st := &stepper{core: all, models: ms, compactors: cs, conversations: cv}
	a := &asker{core: all, models: ms, stepper: st, histories: hs}
	ls := &lookups{core: all, stepper: st, asker: a, providerIDs: hs.providerIDs, retry: o.retry}
	t := &Transport{core: all, models: ms, compactors: cs, conversations: cv, histories: hs, stepper: st, asker: a, lookups: ls}
	if o.Models != nil {
		t.models.models = *o.Models
	}
	ls.retry.Total = cmp.Or(ls.retry.Total, maxRetryTime)
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
	t.requests = t.options.Memory.index.Tenant(func(log string) { // what the compactors remember of it is freed
		for _, c := range cs.allCompactors() {
			c.Session(log).Release()
		}
	})
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
	c.Store.Log, c.Store.Plans = cmp.Or[store.Log](c.Store.Log, inMemory), cmp.Or[store.Plans](c.Store.Plans, inMemory)
	c.Memory = cmp.Or(c.Memory, t.options.Memory.sessions)
	if c.Answers == nil {
		c.Answers = llm.NewAnswers(c.Store.Answers) // one for all counters
	}
	documents := cmp.Or[store.Documents](c.Store.Documents, inMemory)
	t.conversations.log, t.conversations.plans = c.Store.Log, c.Store.Plans
	t.histories.responses.records, t.conversations.beginnings, t.models.learned, t.conversations.lineage = responsesIn(documents), beginningsIn(documents), records[learned]{documents: documents, kind: "proxy-model", cache: lru.New[string, record[learned]](maxModels)}, lineageIn(documents)
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
		Requests: t.asked.Load(), Unanswered: t.unanswered.Load(), Edited: t.edited.Load(), Compactions: t.compactions.Load(),
		Recovered: t.recovered.Load(), Faults: t.faults.Load(),
		TokensBefore: t.tokensBefore.Load(), TokensSent: t.tokensSent.Load(),
	}
}
