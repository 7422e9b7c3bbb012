package cli

import (
	"net/http"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	jobqueue "github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/token"
)

// proxies makes a proxy for each tenant, over what the daemon itself is made of.
type proxies struct {
	settings *config.Config
	daemon   *daemon.Config
	counter  *token.Counter                                                    // nil: each model has its own
	memory   *proxy.Memory                                                     // of all tenants
	agent    func(api, model string, over *http.Client) (llm.Generator, error) // nil: it writes no summaries
	jobs     jobqueue.Queue                                                    // nil where nothing is done in the background

	mu   sync.Mutex
	made map[string]*proxy.Proxy
}

// of gives the proxy of a tenant.
func (p *proxies) of(tenant string) (http.Handler, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if made := p.made[tenant]; made != nil {
		return made, nil
	}
	made, err := p.make(tenant)
	if err != nil {
		return nil, err
	}
	if p.made == nil {
		p.made = map[string]*proxy.Proxy{}
	}
	p.made[tenant] = made
	return made, nil
}

func (p *proxies) make(tenant string) (*proxy.Proxy, error) {
	c := p.daemon.Compactor
	c.Counter = p.counter
	if c.Recall != nil {
		// The agent asks: what came back by itself would stand in one prompt and not
		// in the next.
		asked := *c.Recall
		asked.Rehydrate.Disabled = true
		c.Recall = &asked
	}
	c.Events = event.Multi(p.daemon.Counters, c.Events)
	c.Requester.TenantID = tenant
	kept := p.daemon.Store.Tenant(tenant)
	c.Log, c.Plans, c.Answers = kept.Log, kept.Plans, p.daemon.Spending.Answers(tenant, kept.Answers)
	c.Jobs, c.Domain = p.jobs, daemon.Domain(tenant)
	return proxy.New(&proxy.Options{
		Anthropic: p.settings.Text("anthropic-upstream"), OpenAI: p.settings.Text("openai-upstream"), Gemini: p.settings.Text("gemini-upstream"),
		Config: c, Models: p.daemon.Models, Window: p.daemon.Window,
		Emulate: strings.Split(p.settings.Text("emulate"), ","), Documents: kept.Documents,
		NoTools: p.settings.Text("proxy") == "plain", MaxBody: p.daemon.Limits.Body, Memory: p.memory, Agent: p.agent,
	})
}
