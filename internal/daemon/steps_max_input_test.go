package daemon_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
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
