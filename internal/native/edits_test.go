package native_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// request is a body with members in front of the messages.
func request(members string, messages ...string) string {
	return `{"model":"claude-opus-4-5","max_tokens":4096,"thinking":{"type":"adaptive"},` + members + `"messages":[` + strings.Join(messages, ",") + `]}`
}

func edits(list ...string) string {
	return `"context_management":{"edits":[` + strings.Join(list, ",") + `]},`
}

const hello = `{"role":"user","content":"Read the parts."}`

// step is a call with its result.
func step(id, tool, result string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"Next is %[1]s.","signature":"s-%[1]s"},{"type":"tool_use","id":%[1]q,"name":%[2]q,"input":{"path":"a long path of %[1]s that somebody may want to clear"}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":%[1]q,"content":%[3]s}]}`, id, tool, result)
}

// long is a result that is worth clearing.
func long(id string) string {
	return `[{"type":"text","text":"` + strings.Repeat("line of "+id+" ", 40) + `"}]`
}

func size(raw string) int { return len(raw) / 4 }

func ask(t *testing.T, body string) *native.Messages {
	t.Helper()
	m, err := native.ReadMessages(body)
	if err == nil {
		err = m.ReadCompaction()
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestClear: the oldest uses of tools go, as the edit says, and nothing else does;
// what is left is a request that the API takes.
func TestClear(t *testing.T) {
	messages := []string{hello, step("a", "read", long("a")), step("b", "search", long("b")), step("c", "read", long("c")), step("d", "run", long("d"))}
	for _, c := range []struct {
		name, edit string
		tokens     int
		cleared    string // ids whose results go
		inputs     string // ids whose arguments go
	}{
		{"defaults", ``, 100_001, "a", ""},
		{"below the default", ``, 100_000, "", ""},
		{"by uses", `,"trigger":{"type":"tool_uses","value":3},"keep":{"type":"tool_uses","value":2}`, 10, "ab", ""},
		{"as many uses as that", `,"trigger":{"type":"tool_uses","value":4},"keep":{"type":"tool_uses","value":2}`, 10, "", ""},
		{"keeps none", `,"trigger":{"type":"input_tokens","value":500},"keep":{"type":"tool_uses","value":0}`, 501, "abcd", ""},
		{"without some tools", `,"trigger":{"type":"input_tokens","value":500},"keep":{"type":"tool_uses","value":0},"exclude_tools":["read","nobody"]`, 501, "bd", ""},
		{"with inputs", `,"trigger":{"type":"input_tokens","value":500},"keep":{"type":"tool_uses","value":2},"clear_tool_inputs":true`, 501, "ab", "ab"},
		{"with some inputs", `,"trigger":{"type":"input_tokens","value":500},"keep":{"type":"tool_uses","value":1},"clear_tool_inputs":["search"]`, 501, "abc", "b"},
		{"with no inputs", `,"trigger":{"type":"input_tokens","value":500},"keep":{"type":"tool_uses","value":2},"clear_tool_inputs":[]`, 501, "ab", ""},
		{"enough", `,"trigger":{"type":"input_tokens","value":500},"clear_at_least":{"type":"input_tokens","value":50}`, 501, "a", ""},
		{"not enough", `,"trigger":{"type":"input_tokens","value":500},"clear_at_least":{"type":"input_tokens","value":5000}`, 501, "", ""},
		{"null is absent", `,"trigger":null,"keep":null,"clear_at_least":null,"exclude_tools":null,"clear_tool_inputs":null`, 100_001, "a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := request(edits(`{"type":"clear_tool_uses_20250919"`+c.edit+`}`), messages...)
			m := ask(t, before)
			done, ok := m.ClearToolUses(m.Edits[0], c.tokens, size)
			if ok != (c.cleared != "") || done.Cleared != len(c.cleared) || m.Edited() != ok {
				t.Errorf("%v, %+v", ok, done)
			}
			after := m.Body()
			if ok && size(request("", messages...))-size(after) < done.Tokens-2 {
				t.Errorf("%d tokens are told, the request became smaller by %d", done.Tokens, size(request("", messages...))-size(after))
			}
			if gjson.Get(after, "context_management").Exists() {
				t.Error("context_management goes on")
			}
			for _, id := range []string{"a", "b", "c", "d"} {
				if gone := !strings.Contains(after, "line of "+id); gone != strings.Contains(c.cleared, id) {
					t.Errorf("result %s: gone %v", id, gone)
				}
				if gone := !strings.Contains(after, "a long path of "+id); gone != strings.Contains(c.inputs, id) {
					t.Errorf("arguments %s: gone %v", id, gone)
				}
			}
			valid(t, after)
			if !ok && gjson.Get(after, "messages").Raw != gjson.Get(before, "messages").Raw {
				t.Error("the messages have other bytes")
			}
		})
	}
}

func valid(t *testing.T, body string) {
	t.Helper()
	for _, p := range (anthropic.Codec{}).Validate([]byte(body)) {
		if !p.Advice {
			t.Errorf("not a valid request: %v", p)
		}
	}
}

// TestClearKeepsTheRest: marks, failures and other blocks of a message whose
// result goes stay, and a result that is shorter than what would stand for it.
func TestClearKeepsTheRest(t *testing.T) {
	m := ask(t, request(edits(`{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":1},"keep":{"type":"tool_uses","value":0}}`), hello,
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"read","input":{}},{"type":"tool_use","id":"b","name":"read","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"cache_control":{"type":"ephemeral"},"content":`+long("a")+`},{"type":"tool_result","tool_use_id":"b","content":"ok"},{"type":"text","text":"And now?"}]}`))
	done, ok := m.ClearToolUses(m.Edits[0], 0, size)
	if !ok || done.Cleared != 1 {
		t.Fatalf("%+v", done)
	}
	content := gjson.Get(m.Body(), "messages.2.content")
	if a := content.Get("0"); !a.Get("is_error").Bool() || !a.Get("cache_control").Exists() || !strings.HasPrefix(a.Get("content").Str, "[The result") {
		t.Errorf("cleared: %s", a.Raw)
	}
	if content.Get("1.content").Str != "ok" || content.Get("2.text").Str != "And now?" {
		t.Errorf("the rest: %s", content.Raw)
	}
}

// TestClearThinking: the newest turns keep their thinking, whole tool loops of it.
func TestClearThinking(t *testing.T) {
	more := `{"role":"user","content":"And the others?"}`
	said := `{"role":"assistant","content":[{"type":"thinking","thinking":"Done with it.","signature":"s-x"},{"type":"text","text":"Read."}]}`
	messages := []string{hello, step("a", "read", `"A"`), said, more, step("b", "read", `"B"`), step("c", "read", `"C"`)}
	for _, c := range []struct{ name, model, keep, left string }{
		{"all", "claude-haiku-4-5", `,"keep":"all"`, "axbc"},
		{"all, as an object", "claude-haiku-4-5", `,"keep":{"type":"all"}`, "axbc"},
		{"one turn", "claude-opus-4-5", `,"keep":{"type":"thinking_turns","value":1}`, "bc"},
		{"two turns", "claude-opus-4-5", `,"keep":{"type":"thinking_turns","value":2}`, "axbc"},
		{"Opus 4.5", "claude-opus-4-5-20251101", ``, "axbc"},
		{"Sonnet 4.6", "claude-sonnet-4-6", ``, "axbc"},
		{"a newer one", "claude-sonnet-5-5", ``, "axbc"},
		{"by its name at a cloud", "us.anthropic.claude-opus-4-6-v1:0", ``, "axbc"},
		{"Opus 4.1", "claude-opus-4-1", ``, "bc"},
		{"Opus 4", "claude-opus-4-20250514", ``, "bc"},
		{"Sonnet 4.5", "claude-sonnet-4-5", ``, "bc"},
		{"Sonnet 3.7", "claude-3-7-sonnet-latest", ``, "bc"},
		{"Haiku", "claude-haiku-4-5", ``, "bc"},
		{"a stranger", "glm-5", ``, "bc"},
	} {
		m := ask(t, strings.Replace(request(edits(`{"type":"clear_thinking_20251015"`+c.keep+`}`), messages...), "claude-opus-4-5", c.model, 1))
		done, ok := m.ClearThinking(m.Edits[0], size)
		after := m.Body()
		left := ""
		for _, id := range []string{"a", "x", "b", "c"} {
			if strings.Contains(after, "s-"+id) {
				left += id
			}
		}
		if left != c.left || ok != (left != "axbc") || ok && (done.Cleared != 1 || done.Tokens == 0) {
			t.Errorf("%s: thinking is left of %s, %v, %+v", c.name, left, ok, done)
		}
		valid(t, after)
	}
}

// TestUnbind: behind the first edit no thinking is left, before it all is.
func TestUnbind(t *testing.T) {
	m := ask(t, request(edits(`{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":1},"keep":{"type":"tool_uses","value":1},"exclude_tools":["run"]}`),
		hello, step("a", "run", long("a")), step("b", "read", long("b")), step("c", "read", long("c"))))
	if m.ClearBoundThinking(); m.Changed() {
		t.Error("thinking goes without an edit")
	}
	if _, ok := m.ClearToolUses(m.Edits[0], 0, size); !ok {
		t.Fatal("nothing was cleared")
	}
	m.ClearBoundThinking()
	after := m.Body()
	if !strings.Contains(after, "s-a") || !strings.Contains(after, "s-b") || strings.Contains(after, "s-c") {
		t.Error(after)
	}
	valid(t, after)
}

// TestUnbindCutOff: an answer that was cut off in its thinking has nothing else, and goes.
func TestUnbindCutOff(t *testing.T) {
	const cut = `{"role":"assistant","content":[{"type":"thinking","thinking":"Next is","signature":"s-cut"}]}`
	for _, end := range []string{`{"role":"user","content":"Go on."}`, ""} {
		messages := []string{hello, step("a", "read", long("a")), step("b", "read", long("b")), `{"role":"user","content":"More."}`, cut}
		if end != "" {
			messages = append(messages, end, cut, end)
		}
		m := ask(t, request(edits(`{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":1},"keep":{"type":"tool_uses","value":0}}`), messages...))
		if _, ok := m.ClearToolUses(m.Edits[0], 0, size); !ok {
			t.Fatal("nothing was cleared")
		}
		m.ClearBoundThinking()
		after := m.Body()
		if strings.Contains(after, "s-cut") || strings.Count(after, "Go on.") != strings.Count(strings.Join(messages, ""), "Go on.") {
			t.Error(after)
		}
		valid(t, after)
	}
}

// TestWrongEdits: what the API refuses is refused, with the place of it.
func TestWrongEdits(t *testing.T) {
	const tools, thinking, compact = `{"type":"clear_tool_uses_20250919"`, `{"type":"clear_thinking_20251015"`, `{"type":"compact_20260112"`
	for _, c := range []struct{ members, say string }{
		{`"context_management":[],`, "context_management: must be an object"},
		{`"context_management":{"edits":{}},`, "context_management.edits: must be an array"},
		{edits(`{"type":"clear_everything"}`), "context_management.edits.0.type"},
		{edits(`{}`), "context_management.edits.0.type"},
		{edits(`1`), "context_management.edits.0.type"},
		{edits(tools+`}`, thinking+`}`), "clear_thinking_20251015 must be the first edit"},
		{edits(tools+`}`, tools+`}`), "context_management.edits.1: clear_tool_uses_20250919 stands there already"},
		{edits(tools + `,"trigger":{"type":"turns","value":3}}`), "context_management.edits.0.trigger"},
		{edits(tools + `,"trigger":{"type":"tool_uses","value":0}}`), "context_management.edits.0.trigger"},
		{edits(tools + `,"trigger":{"type":"tool_uses","value":1.5}}`), "context_management.edits.0.trigger"},
		{edits(tools + `,"trigger":4}`), "context_management.edits.0.trigger"},
		{edits(tools + `,"keep":{"type":"input_tokens","value":3}}`), "context_management.edits.0.keep"},
		{edits(tools + `,"keep":{"type":"tool_uses","value":-1}}`), "context_management.edits.0.keep"},
		{edits(tools + `,"clear_at_least":{"type":"tool_uses","value":3}}`), "context_management.edits.0.clear_at_least"},
		{edits(tools + `,"exclude_tools":"read"}`), "context_management.edits.0.exclude_tools"},
		{edits(tools + `,"exclude_tools":[1]}`), "context_management.edits.0.exclude_tools"},
		{edits(tools + `,"clear_tool_inputs":"all"}`), "context_management.edits.0.clear_tool_inputs"},
		{edits(thinking + `,"keep":"none"}`), "context_management.edits.0.keep"},
		{edits(thinking + `,"keep":{"type":"thinking_turns","value":0}}`), "context_management.edits.0.keep"},
		{edits(compact + `,"trigger":{"type":"input_tokens","value":49999}}`), "50000"},
		{edits(compact + `,"trigger":{"type":"tool_uses","value":60000}}`), "context_management.edits.0.trigger"},
		{edits(compact + `,"pause_after_compaction":"yes"}`), "context_management.edits.0.pause_after_compaction"},
		{edits(compact + `,"instructions":1}`), "context_management.edits.0.instructions"},
		{`"compaction":{"type":"drop"},`, "compaction.type"},
		{`"compaction":{"type":"summarize","instructions":7},`, "compaction.instructions"},
		{`"compaction":{"type":"summarize","instructions":"` + strings.Repeat("x", 16385) + `"},`, "16384"},
		{`"compaction":{"type":"summarize"},"stop_sequences":["x"],`, "stop_sequences"},
		{`"compaction":{"type":"summarize"},"output_config":{"format":{"type":"json_schema"}},`, "output_config.format"},
		{`"compaction":{"type":"summarize"},"output_format":{"type":"json_schema"},`, "output_format"},
		{`"compaction":{"type":"summarize"},"output_config":{"task_budget":{"type":"tokens","total":9,"remaining":3}},`, "output_config.task_budget.remaining"},
		{`"compaction":{"type":"summarize"},"tool_choice":{"type":"any"},`, "tool_choice"},
		{`"compaction":{"type":"summarize"},"tool_choice":{"type":"tool","name":"t"},`, "tool_choice"},
		{`"compaction":{"type":"summarize"},` + edits(), "context_management"},
	} {
		m, err := native.ReadMessages(request(c.members, hello))
		if err == nil {
			err = m.ReadCompaction()
		}
		var refusal *native.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, c.say) {
			t.Errorf("%s: %v", c.members, err)
			continue
		}
		if b := refusal.Body(); gjson.Get(b, "error.type").Str != "invalid_request_error" || gjson.Get(b, "error.message").Str != refusal.Message || gjson.Get(b, "error.details").Exists() {
			t.Errorf("%s: %s", c.members, b)
		}
	}
	zero := strings.Replace(request(`"compaction":{"type":"summarize"},`, hello), `"max_tokens":4096`, `"max_tokens":0`, 1)
	m, _ := native.ReadMessages(zero)
	if err := m.ReadCompaction(); err == nil || !strings.Contains(err.Error(), "max_tokens") {
		t.Errorf("max_tokens 0: %v", err)
	}
}

// TestRightEdits: what the API takes is taken.
func TestRightEdits(t *testing.T) {
	for _, members := range []string{
		edits(), `"context_management":null,`, `"context_management":{},`, `"context_management":{"edits":null},`, `"compaction":null,`,
		edits(`{"type":"clear_thinking_20251015"}`, `{"type":"clear_tool_uses_20250919"}`, `{"type":"compact_20260112"}`),
		edits(`{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000},"pause_after_compaction":true,"instructions":null}`),
		`"compaction":{"type":"summarize","instructions":"` + strings.Repeat("x", 16384) + `"},"output_config":{"effort":"low"},"tool_choice":{"type":"auto"},`,
		`"compaction":{"type":"summarize","instructions":null},`,
	} {
		ask(t, request(members, hello))
	}
	m := ask(t, request(`"compaction":{"type":"summarize","instructions":" \n"},`, hello))
	if !m.OnDemand || m.Instructions != "" || m.Managed {
		t.Errorf("%+v", m)
	}
	m = ask(t, request(edits(`{"type":"compact_20260112","instructions":"Keep the numbers."}`), hello))
	if e := m.Edits[0]; e.Trigger != 150_000 || e.Pause || e.Instructions != "Keep the numbers." || !m.Managed {
		t.Errorf("%+v", m.Edits)
	}
}

// TestTwice: a member that the body has twice is not left behind.
func TestTwice(t *testing.T) {
	m := ask(t, request(edits()+edits()+`"compaction":null,`, hello))
	if got, want := m.Body(), request("", hello); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzMessages(f *testing.F) {
	sealed := native.Seal(key, native.Token{API: "anthropic", Kind: native.BetaCompact, Digest: native.Digest("so far")})
	f.Add(request(edits(`{"type":"clear_thinking_20251015"}`, `{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":1},"keep":{"type":"tool_uses","value":0},"clear_tool_inputs":["read"]}`), hello, step("a", "read", long("a")), step("b", "read", `"B"`)))
	f.Add(request(`"compaction":{"type":"summarize"},`, hello, `{"role":"assistant","content":[{"type":"compaction","content":"so far","encrypted_content":"`+sealed+`"},{"type":"compaction","content":null}]}`))
	f.Add(`{"messages":[{"role":"assistant","content":[{"type":"compaction","content":"x","signature":"y"}]},5]}`)
	f.Add(`{"messages":[{}],"context_management":{"edits":[{"type":"compact_20260112"}]}}`)
	open := func(value string) (native.Token, error) { return native.Open(key, "anthropic", value) }
	f.Fuzz(func(t *testing.T, body string) {
		m, err := native.ReadMessages(body)
		if err != nil {
			return
		}
		if m.Body() != body {
			t.Fatal("the body is not what was read")
		}
		var refusal *native.Refusal
		for _, err := range []error{m.ReadCompaction(), m.Expand(open, true)} {
			if err != nil && (!errors.As(err, &refusal) || !gjson.Valid(refusal.Body())) {
				t.Fatal(err)
			}
		}
		for _, e := range m.Edits {
			m.ClearThinking(e, size)
			m.ClearToolUses(e, 1<<30, size)
		}
		m.ClearBoundThinking()
		if after := m.Body(); !gjson.Valid(after) || !gjson.Get(after, "messages").IsArray() {
			t.Fatalf("%s became %s", body, after)
		}
		m.NothingToSummarize()
	})
}
