package daemon_test

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/cputime"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// BenchmarkStep is a prepare and a finish over HTTP and SQLite, behind a history
// of so many messages that is compacted.
func BenchmarkStep(b *testing.B) {
	for _, history := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(history), func(b *testing.B) {
			db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "daemon.db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			s, err := daemon.New(daemon.Config{Store: db, Limits: daemon.Limits{Rate: 1e9, Burst: 1e9}})
			if err != nil {
				b.Fatal(err)
			}
			server := httptest.NewServer(s)
			defer server.Close()
			c, err := api.NewClient(server.URL, &api.Options{HTTP: server.Client()})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := c.CreateThread(b.Context(), api.NewThread{ID: "t"}); err != nil {
				b.Fatal(err)
			}
			var messages []neutral.Message
			for n := range history / 2 {
				messages = append(messages, said("user", fmt.Sprintf("Look at file %d of the project and say what is in it.", n)), said("assistant", fmt.Sprintf("File %d holds a function.", n)))
			}
			if _, err := c.Append(b.Context(), "t", 0, api.Append{Messages: messages}); err != nil {
				b.Fatal(err)
			}
			step := func(n int) {
				q := api.Step{API: "openai", Model: "m", Window: 4000, Messages: []neutral.Message{said("user", fmt.Sprintf("And file %d?", n))}}
				if _, err := c.Prepare(b.Context(), "t", api.Any, q); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Finish(b.Context(), "t", api.Any, api.Answer{Messages: []neutral.Message{said("assistant", "A test.")}}); err != nil {
					b.Fatal(err)
				}
			}
			step(-1) // the first compacts
			var clock cputime.Clock
			clock.Start()
			for n := 0; b.Loop(); n++ {
				step(n)
			}
			clock.Report(b)
		})
	}
}
