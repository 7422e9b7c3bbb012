package anthropic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// odd is a body with odd spacing, escapes and member order, to see what stays.
const odd = `{ "stream":true, "tools" : [ {"name":"t","input_schema":{"type":"object"}} ],
 "messages":[ {"content":"hi \u00e9","role":"user"} ,
  {"role":"assistant","content":[{"type":"text","text":"on it"}, {"type":"tool_use","id":"a","name":"t","input":{ }},{"type":"tool_use","id":"b","name":"t","input":{}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"\u0031"},{"tool_use_id":"b","type":"tool_result"} , {"type":"text","text":"go on"}]}
 ], "x_unknown":1e2, "max_tokens":10,"system":"S", "model":"m" } `

func made(role thread.Role, parts ...thread.Part) thread.Message {
	return thread.Message{Role: role, Parts: parts}
}

func words(s string) thread.Part { return thread.Text{Text: s} }

// Each edit changes what it says and nothing else.
func TestSplice(t *testing.T) {
	tests := []struct {
		name     string
		edit     func(p *prompt.Prompt)
		old, new string
	}{
		{"nothing", func(*prompt.Prompt) {}, "", ""},
		{"model", func(p *prompt.Prompt) { p.Model = "n" }, `"model":"m"`, `"model":"n"`},
		{"max output", func(p *prompt.Prompt) { p.MaxOutput = 20 }, `"max_tokens":10`, `"max_tokens":20`},
		{"max output left to the provider", func(p *prompt.Prompt) { p.MaxOutput = 0 }, "", ""},
		{"no system", func(p *prompt.Prompt) { p.System = nil }, `,"system":"S"`, ``},
		{"no tools", func(p *prompt.Prompt) { p.Tools = nil }, `, "tools" : [ {"name":"t","input_schema":{"type":"object"}} ]`, ``},
		{"more system", func(p *prompt.Prompt) { p.System = append(p.System, prompt.System{Text: "T"}) },
			`"system":"S"`, `"system":[{"type":"text","text":"S"},{"type":"text","text":"T"}]`},
		{"more tools", func(p *prompt.Prompt) { p.Tools = append(p.Tools, prompt.Tool{Name: "u"}) },
			`[ {"name":"t","input_schema":{"type":"object"}} ]`,
			`[{"name":"t","input_schema":{"type":"object"}},{"name":"u","input_schema":{"type":"object","properties":{}}}]`},
		{"system marked", func(p *prompt.Prompt) { p.CachePoints = []prompt.CachePoint{{After: -1}} },
			`"system":"S"`, `"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}]`},
		{"point nowhere", func(p *prompt.Prompt) { p.CachePoints = []prompt.CachePoint{{After: 99}} }, "", ""},
	}
	for _, test := range tests {
		p := decode(t, odd)
		test.edit(p)
		want := odd
		if test.old != "" {
			if !strings.Contains(odd, test.old) {
				t.Fatalf("%s: %q is not in the body", test.name, test.old)
			}
			want = strings.Replace(odd, test.old, test.new, 1)
		}
		if diff := cmp.Diff(want, encode(t, p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// Any edits together, on a body with its members in any order: what was edited
// reads back, the rest keeps its bytes.
func TestSpliceProperty(t *testing.T) {
	members := []string{
		`"model":"m"`, `"max_tokens" : 5`, `"system":"S"`, `"system":[{"type":"text","text":"S"} ]`, `"system":null`,
		`"tools":[ {"name":"t","input_schema":{"type":"object"}}]`, `"tools":[]`, `"x":{"y":[1, 2]}`, `"stream":false`,
	}
	property.Check(t, func(rt *rapid.T) {
		list := []string{`"messages": [` + hi + ` , ` + ok + `,` + user(text, text) + `]`}
		var kept []string
		has := map[string]bool{}
		for _, m := range rapid.Permutation(members).Draw(rt, "members") {
			name, _, _ := strings.Cut(m, ":")
			if name = strings.TrimSpace(name); has[name] || rapid.Bool().Draw(rt, "left out") {
				continue
			}
			has[name] = true
			if name == `"x"` || name == `"stream"` {
				kept = append(kept, m)
			}
			at := rapid.IntRange(0, len(list)).Draw(rt, "at")
			list = append(list[:at], append([]string{m}, list[at:]...)...)
		}
		space := rapid.SampledFrom([]string{",", " ,\n  "}).Draw(rt, "space")
		body := "{" + strings.Join(list, space) + "}"
		p := decode(t, body)
		choose := func(what string) int { return rapid.IntRange(0, 2).Draw(rt, what) }
		switch choose("system") {
		case 1:
			p.System = nil
		case 2:
			p.System = append(p.System, prompt.System{Text: "T"})
		}
		switch choose("tools") {
		case 1:
			p.Tools = nil
		case 2:
			p.Tools = append(p.Tools, prompt.Tool{Name: "u"})
		}
		switch choose("model") {
		case 1:
			p.Model = "n"
		case 2:
			p.MaxOutput = 7
		}
		switch choose("messages") {
		case 1:
			p.Messages = p.Messages[2:]
		case 2:
			p.Messages[1] = made(thread.Assistant, words("new"))
		}
		out := encode(t, p)
		back := decode(t, out)
		if got, want := outline(back), outline(p); got != want {
			rt.Fatalf("got %s\nwant %s\nfrom %s\nin %s", got, want, body, out)
		}
		for _, m := range kept {
			if !strings.Contains(out, m) {
				rt.Fatalf("%s is lost in %s", m, out)
			}
		}
	})
}

// outline is what a prompt says, without where it came from.
func outline(p *prompt.Prompt) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d", p.Model, p.MaxOutput)
	for _, s := range p.System {
		fmt.Fprintf(&b, " system=%s", s.Text)
	}
	for _, t := range p.Tools {
		fmt.Fprintf(&b, " tool=%s", t.Name)
	}
	for i := range p.Messages {
		fmt.Fprintf(&b, " %s=%q", p.Messages[i].Role, p.Messages[i].Text())
	}
	return b.String()
}

// The messages array, after an edit of the messages decoded from odd.
func TestMessages(t *testing.T) {
	const (
		first  = `{"content":"hi \u00e9","role":"user"}`
		second = `{"role":"assistant","content":[{"type":"text","text":"on it"}, {"type":"tool_use","id":"a","name":"t","input":{ }},{"type":"tool_use","id":"b","name":"t","input":{}}]}`
		third  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"\u0031"},{"tool_use_id":"b","type":"tool_result"} , {"type":"text","text":"go on"}]}`
	)
	result := thread.ToolResult{CallID: "a", Tool: "t", Outcome: thread.Failure, Content: []thread.Part{words("gone")}}
	tests := []struct {
		name string
		edit func(m []thread.Message) []thread.Message
		want []string
	}{
		{"append", func(m []thread.Message) []thread.Message { return append(m, made(thread.Assistant, words("done"))) },
			[]string{first, second, third, `{"role":"assistant","content":[{"type":"text","text":"done"}]}`}},
		{"replace a result", func(m []thread.Message) []thread.Message { m[2] = made(thread.Tool, result); return m },
			[]string{first, second, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"gone","is_error":true},{"tool_use_id":"b","type":"tool_result"},{"type":"text","text":"go on"}]}`}},
		{"replace the text", func(m []thread.Message) []thread.Message { m[4] = made(thread.User, words("<stop>")); return m },
			[]string{first, second, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"\u0031"},{"tool_use_id":"b","type":"tool_result"},{"type":"text","text":"<stop>"}]}`}},
		{"drop the text", func(m []thread.Message) []thread.Message { return m[:4] },
			[]string{first, second, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"\u0031"},{"tool_use_id":"b","type":"tool_result"}]}`}},
		{"drop the step", func(m []thread.Message) []thread.Message { return append(m[:1], m[4]) },
			[]string{first, `{"role":"user","content":[{"type":"text","text":"go on"}]}`}},
		{"text only of the call message", func(m []thread.Message) []thread.Message {
			m[1] = made(thread.Assistant, m[1].Parts[0])
			return m[:2]
		}, []string{first, `{"role":"assistant","content":[{"type":"text","text":"on it"}]}`}},
		{"text slipped between call and results", func(m []thread.Message) []thread.Message {
			return []thread.Message{m[0], m[1], made(thread.User, words("wait")), made(thread.Tool, result), m[3]}
		}, []string{first, second, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"gone","is_error":true},{"tool_use_id":"b","type":"tool_result"},{"type":"text","text":"wait"}]}`}},
		{"string content rebuilt keeps its escapes", func(m []thread.Message) []thread.Message {
			m[0].Frame = nil
			return m[:1]
		}, []string{`{"role":"user","content":[{"type":"text","text":"hi \u00e9"}]}`}},
		{"a picture keeps its bytes", func(m []thread.Message) []thread.Message {
			raw := `{"type":"image","x":1,"source":{"data":"x","media_type":"image/png","type":"base64"}}`
			m[0] = made(thread.User, words("see"), thread.Media{Type: thread.Image, MIME: "image/png", Data: "x", Source: from(raw)})
			return m[:1]
		}, []string{`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","x":1,"source":{"data":"x","media_type":"image/png","type":"base64"}}]}`}},
		{"left empty", func(m []thread.Message) []thread.Message { m[0] = made(thread.User, words(" ")); return m[:1] },
			[]string{`{"role":"user","content":[{"type":"text","text":"(empty)"}]}`}},
		{"system in mid conversation", func(m []thread.Message) []thread.Message {
			return append(m, made(thread.System, words("Be brief.")))
		}, []string{first, second, third, `{"role":"user","content":[{"type":"text","text":"<system>\nBe brief.\n</system>"}]}`}},
		{"final text without white space at its end", func(m []thread.Message) []thread.Message {
			return append(m, made(thread.Assistant, words("so \n")))
		}, []string{first, second, third, `{"role":"assistant","content":[{"type":"text","text":"so"}]}`}},
		{"failed result with a picture", func(m []thread.Message) []thread.Message {
			r := result
			r.Content = []thread.Part{
				thread.Media{Type: thread.Image, MIME: "image/png", Data: "x"},
				thread.Media{Type: thread.Document, Text: "page"},
				thread.Opaque{Kind: "tool_reference", Text: "u", Source: from(`{"type":"tool_reference","tool_name":"u"}`)},
			}
			m[2] = made(thread.Tool, r)
			return m[:4]
		}, []string{first, second, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"[image: image/png, 0 bytes]"},{"type":"text","text":"page"},{"type":"text","text":"u"}],"is_error":true},{"tool_use_id":"b","type":"tool_result"}]}`}},
		{"thinking with a seal but no bytes", func(m []thread.Message) []thread.Message {
			m[1] = made(thread.Assistant, thread.Reasoning{Text: "hm", Signature: "s", Source: thread.Source{API: wire.Anthropic}}, thread.Reasoning{Text: "unsealed", Source: thread.Source{API: wire.Anthropic}}, words("a\x00\t\"\\"))
			return append(m[:2], made(thread.User, words("b")))
		}, []string{first, `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a\u0000\t\"\\"}]}`, `{"role":"user","content":[{"type":"text","text":"b"}]}`}},
		{"failed result without text", func(m []thread.Message) []thread.Message {
			r := result
			r.Content = nil
			m[2] = made(thread.Tool, r)
			return m[:4]
		}, []string{first, second, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"(empty)","is_error":true},{"tool_use_id":"b","type":"tool_result"}]}`}},
	}
	for _, test := range tests {
		p := decode(t, odd)
		p.Messages = test.edit(p.Messages)
		got := encode(t, p)
		from := strings.Index(odd, `[ {"content"`)
		to := strings.Index(odd, `, "x_unknown"`)
		want := odd[:from] + "[" + strings.Join(test.want, ",") + "]" + odd[to:]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if found := problems(got); len(found) > 0 {
			t.Errorf("%s: %v", test.name, found)
		}
	}
}

// Lines of a transcript hold one block each; parallel calls and their results
// come together again.
func TestTranscriptLines(t *testing.T) {
	p := &prompt.Prompt{Model: "m", Tools: []prompt.Tool{{Name: "t"}}}
	for _, line := range []string{hi, assistant(callA), assistant(callB), user(giveA), user(giveB), ok} {
		messages, err := anthropic.DecodeMessage(line)
		if err != nil {
			t.Fatal(err)
		}
		p.Messages = append(p.Messages, messages...)
	}
	got := encode(t, p)
	want := `{"model":"m","max_tokens":4096,"tools":[{"name":"t","input_schema":{"type":"object","properties":{}}}],"messages":[` +
		strings.Join([]string{hi, assistant(callA, callB), user(giveA, giveB), ok}, ",") + `]}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found := problems(got); len(found) > 0 {
		t.Error(found)
	}
}

func call(id, args string) thread.Part {
	return thread.ToolCall{ID: id, Name: "t", Arguments: args, Source: thread.Source{API: "elsewhere", Raw: "{}"}}
}

func answer(id string) thread.Message {
	return made(thread.Tool, thread.ToolResult{CallID: id, Content: []thread.Part{words("r")}, Source: thread.Source{API: "elsewhere", Raw: "{}"}})
}

// Ids of another API become valid and unique, the same for call and result.
func TestForeignIDs(t *testing.T) {
	messages := []thread.Message{
		made(thread.User, words("hi")),
		made(thread.Assistant, call("a|b", "{}"), call("a/b", "{}"), call("é", "{}")),
		answer("a/b"), answer("a|b"), answer("é"),
		made(thread.Assistant, call("a|b", "{}"), call("a|b", "{}")),
		answer("a|b"), answer("a|b"),
		made(thread.Assistant, call("", "{}")), answer(""),
	}
	want := []string{"a_b", "a_b_2", "_", "a_b_3", "a_b_4", "call"}
	results := []string{"a_b_2", "a_b", "_", "a_b_3", "a_b_4", "call"}
	p := &prompt.Prompt{Model: "m", Messages: messages}
	out := encode(t, p)
	var gotCalls, gotResults []string
	for _, m := range decode(t, out).Messages {
		for _, c := range m.Calls() {
			gotCalls = append(gotCalls, c.ID)
		}
		if r, ok := m.Result(); ok {
			gotResults = append(gotResults, r.CallID)
		}
	}
	if diff := cmp.Diff(want, gotCalls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(results, gotResults); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if found := problems(out); len(found) > 0 {
		t.Error(found)
	}
	// What was sent before stays the same when the conversation grows.
	short := encode(t, &prompt.Prompt{Model: "m", Messages: messages[:5]})
	if prefix := strings.TrimSuffix(short, "]}"); !strings.HasPrefix(out, prefix) {
		t.Errorf("the start changed:\n%s\n%s", short, out)
	}
}

func TestLongToolNames(t *testing.T) {
	long := strings.Repeat("x", 200)
	p := &prompt.Prompt{Model: "m", Tools: []prompt.Tool{{Name: long}, {Name: long + "y"}, {Name: ""}}, Messages: []thread.Message{
		made(thread.Assistant, thread.ToolCall{ID: "1", Name: long + "y"}), answer("1"),
	}}
	out := encode(t, p)
	if found := problems(out); len(found) > 0 {
		t.Error(found)
	}
	back := decode(t, out)
	if got, want := back.Messages[1].Calls()[0].Name, back.Tools[1].Name; got != want || len(got) != 128 {
		t.Errorf("the call names %q, the tool is %q", got, want)
	}
}

// The API wants schemas of type object.
func TestForeignSchemas(t *testing.T) {
	for schema, want := range map[string]string{
		``: `{"type":"object","properties":{}}`, `{}`: `{"type":"object"}`, ` { } `: `{"type":"object" }`,
		`{"type":"string","x":1}`: `{"type":"object","x":1}`, `{"x":1}`: `{"x":1,"type":"object"}`,
		`{"type": "object"}`: `{"type": "object"}`, `[]`: `{"type":"object","properties":{}}`, `{"x"`: `{"type":"object","properties":{}}`,
	} {
		p := &prompt.Prompt{Model: "m", Tools: []prompt.Tool{{Name: "t", Schema: schema}}, Messages: []thread.Message{made(thread.User, words("hi"))}}
		if got := encode(t, p); !strings.Contains(got, `"input_schema":`+want+`}]`) || len(problems(got)) > 0 {
			t.Errorf("%q: want %s in %s", schema, want, got)
		}
	}
}

func TestForeignArguments(t *testing.T) {
	for args, want := range map[string]string{
		``: `{}`, ` {"a": 1} `: `{"a": 1}`, `[1]`: `{"input":[1]}`, `7`: `{"input":7}`,
		`rm -rf "x"`: `{"input":"rm -rf \"x\""}`, `{"a":`: `{"input":"{\"a\":"}`,
		`{"big":12345678901234567890}`: `{"big":12345678901234567890}`,
	} {
		p := &prompt.Prompt{Model: "m", Messages: []thread.Message{made(thread.User, words("hi")), made(thread.Assistant, call("a", args)), answer("a")}}
		if got := encode(t, p); !strings.Contains(got, `"input":`+want+`}`) {
			t.Errorf("%q: want %s in %s", args, want, got)
		}
	}
}

// What cannot be translated is left out or named, never sent on, and nothing
// gets a higher role than it had.
func TestForeignParts(t *testing.T) {
	src := thread.Source{API: "elsewhere", Raw: `"secret"`}
	p := &prompt.Prompt{
		Model: "m", MaxOutput: 9,
		System: []prompt.System{{Text: "S", Role: "developer", Source: src}, {Text: " "}},
		Tools: []prompt.Tool{
			{Name: "a.b", Description: "d", Schema: `{"properties":{}}`, Source: src},
			{Name: "free", Source: thread.Source{API: "elsewhere", Raw: `{"type":"custom"}`}},
			{Name: "web", Source: thread.Source{API: "elsewhere", Raw: `{"type":"web_search"}`}},
		},
		Messages: []thread.Message{
			made(thread.System, words("rule")),
			made(thread.User, thread.Media{Type: thread.Image, MIME: "image/bmp", Data: "x", Source: src}, thread.Media{Type: thread.Document, MIME: "application/pdf", Name: "a.pdf", Data: "x"}),
			made(thread.Assistant, thread.Reasoning{Text: "hm", Signature: "s", Source: src}, thread.Opaque{Kind: "k", Text: "seen", Source: src}),
			made(thread.User, thread.Media{Type: thread.Image, URL: "https://x/y.png"}, thread.Media{Type: thread.File, FileID: "f", Name: "n"}),
			made(thread.Assistant, words("ok"), thread.Opaque{Kind: "k", Text: "unseen", Source: src}, thread.ToolCall{ID: "1", Name: "a.b"}),
			made(thread.Tool, thread.ToolResult{CallID: "1", Content: []thread.Part{words("r"), thread.Media{Type: thread.Image, MIME: "image/png", Data: "x"}}}),
		},
	}
	want := `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"S"}],"tools":[` +
		`{"name":"a_b_2e7336dc","description":"d","input_schema":{"properties":{},"type":"object"}},` +
		`{"name":"free","input_schema":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}],"messages":[` + strings.Join([]string{
		`{"role":"user","content":[{"type":"text","text":"<system>\nrule\n</system>"}]}`,
		`{"role":"user","content":[{"type":"text","text":"[image: image/bmp, 0 bytes]"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"x"},"title":"a.pdf"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"seen"}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/y.png"}},{"type":"text","text":"[file: n]"}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"1","name":"a_b_2e7336dc","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"x"}}]}]}`,
	}, ",") + `]}`
	got := encode(t, p)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found := problems(got); len(found) > 0 {
		t.Error(found)
	}
}

func TestCachePoints(t *testing.T) {
	const short, hour = `,"cache_control":{"type":"ephemeral"}}`, `,"cache_control":{"type":"ephemeral","ttl":"1h"}}`
	longTool := `"tools":[{"name":"t","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral","ttl":"1h"}}]`
	at := func(points ...prompt.CachePoint) []prompt.CachePoint { return points }
	plain := func(s string) string { return `{"type":"text","text":"` + s + `"` }
	tests := []struct {
		name, body string
		points     []prompt.CachePoint
		want       string
	}{
		{"string content", chat("", hi, ok, hi), at(prompt.CachePoint{After: 0}), chat("", user(plain("hi")+short), ok, hi)},
		{"last block that may carry one", chat("", hi, assistant(plain("a")+`}`, think), hi), at(prompt.CachePoint{After: 1}), chat("", hi, assistant(plain("a")+short, think), hi)},
		{"marks inside a result count", chat(tool, hi, assistant(callA), user(`{"type":"tool_result","tool_use_id":"a","content":[`+marked+","+marked+","+marked+","+marked+`]}`), ok, hi), at(prompt.CachePoint{After: 0}),
			chat(tool, hi, assistant(callA), user(`{"type":"tool_result","tool_use_id":"a","content":[`+marked+","+marked+","+marked+","+marked+`]}`), ok, hi)},
		{"only thinking", chat("", hi, assistant(think), hi), at(prompt.CachePoint{After: 1}), chat("", hi, assistant(think), hi)},
		{"a result among results", chat(tool, hi, assistant(callA, callB), user(giveA, giveB, text)), at(prompt.CachePoint{After: 3}),
			chat(tool, hi, assistant(callA, callB), user(giveA, strings.TrimSuffix(giveB, "}")+short, text))},
		{"marked already", chat("", user(marked), ok, hi), at(prompt.CachePoint{After: 0, TTL: "1h"}), chat("", user(marked), ok, hi)},
		{"the caller's four come first", chat("", user(marked, marked, marked, marked), ok, hi), at(prompt.CachePoint{After: 2}), chat("", user(marked, marked, marked, marked), ok, hi)},
		{"one place left", chat("", user(marked, marked, marked), ok, hi), at(prompt.CachePoint{After: 2}, prompt.CachePoint{After: 1}), chat("", user(marked, marked, marked), ok, user(plain("hi")+short))},
		{"a mark on the request counts", chat(`"cache_control":{"type":"ephemeral"}`, user(marked, marked, marked), ok, hi), at(prompt.CachePoint{After: 1}), chat(`"cache_control":{"type":"ephemeral"}`, user(marked, marked, marked), ok, hi)},
		{"a long one after a short one is shortened", chat("", user(marked), ok, hi), at(prompt.CachePoint{After: 2, TTL: "1h"}), chat("", user(marked), ok, user(plain("hi")+`,"cache_control":{"type":"ephemeral","ttl":"5m"}}`))},
		{"a short one before a long one is lengthened", chat("", hi, ok, user(long)), at(prompt.CachePoint{After: 0}), chat("", user(plain("hi")+hour), ok, user(long))},
		{"a long one after a long one", chat(longTool, hi), at(prompt.CachePoint{After: 0, TTL: "1h"}), chat(longTool, user(plain("hi")+hour))},
		{"tools when there is no system", chat(tool, hi), at(prompt.CachePoint{After: -1}), chat(strings.TrimSuffix(tool, "}]")+short+"]", hi)},
		{"not on a tool that is loaded later", chat(`"tools":[{"name":"t","input_schema":{"type":"object"}},{"name":"u","type":"x_1","defer_loading":true}]`, hi), at(prompt.CachePoint{After: -1}),
			chat(`"tools":[{"name":"t","input_schema":{"type":"object"}`+short+`,{"name":"u","type":"x_1","defer_loading":true}]`, hi)},
		{"not on a signed summary", chat("", assistant(sealed), hi), at(prompt.CachePoint{After: 0}), chat("", assistant(sealed), hi)},
	}
	for _, test := range tests {
		if found := problems(test.want); len(found) > 0 {
			t.Fatalf("%s: the test wants an invalid body: %v", test.name, found)
		}
		p := decode(t, test.body)
		p.CachePoints = test.points
		if diff := cmp.Diff(test.want, encode(t, p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// A body that holds system messages shows that the model takes them: one that
// is replaced there keeps its role.
func TestSystemMessageKeepsItsRole(t *testing.T) {
	p := decode(t, chat("", hi, `{"role":"system","content":"old"}`, hi))
	p.Messages[1] = made(thread.System, words("new"))
	want := chat("", hi, `{"role":"system","content":[{"type":"text","text":"new"}]}`, hi)
	if got := encode(t, p); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A newer request of the same conversation with older frames in the prompt:
// the older bytes are what is sent.
func TestFramesOfAnEarlierRequest(t *testing.T) {
	older := decode(t, chat("", user(text), ok))
	newer := decode(t, chat("", user(marked), ok, hi))
	newer.Messages[0] = older.Messages[0]
	if got, want := encode(t, newer), chat("", user(text), ok, hi); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestEncodeBrokenSource(t *testing.T) {
	_, err := anthropic.Codec{}.Encode(&prompt.Prompt{Source: &prompt.Source{API: wire.Anthropic, Body: "{"}})
	if err == nil {
		t.Error("want an error")
	}
}

// long100k is a body of about 100 000 tokens: 400 KB in 100 steps.
func long100k() string {
	var list []string
	list = append(list, hi)
	result := strings.Repeat(`line of output with \"quotes\" and a path src/main.go\n`, 70)
	for i := range 100 {
		id := fmt.Sprintf("toolu_%04d", i)
		list = append(list,
			assistant(think, `{"type":"text","text":"next"}`, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"t","input":{"path":"src/main.go","n":%d}}`, id, i)),
			user(fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":[{"type":"text","text":"%s"}]}`, id, result)))
	}
	return chat(tool+`,"system":[`+text+`]`, list...)
}

func BenchmarkEncodeForeign(b *testing.B) {
	p := decode(b, long100k())
	p.Source = nil
	for i := range p.Messages {
		m := &p.Messages[i]
		m.Frame = nil
		for k, part := range m.Parts {
			switch part := part.(type) {
			case thread.ToolCall:
				m.Parts[k] = thread.ToolCall{ID: "same", Name: part.Name, Arguments: part.Arguments}
			case thread.ToolResult:
				m.Parts[k] = thread.ToolResult{CallID: "same", Content: []thread.Part{words(part.Text())}}
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		encode(b, p)
	}
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(long100k())
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (anthropic.Codec{}).Decode(string(body)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeUntouched(b *testing.B) {
	p := decode(b, long100k())
	b.ReportAllocs()
	for b.Loop() {
		encode(b, p)
	}
}

func BenchmarkEncodeReplaced(b *testing.B) {
	p := decode(b, long100k())
	for i := 2; i < 100; i += 2 {
		r, _ := p.Messages[i].Result()
		p.Messages[i] = made(thread.Tool, thread.ToolResult{CallID: r.CallID, Tool: r.Tool, Content: []thread.Part{words("[t: success]")}})
	}
	p.CachePoints = []prompt.CachePoint{{After: -1}, {After: 100}, {After: len(p.Messages) - 1}}
	b.ReportAllocs()
	for b.Loop() {
		encode(b, p)
	}
}

func BenchmarkValidate(b *testing.B) {
	body := []byte(long100k())
	if found := problems(string(body)); len(found) > 0 {
		b.Fatal(found)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		anthropic.Codec{}.Validate(body)
	}
}

// TestNamesAsTheyAre compares the ids of results where every call is sent as it is, and nothing need be remembered,
// with those beside a call that needs a name.
func TestNamesAsTheyAre(t *testing.T) {
	ids := []string{"a", "a_2", "a_3", "toolu_01", "call"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		p := &prompt.Prompt{Messages: []thread.Message{made(thread.User, words("go"))}}
		for range 1 + r.IntN(8) {
			id := ids[r.IntN(len(ids))]
			if r.IntN(2) == 0 {
				raw := fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"t","input":{}}`, id)
				p.Messages = append(p.Messages, made(thread.Assistant, thread.ToolCall{ID: id, Name: "t", Source: thread.Source{API: wire.Anthropic, Raw: raw}}))
			} else {
				p.Messages = append(p.Messages, made(thread.Tool, thread.ToolResult{CallID: id, Content: []thread.Part{words("ok")}}))
			}
		}
		named := *p
		named.Messages = append(slices.Clip(p.Messages), made(thread.Assistant, thread.ToolCall{ID: "needs a name", Name: "t"}))
		results := func(p *prompt.Prompt) []string {
			return strings.FieldsFunc(gjson.Get(encode(t, p), "messages.#.content.#.tool_use_id").Raw, func(r rune) bool { return strings.ContainsRune(`[,]`, r) })
		}
		if diff := cmp.Diff(results(&named), results(p)); diff != "" {
			t.Fatal(diff)
		}
	}
}
