package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/apikey"
	"github.com/palimpsest-ai/palimpsest/apikey/keydir"
	"github.com/palimpsest-ai/palimpsest/event/slogsink"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/token"
)

func serveCommand(s Streams) *cobra.Command {
	var given settings
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve threads over HTTP",
		Long: `Serve threads over HTTP until interrupted. /openapi.json describes what can be
asked; /healthz, /readyz and /metrics are for those who run it.

Every setting is a flag, PALIMPSEST_NAME in the environment, or a key of a YAML
file; ` + "`palimpsest config show`" + ` tells where each value comes from. Without keys
the daemon listens to this machine only.`,
		Example: "  palimpsest serve\n  palimpsest serve --listen 0.0.0.0:7433 --keys keys --config daemon.yaml",
		Args:    exactly(0, "no arguments"),
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
	logger := newLogger(c, s)
	for _, name := range c.Unknown() {
		logger.Warn("a name in the environment is no setting", "name", name)
	}
	made, closers, err := daemonConfig(c)
	defer func() {
		for _, closer := range closers {
			err = errors.Join(err, closer())
		}
	}()
	if err != nil {
		return err
	}
	made.Logger = logger
	made.Compactor.Events = slogsink.New(logger)
	d, err := daemon.New(made)
	if err != nil {
		return err
	}
	listener, err := d.Listen(ctx, c.Text("listen"))
	if errors.Is(err, daemon.ErrOpen) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if err != nil {
		return err
	}
	logger.Info("listening", "address", listener.Addr().String(), "keys", c.Text("keys") != "")
	fmt.Fprintf(s.Err, "palimpsest: serving on http://%s\n", listener.Addr())
	return d.Serve(ctx, listener)
}

// daemonConfig opens what the settings name. What it returns to be closed was
// opened, also when there is an error.
func daemonConfig(c *config.Config) (made daemon.Config, closers []func() error, err error) {
	t := target{policy: c.Text("policy"), counter: c.Text("counter"), models: c.Text("models")}
	if made.Compactor.Policy, err = policyOf(t.policy); err != nil {
		return made, nil, err
	}
	if made.Compactor.Counter, err = token.New(t.counter, nil); err != nil {
		return made, nil, fmt.Errorf("%w: counter: %w", errUsage, err)
	}
	models, err := t.table()
	if err != nil {
		return made, nil, err
	}
	made.Models = &models
	made.Window, made.Drain = c.Tokens("window"), c.Duration("drain")
	made.Limits = daemon.Limits{
		Body: int64(c.Bytes("max-body")), Depth: c.Count("max-depth"),
		Rate: c.Count("rate"), Burst: c.Count("burst"), Streams: c.Count("max-streams"),
	}
	if dir := c.Text("keys"); dir != "" {
		kept, err := keydir.Open(dir)
		if err != nil {
			return made, nil, fmt.Errorf("keys: %w", err)
		}
		closers = append(closers, kept.Close)
		made.Keys = apikey.New(kept, nil)
	}
	db, err := openStore(c.Text("store"))
	if err != nil {
		return made, closers, err
	}
	closers = append(closers, db.Close)
	made.Store = db
	return made, closers, nil
}

// policyOf finds a policy that decides by itself when to compact.
func policyOf(name string) (policy.Policy, error) {
	switch name {
	case "auto":
		return policy.Auto{}, nil
	case "ladder":
		return policy.Ladder{}, nil
	}
	if p := seeds[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: policy %q: known are auto, ladder, session, timeline, workstream, loop", errUsage, name)
}

// openStore opens the store that a setting names.
func openStore(name string) (store.DB, error) {
	if name == "memory:" {
		return mem.New(), nil
	}
	scheme, _, _ := strings.Cut(name, ":")
	return nil, fmt.Errorf("%w: store: unknown kind %q; known is memory:", errUsage, scheme)
}

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
