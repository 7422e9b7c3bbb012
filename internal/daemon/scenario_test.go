package daemon_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/scenario"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestScenarios runs the scenarios over HTTP. The rows that they show stand in their files.
func TestScenarios(t *testing.T) {
	scenario.Run(t, "../../testdata/scenarios", "daemon", func(t *testing.T, s *scenario.Setting) func(scenario.Step) []byte {
		s.Config.Recall = &palimpsest.Recall{} // a daemon has it, whatever a client offers
		c := start(t, daemon.Config{Store: s.Store, Compactor: s.Config, Now: s.Config.Now, Limits: daemon.Limits{Rate: 100_000}}).client(t, "")
		if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
			t.Fatal(err)
		}
		return func(step scenario.Step) []byte {
			ask := api.Step{API: wire.Chat, Base: neutral.PromptOf(s.Base), Window: s.Window, Output: s.Base.MaxOutput}
			for _, m := range step.News {
				ask.Messages = append(ask.Messages, neutral.MessageOf(&m))
			}
			made, err := c.Prepare(t.Context(), "t", api.Any, ask)
			if err != nil {
				t.Fatal(err)
			}
			if step.Answer != nil {
				if _, err := c.Finish(t.Context(), "t", api.Any, api.Answer{Messages: []neutral.Message{neutral.MessageOf(step.Answer)}}); err != nil {
					t.Fatal(err)
				}
			}
			return made.Body
		}
	})
}
