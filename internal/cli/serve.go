package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/event/slogsink"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/job/river"
	"github.com/palimpsest-ai/palimpsest/proxy"
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
		Long: `Serve threads over HTTP until interrupted. /openapi.json describes the API; /healthz,
/readyz and /metrics are for operators. All other requests pass on to their provider,
compacted (docs/proxy.md): an agent needs only this address as its base URL. If the
daemon has API keys, the agent sends one as X-Palimpsest-Key.

Every setting is a flag, PALIMPSEST_NAME in the environment, or a key of a YAML file;
` + "`palimpsest config show`" + ` shows where each value comes from. Without API keys the
daemon only listens to this machine.`,
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
		logger.Warn("a name in the environment is not a setting", "name", name)
	}
	p, err := newServing(c, logger)
	if err != nil {
		return err
	}
	p.stop = ctx
	return p.store().withDatabase(ctx, false, func(db *database) error {
		if err := p.attachStore(ctx, db); err != nil {
			return err
		}
		return p.serve(ctx, s)
	})
}

// serve listens on the address and the socket of the settings until ctx is done.
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
	p.daemon.Logger.Info(describePolicy(p.chosen.Settings, p.daemon.Window, token.UsualRates()), "window", numberOr(p.daemon.Window, "each model's own"))
	fmt.Fprintf(s.Err, "palimpsest: serving on %s\n", strings.Join(at, " and "))
	return d.Serve(ctx, listeners...)
}

func listen(ctx context.Context, d *daemon.Server, c *config.Config) (all []net.Listener, err error) {
	address, socket := c.Text("listen"), c.Text("socket")
	if address == "" && socket == "" {
		return nil, fmt.Errorf("%w: listen and socket are both empty: set one of them", errUsage)
	}
	if socket != "" { // first, so that a second daemon names the first one and not the port
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

// serving builds a daemon from the settings, and a proxy for each tenant.
type serving struct {
	settings *config.Config
	chosen   *setup.Policy // the policy
	memory   memoryLimits
	daemon   daemon.Config
	counter  *token.Counter  // of the proxies; nil is each model's own
	jobs     job.Queue       // nil if nothing runs in the background
	stop     context.Context // done when the daemon is to end

	mu      sync.Mutex
	proxies map[string]*proxy.Proxy // by tenant
}

// newServing does what needs no store.
func newServing(c *config.Config, logger *slog.Logger) (*serving, error) {
	chosen, err := setup.Open(c.Text("policy"), &setup.Options{Summarizer: c.Text("summarizer"), Favor: c.Text("favor"), AllowAgent: true})
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	p := &serving{settings: c, chosen: chosen, memory: memoryLimitsOf(c), proxies: map[string]*proxy.Proxy{}}
	if p.counter, err = chosen.Counter(c.Text("counter")); err != nil {
		return nil, err
	}
	counter := p.counter
	if counter == nil {
		if counter, err = token.New("o200k", nil); err != nil {
			return nil, err
		}
	}
	models, err := readModels(c.Text("models"))
	if err != nil {
		return nil, err
	}
	d := &p.daemon
	d.Version, d.Models, d.Logger, d.Counters = Version(), &models, logger, &event.Counters{}
	d.Policies, d.Sessions = policyLookup(counter), &pageSessions{finderOf(c)}
	d.Off = offThread
	d.Window, d.Drain, d.Idle = c.Tokens("window"), c.Duration("drain"), c.Duration("idle")
	d.Spending = daemon.NewSpending(c.Tokens("tenant-spending"), nil)
	d.MCP = map[string]daemon.MCP{"read": daemon.ReadMCP, "write": daemon.WriteMCP}[c.Text("mcp")]
	if c.Text("socket") != "" {
		d.OwnKey = rand.Text()
	}
	d.Limits = daemon.Limits{
		// A larger body never fits the memory for bodies; an agent's passes on unread.
		Body:  int64(min(c.Bytes("max-body"), p.memory.bounds.TenantBodies)),
		Depth: c.Count("max-depth"), Memory: int64(p.memory.process),
		Rate: c.Count("rate"), Burst: c.Count("burst"), Streams: c.Count("max-streams"), Requests: c.Count("tenant-requests"), TenantRate: c.Count("tenant-rate"),
	}
	d.Memory = proxy.NewMemory(&p.memory.bounds)
	limitGarbage(0)
	if os.Getenv("GOMEMLIMIT") == "" { // then Go collects garbage still more often near the limit
		debug.SetMemoryLimit(int64(p.memory.process) / 10 * 9)
	}
	if d.TLS, err = loadTLS(c); err != nil {
		return nil, err
	}
	d.Compactor, err = p.newCompactor(counter, models)
	return p, err
}

// newCompactor sets what all tenants have in common.
func (p *serving) newCompactor(counter *token.Counter, models token.ModelSet) (palimpsest.Config, error) {
	c, logger := p.settings, p.daemon.Logger
	made := p.chosen.Config(counter)
	made.Counter = p.counter
	made.Memory, made.Patience = palimpsest.NewMemory(p.memory.sessions), c.Duration("patience")
	made.Events = slogsink.New(logger)
	if c.Text("log-format") == "text" { // programs read the events themselves
		made.Events = inSentences(logger, made.Events)
	}
	var err error
	if c.Text("recall") == "tools" {
		if made.Recall, err = p.chosen.Recall(); err != nil {
			return made, fmt.Errorf("policy: retrieval.vector_store: %w", err)
		}
		made.Recall.ContextTools = c.Text("context-tools") == "on"
		made.Recall.Reminder = c.Text("context-reminder") == "on"
		made.Recall.Inject = max(made.Recall.Inject, c.Tokens("inject"))
		if use := c.Text("embedder"); use != "" {
			if made.Recall.Embedder, err = setup.Embedder(use, nil); err != nil {
				return made, err
			}
		}
	}
	if c.Text("context-tools") == "on" && made.Recall == nil {
		return made, fmt.Errorf("%w: context-tools needs recall tools: it is off", errUsage)
	}
	if c.Text("measure") == "on" {
		if made.Measure, err = setup.Measure(models, nil); err != nil {
			return made, err
		}
	}
	if c.Text("quality") == "on" {
		made.Quality = &quality.Options{}
	}
	return made, nil
}

// inSentences is a sink for people: a compaction is a sentence with the event's attributes, all
// else goes to rest.
func inSentences(logger *slog.Logger, rest event.Sink) event.Sink {
	sentences := newAnnouncer(func(e event.Event, line string) {
		level, attrs := slog.LevelInfo, append([]slog.Attr{slog.String("event", string(e.Type))}, e.Attrs()...)
		if e.Err != "" { // a model failed, and code took over
			level, attrs = slog.LevelWarn, append(attrs, slog.String("cause", event.CauseText(e.Cause)))
		}
		logger.LogAttrs(context.Background(), level, line, attrs...)
	})
	return event.Func(func(ctx context.Context, e event.Event) {
		sentences.Emit(ctx, e)
		if e.Type != event.Completed {
			rest.Emit(ctx, e)
		}
	})
}

// loadTLS returns nil for plain HTTP.
func loadTLS(c *config.Config) (*tls.Config, error) {
	switch cert, key := c.Text("tls-cert"), c.Text("tls-key"); {
	case (cert == "") != (key == ""):
		return nil, fmt.Errorf("%w: tls-cert and tls-key go together: a certificate and its key", errUsage)
	case cert != "":
		return daemon.TLS(cert, key)
	}
	return nil, nil
}

// store is where the daemon keeps everything.
func (p *serving) store() *storeFlag {
	return &storeFlag{
		settled: true, name: p.settings.Text("store"), master: p.settings.Text("master-key"),
		tenantBytes: int64(p.settings.Bytes("tenant-disk")), cacheBytes: p.memory.threads,
	}
}

// attachStore does what needs the store: keys, jobs and the proxies.
func (p *serving) attachStore(ctx context.Context, db *database) (err error) {
	d := &p.daemon
	d.Store, d.Artifacts, d.Reseal = db.DB, db.artifacts(), db.keyring != nil
	d.Compactor.Sign = db.keyring != nil
	if d.Keys, err = loadAPIKeys(ctx, db); err != nil {
		return err
	}
	d.Jobs = func(work job.Handlers, o *job.Options) (q job.Queue, err error) {
		if prober, ok := d.Store.(store.Prober); ok {
			if err := prober.Probe(ctx); err != nil { // Serve reports it
				d.Logger.Warn("nothing runs in the background until the daemon is restarted", "class", event.ErrorClass(err))
				return nil, nil
			}
		}
		o.Lease = p.settings.Duration("lease")
		p.mu.Lock() // a job of an earlier run may start at once, and waits for its proxy
		defer p.mu.Unlock()
		q, err = newQueue(ctx, d.Store, work, o)
		p.jobs = q
		return q, err
	}
	if p.settings.Text("proxy") == "off" {
		return nil
	}
	// Make one now, so that a wrong upstream is reported at the start.
	if _, err := p.newProxy(""); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	d.Proxy = p.tenantProxy
	return nil
}

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
	c, kept := p.daemon.Compactor, p.daemon.Store.Tenant(tenant)
	c.Counter = p.counter
	if c.Recall != nil {
		// Without rehydration: it would change the prompt from one step to the next.
		recall := *c.Recall
		recall.Rehydrate.Disabled = true
		c.Recall = &recall
	}
	c.Events = event.Multi(p.daemon.Counters, c.Events)
	c.Requester.TenantID = tenant
	c.Store, c.Answers = kept, p.daemon.Spending.Answers(tenant, kept.Answers)
	c.Jobs, c.Domain = p.jobs, daemon.Domain(tenant)
	o := &proxy.Options{
		Anthropic: p.settings.Text("anthropic-upstream"), OpenAI: p.settings.Text("openai-upstream"), Gemini: p.settings.Text("gemini-upstream"),
		Config: c, Models: p.daemon.Models, Window: p.daemon.Window,
		Emulate: strings.Split(p.settings.Text("emulate"), ","),
		NoTools: p.settings.Text("proxy") == "plain", MaxBody: p.daemon.Limits.Body, Memory: p.daemon.Memory, Stop: p.stop,
	}
	if p.chosen.UsesAgentModel() {
		o.Agent = setup.AgentModel
	}
	return proxy.New(o)
}

// newQueue keeps the jobs where the threads are, so that they last as long and all daemons
// of a database share the work.
func newQueue(ctx context.Context, db store.DB, work job.Handlers, o *job.Options) (job.Queue, error) {
	var q *river.Queue
	var err error
	switch db := db.(type) {
	case *sqlite.DB:
		q, err = river.OnSQLite(ctx, db.SQL(), work, o)
	case *postgres.DB:
		q, err = river.OnPostgres(ctx, db.Pool(), work, o)
	default:
		return job.NewMemory(work, o), nil
	}
	if err != nil { // a nil *Queue in an interface is not nil
		return nil, err
	}
	return q, nil
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

// silenceHTTPLog discards what net/http logs about connections to providers, which quotes
// their data.
func silenceHTTPLog() { log.SetOutput(io.Discard) }

func newLogger(c *config.Config, s Streams) *slog.Logger {
	var level slog.Level
	// The settings allow only names that slog knows.
	_ = level.UnmarshalText([]byte(c.Text("log-level")))
	o := &slog.HandlerOptions{Level: level}
	if c.Text("mask-secrets") == "on" {
		o.ReplaceAttr = maskAttr
	}
	if c.Text("log-format") == "json" {
		return slog.New(slog.NewJSONHandler(s.Err, o))
	}
	return slog.New(slog.NewTextHandler(s.Err, o))
}
