package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/apikeytest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// output is what a tool of the made-up agent says at a step.
func output(step int) string {
	var b strings.Builder
	for n := range 60 {
		fmt.Fprintf(&b, "file_%02d_%02d.go:%d: func Handle%d(r *Request) error\n", step, n, n*7, step*100+n)
	}
	return b.String()
}

// putsAside is a policy that externalizes each of these outputs soon after it was
// read.
func putsAside() palimpsest.Config {
	return palimpsest.Config{Policy: policy.Ladder{MaxInputTokens: 9_000, Target: 0.9}, Recall: &palimpsest.Recall{}}
}

// stepRequest is an Anthropic request whose messages are those that are new at a
// step: the task at first, then the result of the call before.
func stepRequest(step int) json.RawMessage {
	content := any("Find out why the build fails, and never touch the file vendor.lock.")
	if step > 0 {
		content = []any{map[string]any{"type": "tool_result", "tool_use_id": fmt.Sprintf("call_%d", step-1), "content": output(step - 1)}}
	}
	body, _ := json.Marshal(map[string]any{
		"model": "claude-sonnet-4-5", "max_tokens": 1024, "system": "You repair builds.",
		"tools":    []any{map[string]any{"name": "Grep", "description": "search", "input_schema": map[string]any{"type": "object"}}},
		"messages": []any{map[string]any{"role": "user", "content": content}},
	})
	return body
}

// response is what the provider answers at a step: a call.
func response(step int) json.RawMessage {
	body, _ := json.Marshal(map[string]any{
		"id": fmt.Sprintf("msg_%d", step), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "tool_use",
		"content": []any{
			map[string]any{"type": "text", "text": fmt.Sprintf("Step %d: I look further.", step)},
			map[string]any{"type": "tool_use", "id": fmt.Sprintf("call_%d", step), "name": "Grep", "input": map[string]any{"pattern": fmt.Sprintf("Handle%d", step)}},
		},
		"usage": map[string]any{"input_tokens": 900 + step, "cache_read_input_tokens": 100, "output_tokens": 40},
	})
	return body
}

// TestLifeOfAThread: a whole agent loop over HTTP, with compactions, and what can
// be asked of the thread afterwards.
func TestLifeOfAThread(t *testing.T) {
	c := start(t, daemon.Config{}).client(t, "")
	ctx := t.Context()
	th, err := c.CreateThread(ctx, api.NewThread{ID: "ticket 4711/β", Labels: map[string]string{"team": "build"}})
	if err != nil {
		t.Fatal(err)
	}
	const steps, window = 50, 20_000
	version := 0
	for step := range steps {
		p, err := c.Prepare(ctx, th.ID, version, api.Step{API: wire.Anthropic, Body: stepRequest(step), Window: window, Output: 1000})
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if p.Tokens > window-1000 {
			t.Fatalf("step %d: %d tokens, over the window", step, p.Tokens)
		}
		for _, problem := range (anthropic.Codec{}).Validate(p.Body) {
			if !problem.Advice {
				t.Fatalf("step %d: the request would be refused: %v", step, problem)
			}
		}
		if len(p.Manifest.Messages) == 0 || len(p.Manifest.Hidden) > 0 {
			t.Fatalf("step %d: the manifest names %d messages of the prompt and %d hidden ones, whose list grows with the thread", step, len(p.Manifest.Messages), len(p.Manifest.Hidden))
		}
		a, err := c.Finish(ctx, th.ID, p.Version, api.Answer{API: wire.Anthropic, Response: response(step)})
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		version = a.Version
	}
	plans, err := c.Plans(ctx, th.ID, "", 0)
	if err != nil || plans.Current < 2 {
		t.Fatalf("%d plans, want several: %v", plans.Current, err)
	}
	got, err := c.Thread(ctx, th.ID)
	if err != nil || got.Version != 2*steps || got.PlanVersion != plans.Current || got.Labels["team"] != "build" {
		t.Fatalf("thread %+v: %v", got, err)
	}
	p, err := c.Plan(ctx, th.ID, api.Any)
	if err != nil || p.Version != plans.Current || p.Plan.Empty() {
		t.Fatalf("plan in force: %+v: %v", p, err)
	}

	t.Run("render", func(t *testing.T) {
		shown, err := c.Render(ctx, th.ID, api.Render{Step: api.Step{API: wire.Anthropic}})
		if err != nil || len(shown.Manifest.Hidden) == 0 {
			t.Fatalf("rendering does not say what is hidden: %+v: %v", shown, err)
		}
	})
	t.Run("recall", func(t *testing.T) {
		hits, err := c.Recall(ctx, th.ID, "Handle417", nil)
		if err != nil || len(hits) == 0 || !strings.Contains(hits[0].Excerpt, "Handle417") {
			t.Fatalf("%+v: %v", hits, err)
		}
	})
	t.Run("undo", func(t *testing.T) {
		undone, err := c.Undo(ctx, th.ID, plans.Current, 1)
		if err != nil || undone.Version != plans.Current+1 {
			t.Fatalf("%+v: %v", undone, err)
		}
		if _, err := c.Undo(ctx, th.ID, plans.Current, 0); !api.IsKind(err, api.Stale) {
			t.Fatalf("a stale version: %v", err)
		}
		d, err := c.Diff(ctx, th.ID, 1, api.Any)
		if err != nil || len(d.Changes) != 0 {
			t.Fatalf("undone to 1, but it differs: %+v: %v", d, err)
		}
	})
	t.Run("expand", func(t *testing.T) {
		hidden := p.Plan.Refs()[0]
		if _, err := c.Undo(ctx, th.ID, api.Any, p.Version); err != nil {
			t.Fatal(err)
		}
		id := p.Plan.Record(hidden).Covers().First()
		e, err := c.Expand(ctx, th.ID, api.Any, id)
		if err != nil || e.Plan.Actions()[id].Action != plan.Include {
			t.Fatalf("%+v: %v", e, err)
		}
	})
	t.Run("events", func(t *testing.T) {
		seen := map[string]int{}
		for w, err := range c.Events(ctx, th.ID, "0") {
			if err != nil {
				t.Fatal(err)
			}
			seen[string(w.Event.Type)]++
			if w.Event.Type == event.Boundary {
				break
			}
		}
		for _, want := range []event.Type{"thread_created", event.PreCompact, event.Completed} {
			if seen[string(want)] != 1 {
				t.Errorf("%d events %s, want 1: %v", seen[string(want)], want, seen)
			}
		}
	})
}

// TestTools: where prompts offer tools that reach what was removed, the model's
// calls of them are answered. A22
func TestTools(t *testing.T) {
	config := daemon.Config{}
	config.Compactor.Recall = &palimpsest.Recall{}
	c := start(t, config).client(t, "")
	ctx := t.Context()
	if _, err := c.CreateThread(ctx, api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	offered := false
	for step := 0; !offered; step++ {
		p, err := c.Prepare(ctx, "t", api.Any, api.Step{API: wire.Anthropic, Body: stepRequest(step), Window: 20_000, Output: 1000})
		if err != nil || step > 30 {
			t.Fatalf("step %d: %v", step, err)
		}
		offered = strings.Contains(string(p.Body), `"name":"recall"`)
		if _, err := c.Finish(ctx, "t", api.Any, api.Answer{API: wire.Anthropic, Response: response(step)}); err != nil {
			t.Fatal(err)
		}
	}
	m, err := c.Answer(ctx, "t", neutral.Part{Type: neutral.ToolCallPart, CallID: "call_9", Tool: "recall", Arguments: `{"query":"Handle217"}`})
	if err != nil || m.Role != "tool" || m.Parts[0].CallID != "call_9" || !strings.Contains(m.Parts[0].Content[0].Text, "Handle217") {
		t.Fatalf("%+v: %v", m, err)
	}
}

// TestContextTools: the context tools are in the first request, and their calls are answered: a note is
// in the plan of the compaction that the model asks for. A key that only reads can neither note nor
// compact.
func TestContextTools(t *testing.T) {
	keys := apikey.New(&apikeytest.Memory{}, nil)
	config := daemon.Config{Keys: keys}
	config.Compactor.Recall = &palimpsest.Recall{ContextTools: true}
	h := start(t, config)
	c, reader, ctx := h.client(t, key(t, keys, "", apikey.Read|apikey.Write)), h.client(t, key(t, keys, "", apikey.Read)), t.Context()
	if _, err := c.CreateThread(ctx, api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	step := func(n int) *api.Prepared {
		p, err := c.Prepare(ctx, "t", api.Any, api.Step{API: wire.Anthropic, Body: stepRequest(n), Window: 200_000, Output: 1000})
		if err != nil || !strings.Contains(string(p.Body), `"name":"context_note"`) {
			t.Fatalf("step %d: %v", n, err)
		}
		if _, err := c.Finish(ctx, "t", api.Any, api.Answer{API: wire.Anthropic, Response: response(n)}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for n := range 12 {
		step(n)
	}
	call := func(tool, arguments string) neutral.Part {
		return neutral.Part{Type: neutral.ToolCallPart, CallID: "call_9", Tool: tool, Arguments: arguments}
	}
	for _, asked := range []struct{ tool, arguments, says string }{
		{"context_note", `{"action":"write","text":"Handle3 stays.","cites":["turn 1"]}`, "Noted as n1."},
		{"compact_now", `{"keep_in_mind":"Handle3"}`, "before your next request"},
		{"context_status", `{}`, "notes: 1 of 40"},
	} {
		_, err := reader.Answer(ctx, "t", call(asked.tool, asked.arguments))
		if (asked.tool == "context_status") == api.IsKind(err, api.Forbidden) {
			t.Errorf("%s for a key that reads: %v", asked.tool, err)
		}
		m, err := c.Answer(ctx, "t", call(asked.tool, asked.arguments))
		if err != nil || !strings.Contains(m.Parts[0].Content[0].Text, asked.says) {
			t.Fatalf("%s: %+v, %v", asked.tool, m, err)
		}
	}
	p := step(12)
	made, err := c.Plan(ctx, "t", p.PlanVersion)
	if err != nil || p.PlanVersion != 1 || len(made.Plan.Notes) != 1 || made.Plan.Notes[0].String() != "n1: Handle3 stays. [turn 1]" || made.Plan.Instructions != "" {
		t.Errorf("plan %d: %+v, %v", p.PlanVersion, made.Plan.Notes, err)
	}
}
