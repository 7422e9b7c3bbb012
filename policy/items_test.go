package policy_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/test/items"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// itemForms are how a user and a model speak in each API, results that come late, programs that still
// run at the end, and answers in which the provider ran several calls.
var itemForms = map[string]struct{ user, model, late, running, searches string }{
	wire.Anthropic: {
		`{"role":"user","content":"Shelf %d, please."}`, `{"role":"assistant","content":%q}`,
		`{"role":"assistant","content":[{"type":"text","text":"Off."},{"type":"mcp_tool_use","id":"mcptoolu_l$n","name":"find","server_name":"notes","input":{}}]},{"role":"user","content":"And?"},{"role":"assistant","content":[{"type":"mcp_tool_result","tool_use_id":"mcptoolu_l$n","is_error":false,"content":[{"type":"text","text":"late $n"}]},{"type":"text","text":"There."}]}`,
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_r","name":"code_execution","input":{"code":"read()"}},{"type":"tool_use","id":"toolu_r","name":"read","input":{},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_r"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_r","content":"row"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"server_tool_use","id":"srvtoolu_a$n","name":"web_search","input":{"query":"box"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_a$n","content":[]},{"type":"server_tool_use","id":"srvtoolu_b$n","name":"web_search","input":{"query":"lid"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_b$n","content":[]},{"type":"text","text":"Found $n."}]}`,
	},
	wire.Responses: {
		`{"role":"user","content":"Shelf %d, please."}`, `{"role":"assistant","content":%q}`,
		`{"type":"multi_agent_call","call_id":"call_l$n","action":"spawn_agent","arguments":"{}"},{"role":"user","content":"And?"},{"type":"multi_agent_call_output","call_id":"call_l$n","action":"spawn_agent","output":[{"type":"output_text","text":"late $n"}]}`,
		`{"type":"program","id":"prog_r","call_id":"call_r","code":"read()","fingerprint":"f"},{"type":"function_call","call_id":"call_q","name":"read","arguments":"{}","caller":{"type":"program","caller_id":"call_r"}},{"type":"function_call_output","call_id":"call_q","output":"row","caller":{"type":"program","caller_id":"call_r"}}`,
		`{"type":"reasoning","id":"rs_a$n","summary":[],"encrypted_content":"e"},{"type":"web_search_call","id":"ws_a$n","status":"completed","action":{"type":"search","query":"box"}},{"type":"web_search_call","id":"ws_b$n","status":"completed","action":{"type":"search","query":"lid"}},{"type":"reasoning","id":"rs_b$n","summary":[],"encrypted_content":"e"},{"type":"web_search_call","id":"ws_c$n","status":"completed","action":{"type":"search","query":"key"}},{"type":"message","id":"msg_c$n","role":"assistant","content":[{"type":"output_text","text":"Found $n."}]}`,
	},
	wire.Chat: {`{"role":"user","content":"Shelf %d, please."}`, `{"role":"assistant","content":%q}`, "", "", ""},
	wire.Gemini: {
		`{"role":"user","parts":[{"text":"Shelf %d, please."}]}`, `{"role":"model","parts":[{"text":%q}]}`,
		`{"role":"model","parts":[{"toolCall":{"id":"l$n","toolType":"GOOGLE_SEARCH_WEB","args":{}}}]},{"role":"user","parts":[{"text":"And?"}]},{"role":"model","parts":[{"toolResponse":{"id":"l$n","toolType":"GOOGLE_SEARCH_WEB","response":{"answer":"late $n"}}},{"text":"There."}]}`, "",
		`{"role":"model","parts":[{"toolCall":{"id":"a$n","toolType":"GOOGLE_SEARCH_WEB","args":{}}},{"toolResponse":{"id":"a$n","toolType":"GOOGLE_SEARCH_WEB","response":{}}},{"executableCode":{"id":"b$n","language":"PYTHON","code":"f()"}},{"codeExecutionResult":{"id":"b$n","outcome":"OUTCOME_OK","output":"1"}},{"text":"Found $n."}]}`,
	},
}

// TestItemsUnderEveryPolicy: conversations of every type of item, with results that come late and a
// program that still runs, grow under each policy. What is sent is never refused; the instructions,
// and what changes the tools, are those of the conversation, in their order; what runs is sent as it is.
func TestItemsUnderEveryPolicy(t *testing.T) {
	compacted := 0
	property.Few(t, 60, func(t *rapid.T) {
		api := rapid.SampledFrom([]string{wire.Anthropic, wire.Responses, wire.Chat, wire.Gemini}).Draw(t, "api")
		chosen := rapid.SampledFrom([]policy.Policy{policy.Auto{}, policy.Ladder{}, policy.Session{Keep: 3}, policy.Timeline{KeepRecent: 200}, policy.Workstream{Tail: 2}, policy.Loop{}}).Draw(t, "policy")
		name, log := chosen.Name(), drawItems(t, api)
		c, err := palimpsest.New(palimpsest.Config{Policy: chosen})
		if err != nil {
			t.Fatal(err)
		}
		session, codec := c.Session("items"), apicodec.For(api)
		step := palimpsest.Step{Base: log, Profile: render.For(api), Budget: 2500}
		for at := 0; at < len(log.Messages); {
			next := min(len(log.Messages), at+rapid.IntRange(5, 40).Draw(t, "news"))
			step.Messages, at = log.Messages[at:next], next
			var full *policy.BudgetError
			if _, err := session.Compact(t.Context(), step, ""); err != nil && !errors.Is(err, policy.ErrNothing) && !errors.As(err, &full) {
				t.Fatal(err)
			}
			out, err := session.PrepareStep(t.Context(), palimpsest.Step{Base: log, Profile: step.Profile, Window: 1 << 30, Output: 1}) // not due
			if err != nil {
				t.Fatal(err)
			}
			if out.PlanVersion > 0 {
				compacted++
			}
			if at < len(log.Messages) {
				continue // in the middle of a unit, perhaps
			}
			body, err := codec.Encode(out.Prompt)
			if err != nil {
				t.Fatal(err)
			}
			own := brokenRules(t, api, log) // a call whose result is late is refused while it can be seen
			for rule, problem := range brokenRules(t, api, out.Prompt) {
				if own[rule] == "" {
					t.Fatalf("%s, %s would refuse: %s\n%s", name, api, problem, body)
				}
			}
			if want, got := instructions(log.Messages), instructions(out.Messages); !reflect.DeepEqual(want, got) {
				t.Fatalf("%s, %s: the instructions\n%q\nbecame\n%q", name, api, want, got)
			}
			_, before := toolsAfter(log.Messages, map[string]bool{})
			want, _ := toolsAfter(log.Messages, before)
			if got, _ := toolsAfter(out.Messages, before); !reflect.DeepEqual(want, got) {
				t.Fatalf("%s, %s: the tools %v became %v", name, api, want, got)
			}
			th, err := thread.New("items").Append(log.Messages...)
			if err != nil {
				t.Fatal(err)
			}
			pairs, shown := thread.Pair(th), map[string]bool{}
			for i := range out.Messages {
				shown[raw(&out.Messages[i])] = true
			}
			for i := range log.Messages {
				if pairs.Open(i) && !shown[raw(&log.Messages[i])] {
					t.Fatalf("%s, %s: message %d is of a call that runs, and is not sent as it was", name, api, i)
				}
			}
		}
	})
	if compacted < 20 {
		t.Errorf("compacted %d times", compacted)
	}
}

// brokenRules are the rules that a request breaks, with the first place.
func brokenRules(t *rapid.T, api string, p *prompt.Prompt) map[string]string {
	body, err := apicodec.For(api).Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string]string{}
	for _, problem := range apicodec.For(api).Validate(body) {
		if !problem.Advice && broken[problem.Rule] == "" {
			broken[problem.Rule] = problem.Error()
		}
	}
	return broken
}

// drawItems draws a request.
func drawItems(t *rapid.T, api string) *prompt.Prompt {
	form := itemForms[api]
	var list []string
	var all []items.Item
	for _, item := range items.All {
		if item.API == api && !item.Alone {
			all = append(all, item)
		}
	}
	for n := range rapid.IntRange(10, 40).Draw(t, "steps") {
		list = append(list, fmt.Sprintf(form.user, n))
		if form.late != "" && rapid.IntRange(0, 7).Draw(t, "late") == 0 {
			list = append(list, strings.ReplaceAll(form.late, "$n", fmt.Sprint(n)), fmt.Sprintf(form.user, n))
		}
		if form.searches != "" && rapid.IntRange(0, 3).Draw(t, "searches") == 0 {
			list = append(list, strings.ReplaceAll(form.searches, "$n", fmt.Sprint(n)), fmt.Sprintf(form.user, n))
		}
		item := rapid.SampledFrom(all).Draw(t, "item")
		example := item.At(n)
		if strings.HasPrefix(example, `[{"role":"user"`) {
			list = append(list, fmt.Sprintf(form.model, "Which one?"))
		}
		list = append(list, strings.TrimSuffix(strings.TrimPrefix(example, "["), "]"))
		if !strings.Contains(example, `"role":"assistant","content":"`) {
			list = append(list, fmt.Sprintf(form.model, strings.Repeat(fmt.Sprintf("box %d, ", n), rapid.IntRange(1, 120).Draw(t, "boxes"))))
		}
	}
	list = append(list, fmt.Sprintf(form.user, 99))
	if form.running != "" && rapid.Bool().Draw(t, "a program runs") {
		list = append(list, form.running)
	}
	p, err := apicodec.For(api).Decode(fmt.Sprintf(items.Bodies()[api], "["+strings.Join(list, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// toolsAfter are the tools that are there after the changes among the messages, of those that were there before
// them, and what was before the first change of each, which undoes it.
func toolsAfter(messages []thread.Message, before map[string]bool) (after, undone map[string]bool) {
	after, undone = maps.Clone(before), map[string]bool{}
	for i := range messages {
		changes, _ := hosted.ToolChanges(&messages[i])
		for _, c := range changes {
			if _, known := undone[c.Tool]; !known {
				undone[c.Tool] = !c.Adds
			}
			after[c.Tool] = c.Adds
		}
	}
	return after, undone
}

// instructions are the contents of those that stand, each at its last place, but changes of tools.
func instructions(messages []thread.Message) (list []string) {
	last := map[string]int{}
	for i := range messages {
		if m := &messages[i]; m.IsInstruction() {
			last[raw(m)] = i
		}
	}
	for i := range messages {
		m := &messages[i]
		if _, changes := hosted.ToolChanges(m); m.IsInstruction() && last[raw(m)] == i && !(changes && len(m.Parts) > 0) {
			list = append(list, raw(m))
		}
	}
	return list
}

// raw is what a message says, as it was read.
func raw(m *thread.Message) string {
	var b strings.Builder
	b.WriteString(string(m.Role))
	for _, p := range m.Parts {
		if text, ok := p.(thread.Text); ok {
			b.WriteString("\n" + text.Text)
		} else {
			b.WriteString("\n" + p.From().Raw)
		}
	}
	return b.String()
}
