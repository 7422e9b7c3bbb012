package daemon_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestWindowOfTheSetting: the window that the daemon was given is that of every model, also of one in the table.
func TestWindowOfTheSetting(t *testing.T) {
	const given = 10_000
	if largest := largestRequest(t, daemon.Config{Window: given}, "claude-sonnet-4-5"); largest > given || largest < given/2 {
		t.Errorf("the largest request has %d tokens, the window is %d", largest, given)
	}
}

// TestWindowOfTheStep: a step's own window holds request and answer, also where the model's answer alone could be
// larger; an answer that leaves nothing of it is refused. F8
func TestWindowOfTheStep(t *testing.T) {
	const given = 10_000
	c := start(t, daemon.Config{}).client(t, "")
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	step := api.Step{Model: "claude-sonnet-4-5", Window: given}
	for n := range 30 {
		said := thread.NewMessage(thread.User, strings.Repeat(fmt.Sprintf("Order %d is here. ", n), 80))
		step.Messages = []neutral.Message{neutral.MessageOf(&said)}
		p, err := c.Prepare(t.Context(), "t", api.Any, step)
		if err != nil || p.Tokens > given*2/3 {
			t.Fatalf("step %d has %d tokens in a window of %d: %v", n, p.Tokens, given, err)
		}
	}
	step.Messages, step.Output = nil, given
	if _, err := c.Prepare(t.Context(), "t", api.Any, step); err == nil || !strings.Contains(err.Error(), "output") {
		t.Errorf("an answer as large as the window: %v", err)
	}
	if _, err := c.DryRun(t.Context(), "t", step); err == nil || !strings.Contains(err.Error(), "output") {
		t.Errorf("a dry run: %v", err)
	}
}

// TestRememberedAnswer: the room of an answer that nobody asks for now is no reason to refuse, be it that of a step
// beside another window or one that an earlier build stored beside a window that it fills. F8
func TestRememberedAnswer(t *testing.T) {
	for _, k := range []struct {
		name, stored string
		given        int // the daemon's window
		prepared     api.Step
		asked        api.Step
	}{
		{"stored by an earlier build", `{"model":"claude-sonnet-4-5","window":10000,"output":20000,"profile":{"API":"anthropic"}}`, 0, api.Step{}, api.Step{}},
		{"an ordinary step", "", 0, api.Step{Model: "claude-sonnet-4-5"}, api.Step{Window: 10_000}},
		{"the window of the last step holds what is asked for", "", 10_000, api.Step{Model: "claude-sonnet-4-5", Window: 100_000}, api.Step{Output: 20_000}},
	} {
		t.Run(k.name, func(t *testing.T) {
			db := mem.New()
			c := start(t, daemon.Config{Store: db, Window: k.given}).client(t, "")
			if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
				t.Fatal(err)
			}
			var log []neutral.Message
			for n := range 60 {
				log = append(log, said("user", strings.Repeat(fmt.Sprintf("Order %d is here. ", n), 80)), said("assistant", "It is in."))
			}
			var err error
			if k.stored == "" {
				k.prepared.Messages = log
				_, err = c.Prepare(t.Context(), "t", api.Any, k.prepared)
			} else if _, err = c.Append(t.Context(), "t", 0, api.Append{Messages: log}); err == nil {
				_, err = db.Tenant("").Documents.Put(t.Context(), store.Document{Kind: "step", ID: "t", Body: []byte(k.stored)})
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.DryRun(t.Context(), "t", k.asked); err != nil {
				t.Errorf("a dry run: %v", err)
			}
			if _, err := c.View(t.Context(), "t", api.Any); err != nil {
				t.Errorf("a look: %v", err)
			}
			if _, err := c.Compact(t.Context(), "t", 0, api.Compact{Step: k.asked}); err != nil {
				t.Errorf("a compaction: %v", err)
			}
			if _, err := c.DryRun(t.Context(), "t", api.Step{Window: 10_000, Output: 10_000}); err == nil || !strings.Contains(err.Error(), "output") {
				t.Errorf("an answer as large as the window, asked for: %v", err)
			}
		})
	}
}

// TestMaxInput: no request is larger than the input that a model takes, where that is less
// than its window leaves beside the answer.
func TestMaxInput(t *testing.T) {
	const most = 12_000
	models, err := token.ParseModels([]byte(`{"models":[{"name":"m","provider":"own","window":40000,"max_input":12000,"max_output":8000,"counter":"o200k","date":"2026-11-01","source":"ours"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if largest := largestRequest(t, daemon.Config{Models: &models}, "m"); largest > most || largest < most/2 {
		t.Errorf("the largest request has %d tokens, the model takes %d", largest, most)
	}
}

// largestRequest is the size of the largest request of thirty steps with a model, in tokens.
func largestRequest(t *testing.T, config daemon.Config, model string) (largest int) {
	t.Helper()
	c := start(t, config).client(t, "")
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	for n := range 30 {
		body := strings.Replace(string(stepRequest(n)), `"claude-sonnet-4-5"`, strconv.Quote(model), 1)
		p, err := c.Prepare(t.Context(), "t", api.Any, api.Step{API: wire.Anthropic, Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, p.Tokens)
		if _, err := c.Finish(t.Context(), "t", api.Any, api.Answer{API: wire.Anthropic, Response: response(n)}); err != nil {
			t.Fatal(err)
		}
	}
	return largest
}
