package daemon_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
)

// TestStoreGone: while its database is down the daemon is alive and not ready, and
// says of every request that it can be made again; when it is back, so is the
// daemon, and the same request is done once.
func TestStoreGone(t *testing.T) {
	address := pgtest.Database(t)
	server := pgtest.Current()
	db, err := postgres.Open(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	var log journal
	h := filled(t, daemon.Config{
		Store: db, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Ready: func(ctx context.Context) error {
			_, err := db.Tenant("").Catalog.Threads(ctx, "", 1)
			return err
		},
	})
	c, ctx := h.client(t, ""), t.Context()
	if err := server.Halt(); err != nil {
		t.Fatal(err)
	}
	news := api.Append{Messages: []neutral.Message{said("user", "CANARY three")}}
	for range 2 { // the first meets connections that were open
		if answer, body := h.do(t, "GET", "/readyz", ""); answer.StatusCode != 503 {
			t.Errorf("ready: %d %s", answer.StatusCode, body)
		}
		if answer, _ := h.do(t, "GET", "/healthz", ""); answer.StatusCode != 200 {
			t.Errorf("health: %d", answer.StatusCode)
		}
		if _, err := c.Thread(ctx, "t"); !api.IsKind(err, api.Unavailable) {
			t.Errorf("reading: %v", err)
		}
		if _, err := c.Append(ctx, "t", 2, news); !api.IsKind(err, api.Unavailable) || !strings.Contains(err.Error(), "If-Match") {
			t.Errorf("writing: %v", err)
		}
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	// Each connection of the pool may have to find out by itself.
	ready := 0
	for range 20 {
		if answer, _ := h.do(t, "GET", "/readyz", ""); answer.StatusCode == 200 {
			ready++
		}
	}
	if ready == 0 {
		t.Error("the daemon is not ready when its store is back")
	}
	for range 2 {
		if a, err := c.Append(ctx, "t", 2, news); err != nil || a.Version != 3 {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if text := log.String(); strings.Contains(text, "CANARY") || !strings.Contains(text, "not ready") {
		t.Errorf("the log is\n%s", text)
	}
}
