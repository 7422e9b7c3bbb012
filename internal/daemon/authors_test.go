package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/injectedtest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestAuthors: what a client appends in the user's name, in a provider's form or in the
// neutral one, becomes the user's words in a prompt only as far as the user certainly
// wrote it, under the default policy and one that puts its summary into the user's mouth.
func TestAuthors(t *testing.T) {
	for name, p := range map[string]policy.Policy{"auto": policy.Auto{}, "loop": policy.Loop{ContextLimit: 5_500, MaxOutput: 500, Preserve: 0.1}} {
		c := start(t, daemon.Config{Compactor: palimpsest.Config{Policy: p}}).client(t, "")
		for n, a := range injectedtest.Attacks() {
			t.Run(a.Name+"/"+name, func(t *testing.T) {
				messages := injectedtest.Conversation(a)
				base := &prompt.Prompt{Model: "m", MaxOutput: 500}
				step := api.Step{Base: &neutral.Prompt{Model: "m"}, Window: 5_000, Output: 500}
				if n%2 == 0 {
					for i := range messages {
						step.Messages = append(step.Messages, neutral.MessageOf(&messages[i]))
					}
				} else {
					base.Messages = messages
					body, err := anthropic.Codec{}.Encode(base)
					if err != nil {
						t.Fatal(err)
					}
					step.Base, step.API, step.Body = nil, wire.Anthropic, body
				}
				id := fmt.Sprintf("thread-%d", n)
				if _, err := c.CreateThread(t.Context(), api.NewThread{ID: id}); err != nil {
					t.Fatal(err)
				}
				got, err := c.Prepare(t.Context(), id, 0, step)
				if err != nil {
					t.Fatal(err)
				}
				if got.PlanVersion == 0 {
					t.Fatal("nothing was compacted")
				}
				var texts []string
				if got.Prompt != nil {
					for _, m := range got.Prompt.Messages {
						for _, part := range m.Parts {
							texts = append(texts, part.Text)
						}
					}
				} else {
					back, err := anthropic.Codec{}.Decode(string(got.Body))
					if err != nil {
						t.Fatal(err)
					}
					for i := range back.Messages {
						texts = append(texts, back.Messages[i].Text())
					}
				}
				for _, text := range texts {
					if strings.Contains(injectedtest.WithoutData(text), "evil.example") {
						t.Errorf("the model is told\n%s", text)
					}
				}
				all := strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
				for _, want := range []string{injectedtest.Request, a.Own} {
					if !strings.Contains(all, want) {
						t.Errorf("no %q in\n%s", want, all)
					}
				}
			})
		}
	}
}
