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
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/apikey"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/slogsink"
	"github.com/palimpsest-ai/palimpsest/internal/choice"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	jobqueue "github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/job/river"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/quality"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/token"
)

func serveCommand(s Streams) *cobra.Command {
	var given settings
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
		Args:    noArguments,
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
	quiet()
	logger := newLogger(c, s)
	for _, name := range c.Unknown() {
		logger.Warn("a name in the environment is no setting", "name", name)
	}
	o := opened{logger: logger}
	defer func() { err = errors.Join(err, o.close()) }()
	made, err := o.daemon(ctx, c)
	if err != nil {
		return err
	}
	d, err := daemon.New(made)
	if err != nil {
		return err
	}
	listeners, err := listen(ctx, d, c)
	if err != nil {
		return err
	}
	var at []string
	for _, l := range listeners {
		scheme := "http://"
		switch {
		case l.Addr().Network() == "unix":
			scheme = "unix:"
		case made.TLS != nil:
			scheme = "https://"
		}
		logger.Info("listening", "address", l.Addr().String(), "keys", made.Keys != nil, "encrypted", o.ring != nil)
		at = append(at, scheme+l.Addr().String())
	}
	logger.Info(o.acts)
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

// opened is what a daemon uses and what has to be closed after it.
type opened struct {
	logger  *slog.Logger
	acts    string           // when threads are compacted, in words
	ring    *keyring.Keyring // nil where nothing is encrypted
	closers []func() error
}

// close gives back what was opened, the last first.
func (o *opened) close() error {
	var failed error
	for _, closer := range slices.Backward(o.closers) {
		failed = errors.Join(failed, closer())
	}
	return failed
}

// daemon opens what the settings name.
func (o *opened) daemon(ctx context.Context, c *config.Config) (made daemon.Config, err error) {
	t := target{models: c.Text("models")}
	chosen, err := choice.Open(c.Text("policy"), &choice.Options{Summarizer: c.Text("summarizer"), Favor: c.Text("favor"), Agent: true})
	if err != nil {
		return made, fmt.Errorf("policy: %w", err)
	}
	named, err := chosen.Counter(c.Text("counter"))
	if err != nil {
		return made, err
	}
	counter := named
	if counter == nil {
		if counter, err = token.New("o200k", nil); err != nil {
			return made, err
		}
	}
	made.Compactor = chosen.Config(counter)
	made.Policies, made.Sessions = policies(counter), &pageSessions{}
	o.acts = whenActs(chosen.Settings, 0)
	models, err := t.table()
	if err != nil {
		return made, err
	}
	made.Models = &models
	made.Logger, made.Compactor.Events = o.logger, slogsink.New(o.logger)
	if c.Text("log-format") == "text" { // records of the events say it to programs
		made.Compactor.Events = event.Multi(made.Compactor.Events, newTeller(func(thread, line string) { o.logger.Info(line, "thread_id", thread) }))
	}
	made.Window, made.Drain, made.Idle = c.Tokens("window"), c.Duration("drain"), c.Duration("idle")
	if c.Text("socket") != "" {
		made.OwnKey = rand.Text()
	}
	made.Limits = daemon.Limits{
		Body: int64(c.Bytes("max-body")), Depth: c.Count("max-depth"),
		Rate: c.Count("rate"), Burst: c.Count("burst"), Streams: c.Count("max-streams"), Requests: c.Count("tenant-requests"),
	}
	memory := memoryOf(c)
	made.Limits.Memory, made.Memory = int64(memory.process), proxy.NewMemory(&memory.bounds)
	// What there could never be room for is not held: agents' requests pass untouched.
	made.Limits.Body = min(made.Limits.Body, int64(memory.bounds.TenantBodies))
	memory.limitGo()
	if c.Text("recall") == "tools" {
		if made.Compactor.Recall, err = chosen.Recall(nil); err != nil {
			return made, fmt.Errorf("policy: retrieval.vector_store: %w", err)
		}
		made.Compactor.Recall.Inject = max(made.Compactor.Recall.Inject, c.Tokens("inject"))
		if use := c.Text("embedder"); use != "" {
			if made.Compactor.Recall.Embedder, err = choice.Embedder(use, nil); err != nil {
				return made, err
			}
		}
	}
	if c.Text("measure") == "on" {
		if made.Compactor.Measure, err = choice.Measure(models, nil); err != nil {
			return made, err
		}
	}
	if c.Text("quality") == "on" {
		made.Compactor.Quality = &quality.Options{}
	}
	switch cert, key := c.Text("tls-cert"), c.Text("tls-key"); {
	case (cert == "") != (key == ""):
		return made, fmt.Errorf("%w: tls-cert and tls-key go together: a certificate and its key", errUsage)
	case cert != "":
		if made.TLS, err = daemon.TLS(cert, key); err != nil {
			return made, err
		}
	}
	made.Spending = daemon.NewSpending(c.Tokens("tenant-spending"), nil)
	place := storeFlag{name: c.Text("store"), master: c.Text("master-key"), tenantBytes: int64(c.Bytes("tenant-disk"))}
	db, err := place.open(ctx, false)
	if err != nil {
		return made, err
	}
	o.ring, made.Store = db.ring, db.DB
	o.closers = append(o.closers, db.Close)
	if made.Keys, err = apiKeys(ctx, db); err != nil {
		return made, err
	}
	made.Counters = &event.Counters{}
	made.Compactor.Patience = c.Duration("patience")
	all := &proxies{settings: c, daemon: &made, counter: named, memory: made.Memory}
	if chosen.AsksAgent() {
		all.agent = choice.Agent
	}
	logger := o.logger
	made.Jobs = func(work jobqueue.Handlers, o *jobqueue.Options) (q jobqueue.Queue, err error) {
		if p, ok := made.Store.(store.Prober); ok {
			if err := p.Probe(ctx); err != nil { // Serve tells of it
				logger.Warn("nothing is done in the background until the daemon is started again", "class", event.ErrorClass(err))
				return nil, nil
			}
		}
		o.Lease = c.Duration("lease")
		all.mu.Lock() // a job of an earlier run may begin at once, and waits for its proxy
		defer all.mu.Unlock()
		q, err = queue(ctx, made.Store, work, o)
		all.jobs = q
		return q, err
	}
	switch c.Text("mcp") {
	case "read":
		made.MCP = daemon.ReadMCP
	case "write":
		made.MCP = daemon.WriteMCP
	}
	made.Version = thisBuild().Version
	made.Artifacts, made.Reseal = db.artifacts(), db.ring != nil
	made.Compactor.Sign = db.ring != nil
	if c.Text("proxy") != "off" {
		// One is made at once, so that a wrong upstream is told at the start.
		if _, err := all.make(""); err != nil {
			return made, fmt.Errorf("%w: %w", errUsage, err)
		}
		made.Proxy = all.of
	}
	return made, nil
}

// queue makes the queue of jobs where the threads are kept, so that jobs last as
// long as they do and all daemons of a database share the work.
func queue(ctx context.Context, db store.DB, work jobqueue.Handlers, o *jobqueue.Options) (jobqueue.Queue, error) {
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
	return jobqueue.NewMemory(work, o), nil
}

// apiKeys are the API keys of the store. Nil, where there are none, lets everybody
// on this machine in.
func apiKeys(ctx context.Context, db *database) (daemon.Keys, error) {
	if db.keys == nil {
		return nil, nil
	}
	all := apikey.New(db.keys.APIKeys(), nil)
	for _, err := range all.List(ctx) {
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		return all, nil
	}
	return nil, nil
}

// quiet keeps out of standard error what net/http says of connections on the way to
// providers: it quotes what they sent.
func quiet() { log.SetOutput(io.Discard) }

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
