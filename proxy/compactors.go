package proxy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
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
		c = c.Remembering(nil)
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

// counter counts as a model does.
func (ms *models) counter(m token.Model) (*token.Counter, error) {
	if c := ms.options.Config.Counter; c != nil {
		return c, nil
	}
	return ms.options.Memory.Counter(cmp.Or(m.Counter, "o200k"))
}

// renderProfile is what the provider's API demands of a prompt. Only models that are known not
// to bind their thinking to the messages before it keep it, and those of providers that are
// known to demand it.
func (st *stepper) renderProfile(ctx context.Context, x *received, m token.Model) render.Profile {
	p := render.For(x.endpoint.dialect.API())
	p.LastUser = true // models of other providers behind the same API demand it too
	p.ReasoningEverywhere = st.models.learnedOf(ctx, x, m.Name).Reasoning
	p.BoundReasoning = !p.ReasoningEverywhere && (m.BindsThinking || p.BoundReasoning && m.Source == "")
	return p
}

// agentModel is a client of the model that the request asks; nil without Options.Agent.
func (st *stepper) agentModel(x *received, r *parsedRequest) llm.Generator {
	if st.options.Agent == nil {
		return nil
	}
	name := x.modelName(r)
	g, err := st.options.Agent(x.endpoint.dialect.API(), name, &http.Client{Transport: agentTransport{x.request, st.options.Base}})
	if err != nil {
		st.emitFault(x, "agent", err, nil)
		return nil
	}
	return g
}

// agentDeadline bounds how long a request waits for a summary by the agent's own model: more than
// summarizers take, and less than clients wait.
const agentDeadline = 3 * time.Minute

// agentTransport sends requests to the agent's provider, with the headers of the agent's request. Its
// credentials are read from that each time, and kept nowhere.
type agentTransport struct {
	request *http.Request
	base    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b agentTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	own := b.request
	out := r.Clone(r.Context())
	address := *own.URL
	address.Path = strings.TrimSuffix(address.Path, "/compact") // a request for a compaction goes below the model's path
	address.RawPath = ""
	out.URL, out.Host = &address, own.Host
	out.Header = own.Header.Clone()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Accept-Encoding", "Idempotency-Key"} {
		out.Header.Del(name)
	}
	for _, name := range []string{"Content-Type", "Accept"} { // of this body
		if values, ok := r.Header[name]; ok {
			out.Header[name] = values
		}
	}
	return sendToProvider(b.base, out)
}

// setLimits says how large a step may be.
func (st *stepper) setLimits(x *received, s *palimpsest.Step, r *parsedRequest) {
	s.Output = outputReserve(r.model, r.Prompt)
	s.Window = r.model.WindowBeside(s.Output)
	s.Budget = x.clientBudget(s)
	if r.retriesRefused {
		s.Window, s.Budget = math.MaxInt32, 0 // not due, whatever was learned of its size since
	}
}

// clientBudget is the budget, in tokens, of a request whose client waits for compactions from a
// threshold on; 0 if only the window bounds it. A policy compacts at nine tenths of it.
func (x *received) clientBudget(s *palimpsest.Step) int {
	budget := x.threshold * 10 / 9
	if room := s.Window - s.Output; room > 0 {
		budget = min(budget, room)
	}
	return budget
}

// outputReserve is the room in tokens that is kept free for the answer: what the request asks
// for, else enough for a long one, and never more than a third of the window. It is less if
// system and tools would leave the conversation less than a third of the window: agents ask
// for the longest answer that any model gives, and a conversation without room cannot be
// compacted.
func outputReserve(m token.Model, p *prompt.Prompt) int {
	asked := p.MaxOutput
	if asked == 0 {
		asked = defaultOutput
		if m.MaxOutput > 0 && m.MaxOutput < asked {
			asked = m.MaxOutput
		}
	}
	left := m.Window - systemTokens(p) - m.Window/3
	return min(asked, m.Window/3, max(left, m.Window/8))
}

// defaultOutput is the room for the answer to a request that names no limit, in tokens.
const defaultOutput = 16_000

// systemTokens is about what system and tools take.
func systemTokens(p *prompt.Prompt) int {
	bytes := 0
	for i := range p.System {
		bytes += len(p.System[i].Text)
	}
	for i := range p.Tools {
		bytes += len(p.Tools[i].Name) + len(p.Tools[i].Description) + len(p.Tools[i].Schema)
	}
	return bytes / minBytesPerToken
}

// minBytesPerToken is about how many bytes a token has in dense text, code and JSON.
const minBytesPerToken = 3

// CompactJob is the kind of the jobs that compact a proxy's conversations, on the queue of its Config.
// Their handler is Transport.Work, or Proxy.Work.
const CompactJob = "compact-proxied"

// proxyQueue gives the jobs of compactors the kind CompactJob. Their keys stay: a conversation has one
// compaction at a time.
type proxyQueue struct{ job.Queue }

// Put implements job.Queue.
func (q proxyQueue) Put(ctx context.Context, j job.Job) (bool, error) {
	j.Kind = CompactJob
	return q.Queue.Put(ctx, j)
}

// setUpJobs makes compactions jobs if the policy has its requests wait for them, and gives requests a
// deadline beyond that wait. Otherwise requests compact on the way.
func (t *Transport) setUpJobs() {
	c := &t.options.Config
	early, ok := policy.As[policy.Background](c.Policy)
	if t.options.Agent != nil {
		c.Jobs = nil
		t.options.Deadline = cmp.Or(t.options.Deadline, agentDeadline)
	}
	if c.Jobs == nil || !ok || !early.WaitsForJobs() {
		c.Jobs = nil
		return
	}
	c.Jobs = proxyQueue{c.Jobs}
	if t.options.Deadline == 0 {
		t.options.Deadline = cmp.Or(c.Patience, palimpsest.DefaultPatience) + defaultDeadline
	}
}

// Work does a job of CompactJob (see palimpsest.Compactor.Work).
func (t *Transport) Work(ctx context.Context, j job.Job) error {
	_, id, model, err := palimpsest.ParseJob(j)
	if err != nil {
		return fmt.Errorf("proxy.Work: %w", err)
	}
	c, err := t.compactors.compactor(t.models.model(model), true)
	if err != nil {
		return fmt.Errorf("proxy.Work: %w", err)
	}
	_, before, err := t.conversations.plans.Current(ctx, id)
	if err == nil {
		err = c.Work(ctx, j)
	}
	if err != nil {
		return err
	}
	if _, after, err := t.conversations.plans.Current(ctx, id); err == nil && after > before {
		t.compactions.Add(1)
	}
	return nil
}

// Work does a job of CompactJob (see palimpsest.Compactor.Work).
func (p *Proxy) Work(ctx context.Context, j job.Job) error { return p.transport.Work(ctx, j) }
