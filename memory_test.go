package palimpsest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestMemoryBlock: entries stand behind the system prompt of every prompt from
// then on, whatever is compacted or undone, and fold in their own cycle. D10
func TestMemoryBlock(t *testing.T) {
	for _, p := range allPolicies() {
		t.Run(p.Name(), func(t *testing.T) {
			c, err := palimpsest.New(palimpsest.Config{Policy: p})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			th := c.Session("ticket-4711")
			for n := range 17 {
				if err := th.Remember(ctx, fmt.Sprintf("Note %d: the port is 80%02d.", n, n)); err != nil {
					t.Fatal(err)
				}
			}
			th, step, _ := longLoop(t, c)
			shows := func() string {
				t.Helper()
				out, err := th.PrepareStep(ctx, step)
				if err != nil || len(out.System) != 1 {
					t.Fatalf("%d system blocks, %v", len(out.System), err)
				}
				return out.System[0].Text
			}
			text := shows()
			for n := range 17 {
				if !strings.Contains(text, fmt.Sprintf("the port is 80%02d.", n)) {
					t.Errorf("entry %d is gone:\n%s", n, text)
				}
			}
			if !strings.HasPrefix(text, "Memory summary:\n- Note 0") || strings.Count(text, "\n- Note") != 17 {
				t.Errorf("it was not folded:\n%s", text)
			}
			plans, err := th.Plans(ctx)
			if err != nil || len(plans) < 19 {
				t.Fatalf("%d plans, %v: nothing was compacted", len(plans), err)
			}
			if err := th.Undo(ctx, 0); err != nil {
				t.Fatal(err)
			}
			step.Budget = 0
			if p, err := th.PrepareStep(ctx, step); err != nil || len(p.System) != 0 {
				t.Errorf("%v; undoing everything leaves notes: %+v", err, p.System)
			}
			if err := th.Undo(ctx, len(plans)); err != nil {
				t.Fatal(err)
			}
			if shows() != text {
				t.Error("the plan that is in force again has other notes")
			}
		})
	}
}

// TestDecodedRequest: the tools and the memory block stand in a request that was
// read from a client, beside what the client put there, for each API.
func TestDecodedRequest(t *testing.T) {
	for _, codec := range []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}} {
		t.Run(codec.API(), func(t *testing.T) {
			base, err := codec.Encode(&prompt.Prompt{
				Model: "m", MaxOutput: 1000, System: []prompt.System{{Text: "Be careful."}},
				Tools:    []prompt.Tool{{Name: "Read", Description: "Reads a file.", Schema: `{"type":"object","properties":{"file_path":{"type":"string"}}}`}},
				Messages: []thread.Message{plain(thread.User, "Tidy the queue.")},
			})
			if err != nil {
				t.Fatal(err)
			}
			client, err := codec.Decode(string(base))
			if err != nil {
				t.Fatal(err)
			}
			c, err := palimpsest.New(palimpsest.Config{Recall: &palimpsest.Recall{}})
			if err != nil {
				t.Fatal(err)
			}
			th := c.Session("t")
			if err := th.Remember(t.Context(), "The port is 8080."); err != nil {
				t.Fatal(err)
			}
			step := palimpsest.Step{Base: client, Profile: render.For(codec.API()), Budget: loopBudget, Messages: client.Messages}
			for n := range 20 {
				call, result := work(n)
				step.Messages = append(step.Messages, call, result)
			}
			p, err := th.PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			body, err := codec.Encode(p.Prompt)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range codec.Validate(body) {
				if !problem.Advice {
					t.Errorf("the provider would refuse: %v", problem)
				}
			}
			for _, want := range []string{"Be careful.", "The port is 8080.", "read_artifact", "\"recall\"", "Reads a file."} {
				if !strings.Contains(string(body), want) {
					t.Errorf("%s is not in the request", want)
				}
			}
		})
	}
}
