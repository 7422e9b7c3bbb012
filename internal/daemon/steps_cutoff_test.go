package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// chatCut is an answer of the Chat API that ended inside the arguments of a call.
func chatCut(t *testing.T) json.RawMessage {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"choices": []any{map[string]any{"finish_reason": "length", "message": map[string]any{
			"role": "assistant", "content": "I write the file.",
			"tool_calls": []any{map[string]any{"id": "call_whole", "type": "function", "function": map[string]any{"name": "Read", "arguments": `{"path":"a.go"}`}}, map[string]any{"id": "call_cut", "type": "function", "function": map[string]any{"name": "Write", "arguments": `{"content":"package`}}},
		}}},
		"usage": map[string]any{"prompt_tokens": 900, "completion_tokens": 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestCutOff: an answer that ended at the limit on the output is kept without the
// call that is not whole. Where compacting helps, the loop goes on with a request that the provider
// takes, at a daemon that has not prepared the step just as at the one that has;
// else the problem says so. E2
func TestCutOff(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprint("elsewhere ", elsewhere), func(t *testing.T) {
			ctx, db := t.Context(), mem.New()
			c := start(t, daemon.Config{Store: db}).client(t, "")
			if _, err := c.CreateThread(ctx, api.NewThread{ID: "t"}); err != nil {
				t.Fatal(err)
			}
			last := api.Step{API: wire.Chat, Base: &neutral.Prompt{Model: "m", System: []neutral.System{{Text: "You repair builds."}}}, Budget: 6000}
			step := last
			step.Messages = []neutral.Message{said("user", "Write the file.")}
			p, err := c.Prepare(ctx, "t", 0, step)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.CutOff(ctx, "t", p.Version, api.CutOff{Answer: api.Answer{API: wire.Chat, Response: chatCut(t)}, Step: last}); !api.IsKind(err, api.NothingToDo) {
				t.Fatalf("compacting a short conversation: %v", err)
			}
			long := strings.Repeat("The build failed at the linker. ", 100)
			for n := 0; ; n++ {
				a, err := c.Append(ctx, "t", api.Any, api.Append{Messages: []neutral.Message{said("user", long), said("assistant", long), said("user", "Write the file.")}})
				if err != nil {
					t.Fatal(err)
				}
				at := c
				if elsewhere {
					at = start(t, daemon.Config{Store: db}).client(t, "")
				}
				p, err = at.CutOff(ctx, "t", a.Version, api.CutOff{Answer: api.Answer{API: wire.Chat, Response: chatCut(t)}, Step: last})
				if err == nil {
					break
				}
				if !api.IsKind(err, api.NothingToDo) || n > 9 {
					t.Fatal(err)
				}
			}
			if p.PlanVersion != 1 || p.Tokens > 6000 || p.API != wire.Chat {
				t.Errorf("plan %d, %d tokens, form %s", p.PlanVersion, p.Tokens, p.API)
			}
			for _, problem := range (openai.Chat{}).Validate(p.Body) {
				if !problem.Advice {
					t.Errorf("the provider would refuse: %v", problem)
				}
			}
			body := string(p.Body)
			if strings.Contains(body, "call_cut") || !strings.Contains(body, "call_whole") || !strings.Contains(body, "Not run: the answer was cut off") || !strings.Contains(body, "was cut off there") || !strings.Contains(body, "You repair builds.") {
				t.Errorf("the request is %s", body)
			}
			log, err := c.Log(ctx, "t", "", 500)
			if err != nil {
				t.Fatal(err)
			}
			kept := 0
			for _, m := range log.Items {
				for _, part := range m.Parts {
					if part.Type == neutral.ToolCallPart && part.CallID != "call_whole" {
						t.Errorf("a call that is not whole is in the log: %+v", m)
					}
					if part.Text == "I write the file." {
						kept++
					}
				}
			}
			if kept < 2 {
				t.Errorf("%d answers that were cut off are in the log", kept)
			}
		})
	}
}

// TestRemember: entries stand behind the system prompt of every request from then
// on, whatever is compacted, and are part of the plan; a call that names the
// version of the plans is made once. D10
func TestRemember(t *testing.T) {
	h := start(t, daemon.Config{})
	c, ctx := h.client(t, ""), t.Context()
	lived(t, c, "t")
	now, err := c.Thread(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Remember(ctx, "t", now.PlanVersion, "The release is on Friday.", "Ask Kim about\nthe linker.")
	if err != nil || p.Version != now.PlanVersion+1 || p.Plan.Memory == nil || len(p.Plan.Memory.Entries) != 2 {
		t.Fatalf("%+v: %v", p, err)
	}
	if _, err := c.Remember(ctx, "t", now.PlanVersion, "Again."); !api.IsKind(err, api.Stale) {
		t.Errorf("a version that has passed: %v", err)
	}
	next := 30
	shown := func(when string) {
		t.Helper()
		q, err := c.Prepare(ctx, "t", api.Any, api.Step{API: wire.Anthropic, Body: stepRequest(next), Window: 12_000, Output: 1000})
		if err != nil {
			t.Fatal(err)
		}
		var body struct{ System json.RawMessage }
		if err := json.Unmarshal(q.Body, &body); err != nil {
			t.Fatal(err)
		}
		system := string(body.System)
		if !strings.Contains(system, "You repair builds.") || !strings.Contains(system, "- The release is on Friday.") || !strings.Contains(system, "- Ask Kim about the linker.") {
			t.Errorf("%s the system prompt is %s", when, system)
		}
		if _, err := c.Finish(ctx, "t", api.Any, api.Answer{API: wire.Anthropic, Response: response(next)}); err != nil {
			t.Fatal(err)
		}
		next++
	}
	shown("at once")
	if _, err := c.Compact(ctx, "t", api.Any, api.Compact{Step: api.Step{Budget: 6000}}); err != nil {
		t.Fatal(err)
	}
	shown("after a compaction")
	if _, err := c.Undo(ctx, "t", api.Any, p.Version); err != nil {
		t.Fatal(err)
	}
	shown("after an undo")
	var many []string
	for n := range 30 {
		many = append(many, fmt.Sprintf("Note %d: the port is 80%02d.", n, n))
	}
	all, err := c.Remember(ctx, "t", api.Any, many...)
	if err != nil || len(all.Plan.Memory.Entries) >= 15 || !strings.Contains(all.Plan.Memory.Summary, "Note 10:") {
		t.Errorf("30 entries at once: %+v, %v", all.Plan.Memory, err)
	}
}

// TestOverflowed: a request that the provider refused as too long comes back
// smaller, by a new plan and for the same log, at a daemon that has not prepared
// the step just as at the one that has; asked again it comes back smaller still,
// until there is no room. C2
func TestOverflowed(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprint("elsewhere ", elsewhere), func(t *testing.T) {
			ctx, db := t.Context(), mem.New()
			c := start(t, daemon.Config{Store: db}).client(t, "")
			if _, err := c.CreateThread(ctx, api.NewThread{ID: "t"}); err != nil {
				t.Fatal(err)
			}
			step := api.Step{API: wire.Anthropic, Window: 40_000, Output: 1000}
			var p *api.Prepared
			n := 0
			for ; p == nil || p.Tokens < 20_000; n++ {
				var err error
				step.Body = stepRequest(n)
				if p, err = c.Prepare(ctx, "t", api.Any, step); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Finish(ctx, "t", api.Any, api.Answer{API: wire.Anthropic, Response: response(n)}); err != nil {
					t.Fatal(err)
				}
			}
			step.Body = stepRequest(n)
			p, err := c.Prepare(ctx, "t", api.Any, step)
			if err != nil {
				t.Fatal(err)
			}
			if elsewhere {
				c = start(t, daemon.Config{Store: db}).client(t, "")
			}
			var body map[string]any
			if err := json.Unmarshal(step.Body, &body); err != nil {
				t.Fatal(err)
			}
			body["messages"] = []any{}
			if step.Body, err = json.Marshal(body); err != nil {
				t.Fatal(err)
			}
			for n := 0; ; n++ {
				smaller, err := c.Overflowed(ctx, "t", step)
				if api.IsKind(err, api.OverBudget) && n > 0 {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if smaller.Tokens >= p.Tokens || smaller.PlanVersion != p.PlanVersion+1 || smaller.Version != p.Version || n > 20 {
					t.Fatalf("refusal %d: %d tokens under plan %d of log %d, before it were %d under %d of %d",
						n, smaller.Tokens, smaller.PlanVersion, smaller.Version, p.Tokens, p.PlanVersion, p.Version)
				}
				for _, problem := range (anthropic.Codec{}).Validate(smaller.Body) {
					if !problem.Advice {
						t.Errorf("the provider would refuse: %v", problem)
					}
				}
				p = smaller
			}
		})
	}
}

// TestOverflowedWhy: of a request that was refused for its pictures or its bytes only those go, and one that
// was refused for its answer stays as it is, under no plan. G5
func TestOverflowedWhy(t *testing.T) {
	const n = 20
	var body strings.Builder
	body.WriteString(`{"model":"gpt-5.6","tools":[{"type":"function","function":{"name":"shot","parameters":{"type":"object"}}}],"messages":[{"role":"user","content":"Look."}`)
	picture := "iVBORw0KGgoAAAANSUhEUgAAADwAAAA8" + strings.Repeat("AAAA", 25<<10)
	for i := range n {
		fmt.Fprintf(&body, `,{"role":"assistant","content":"Show %d."},{"role":"user","content":[{"type":"text","text":"Seen %d."},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}`, i, i, picture)
	}
	whole := body.String() + "]}"
	c := start(t, daemon.Config{Store: mem.New()}).client(t, "")
	for why, left := range map[string]int{"pictures": n / 2, "bytes": 14, "output": -1} {
		if _, err := c.CreateThread(t.Context(), api.NewThread{ID: why}); err != nil {
			t.Fatal(err)
		}
		step := api.Step{API: wire.Chat, Window: 1_000_000, Body: json.RawMessage(whole)}
		if _, err := c.Prepare(t.Context(), why, api.Any, step); err != nil {
			t.Fatal(err)
		}
		step.Body, step.Why = json.RawMessage(`{"model":"gpt-5.6","messages":[]}`), why
		less, err := c.Overflowed(t.Context(), why, step)
		plans, failed := c.Plans(t.Context(), why, "", 10)
		if left < 0 && (!api.IsKind(err, api.OverBudget) || failed != nil || len(plans.Items) > 0) {
			t.Errorf("%s: %v, %+v, %v", why, err, plans, failed)
		}
		if left < 0 {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		if got := strings.Count(string(less.Body), "data:image/png"); got != left || strings.Count(string(less.Body), "Seen ") != n {
			t.Errorf("%s: %d pictures and %d texts left", why, got, strings.Count(string(less.Body), "Seen "))
		}
	}
}
