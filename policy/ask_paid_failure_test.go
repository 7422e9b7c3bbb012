package policy_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestPaidAnswersOfAFailure: where a model has answered for one part of the conversation
// and failed at the next, there is no plan, and the answer is reported all the same.
func TestPaidAnswersOfAFailure(t *testing.T) {
	w := policy.Workstream{ContextSize: 20_000, ChunkChars: 4_000, Model: llmtest.Script(
		said([]string{"The queue is tidy"}, nil, nil, nil), llmtest.Fail(llm.ErrServer))}
	told := &trace{}
	c, err := palimpsest.New(palimpsest.Config{Policy: w, Events: told})
	if err != nil {
		t.Fatal(err)
	}
	step := palimpsest.Step{Profile: render.For(wire.Chat)}
	for range 33 { // due, and not over the limit yet
		step.Messages = append(step.Messages, speak(thread.User, "Go on."), speak(thread.Assistant, strings.Repeat("The queue is tidy. ", 80)))
	}
	if p, err := c.Session("t").PrepareStep(t.Context(), step); err != nil || p.Failed == nil {
		t.Fatalf("%v, %+v", err, p)
	}
	asked := 0
	for _, e := range told.events {
		if e.Type == event.Asked {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("one answer was paid for, %d are reported: %v", asked, told.told())
	}
}
