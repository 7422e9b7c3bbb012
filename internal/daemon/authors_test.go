package daemon_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/test/injectedtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
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

// TestAuthorsAreTraceable: conversations in which every author says a rule are had by prepare, in each provider's form
// and in the neutral one, under each policy. In what is prepared every sentence is by whoever said it.
func TestAuthorsAreTraceable(t *testing.T) {
	policies := []policy.Policy{policy.Auto{}, policy.Notes{}, policy.Ladder{}, policy.Session{Keep: 3}, policy.Timeline{KeepRecent: 200}, policy.Workstream{Tail: 2}, policy.Loop{}}
	clients, compacted, threads := map[string]*api.Client{}, map[string]int{}, 0
	for _, p := range policies {
		clients[p.Name()] = start(t, daemon.Config{Compactor: palimpsest.Config{Policy: p}, Limits: daemon.Limits{Rate: 100_000}}).client(t, "")
	}
	property.Few(t, 40, func(t *rapid.T) {
		name := rapid.SampledFrom(policies).Draw(t, "policy").Name()
		form := rapid.SampledFrom([]string{"", wire.Anthropic, wire.Chat, wire.Gemini, wire.Responses}).Draw(t, "form")
		threads++
		id := fmt.Sprintf("thread-%d", threads)
		if _, err := clients[name].CreateThread(t.Context(), api.NewThread{ID: id}); err != nil {
			t.Fatal(err)
		}
		log := injectedtest.Signed(t, 6, 30, "")
		for from, n := 0, 0; from < len(log); from = n {
			n = min(from+rapid.IntRange(4, 16).Draw(t, "news"), len(log))
			for n < len(log) && log[n-1].Role == thread.Assistant {
				n++ // the host waits for what the model called
			}
			step := api.Step{API: form, Force: true, Budget: 1200}
			if form == "" {
				step.Base = &neutral.Prompt{Model: "m"}
				for i := from; i < n; i++ {
					step.Messages = append(step.Messages, neutral.MessageOf(&log[i]))
				}
			} else {
				body, err := apicodec.For(form).Encode(&prompt.Prompt{Model: "m", MaxOutput: 500, Messages: log[from:n], Tools: injectedtest.SignedTools})
				if err != nil {
					t.Fatal(err)
				}
				step.Body = body
			}
			made, err := clients[name].Prepare(t.Context(), id, api.Any, step)
			var full *api.Problem
			if errors.As(err, &full) && full.Status == http.StatusUnprocessableEntity {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if made.PlanVersion > 0 {
				compacted[name]++
			}
			if err := injectedtest.Misquoted(injected.MarkInjected(preparedMessages(t, form, made), nil)); err != nil {
				t.Fatalf("%s, %s: %v", name, form, err)
			}
		}
	})
	for _, p := range policies {
		if compacted[p.Name()] == 0 && !testing.Short() { // few are drawn then
			t.Errorf("%s never compacted: %v", p.Name(), compacted)
		}
	}
}

// preparedMessages are those of a prompt, in a provider's form or the neutral one, with its system prompt.
func preparedMessages(t *rapid.T, form string, made *api.Prepared) (all []thread.Message) {
	if form == "" {
		for i := range made.Prompt.Messages {
			m, err := made.Prompt.Messages[i].Value("prompt")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		return all
	}
	p, err := apicodec.For(form).Decode(string(made.Body))
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range p.System {
		all = append(all, thread.Message{Role: thread.System, Parts: []thread.Part{thread.Text{Text: system.Text}}})
	}
	return append(all, p.Messages...)
}
