package gemini_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func say(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}

func calls(calls ...thread.ToolCall) thread.Message {
	m := thread.Message{Role: thread.Assistant}
	for _, c := range calls {
		m.Parts = append(m.Parts, c)
	}
	return m
}

func answer(id, tool, text string) thread.Message {
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{
		thread.ToolResult{CallID: id, Tool: tool, Content: []thread.Part{thread.Text{Text: text}}},
	}}
}

// equal compares the contents of an encoded prompt, and sees that the body
// breaks no rule unless the test wants it to.
func equal(t *testing.T, p *prompt.Prompt, want ...string) {
	t.Helper()
	got := encode(t, p)
	for _, problem := range problems(got, false) {
		t.Errorf("%v", problem)
	}
	if want := request(want...); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

const skip = `"thoughtSignature":"skip_thought_signature_validator"`

func TestTranslateCalls(t *testing.T) {
	elsewhere := thread.Source{API: wire.Anthropic, Raw: `{"not":"ours"}`}
	equal(t, &prompt.Prompt{Messages: []thread.Message{
		say(thread.User, "go"),
		{Role: thread.Assistant, Parts: []thread.Part{
			thread.Reasoning{Text: "hm", Signature: "x", Source: elsewhere},
			thread.Text{Text: "I go.", Source: elsewhere},
			thread.Opaque{Kind: "odd", Source: elsewhere},
			thread.ToolCall{ID: "c1", Name: "read", Arguments: `{"n": 12345678901234567890}`, Signature: "theirs", Source: elsewhere},
			thread.ToolCall{ID: thread.LocalID(0), Name: "mcp/read file", Arguments: "free \"text\""},
			thread.ToolCall{ID: "c3", Name: "read", Arguments: "[1]"},
			thread.ToolCall{ID: "c4", Name: "read"},
		}},
		answer("c4", "", "four"), // other providers take any order
		answer(thread.LocalID(0), "mcp/read file", "two"),
		{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
			CallID: "c1", Tool: "read", Outcome: thread.Failure, Content: []thread.Part{thread.Text{Text: "no"}},
		}}},
		{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
			CallID: "c3", Tool: "read", Structured: `{"b":1, "a":2}`, Content: []thread.Part{
				thread.Text{Text: `{"a":2,"b":1}`},
				thread.Media{Type: thread.Image, MIME: "image/png", Data: "AAAA"},
			},
		}}},
	}},
		`{"role":"user","parts":[{"text":"go"}]}`,
		`{"role":"model","parts":[{"text":"I go."},`+
			`{"functionCall":{"id":"c1","name":"read","args":{"n": 12345678901234567890}},`+skip+`},`+
			`{"functionCall":{"name":"mcp_read_file_5326b771","args":{"input":"free \"text\""}}},`+
			`{"functionCall":{"id":"c3","name":"read","args":{"input":[1]}}},`+
			`{"functionCall":{"id":"c4","name":"read","args":{}}}]}`,
		`{"role":"user","parts":[`+
			`{"functionResponse":{"id":"c1","name":"read","response":{"error":"no"}}},`+
			`{"functionResponse":{"name":"mcp_read_file_5326b771","response":{"output":"two"}}},`+
			`{"functionResponse":{"id":"c3","name":"read","response":{"b":1, "a":2},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}},`+
			`{"functionResponse":{"id":"c4","name":"read","response":{"output":"four"}}}]}`,
	)
}

// The first call of every step has a signature, in earlier turns too, so that a
// prompt begins with the one before it.
func TestSkipSignature(t *testing.T) {
	equal(t, &prompt.Prompt{Messages: []thread.Message{
		say(thread.User, "one"), calls(thread.ToolCall{ID: "a", Name: "f"}), answer("a", "f", "1"), say(thread.Assistant, "done"),
		say(thread.User, "two"), calls(thread.ToolCall{ID: "b", Name: "f"}, thread.ToolCall{ID: "c", Name: "f"}), answer("b", "f", "2"), answer("c", "f", "3"),
		calls(thread.ToolCall{ID: "d", Name: "f", Signature: "c2VhbA=="}), answer("d", "f", "4"),
	}},
		user(`{"text":"one"}`),
		model(`{"functionCall":{"id":"a","name":"f","args":{}},`+skip+`}`),
		user(`{"functionResponse":{"id":"a","name":"f","response":{"output":"1"}}}`),
		model(`{"text":"done"}`),
		user(`{"text":"two"}`),
		model(`{"functionCall":{"id":"b","name":"f","args":{}},`+skip+`},{"functionCall":{"id":"c","name":"f","args":{}}}`),
		user(`{"functionResponse":{"id":"b","name":"f","response":{"output":"2"}}},{"functionResponse":{"id":"c","name":"f","response":{"output":"3"}}}`),
		model(`{"functionCall":{"id":"d","name":"f","args":{}},"thoughtSignature":"c2VhbA=="}`),
		user(`{"functionResponse":{"id":"d","name":"f","response":{"output":"4"}}}`),
	)
}

func TestTranslateOrder(t *testing.T) {
	for _, test := range []struct {
		name     string
		messages []thread.Message
		want     []string
	}{
		{"the model first", []thread.Message{say(thread.Assistant, "a"), say(thread.User, "b")},
			[]string{user(`{"text":"(conversation continues)"}`), model(`{"text":"a"}`), user(`{"text":"b"}`)}},
		{"nothing to say", []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Opaque{Kind: "odd"}}}},
			[]string{user(`{"text":"(conversation continues)"}`)}},
		{"same roles are merged", []thread.Message{say(thread.User, "a"), say(thread.User, "b"), say(thread.Assistant, "c"), say(thread.Assistant, "d"), say(thread.User, "e")},
			[]string{user(`{"text":"a"},{"text":"b"}`), model(`{"text":"c"},{"text":"d"}`), user(`{"text":"e"}`)}},
		{"a system message in between", []thread.Message{say(thread.User, "a"), say(thread.System, "b"), say(thread.System, "")},
			[]string{user(`{"text":"a"},{"text":"[system]\nb"}`)}},
		{"nothing left of a message", []thread.Message{say(thread.User, "a"), {Role: thread.Assistant, Parts: []thread.Part{thread.Reasoning{Text: "hm"}}}, say(thread.User, "b")},
			[]string{user(`{"text":"a"},{"text":"b"}`)}},
		{"the user after responses", []thread.Message{say(thread.User, "a"), calls(thread.ToolCall{ID: "1", Name: "f", Signature: "c2VhbA=="}), answer("1", "f", "b"), say(thread.User, "c")},
			[]string{user(`{"text":"a"}`), model(`{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"c2VhbA=="}`),
				user(`{"functionResponse":{"id":"1","name":"f","response":{"output":"b"}}}`), user(`{"text":"c"}`)}},
		{"the user between call and response", []thread.Message{say(thread.User, "a"), calls(thread.ToolCall{ID: "1", Name: "f"}), say(thread.User, "c"), answer("1", "f", "b")},
			[]string{user(`{"text":"a"}`), model(`{"functionCall":{"id":"1","name":"f","args":{}},` + skip + `}`),
				user(`{"functionResponse":{"id":"1","name":"f","response":{"output":"b"}}}`), user(`{"text":"c"}`)}},
		{"an id used again", []thread.Message{say(thread.User, "a"), calls(thread.ToolCall{ID: "1", Name: "f"}), answer("1", "", "b"), calls(thread.ToolCall{ID: "1", Name: "g"}), answer("1", "", "c"), say(thread.User, "d")},
			[]string{user(`{"text":"a"}`), model(`{"functionCall":{"id":"1","name":"f","args":{}},` + skip + `}`), user(`{"functionResponse":{"id":"1","name":"f","response":{"output":"b"}}}`),
				model(`{"functionCall":{"id":"1","name":"g","args":{}},` + skip + `}`), user(`{"functionResponse":{"id":"1","name":"g","response":{"output":"c"}}}`), user(`{"text":"d"}`)}},
	} {
		t.Run(test.name, func(t *testing.T) { equal(t, &prompt.Prompt{Messages: test.messages}, test.want...) })
	}
}

func TestTranslateMedia(t *testing.T) {
	equal(t, &prompt.Prompt{Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{
		thread.Media{Type: thread.Image, Data: "AAAA"},
		thread.Media{Type: thread.Image, URL: "data:image/webp;base64,BBBB"},
		thread.Media{Type: thread.Document, URL: "https://example.com/a"},
		thread.Media{Type: thread.Document, MIME: "text/plain", Text: "notes"},
		thread.Media{Type: thread.File, Name: "a.bin", FileID: "file_1"},
	}}}},
		user(`{"inlineData":{"mimeType":"image/png","data":"AAAA"}},`+
			`{"inlineData":{"mimeType":"image/webp","data":"BBBB"}},`+
			`{"fileData":{"mimeType":"application/pdf","fileUri":"https://example.com/a"}},`+
			`{"text":"notes"},{"text":"[file: a.bin]"}`))
}

func TestTranslateRest(t *testing.T) {
	elsewhere := thread.Source{API: wire.Chat, Raw: `{"not":"ours"}`}
	p := &prompt.Prompt{
		Model:     "m",
		MaxOutput: 7,
		System:    []prompt.System{{Text: "a", Role: "developer", Source: elsewhere}, {Text: ""}, {Text: "b"}},
		Tools: []prompt.Tool{
			{Name: "f", Description: "d", Schema: ` {"$defs":{},"type":"object"} `, Source: elsewhere},
			{Name: "web_search", Source: elsewhere},
			{Name: "g"},
		},
		Messages: []thread.Message{say(thread.User, "tab\t quote\" <b>&\x01é")},
	}
	want := `{"systemInstruction":{"parts":[{"text":"a"},{"text":"b"}]},` +
		`"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"$defs":{},"type":"object"}},{"name":"g"}]}],` +
		`"contents":[{"role":"user","parts":[{"text":"tab\t quote\" <b>&\u0001é"}]}],` +
		`"generationConfig":{"maxOutputTokens":7}}`
	if got := encode(t, p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Names that had to change stay different, and fit.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"", "a b", "a/b", "a_b", "9a", "é", strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 66), strings.Repeat("9", 70), "-"} {
		p := &prompt.Prompt{Tools: []prompt.Tool{{Name: name}}, Messages: []thread.Message{say(thread.User, "a")}}
		body := encode(t, p)
		if got := append(problems(body, false), problems(body, true)...); len(got) > 0 {
			t.Errorf("%q: %v", name, got)
		}
		sent := decode(t, body).Tools[0].Name
		if other, twice := seen[sent]; twice {
			t.Errorf("%q and %q both became %q", name, other, sent)
		}
		seen[sent] = name
	}
	if seen["a_b"] != "a_b" || seen[strings.Repeat("x", 64)] == "" {
		t.Error("a name that fits was changed")
	}
}

// What differs is exchanged, everything else keeps its bytes and its place.
func TestSplice(t *testing.T) {
	const before = ` { "later" : [ 1 ], "system_instruction" : {"role":"user", "parts":[ {"text":"a"} ]}, "contents" : [ ` + hello + ` ], "tools":[{"googleSearch":{}},{"functionDeclarations":[ {"name":"f"} ]}], "generationConfig":{ "topK":1 ,"max_output_tokens":5}} `
	for _, test := range []struct {
		name     string
		change   func(*prompt.Prompt)
		old, new string
	}{
		{"nothing", func(p *prompt.Prompt) {}, "", ""},
		{"the model is in the URL", func(p *prompt.Prompt) { p.Model = "other" }, "", ""},
		{"a message more", func(p *prompt.Prompt) { p.Messages = append(p.Messages, say(thread.Assistant, "b")) },
			`[ ` + hello + ` ]`, `[` + hello + `,` + model(`{"text":"b"}`) + `]`},
		{"a system block more", func(p *prompt.Prompt) { p.System = append(p.System, prompt.System{Text: "b"}) },
			`[ {"text":"a"} ]`, `[{"text":"a"},{"text":"b"}]`},
		{"no system", func(p *prompt.Prompt) { p.System = nil }, `, "system_instruction" : {"role":"user", "parts":[ {"text":"a"} ]}`, ``},
		{"a tool more", func(p *prompt.Prompt) { p.Tools = append(p.Tools, prompt.Tool{Name: "g"}) },
			`[ {"name":"f"} ]`, `[{"name":"f"},{"name":"g"}]`},
		{"another limit", func(p *prompt.Prompt) { p.MaxOutput = 9 }, `"max_output_tokens":5`, `"max_output_tokens":9`},
		{"no limit", func(p *prompt.Prompt) { p.MaxOutput = 0 }, ` ,"max_output_tokens":5`, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := decode(t, before)
			test.change(p)
			if got, want := encode(t, p), strings.Replace(before, test.old, test.new, 1); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	p := decode(t, request(hello))
	p.System, p.Tools, p.MaxOutput = []prompt.System{{Text: "s"}}, []prompt.Tool{{Name: "f"}}, 3
	want := `{"contents":[` + hello + `],"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f"}]}],"generationConfig":{"maxOutputTokens":3}}`
	if got := encode(t, p); got != want {
		t.Errorf("members that were not there:\ngot  %s\nwant %s", got, want)
	}
}

// Split responses come together again: untouched ones keep their bytes, a user's
// words stay where they were.
func TestSplitAndMerge(t *testing.T) {
	const (
		one   = `{"functionResponse":{"name":"f", "response":{"output":"1"}}}`
		two   = `{"functionResponse":{"name":"g", "response":{"output":"2"}}}`
		both  = `{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"g"}}]}`
		new1  = `{"functionResponse":{"name":"f","response":{"output":"cleared"}}}`
		words = `{"text" : "words"}`
	)
	for _, test := range []struct {
		name   string
		source string // of the content after the calls
		change func(list []thread.Message) []thread.Message
		want   []string
	}{
		{"one response cleared", user(one + "," + two),
			func(l []thread.Message) []thread.Message { l[2] = answer(thread.LocalID(0), "f", "cleared"); return l },
			[]string{user(new1 + "," + two)}},
		{"cleared, words beside it", user(one + "," + two + "," + words),
			func(l []thread.Message) []thread.Message { l[2] = answer(thread.LocalID(0), "f", "cleared"); return l },
			[]string{user(new1 + "," + two + "," + words)}},
		{"words before the responses", user(words + "," + one + "," + two),
			func(l []thread.Message) []thread.Message { l[3] = answer(thread.LocalID(0), "f", "cleared"); return l },
			[]string{user(new1 + "," + two + "," + words)}},
		{"all cleared, words beside them", user(one + "," + two + "," + words),
			func(l []thread.Message) []thread.Message {
				l[2], l[3] = answer(thread.LocalID(0), "f", "cleared"), answer(thread.LocalID(1), "g", "gone")
				return l
			},
			[]string{user(new1 + `,{"functionResponse":{"name":"g","response":{"output":"gone"}}}`), user(words)}},
		{"new words after untouched responses", user(one + "," + two),
			func(l []thread.Message) []thread.Message { return append(l, say(thread.User, "more")) },
			[]string{user(one + "," + two), user(`{"text":"more"}`)}},
		{"new words after untouched words", user(one+","+two) + "," + user(words),
			func(l []thread.Message) []thread.Message { return append(l, say(thread.User, "more")) },
			[]string{user(one + "," + two), user(words + `,{"text":"more"}`)}},
		{"new words after words beside responses", user(one + "," + two + "," + words),
			func(l []thread.Message) []thread.Message { return append(l, say(thread.User, "more")) },
			[]string{user(one + "," + two + "," + words + `,{"text":"more"}`)}},
		{"a note before untouched contents", user(one+","+two) + "," + user(words),
			func(l []thread.Message) []thread.Message {
				return append(l[:1:1], append([]thread.Message{say(thread.User, "note")}, l[1:]...)...)
			},
			nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := decode(t, request(hello, both, test.source))
			p.Messages = test.change(p.Messages)
			want := append([]string{hello, both}, test.want...)
			if test.want == nil {
				want = []string{user(`{"text":"hello"},{"text":"note"}`), both, test.source}
			}
			equal(t, p, want...)
		})
	}
}

// Where messages between two contents were dropped, the contents keep their
// bytes, unless the API would refuse them side by side.
func TestDropBetween(t *testing.T) {
	drop := func(from, to int, contents ...string) *prompt.Prompt {
		p := decode(t, request(contents...))
		p.Messages = append(p.Messages[:from:from], p.Messages[to:]...)
		return p
	}
	equal(t, drop(1, 2, hello, reply, user(`{"text":"again"}`)), hello, user(`{"text":"again"}`))
	equal(t, drop(2, 3, hello, reply, hello, reply), hello, reply, reply)
	equal(t, drop(2, 3, hello, reply, hello, signF, doneF), hello,
		model(`{"text":"hi"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2VhbA=="}`), doneF)
	const asIs = `{"contents":[` + hello + `,` + reply + `,` + signF + `,` + doneF + `]}`
	if got := encode(t, decode(t, asIs)); got != asIs {
		t.Errorf("contents that were read side by side changed: %s", got)
	}
}
