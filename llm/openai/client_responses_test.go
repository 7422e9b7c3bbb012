package openai

import (
	"errors"
	"net/http"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Reasons to stop that are failures of the provider are errors.
func TestFailedStops(t *testing.T) {
	for reason, want := range map[string]error{"error": llm.ErrServer, "network_error": llm.ErrServer, "insufficient_system_resource": llm.ErrOverloaded, "stop": nil} {
		if err := adjustAnswer(&wire.Answer{Reason: reason}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", reason, err, want)
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
	if err != nil || r.Stop != wire.StopTool {
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
