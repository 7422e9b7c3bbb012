package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// talkOf is a conversation of n requests of the user's with their answers.
func talkOf(n int, about string) []neutral.Message {
	var all []neutral.Message
	for i := range n {
		all = append(all, said("user", fmt.Sprintf("Now part %d of the %s, please. %s", i, about, strings.Repeat("It holds orders until somebody takes them. ", 12))),
			said("assistant", fmt.Sprintf("Part %d of the %s is tidy. %s", i, about, strings.Repeat("The orders stand in their order. ", 16))))
	}
	return append(all, said("user", "And now the next one."))
}

func values(t *testing.T, messages []neutral.Message) []thread.Message {
	t.Helper()
	var all []thread.Message
	for i := range messages {
		m, err := messages[i].Value("")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// TestHarderAlike: a provider that refuses a request again and again gets the same
// requests, whether one process asks, another one each time, or a daemon, and a
// client that prepares its step anew before each. C2, B4
func TestHarderAlike(t *testing.T) {
	news := talkOf(60, "queue")
	policies := []policy.Policy{
		policy.Session{ContextLimit: 30_000}, policy.Timeline{MaxTokens: 20_000}, policy.Ladder{MaxInputTokens: 20_000}, policy.Auto{},
	}
	const window = 20_000
	for _, p := range policies {
		t.Run(p.Name(), func(t *testing.T) {
			library := func(anew, again bool) []int {
				db := &store.Memory{}
				session := func() *palimpsest.Session {
					c, err := palimpsest.New(palimpsest.Config{Policy: p, Store: store.Tenant{Log: db, Plans: db}})
					if err != nil {
						t.Fatal(err)
					}
					return c.Session("t")
				}
				step := palimpsest.Step{Base: &prompt.Prompt{Model: "m"}, Profile: render.For(wire.Chat), Window: window, Output: 1000, Messages: values(t, news)}
				s := session()
				made, err := s.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				step.Messages = nil
				sizes := []int{made.Tokens}
				for len(sizes) < 20 {
					if anew {
						s, made = session(), &palimpsest.Prepared{Step: step}
					}
					if again {
						if made, err = s.PrepareStep(t.Context(), step); err != nil {
							t.Fatal(err)
						}
					}
					if made, err = s.Overflowed(t.Context(), made, nil); errors.Is(err, palimpsest.ErrNoRoom) {
						return sizes
					} else if err != nil {
						t.Fatal(err)
					}
					sizes = append(sizes, made.Tokens)
				}
				return sizes
			}
			overHTTP := func(anew bool) []int {
				db := mem.New()
				client := func() *api.Client {
					return start(t, daemon.Config{Store: db, Compactor: palimpsest.Config{Policy: p}}).client(t, "")
				}
				c := client()
				if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
					t.Fatal(err)
				}
				step := api.Step{API: wire.Chat, Base: &neutral.Prompt{Model: "m"}, Window: window, Output: 1000, Messages: news}
				made, err := c.Prepare(t.Context(), "t", 0, step)
				if err != nil {
					t.Fatal(err)
				}
				step.Messages = nil
				sizes := []int{made.Tokens}
				for len(sizes) < 20 {
					if anew {
						c = client()
					}
					if made, err = c.Overflowed(t.Context(), "t", step); api.IsKind(err, api.OverBudget) {
						return sizes
					} else if err != nil {
						t.Fatal(err)
					}
					sizes = append(sizes, made.Tokens)
				}
				return sizes
			}
			want := library(false, false)
			if len(want) < 3 {
				t.Fatalf("refused %d times: the test shows little", len(want)-1)
			}
			for name, got := range map[string][]int{
				"another process each time": library(true, false), "a step prepared anew": library(false, true),
				"the daemon": overHTTP(false), "another daemon each time": overHTTP(true),
			} {
				if !slices.Equal(got, want) {
					t.Errorf("%s: %v tokens, want %v", name, got, want)
				}
			}
		})
	}
}

// TestTimelineOverHTTP: through the daemon cache points stand in the first request
// already; after a pause longer than the provider keeps a prompt, what is older is
// hidden, though nobody told a time or a ceiling; and the digest of a summary can be
// read. C9, C10, C12, F5
func TestTimelineOverHTTP(t *testing.T) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	config := palimpsest.Config{Policy: policy.Timeline{}, Recall: &palimpsest.Recall{}, Now: func() time.Time { return now }}
	c := start(t, daemon.Config{Compactor: config, Now: func() time.Time { return now }}).client(t, "")
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	ask := func(n int) *api.Prepared {
		t.Helper()
		p, err := c.Prepare(t.Context(), "t", api.Any, api.Step{API: wire.Anthropic, Body: stepRequest(n)})
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		if _, err := c.Finish(t.Context(), "t", p.Version, api.Answer{API: wire.Anthropic, Response: response(n)}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		return p
	}
	for n := range 8 {
		p := ask(n)
		if p.PlanVersion != 0 || strings.Contains(string(p.Body), "older than the cache") {
			t.Fatalf("step %d: something is hidden while the cache is warm", n)
		}
		want := 1 // the tail; no turn came before this one
		if n >= 5 {
			want = 2 // the end of round N-4
		}
		if got := strings.Count(string(p.Body), `"cache_control"`); got != want {
			t.Errorf("step %d: %d cache points, want %d", n, got, want)
		}
	}
	now = now.Add(6 * time.Minute) // the model's provider keeps a prompt for five
	p := ask(8)
	if got := strings.Count(string(p.Body), "older than the cache"); p.PlanVersion != 1 || got != 7 {
		t.Errorf("after the pause plan %d hides %d results, want the 7 that were answered to", p.PlanVersion, got)
	}
	made, err := c.Compact(t.Context(), "t", api.Any, api.Compact{Step: api.Step{Budget: 4000}})
	if err != nil {
		t.Fatal(err)
	}
	block := made.Plan.Summarizations[0].Range
	arguments, err := json.Marshal(map[string]any{"artifact_id": block.Path})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Answer(t.Context(), "t", neutral.Part{Type: neutral.ToolCallPart, CallID: "d", Tool: "read_artifact", Arguments: string(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%+v", answer)
	if !strings.Contains(text, `Results of "Grep"`) || !strings.Contains(text, "Hidden") || len(block.Digest.Hidden) == 0 {
		t.Errorf("the digest reads %s", text)
	}
}

// overlapping is a policy of somebody's own: two of its records want one message.
type overlapping struct{}

func (overlapping) Name() string { return "overlapping" }

func (overlapping) Due(s *policy.Situation) (bool, string) { return s.Current == nil, "now" }

func (overlapping) Plan(_ context.Context, s *policy.Situation) (*policy.Fitted, error) {
	p := s.Draft("overlapping")
	p.Add(plan.Clearing{Span: s.Thread.Range(0, 2)})
	p.Add(plan.Removal{Span: s.Thread.Range(1, 3)})
	return s.Render(p)
}

// TestOverlapsAreTold: where records of a plan overlap, the one of higher precedence
// holds, and the event of the compaction says how many messages that was so for. A4
func TestOverlapsAreTold(t *testing.T) {
	c := start(t, daemon.Config{Compactor: palimpsest.Config{Policy: overlapping{}}}).client(t, "")
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Prepare(t.Context(), "t", 0, api.Step{API: wire.Chat, Base: &neutral.Prompt{Model: "m"}, Messages: talkOf(4, "queue")}); err != nil {
		t.Fatal(err)
	}
	p, err := c.Plan(t.Context(), "t", api.Any)
	if err != nil {
		t.Fatal(err)
	}
	if p.Plan.Clearings[0].Span.Len() != 1 || p.Plan.Drops[0].Span.Len() != 2 {
		t.Errorf("%d messages are cleared and %d dropped", p.Plan.Clearings[0].Span.Len(), p.Plan.Drops[0].Span.Len())
	}
	for told, err := range c.Events(t.Context(), "t", "0") {
		if err != nil {
			t.Fatal(err)
		}
		if told.Event.Type == event.Completed {
			if fmt.Sprint(told.Event.Details["overlaps"]) != "1" {
				t.Errorf("told: %+v", told.Event.Details)
			}
			break
		}
	}
}
