package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/openai"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	codec "github.com/palimpsest-ai/palimpsest/wire/openai"
)

func hello() *prompt.Prompt {
	return &prompt.Prompt{Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Hello."}}}}}
}

var schema = &llm.Schema{Name: "report", Description: "What was found.", JSON: `{"type":"object","properties":{"found":{"type":"string"}},"required":["found"],"additionalProperties":false}`}

const object = `{"found":"it"}`

func closing() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

func TestEnvironment(t *testing.T) {
	s := llmtest.NewServer(t, llmtest.Answer{Text: "a"})
	t.Setenv("OPENAI_BASE_URL", s.URL+"/v1/")
	t.Setenv("OPENAI_API_KEY", " from-environment\n")
	c, err := openai.New(openai.Config{Model: "m", Provider: "ollama", HTTP: closing()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Generate(t.Context(), hello(), nil); err != nil {
		t.Fatal(err)
	}
	if h := s.Requests()[0].Header; h.Get("Authorization") != "Bearer from-environment" {
		t.Errorf("%v", h)
	}
	if c.Model() != "m" || c.String() != "ollama:m" {
		t.Errorf("%q, %q", c.Model(), c.String())
	}
	t.Setenv("OPENAI_API_KEY", "")
	s = llmtest.NewServer(t, llmtest.Answer{Text: "a"})
	c, err = openai.New(openai.Config{Model: "m", BaseURL: s.URL + "/v1", HTTP: closing(), Header: http.Header{"Api-Key": {"azure"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Generate(t.Context(), hello(), nil); err != nil {
		t.Fatal(err)
	}
	if h := s.Requests()[0].Header; h["Authorization"] != nil || h.Get("Api-Key") != "azure" {
		t.Errorf("%v", h)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []openai.Config{
		{}, {Model: "m", BaseURL: "localhost:8080/v1"}, {Model: "m", BaseURL: "http://user:s3cret@ho st/v1"},
	} {
		if _, err := openai.New(c); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// No key may be seen in what is printed, logged or returned.
func TestSecrets(t *testing.T) {
	const key, extra = "sk-very-secret", "hdr-very-secret"
	s := llmtest.NewServer(t, llmtest.Answer{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: ` + key + extra + `","code":"invalid_api_key"}}`})
	config := openai.Config{
		Model: "m", BaseURL: s.URL + "/v1", Key: key, Header: http.Header{"Api-Key": {extra}}, HTTP: closing(), Retry: llm.Retry{Attempts: 1},
	}
	c := newClient(t, config)
	config.BaseURL = "http://127.0.0.1:1/v1?api-key=very-secret"
	unreachable := newClient(t, config)
	var shown strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		fmt.Fprintf(&shown, verb+verb+verb+"\n", config, &config, c)
	}
	j, _ := json.Marshal(config.Header.Values("None"))
	shown.Write(j)
	slog.New(slog.NewTextHandler(&shown, nil)).Info("m", "config", config, "client", c)
	for _, g := range []llm.Generator{c, unreachable} {
		_, err := g.Generate(t.Context(), hello(), nil)
		if err == nil {
			t.Fatal("no error")
		}
		fmt.Fprintf(&shown, "%v %+v %#v\n", err, err, err)
	}
	if text := shown.String(); strings.Contains(text, "very-secret") || !strings.Contains(text, "[key]") {
		t.Errorf("a secret is shown: %s", text)
	}
}

// refuse is how servers refuse a field.
func refuse(message string) llmtest.Answer {
	return llmtest.Answer{Status: 400, Body: `{"error":{"message":"` + message + `","type":"invalid_request_error"}}`}
}

// A server that knows less is asked for less, and the client remembers it.
func TestStepDown(t *testing.T) {
	s := llmtest.NewServer(t,
		refuse("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
		refuse("Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
		refuse("This response_format type is unavailable now"),
		llmtest.Answer{Text: "Sure:\n```json\n" + object + "\n```"},
		llmtest.Answer{Text: object},
	)
	c := newClient(t, openai.Config{BaseURL: s.URL + "/v1", HTTP: closing()})
	for range 2 {
		r, err := c.Generate(t.Context(), hello(), &llm.Options{Schema: schema})
		if err != nil || r.JSON != object {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	want := []string{"json_schema", "json_schema", "json_object", "", ""}
	for i, r := range s.Requests() {
		if got := gjson.Get(r.Body, "response_format.type").Str; got != want[i] {
			t.Errorf("request %d has format %q, want %q", i+1, got, want[i])
		}
		if told := strings.Contains(r.Body, "follows this JSON schema"); told != (i > 1) {
			t.Errorf("request %d: told of the schema in the prompt: %v", i+1, told)
		}
	}
	if f := gjson.Get(s.Requests()[0].Body, "response_format.json_schema"); !f.Get("strict").Bool() || gjson.Get(s.Requests()[1].Body, "response_format.json_schema.strict").Exists() || f.Get("schema").Raw != schema.JSON || f.Get("name").Str != "report" {
		t.Errorf("format %s", f.Raw)
	}
}

// An answer without the object is no answer.
func TestNoObject(t *testing.T) {
	for _, text := range []string{"I found nothing.", `{"found": oops}`, `{"inner":{"found":"x"}, "cut`, ""} {
		s := llmtest.NewServer(t, llmtest.Answer{Text: text})
		c := newClient(t, openai.Config{BaseURL: s.URL + "/v1", HTTP: closing()})
		r, err := c.Generate(t.Context(), hello(), &llm.Options{Schema: schema})
		e, ok := errors.AsType[*llm.APIError](err)
		if !ok || e.Kind != llm.ErrResponse || e.RequestID != "req_1" || e.Temporary() {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

func TestFieldsLearned(t *testing.T) {
	s := llmtest.NewServer(t,
		refuse("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
		refuse("Unsupported value: 'temperature' does not support 0 with this model."),
		llmtest.Answer{Text: "a"}, llmtest.Answer{Text: "b"},
	)
	c := newClient(t, openai.Config{BaseURL: s.URL + "/v1", HTTP: closing()})
	zero := 0.0
	for range 2 {
		if _, err := c.Generate(t.Context(), hello(), &llm.Options{MaxOutput: 9, Temperature: &zero}); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range s.Requests() {
		for field, want := range map[string]bool{
			"max_tokens": i < 1, "max_completion_tokens": i >= 1, "temperature": i < 2,
		} {
			if got := gjson.Get(r.Body, field).Exists(); got != want {
				t.Errorf("request %d has %s: %v", i+1, field, got)
			}
		}
	}
}

// A server that takes neither name of the limit on the output is asked with each once.
func TestNeitherNameOfTheLimit(t *testing.T) {
	no := refuse("Unsupported parameter: use neither 'max_tokens' nor 'max_completion_tokens'.")
	s := llmtest.NewServer(t, no, no, no, no, no, no)
	c := newClient(t, openai.Config{BaseURL: s.URL + "/v1", HTTP: closing()})
	for n := range 2 {
		if _, err := c.Generate(t.Context(), hello(), &llm.Options{MaxOutput: 9}); !errors.Is(err, llm.ErrInvalid) || len(s.Requests()) != 2*(n+1) {
			t.Fatalf("%v after %d requests", err, len(s.Requests()))
		}
	}
}

// A prompt that was read from a request is sent with everything else in it.
func TestSourceKept(t *testing.T) {
	const source = `{"model": "m", "messages": [{"role":"user","content":"Hello."}], "seed": 7, "stream": true, "stream_options": {"include_usage": true}}`
	p, err := codec.Chat{}.Decode(source)
	if err != nil {
		t.Fatal(err)
	}
	s := llmtest.NewServer(t, llmtest.Answer{Text: "a"})
	if _, err := newClient(t, openai.Config{BaseURL: s.URL + "/v1", HTTP: closing()}).Generate(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	v := gjson.Parse(s.Requests()[0].Body)
	if v.Get("seed").Int() != 7 || v.Get("stream").Exists() || v.Get("stream_options").Exists() || v.Get("model").Str != "test-model" {
		t.Errorf("%s", v.Raw)
	}
}

// What the model said can be sent back, reasoning and vendor fields of calls
// included.
func TestAnswerGoesBack(t *testing.T) {
	const call = `{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"at\": 1}"},"extra_content":{"google":{"thought_signature":"c2VhbA=="}}}`
	s := llmtest.NewServer(t,
		llmtest.Answer{Body: `{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":null,"refusal":null,"audio":null,"reasoning_content":"Hm.","tool_calls":[` + call + `]},"finish_reason":"stop"}]}`},
		llmtest.Answer{Text: "done"})
	c := newClient(t, openai.Config{BaseURL: s.URL + "/v1", HTTP: closing()})
	p := hello()
	p.Tools = []prompt.Tool{{Name: "look", Schema: `{"type":"object"}`}}
	r, err := c.Generate(t.Context(), p, nil)
	if err != nil || r.Stop != wire.StopTool {
		t.Fatalf("%+v, %v", r, err)
	}
	p.Messages = append(p.Messages, r.Message, thread.Message{Role: thread.Tool, Parts: []thread.Part{
		thread.ToolResult{CallID: "call_1", Tool: "look", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: "seen"}}},
	}})
	if _, err := c.Generate(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	m := gjson.Get(s.Requests()[1].Body, "messages.1")
	if m.Get("tool_calls.0").Raw != call || m.Get("reasoning_content").Str != "Hm." || m.Get("refusal").Exists() {
		t.Errorf("went back as %s", m.Raw)
	}
}
