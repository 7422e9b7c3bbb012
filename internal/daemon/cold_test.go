package daemon_test

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/cputime"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// toolOutput is what a tool might print, of about so many bytes, another one for each seed.
func toolOutput(bytes, seed int) string {
	var w strings.Builder
	for n := 0; w.Len() < bytes; n++ {
		fmt.Fprintf(&w, "internal/queue/worker_%d.go:%d: order ORD-%06d waits for stock\n", (seed+n)%90, n*7%900, (seed*31+n)%1_000_000)
	}
	return w.String()
}

// BenchmarkColdStep is a prepare and a finish of a conversation that no cache holds: 60
// messages of 100 KB and a plan in force.
func BenchmarkColdStep(b *testing.B) {
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "daemon.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var stop func()
	open := func() *api.Client {
		s, err := daemon.New(daemon.Config{Store: db, Limits: daemon.Limits{Rate: 1e9, Burst: 1e9}})
		if err != nil {
			b.Fatal(err)
		}
		server := httptest.NewServer(s)
		stop = server.Close
		c, err := api.NewClient(server.URL, &api.Options{HTTP: server.Client()})
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	c := open()
	const threads = 20
	step := func(c *api.Client, thread string, n int) {
		q := api.Step{Base: &neutral.Prompt{Model: "gpt-soak"}, Window: 24_000, Output: 1000, Messages: []neutral.Message{said("user", toolOutput(2000, n))}}
		if _, err := c.Prepare(b.Context(), thread, api.Any, q); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Finish(b.Context(), thread, api.Any, api.Answer{Messages: []neutral.Message{said("assistant", fmt.Sprint("A test.", n))}}); err != nil {
			b.Fatal(err)
		}
	}
	for t := range threads {
		id := fmt.Sprint("t", t)
		if _, err := c.CreateThread(b.Context(), api.NewThread{ID: id}); err != nil {
			b.Fatal(err)
		}
		var messages []neutral.Message
		for n := range 30 {
			messages = append(messages, said("user", toolOutput(2300, t<<8|n)), said("assistant", toolOutput(900, t<<8|n|1<<16)))
		}
		if _, err := c.Append(b.Context(), id, 0, api.Append{Messages: messages}); err != nil {
			b.Fatal(err)
		}
		step(c, id, -1)
	}
	stop()
	var clock cputime.Clock
	c = open()
	for n := 0; b.Loop(); n++ {
		if n%threads == 0 {
			clock.Stop()
			stop()
			c = open()
			clock.Start()
		}
		step(c, fmt.Sprint("t", n%threads), n)
	}
	clock.Report(b)
	stop()
}
