package daemon_test

import (
	"fmt"
	"math/rand/v2"
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

func someWords(bytes int, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 7))
	var w strings.Builder
	for w.Len() < bytes {
		switch random.IntN(4) {
		case 0:
			fmt.Fprintf(&w, "internal/queue/worker_%d.go:%d: undefined: Retry%d\n", random.IntN(90), random.IntN(900), random.IntN(90))
		case 1:
			fmt.Fprintf(&w, "2026-03-%02d %02d:%02d:%02d order ORD-%06d waits for stock\n", 1+random.IntN(28), random.IntN(24), random.IntN(60), random.IntN(60), random.IntN(1_000_000))
		default:
			for range 8 + random.IntN(8) {
				w.WriteString([]string{"the ", "build ", "fails ", "when ", "a ", "worker ", "stops ", "before ", "its ", "queue ", "is ", "empty ", "and ", "nobody ", "reads ", "from "}[random.IntN(16)])
			}
			w.WriteString(".\n")
		}
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
		q := api.Step{Base: &neutral.Prompt{Model: "gpt-soak"}, Window: 24_000, Output: 1000, Messages: []neutral.Message{said("user", someWords(2000, uint64(n)))}}
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
			messages = append(messages, said("user", someWords(2300, uint64(t<<20|n<<8))), said("assistant", someWords(900, uint64(t<<20|n<<8|1))))
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
