package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestSummaryReadsTheCache: where the model of the conversation writes the
// summary, and its provider has the conversation in its cache, the request for
// the first summary begins byte by byte as the request before, although the plan
// to come adds tools. It does not without a cache mark, when the cache has gone
// cold, and when another model writes.
func TestSummaryReadsTheCache(t *testing.T) {
	for name, test := range map[string]struct {
		model, mark string
		wait        time.Duration
		reads       bool
	}{
		"the same model":  {"claude-sonnet-4-5", "5m", time.Second, true},
		"no mark":         {"claude-sonnet-4-5", "", time.Second, false},
		"a cold cache":    {"claude-sonnet-4-5", "5m", time.Hour, false},
		"another model":   {"claude-haiku-4-5", "5m", time.Second, false},
		"an unknown name": {"claude-nobody", "5m", time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := llmtest.NewProvider(t, llmtest.Provider{
				Windows: map[string]int{test.model: 1 << 20},
				Reply:   func(llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "{}"} },
			})
			t.Chdir(t.TempDir())
			const file = "base: ladder\ntrigger: {max_input_tokens: 14000}\ncut: {preserve_recent_turns: 1}\nladder: {enable_externalization: false, enable_clearing: false}\nsummarizer: {rules: table}\n"
			if err := os.WriteFile("mine.yaml", []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			o := &Options{Summarizer: "anthropic:" + test.model, Getenv: env(map[string]string{"ANTHROPIC_BASE_URL": server.URL, "ANTHROPIC_API_KEY": "k"})}
			choice, err := Open("mine.yaml", o)
			if err != nil {
				t.Fatal(err)
			}
			config := choice.Config(mustCounter(t))
			config.Recall = &palimpsest.Recall{}
			now := time.Unix(1_700_000_000, 0)
			config.Now = func() time.Time { return now }
			c, err := palimpsest.New(config)
			if err != nil {
				t.Fatal(err)
			}
			th := c.Session("t")
			base := &prompt.Prompt{Model: "claude-sonnet-4-5", MaxOutput: 1000, Tools: []prompt.Tool{{Name: "Read", Schema: `{"type":"object"}`}}, System: []prompt.System{{Text: "You tidy.", Source: thread.Source{Cache: test.mark}}}}
			if test.mark != "" {
				base.System[0].API, base.System[0].Raw = wire.Anthropic, `{"type":"text","text":"You tidy.","cache_control":{"type":"ephemeral"}}`
			}
			if test.model != base.Model && test.model == "claude-nobody" {
				base.Model = test.model // whose prices nobody knows
			}
			step := palimpsest.Step{Base: base, Profile: render.For(wire.Anthropic)}
			var last []byte
			for n := 0; len(server.Requests()) == 0; n++ {
				if n > 40 {
					t.Fatal("no summary was asked for")
				}
				step.Messages = []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("Please tidy file %d of the queue.", n)}}}}
				now = now.Add(test.wait)
				p, err := th.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				if len(server.Requests()) == 0 {
					if last, err = (anthropic.Codec{}).Encode(p.Prompt); err != nil {
						t.Fatal(err)
					}
				}
				said := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("File %d: ", n) + strings.Repeat("the queue holds orders until somebody takes them out. ", 60)}}}
				if err := th.FinishStep(t.Context(), nil, wire.Usage{}, said); err != nil {
					t.Fatal(err)
				}
			}
			if refused := server.Refused(); len(refused) > 0 {
				t.Errorf("refused: %+v", refused[0])
			}
			first, before := bodyOf(t, []byte(server.Requests()[0].Body)), bodyOf(t, last)
			if got := len(first.Messages) > 1; got != test.reads {
				t.Fatalf("goes on from the conversation: %v", got)
			}
			if !test.reads {
				return
			}
			n := min(len(before.Messages), len(first.Messages))
			if !slices.EqualFunc(before.Messages, first.Messages[:n], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) || !bytes.Equal(before.System, first.System) || !bytes.Equal(before.Tools, first.Tools) || first.Choice != nil {
				t.Errorf("it begins otherwise:\n%.400s\nbefore:\n%.400s", server.Requests()[0].Body, last)
			}
		})
	}
}

// body is what a cache goes by, as it was sent.
type body struct {
	System, Tools json.RawMessage
	Messages      []json.RawMessage
	Choice        json.RawMessage `json:"tool_choice"`
}

func bodyOf(t *testing.T, data []byte) (b body) {
	t.Helper()
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	return b
}
