package daemon_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestAskedOnce: over the steps of an agent, dry runs and daemons that are started
// anew on the same database, a model is asked each question once, whichever policy
// asks it. A15
func TestAskedOnce(t *testing.T) {
	for _, policy := range []string{"auto", "session", "loop"} {
		t.Run(policy, func(t *testing.T) {
			provider := llmtest.NewProvider(t, llmtest.Provider{Windows: map[string]int{"m": 200_000}, Reply: func(r llmtest.Request) llmtest.Answer {
				if strings.Contains(r.Body, "which sentences still stand") {
					return llmtest.Answer{Text: `{"stand":[1],"changes":[]}`}
				}
				if strings.Contains(r.Body, "json_schema") {
					outdated := ""
					if strings.Contains(r.Body, "outdated") { // asked on top of what was told before
						outdated = `"outdated":[],`
					}
					return llmtest.Answer{Text: `{"facts":[{"text":"I look further","sources":[1,2,3]}],` + outdated + `"decisions":[],"plan":[],"open_items":[],"failed_attempts":[],"tool_outcomes":[]}`}
				}
				return llmtest.Answer{Text: "## Current State\n- I look further.\n"}
			}})
			counter, err := token.New("o200k", nil)
			if err != nil {
				t.Fatal(err)
			}
			environment := map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": provider.URL + "/v1"}
			path := filepath.Join(t.TempDir(), "daemon.db")
			var client *api.Client
			stop := func() {}
			restart := func() {
				stop()
				db, err := sqlite.Open(t.Context(), path, nil)
				if err != nil {
					t.Fatal(err)
				}
				chosen, err := setup.Open(policy, &setup.Options{Summarizer: "openai:m", Getenv: func(name string) string { return environment[name] }})
				if err != nil {
					t.Fatal(err)
				}
				h := start(t, daemon.Config{Store: db, Compactor: chosen.Config(counter)})
				client = h.client(t, "")
				stop = func() {
					h.Stop()
					h.http.CloseIdleConnections()
					if err := db.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			restart()
			defer func() { stop() }()
			if _, err := client.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
				t.Fatal(err)
			}
			version, dry := 0, 0
			for n := range 24 {
				q := api.Step{API: wire.Anthropic, Body: stepRequest(n), Window: 16_000, Output: 1000}
				if n%4 == 3 {
					for range 2 {
						ask := q
						ask.Body = nil
						var problem *api.Problem
						if _, err := client.DryRun(t.Context(), "t", ask); err == nil {
							dry++
						} else if !errors.As(err, &problem) || problem.Status >= http.StatusInternalServerError {
							t.Fatal(err)
						}
						restart()
					}
				}
				p, err := client.Prepare(t.Context(), "t", version, q)
				if err != nil {
					t.Fatalf("step %d: %v", n, err)
				}
				a, err := client.Finish(t.Context(), "t", p.Version, api.Answer{API: wire.Anthropic, Response: response(n)})
				if err != nil {
					t.Fatalf("step %d: %v", n, err)
				}
				version = a.Version
			}
			plans, err := client.Plans(t.Context(), "t", "", 0)
			if err != nil {
				t.Fatal(err)
			}
			questions := map[string]int{}
			for _, r := range provider.Requests() {
				questions[r.Body]++
			}
			t.Logf("%d questions, %d calls; %d dry runs, %d plans", len(questions), len(provider.Requests()), dry, plans.Current)
			if len(provider.Requests()) != len(questions) {
				t.Errorf("%d questions were asked %d times", len(questions), len(provider.Requests()))
			}
			if len(questions) == 0 || dry < 4 || plans.Current == 0 {
				t.Error("the test shows nothing")
			}
		})
	}
}
