package anthropic_test

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
	"github.com/palimpsest-ai/palimpsest/llm/anthropic"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	codec "github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

func hello() *prompt.Prompt {
	return &prompt.Prompt{Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Hello."}}}}}
}

var schema = &llm.Schema{Name: "report", Description: "What was found.", JSON: `{"type":"object","properties":{"found":{"type":"string"}},"required":["found"],"additionalProperties":false}`}

const object = `{"found":"it"}`

func TestHeaders(t *testing.T) {
	s := llmtest.NewServer(t, llmtest.Answer{Text: "a"}, llmtest.Answer{Text: "b"}, llmtest.Answer{Text: "c"})
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, c := range []anthropic.Config{
		{BaseURL: s.URL, Key: " the-key\n", HTTP: hc},
		{BaseURL: s.URL + "/", Key: "k", AuthToken: "the-token", Version: "2030-01-01", HTTP: hc},
		{BaseURL: s.URL + "/v1/", Key: "k", Header: http.Header{"Anthropic-Beta": {"one,two"}}, HTTP: hc},
	} {
		if _, err := newClient(t, c).Generate(t.Context(), hello(), nil); err != nil {
			t.Fatal(err)
		}
	}
	got := s.Requests()
	if h := got[0].Header; h.Get("X-Api-Key") != "the-key" || h.Get("Authorization") != "" || h.Get("Anthropic-Version") != "2023-06-01" {
		t.Errorf("first: %v", h)
	}
	if h := got[1].Header; h.Get("Authorization") != "Bearer the-token" || h.Get("Anthropic-Version") != "2030-01-01" {
		t.Errorf("second: %v", h)
	}
	if h := got[2].Header; h.Get("Anthropic-Beta") != "one,two" || h.Get("Content-Type") != "application/json" {
		t.Errorf("third: %v", h)
	}
}

func TestEnvironment(t *testing.T) {
	s := llmtest.NewServer(t, llmtest.Answer{Text: "a"})
	t.Setenv("ANTHROPIC_BASE_URL", s.URL)
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-environment")
	c, err := anthropic.New(anthropic.Config{Model: "m", HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Generate(t.Context(), hello(), nil); err != nil {
		t.Fatal(err)
	}
	if h := s.Requests()[0].Header; h.Get("Authorization") != "Bearer from-environment" || h["X-Api-Key"] != nil {
		t.Errorf("%v", h)
	}
	if c.Model() != "m" || c.String() != "anthropic:m" {
		t.Errorf("%q, %q", c.Model(), c.String())
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []anthropic.Config{
		{}, {Model: "m", BaseURL: "localhost:8080"}, {Model: "m", BaseURL: "ftp://host"}, {Model: "m", BaseURL: "http://user:s3cret@ho st"},
	} {
		if _, err := anthropic.New(c); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// No key may be seen in what is printed, logged or returned.
func TestSecrets(t *testing.T) {
	const key, token, extra = "sk-ant-very-secret", "tok-very-secret", "hdr-very-secret"
	s := llmtest.NewServer(t,
		llmtest.Answer{Status: 401, Body: `{"error":{"message":"the key ` + key + ` and ` + token + ` and ` + extra + ` are wrong","code":"` + key + `"}}`, RequestID: token},
		llmtest.Answer{Body: "<html>" + key + "</html>"},
	)
	config := anthropic.Config{
		Model: "m", Key: key, AuthToken: token, Header: http.Header{"X-Gateway-Token": {extra}},
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, Retry: llm.Retry{Attempts: 1},
	}
	config.BaseURL = s.URL
	c := newClient(t, config)
	config.BaseURL = "http://user:pass-very-secret@127.0.0.1:1"
	unreachable := newClient(t, config)
	var shown strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		fmt.Fprintf(&shown, verb+verb+verb+verb+"\n", config, &config, c, *c)
	}
	for _, v := range []any{anthropic.Config{Key: key, AuthToken: token}} {
		j, _ := json.Marshal(v)
		shown.Write(j)
	}
	lg := slog.New(slog.NewJSONHandler(&shown, nil))
	lg.Info("m", "config", config, "client", c)
	slog.New(slog.NewTextHandler(&shown, nil)).Info("m", "config", config, "client", c)
	for _, g := range []llm.Generator{c, c, unreachable} {
		_, err := g.Generate(t.Context(), hello(), nil)
		if err == nil {
			t.Fatal("no error")
		}
		fmt.Fprintf(&shown, "%v %+v %#v\n", err, err, err)
		e, _ := errors.AsType[*llm.APIError](err)
		fmt.Fprintf(&shown, "%+v\n", *e)
	}
	if text := shown.String(); strings.Contains(text, "very-secret") || !strings.Contains(text, "[key]") {
		t.Errorf("a secret is shown: %s", text)
	}
}

// Without thinking a tool is forced; its name is none of the prompt's tools.
func TestForcedTool(t *testing.T) {
	s := llmtest.NewServer(t, llmtest.Answer{Text: object})
	p := hello()
	p.Tools = []prompt.Tool{{Name: "report", Schema: `{"type":"object"}`}}
	r, err := newClient(t, anthropic.Config{BaseURL: s.URL, HTTP: closing()}).Generate(t.Context(), p, &llm.Options{Schema: schema})
	if err != nil || r.JSON != object {
		t.Fatalf("%+v, %v", r, err)
	}
	body := s.Requests()[0].Body
	if got := gjson.Get(body, "tool_choice.name").Str; got != "report_2" || gjson.Get(body, "tools.1.name").Str != got || gjson.Get(body, "tools.1.input_schema").Raw != schema.JSON {
		t.Errorf("%s", body)
	}
	if len(p.Tools) != 1 {
		t.Error("the prompt's tools were changed")
	}
}

// A request with thinking cannot force a tool.
func TestOutputFormat(t *testing.T) {
	const source = `{"model":"m","max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"stream":true,"messages":[{"role":"user","content":"Hello."}],"metadata":{"user_id":"u"}}`
	thinking, err := codec.Codec{}.Decode(source)
	if err != nil {
		t.Fatal(err)
	}
	s := llmtest.NewServer(t, llmtest.Answer{Text: object})
	r, err := newClient(t, anthropic.Config{BaseURL: s.URL, HTTP: closing()}).Generate(t.Context(), thinking, &llm.Options{Schema: schema})
	if err != nil || r.JSON != object || r.Stop != wire.StopEnd {
		t.Fatalf("%+v, %v", r, err)
	}
	body := s.Requests()[0].Body
	if gjson.Get(body, "output_config.format.schema").Raw != schema.JSON || gjson.Get(body, "tool_choice").Exists() || gjson.Get(body, "stream").Bool() {
		t.Errorf("%s", body)
	}
}

// A prompt that was read from a request is sent with everything else in it.
func TestSourceKept(t *testing.T) {
	const source = `{"model": "m", "max_tokens": 2000, "messages": [{"role":"user","content":"Hello."}], "metadata": {"user_id": "u"}}`
	p, err := codec.Codec{}.Decode(source)
	if err != nil {
		t.Fatal(err)
	}
	s := llmtest.NewServer(t, llmtest.Answer{Text: "a"})
	if _, err := newClient(t, anthropic.Config{BaseURL: s.URL, HTTP: closing()}).Generate(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Requests()[0].Body, strings.Replace(source, `"m"`, `"test-model"`, 1); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// What the model said can be sent back byte for byte.
func TestAnswerGoesBack(t *testing.T) {
	const content = `[{"type":"thinking","thinking":"Hm <1>.","signature":"c2VhbA=="},{"type":"redacted_thinking","data":"ZGF0YQ=="},` +
		`{"type":"text","text":"I look.","citations":null},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},` +
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"tool_use","id":"toolu_1","name":"look","input":{"at": 1}}]`
	s := llmtest.NewServer(t,
		llmtest.Answer{Body: `{"type":"message","model":"m","content":` + content + `,"stop_reason":"tool_use"}`},
		llmtest.Answer{Text: "done"})
	c := newClient(t, anthropic.Config{BaseURL: s.URL, HTTP: closing()})
	p := hello()
	p.Tools = []prompt.Tool{{Name: "look", Schema: `{"type":"object"}`}}
	r, err := c.Generate(t.Context(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Messages = append(p.Messages, r.Message, thread.Message{Role: thread.Tool, Parts: []thread.Part{
		thread.ToolResult{CallID: "toolu_1", Tool: "look", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: "seen"}}},
	}})
	if _, err := c.Generate(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if got := gjson.Get(s.Requests()[1].Body, "messages.1.content").Raw; got != content {
		t.Errorf("went back as %s, want %s", got, content)
	}
}

func TestResponseLimit(t *testing.T) {
	s := llmtest.NewServer(t, llmtest.Answer{Text: strings.Repeat("a", 5000)}, llmtest.Answer{Text: "small"})
	c := newClient(t, anthropic.Config{BaseURL: s.URL, HTTP: closing(), MaxResponse: 1000})
	if _, err := c.Generate(t.Context(), hello(), nil); !errors.Is(err, llm.ErrResponse) || !strings.Contains(err.Error(), "1000 bytes") {
		t.Errorf("%v", err)
	}
	if _, err := c.Generate(t.Context(), hello(), nil); err != nil {
		t.Error(err)
	}
}

func closing() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// TestTemperatureRefused: a model that takes no temperature is asked again
// without, and not with one from then on. Another invalid request is not. B6
func TestTemperatureRefused(t *testing.T) {
	refuse := func(message string) llmtest.Answer {
		return llmtest.Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"` + message + `"}}`}
	}
	s := llmtest.NewServer(t, refuse("`temperature` is deprecated for this model."), llmtest.Answer{Text: "a"}, llmtest.Answer{Text: "b"}, refuse("messages: too odd"))
	c := newClient(t, anthropic.Config{BaseURL: s.URL, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	heat := 0.3
	for _, want := range []string{"a", "b"} {
		r, err := c.Generate(t.Context(), hello(), &llm.Options{Temperature: &heat, MaxOutput: 10})
		if err != nil || r.Text != want {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if _, err := c.Generate(t.Context(), hello(), &llm.Options{Temperature: &heat, MaxOutput: 10}); !errors.Is(err, llm.ErrInvalid) {
		t.Error(err)
	}
	for n, r := range s.Requests() {
		if got := gjson.Get(r.Body, "temperature").Exists(); got != (n == 0) {
			t.Errorf("request %d: temperature %v", n+1, got)
		}
	}
	if n := len(s.Requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
}

// TestQuestionOfAThinkingConversation: a request that goes on from one with
// thinking sends no temperature, and leaves the thinking its budget.
func TestQuestionOfAThinkingConversation(t *testing.T) {
	const body = `{"model":"claude-x","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":8000},"messages":[{"role":"user","content":"Hello."}]}`
	p, err := codec.Codec{}.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	s := llmtest.NewServer(t, llmtest.Answer{Text: "a"})
	c := newClient(t, anthropic.Config{BaseURL: s.URL, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	heat := 0.3
	if _, err := c.Generate(t.Context(), p, &llm.Options{Temperature: &heat, MaxOutput: 1000}); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0].Body
	if gjson.Get(got, "temperature").Exists() || gjson.Get(got, "max_tokens").Int() != 9000 || gjson.Get(got, "thinking.budget_tokens").Int() != 8000 {
		t.Error(got)
	}
}
