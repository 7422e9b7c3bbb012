package openai

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/llmtest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var responseStreams = []struct {
	name, body string
	text       string
	stop       llm.Stop
	err        error
}{
	{"completed", events(`{"type":"response.created","response":{"status":"in_progress","error":null}}`,
		`{"type":"response.completed","response":{"status":"completed","error":null,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}]}}`),
		"a\nb", llm.StopEnd, nil},
	{"items only as they were done", events(
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}}`,
		`{"type":"response.completed","response":{"status":"completed","output":[]}}`),
		"a", llm.StopEnd, nil},
	{"nothing said", events(`{"type":"response.completed","response":{"status":"completed","output":[]}}`), "", llm.StopEnd, nil},
	{"filtered", events(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}}`), "", llm.StopFilter, nil},
	{"call", events(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}}`), "", llm.StopTool, nil},
	{"items of a kind unknown", events(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"novelty","x":1}]}}`), "", llm.StopEnd, nil},
	{"failed", events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"},"output":[]}}`), "", "", llm.ErrServer},
	{"failed without a word", events(`{"type":"response.failed","response":{"status":"failed","error":null,"output":[]}}`), "", "", llm.ErrServer},
	{"overflow", events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"x"}}}`), "", "", llm.ErrOverflow},
	{"error event", events(`{"type":"error","code":"rate_limit_exceeded","message":"x"}`), "", "", llm.ErrRateLimited},
	{"cut off", events(`{"type":"response.created","response":{}}`), "", "", io.ErrUnexpectedEOF},
	{"another API", events(finish("stop"), done), "", "", llm.ErrResponse},
	{"no output", events(`{"type":"response.completed","response":{"status":"completed"}}`), "", "", llm.ErrResponse},
	{"output that is none", events(`{"type":"response.completed","response":{"status":"completed","output":[7]}}`), "", "", llm.ErrResponse},
}

func TestResponseStream(t *testing.T) {
	for _, test := range responseStreams {
		a, _, err := readResponseStream("openai", response(test.body), nil)
		var r *llm.Reply
		if err == nil {
			r, err = a.reply(response(""), nil)
		}
		if test.err != nil || err != nil {
			if !errors.Is(err, test.err) {
				t.Errorf("%s: %v, want %v", test.name, err, test.err)
			}
			continue
		}
		if r.Text != test.text || r.Stop != test.stop {
			t.Errorf("%s: text %q, stop %q", test.name, r.Text, r.Stop)
		}
	}
}

// A response is asked for without being stored, in the form that was chosen,
// and goes back whole: reasoning with the call that followed it.
func TestResponses(t *testing.T) {
	const items = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"eA=="},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{\"at\": 1}","status":"completed"}`
	s := llmtest.NewServer(t,
		llmtest.Answer{Body: `{"object":"response","status":"completed","error":null,"output":[` + items + `]}`},
		llmtest.Answer{Text: `{"found":"it"}`})
	c, err := New(Config{Model: "m", BaseURL: s.URL + "/v1", Key: "k", Responses: true, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	p := &prompt.Prompt{
		Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Hello."}}}},
		Tools:    []prompt.Tool{{Name: "look", Schema: `{"type":"object"}`}},
	}
	r, err := c.Generate(t.Context(), p, &llm.Options{MaxOutput: 77})
	if err != nil || r.Stop != llm.StopTool {
		t.Fatalf("%+v, %v", r, err)
	}
	p.Messages = append(p.Messages, r.Message, thread.Message{Role: thread.Tool, Parts: []thread.Part{
		thread.ToolResult{CallID: "call_1", Tool: "look", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: "seen"}}},
	}})
	schema := &llm.Schema{Name: "report", JSON: `{"type":"object","properties":{},"additionalProperties":false}`}
	if r, err = c.Generate(t.Context(), p, &llm.Options{Schema: schema}); err != nil || r.JSON != `{"found":"it"}` {
		t.Fatalf("%+v, %v", r, err)
	}
	first, second := gjson.Parse(s.Requests()[0].Body), gjson.Parse(s.Requests()[1].Body)
	if store := first.Get("store"); store.Type != gjson.False || first.Get("max_output_tokens").Int() != 77 || first.Get("text").Exists() {
		t.Errorf("%s", first.Raw)
	}
	if f := second.Get("text.format"); f.Get("type").Str != "json_schema" || !f.Get("strict").Bool() || f.Get("schema").Raw != schema.JSON {
		t.Errorf("%s", f.Raw)
	}
	if got := second.Get("input.1").Raw + "," + second.Get("input.2").Raw; got != items {
		t.Errorf("went back as %s, want %s", got, items)
	}
}

func FuzzResponseStream(f *testing.F) {
	for _, test := range responseStreams {
		f.Add(test.body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		text := ""
		a, delivered, err := readResponseStream("openai", response(body), func(d llm.Delta) { text += d.Text })
		if text != "" && !delivered {
			t.Fatal("text was handed on and not owned up to")
		}
		if err != nil {
			return
		}
		if r, err := a.reply(response(""), nil); err == nil && r.Message.Role != thread.Assistant {
			t.Fatal("a reply of nobody")
		}
	})
}
