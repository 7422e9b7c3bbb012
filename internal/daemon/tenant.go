package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/mcp"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/token"
)

// tenant is what the daemon holds for a tenant: its stores, its compactor, and the
// prompts of its threads.
type tenant struct {
	store.Tenant
	name       string
	compactors compactors
	config     palimpsest.Config // of the usual compactor
	hub        *hub
	// searchCache is that of agents, over all tenants.
	searchCache *mcp.Memory

	// prepared holds what was last prepared in the threads of all tenants, by tenant and thread.
	prepared *lru.Cache[[2]string, *palimpsest.Prepared]
}

// preparedBytes bounds what is held of last prompts, for all tenants together.
const preparedBytes = 16 << 20

// keepPrepared keeps what was prepared in a thread, without its messages. Losing it loses only what the next request
// tells again.
func (t *tenant) keepPrepared(id string, made *palimpsest.Prepared) {
	kept, bytes := *made, 1<<10 // beside its texts
	kept.Prompt, kept.Manifest, kept.Compacted = nil, nil, nil
	if base := kept.Step.Base; base != nil {
		const each = 128 // of a block or a tool, beside its texts
		bytes += len(base.Model)
		for _, s := range base.System {
			bytes += each + len(s.Text)
		}
		for _, t := range base.Tools {
			bytes += each + len(t.Name) + len(t.Description) + len(t.Schema)
		}
		if base.Source != nil {
			bytes += len(base.Source.Body)
		}
	}
	t.prepared.Put([2]string{t.name, id}, &kept, bytes)
}

// keptPrepared is what was last prepared in a thread; nil when this process has none.
func (t *tenant) keptPrepared(id string) *palimpsest.Prepared {
	p, _ := t.prepared.Get([2]string{t.name, id})
	return p
}

// session is the conversation of a thread, whose writes keep to the version in If-Match.
func (c *call) session(id string) *palimpsest.Session {
	return c.withCondition(c.compactor(id).Session(id))
}

func (c *call) compactor(id string) *palimpsest.Compactor {
	return c.tenant.compactorOf(c.r.Context(), id)
}

func (c *call) withCondition(s *palimpsest.Session) *palimpsest.Session {
	switch {
	case c.version == api.Any:
		return s
	case c.op.IfMatch == "version":
		return s.OnlyIf(palimpsest.Condition{Log: &c.version})
	}
	return s.OnlyIf(palimpsest.Condition{Plans: &c.version})
}

// compactorOf is that of a thread: it counts as the model of the last step does.
func (t *tenant) compactorOf(ctx context.Context, id string) *palimpsest.Compactor {
	return t.compactors.of(t.modelOf(ctx, id)).online
}

// compactorBy answers calls that a key may make which may only read: for such a key it asks
// no provider.
func (t *tenant) compactorBy(ctx context.Context, id string, rights apikey.Rights) *palimpsest.Compactor {
	if rights.Has(apikey.Write) {
		return t.compactorOf(ctx, id)
	}
	return t.compactors.of(t.modelOf(ctx, id)).offline
}

// modelOf is the model of a thread's last step; empty if it is not known.
func (t *tenant) modelOf(ctx context.Context, id string) string {
	last, err := t.lastStep(ctx, id)
	if err != nil || last.Base == nil {
		return ""
	}
	return last.Base.Model
}

// lastStep is the agent's last request in a thread, without its messages. Of system and
// tools another process than the one that got it, or a proxy, knows only the size.
func (t *tenant) lastStep(ctx context.Context, id string) (palimpsest.Step, error) {
	if p := t.keptPrepared(id); p != nil {
		return p.Step, nil
	}
	return t.compactors.usual.online.Session(id).LastStep(ctx)
}

// lastPrepared is the last prompt of a thread; when this process has none, one that holds
// the step alone.
func (t *tenant) lastPrepared(id string, step palimpsest.Step) *palimpsest.Prepared {
	if p := t.keptPrepared(id); p != nil {
		return p
	}
	return &palimpsest.Prepared{Step: step}
}

// planAt returns a version of the plans; nil for 0.
func (t *tenant) planAt(ctx context.Context, id string, version int) (*plan.Plan, error) {
	if version == 0 {
		return nil, nil
	}
	p, err := t.Plans.Plan(ctx, id, version)
	if errors.Is(err, store.ErrNotFound) {
		return nil, problem(api.NotFound, "the thread has no plan %d; GET …/plans lists those that it has", version)
	}
	return p, err
}

// tenants are those that were asked for since the daemon started.
type tenants struct {
	config      *Config
	jobs        job.Queue // nil where nothing is done in the background
	searchCache *mcp.Memory
	prepared    *lru.Cache[[2]string, *palimpsest.Prepared]

	mu     sync.Mutex
	byName map[string]*tenant
}

// get returns a tenant, made when it is first asked for.
func (ts *tenants) get(name string) (*tenant, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.byName[name]; t != nil {
		return t, nil
	}
	t := &tenant{
		Tenant: ts.config.Store.Tenant(name), name: name,
		hub: &hub{watchers: map[string]map[*watcher]bool{}}, searchCache: ts.searchCache, prepared: ts.prepared,
	}
	c := ts.config.Compactor
	c.Store, c.Answers = t.Tenant, ts.config.Spending.Answers(name, t.Answers)
	c.Store.Plans = watchedPlans{t.Plans, t.hub}
	c.Artifacts, c.Requester = ts.config.Artifacts, artifact.Requester{TenantID: name}
	c.Jobs, c.Domain = ts.jobs, Domain(name)
	c.Events = event.Func(func(ctx context.Context, e event.Event) {
		event.Multi(ts.config.Counters, event.Func(t.recordEvent), ts.config.Compactor.Events).Emit(ctx, e)
	})
	c.Now = ts.config.Now
	t.config = c
	var err error
	if t.compactors, err = newCompactors(ts.config, c, t.Answers); err != nil {
		return nil, err
	}
	ts.byName[name] = t
	return t, nil
}

// offlineConfig is a configuration that asks no provider: summaries and decisions are made
// by code, unless a model's answer is known already.
func offlineConfig(c palimpsest.Config, known store.Answers) palimpsest.Config {
	c.Answers, c.Measure, c.Jobs = llm.NewMetered(known, noSpending{}), nil, nil
	if c.Recall != nil {
		words := *c.Recall
		words.Embedder = nil
		c.Recall = &words
	}
	return c
}

// Domain is the tenant's name in the keys of jobs, where a colon stands between domain
// and thread.
func Domain(tenant string) string { return url.QueryEscape(tenant) }

// runJob does a compaction in the background.
func (ts *tenants) runJob(ctx context.Context, j job.Job) error {
	name, model, err := tenantOf(j)
	if err != nil {
		return err
	}
	t, err := ts.get(name)
	if err != nil {
		return err
	}
	return t.compactors.of(model).online.Work(ctx, j)
}

// runProxyJob does a compaction of a proxied conversation in the background.
func (ts *tenants) runProxyJob(ctx context.Context, j job.Job) error {
	name, _, err := tenantOf(j)
	if err != nil {
		return err
	}
	handler, err := ts.config.Proxy(name)
	if err != nil {
		return err
	}
	p, ok := handler.(*proxy.Proxy)
	if !ok {
		return fmt.Errorf("job %s: the tenant has no proxy", j.Kind)
	}
	return p.Work(ctx, j)
}

func tenantOf(j job.Job) (name, model string, err error) {
	domain, _, model, err := palimpsest.ParseJob(j)
	if err != nil {
		return "", "", err
	}
	if name, err = url.QueryUnescape(domain); err != nil {
		err = fmt.Errorf("job %s: its domain cannot be read: %w", j.Kind, err)
	}
	return name, model, err
}

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
