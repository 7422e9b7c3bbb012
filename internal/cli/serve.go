package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/slogsink"
	"github.com/palimpsest-ai/palimpsest/internal/choice"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/job/river"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/quality"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/token"
)

func serveCommand(s Streams) *cobra.Command {
	var given settingFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve threads over HTTP, and agents a proxy to their provider",
		Long: `Serve threads over HTTP until interrupted. /openapi.json describes what can be
asked; /healthz, /readyz and /metrics are for those who run it. Whatever else is
asked passes on to the provider that it is meant for, compacted (docs/proxy.md): an
agent needs no more than this address as its base URL. Where the daemon has keys, the
agent sends one of them as X-Palimpsest-Key.

Every setting is a flag, PALIMPSEST_NAME in the environment, or a key of a YAML
file; ` + "`palimpsest config show`" + ` tells where each value comes from. Without keys
the daemon listens to this machine only.`,
		Example: "  palimpsest serve\n  palimpsest serve --listen 0.0.0.0:7433 --store postgres://palimpsest@localhost/palimpsest --config daemon.yaml",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := given.load()
			if err != nil {
				return err
			}
			return serve(c.Context(), loaded, s)
		},
	}
	given.add(c.Flags())
	return c
}

// serve runs the daemon until ctx is done.
func serve(ctx context.Context, c *config.Config, s Streams) (err error) {
	silenceHTTPLog()
	logger := newLogger(c, s)
	for _, name := range c.Unknown() {
		logger.Warn("a name in the environment is no setting", "name", name)
	}
	made, err := newServing(c, logger)
	if err != nil {
		return err
	}
	return made.store().withDatabase(ctx, false, func(db *database) error {
		if err := made.attachStore(ctx, db); err != nil {
			return err
		}
		return made.serve(ctx, s)
	})
}

// serve listens where the settings say, until ctx is done.
func (p *serving) serve(ctx context.Context, s Streams) error {
	d, err := daemon.New(p.daemon)
	if err != nil {
		return err
	}
	listeners, err := listen(ctx, d, p.settings)
	if err != nil {
		return err
	}
	var at []string
	for _, l := range listeners {
		scheme := "http://"
		switch {
		case l.Addr().Network() == "unix":
			scheme = "unix:"
		case p.daemon.TLS != nil:
			scheme = "https://"
		}
		p.daemon.Logger.Info("listening", "address", l.Addr().String(), "keys", p.daemon.Keys != nil, "encrypted", p.daemon.Reseal)
		at = append(at, scheme+l.Addr().String())
	}
	p.daemon.Logger.Info(describePolicy(p.chosen.Settings, 0))
	fmt.Fprintf(s.Err, "palimpsest: serving on %s\n", strings.Join(at, " and "))
	return d.Serve(ctx, listeners...)
}

// listen opens the port and the socket, as far as the settings name them.
func listen(ctx context.Context, d *daemon.Server, c *config.Config) (all []net.Listener, err error) {
	address, socket := c.Text("listen"), c.Text("socket")
	if address == "" && socket == "" {
		return nil, fmt.Errorf("%w: listen and socket are both empty: where is the daemon to listen?", errUsage)
	}
	if socket != "" { // first: who has it already is told before a port is
		l, err := ondemand.Listen(ctx, socket)
		if err != nil {
			return nil, fmt.Errorf("socket: %w", err)
		}
		all = []net.Listener{l}
	}
	if address == "" {
		return all, nil
	}
	l, err := d.Listen(ctx, address)
	if err == nil {
		return append([]net.Listener{l}, all...), nil
	}
	for _, opened := range all {
		err = errors.Join(err, opened.Close())
	}
	if errors.Is(err, daemon.ErrOpen) {
		err = fmt.Errorf("%w: %w", errUsage, err)
	}
	return nil, err
}

// serving is what serve makes of the settings: the daemon, and a proxy for each tenant
// over what the daemon itself is made of.
type serving struct {
	settings *config.Config
	chosen   *choice.Choice // the policy
	daemon   daemon.Config
	counter  *token.Counter // of the proxies; nil: each model has its own
	jobs     job.Queue      // nil where nothing is done in the background

	mu      sync.Mutex
	proxies map[string]*proxy.Proxy // by tenant
}

// newServing makes what needs no store.
func newServing(c *config.Config, logger *slog.Logger) (*serving, error) {
	chosen, err := choice.Open(c.Text("policy"), &choice.Options{Summarizer: c.Text("summarizer"), Favor: c.Text("favor"), AllowAgent: true})
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	p := &serving{settings: c, chosen: chosen, proxies: map[string]*proxy.Proxy{}}
	made := &p.daemon
	if p.counter, err = chosen.Counter(c.Text("counter")); err != nil {
		return nil, err
	}
	counter := p.counter
	if counter == nil {
		if counter, err = token.New("o200k", nil); err != nil {
			return nil, err
		}
	}
	made.Compactor = chosen.Config(counter)
	made.Policies, made.Sessions = policyLookup(counter), &pageSessions{}
	models, err := readModels(c.Text("models"))
	if err != nil {
		return nil, err
	}
	made.Models = &models
	made.Logger, made.Compactor.Events = logger, slogsink.New(logger)
	if c.Text("log-format") == "text" { // records of the events say it to programs
		made.Compactor.Events = event.Multi(made.Compactor.Events, newAnnouncer(func(thread, line string) { logger.Info(line, "thread_id", thread) }))
	}
	made.Window, made.Drain, made.Idle = c.Tokens("window"), c.Duration("drain"), c.Duration("idle")
	if c.Text("socket") != "" {
		made.OwnKey = rand.Text()
	}
	made.Limits = daemon.Limits{
		Body: int64(c.Bytes("max-body")), Depth: c.Count("max-depth"),
		Rate: c.Count("rate"), Burst: c.Count("burst"), Streams: c.Count("max-streams"), Requests: c.Count("tenant-requests"),
	}
	memory := memoryLimitsOf(c)
	made.Limits.Memory, made.Memory = int64(memory.process), proxy.NewMemory(&memory.bounds)
	// What there could never be room for is not held: agents' requests pass untouched.
	made.Limits.Body = min(made.Limits.Body, int64(memory.bounds.TenantBodies))
	made.Compactor.Memory = palimpsest.NewMemory(memory.sessions)
	memory.limitGoHeap()
	if c.Text("recall") == "tools" {
		if made.Compactor.Recall, err = chosen.Recall(nil); err != nil {
			return nil, fmt.Errorf("policy: retrieval.vector_store: %w", err)
		}
		made.Compactor.Recall.Inject = max(made.Compactor.Recall.Inject, c.Tokens("inject"))
		if use := c.Text("embedder"); use != "" {
			if made.Compactor.Recall.Embedder, err = choice.Embedder(use, nil); err != nil {
				return nil, err
			}
		}
	}
	if c.Text("measure") == "on" {
		if made.Compactor.Measure, err = choice.Measure(models, nil); err != nil {
			return nil, err
		}
	}
	if c.Text("quality") == "on" {
		made.Compactor.Quality = &quality.Options{}
	}
	switch cert, key := c.Text("tls-cert"), c.Text("tls-key"); {
	case (cert == "") != (key == ""):
		return nil, fmt.Errorf("%w: tls-cert and tls-key go together: a certificate and its key", errUsage)
	case cert != "":
		if made.TLS, err = daemon.TLS(cert, key); err != nil {
			return nil, err
		}
	}
	made.Spending = daemon.NewSpending(c.Tokens("tenant-spending"), nil)
	made.Counters = &event.Counters{}
	made.Compactor.Patience = c.Duration("patience")
	switch c.Text("mcp") {
	case "read":
		made.MCP = daemon.ReadMCP
	case "write":
		made.MCP = daemon.WriteMCP
	}
	made.Version = thisBuild().Version
	return p, nil
}

// store is where everything is kept.
func (p *serving) store() *storeFlag {
	return &storeFlag{name: p.settings.Text("store"), master: p.settings.Text("master-key"), tenantBytes: int64(p.settings.Bytes("tenant-disk")), cacheBytes: memoryLimitsOf(p.settings).threads}
}

// attachStore adds what needs the open store: keys, jobs and the proxy.
func (p *serving) attachStore(ctx context.Context, db *database) (err error) {
	made := &p.daemon
	made.Store, made.Artifacts, made.Reseal = db.DB, db.artifacts(), db.keyring != nil
	made.Compactor.Sign = db.keyring != nil
	if made.Keys, err = loadAPIKeys(ctx, db); err != nil {
		return err
	}
	made.Jobs = func(work job.Handlers, o *job.Options) (q job.Queue, err error) {
		if prober, ok := made.Store.(store.Prober); ok {
			if err := prober.Probe(ctx); err != nil { // Serve tells of it
				made.Logger.Warn("nothing is done in the background until the daemon is started again", "class", event.ErrorClass(err))
				return nil, nil
			}
		}
		o.Lease = p.settings.Duration("lease")
		p.mu.Lock() // a job of an earlier run may begin at once, and waits for its proxy
		defer p.mu.Unlock()
		q, err = newQueue(ctx, made.Store, work, o)
		p.jobs = q
		return q, err
	}
	if p.settings.Text("proxy") == "off" {
		return nil
	}
	// One is made at once, so that a wrong upstream is told at the start.
	if _, err := p.newProxy(""); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	made.Proxy = p.tenantProxy
	return nil
}

// tenantProxy gives the proxy of a tenant.
func (p *serving) tenantProxy(tenant string) (http.Handler, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proxies[tenant] == nil {
		made, err := p.newProxy(tenant)
		if err != nil {
			return nil, err
		}
		p.proxies[tenant] = made
	}
	return p.proxies[tenant], nil
}

func (p *serving) newProxy(tenant string) (*proxy.Proxy, error) {
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
	o := &proxy.Options{
		Anthropic: p.settings.Text("anthropic-upstream"), OpenAI: p.settings.Text("openai-upstream"), Gemini: p.settings.Text("gemini-upstream"),
		Config: c, Models: p.daemon.Models, DefaultWindow: p.daemon.Window,
		Emulate: strings.Split(p.settings.Text("emulate"), ","), Documents: kept.Documents,
		NoTools: p.settings.Text("proxy") == "plain", MaxBody: p.daemon.Limits.Body, Memory: p.daemon.Memory,
	}
	if p.chosen.UsesAgentModel() {
		o.Agent = choice.AgentModel
	}
	return proxy.New(o)
}

// newQueue makes the queue of jobs where the threads are kept, so that jobs last as
// long as they do and all daemons of a database share the work.
func newQueue(ctx context.Context, db store.DB, work job.Handlers, o *job.Options) (job.Queue, error) {
	// Results are checked one by one: a nil *Queue in an interface is not nil.
	switch db := db.(type) {
	case *sqlite.DB:
		q, err := river.OnSQLite(ctx, db.SQL(), work, o)
		if err != nil {
			return nil, err
		}
		return q, nil
	case *postgres.DB:
		q, err := river.OnPostgres(ctx, db.Pool(), work, o)
		if err != nil {
			return nil, err
		}
		return q, nil
	}
	return job.NewMemory(work, o), nil
}

// loadAPIKeys returns nil if the store has no API keys: then everybody on this machine may
// use the daemon.
func loadAPIKeys(ctx context.Context, db *database) (daemon.Keys, error) {
	keys := db.apiKeys()
	for _, err := range keys.List(ctx) {
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		return keys, nil
	}
	return nil, nil
}

// silenceHTTPLog keeps out of standard error what net/http says of connections on the way to
// providers: it quotes what they sent.
func silenceHTTPLog() { log.SetOutput(io.Discard) }

func newLogger(c *config.Config, s Streams) *slog.Logger {
	var level slog.Level
	// The table of settings let pass only names that slog knows.
	_ = level.UnmarshalText([]byte(c.Text("log-level")))
	o := &slog.HandlerOptions{Level: level}
	if c.Text("log-format") == "json" {
		return slog.New(slog.NewJSONHandler(s.Err, o))
	}
	return slog.New(slog.NewTextHandler(s.Err, o))
}
