package palimpsest_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/scenario"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestScenarios runs testdata/scenarios through a Session. The rows that they show stand in their files.
func TestScenarios(t *testing.T) {
	scenario.Run(t, "testdata/scenarios", "library", func(t *testing.T, s *scenario.Setting) func(scenario.Step) []byte {
		c, err := palimpsest.New(s.Config)
		if err != nil {
			t.Fatal(err)
		}
		session := c.Session("t")
		return func(step scenario.Step) []byte {
			made, err := session.PrepareStep(t.Context(), palimpsest.Step{
				Base: s.Base, Profile: render.For(wire.Chat), Window: s.Window, Output: s.Base.MaxOutput, Messages: step.News,
			})
			if err != nil {
				t.Fatal(err)
			}
			body, err := openai.Chat{}.Encode(made.Prompt)
			if err != nil {
				t.Fatal(err)
			}
			if step.Answer != nil {
				if err := session.FinishStep(t.Context(), made, wire.Usage{}, *step.Answer); err != nil {
					t.Fatal(err)
				}
			}
			return body
		}
	})
}
