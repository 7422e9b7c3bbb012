package llmtest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Maker makes the generator under test: one that asks the server at url (without
// any path) for the model "test-model" through hc, with the retries given.
type Maker func(tb testing.TB, url string, hc *http.Client, r llm.Retry) llm.Generator

// TestGenerator runs what every llm.Generator over HTTP must pass, each test
// with a fresh generator and server.
func TestGenerator(t *testing.T, maker Maker) {
	for name, test := range map[string]func(*testing.T, Maker){
		"Answers": testAnswers, "Structured": testStructured, "NoObject": testNoObject, "Prompt": testPrompt,
		"Retries": testRetries, "RetryAfter": testRetryAfter, "NoRetry": testNoRetry, "Exhausted": testExhausted,
		"Garbage": testGarbage, "Cancel": testCancel, "CancelWait": testCancelWait,
		"Deadline": testDeadline, "Timeout": testTimeout, "Concurrent": testConcurrent, "Redirect": testRedirect,
	} {
		t.Run(name, func(t *testing.T) { test(t, maker) })
	}
}

// bench is a generator and its server.
type bench struct {
	llm.Generator
	server *Server
	waits  *waits
}

// waits records what a retry would have waited for.
type waits struct {
	mu   sync.Mutex
	list []time.Duration
}

func (w *waits) sleep(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, d)
	return ctx.Err()
}

func setUp(t *testing.T, maker Maker, script ...Answer) *bench {
	w := &waits{}
	return setUpWith(t, maker, w, llm.Retry{
		Sleep:  w.sleep,
		Jitter: func(longest time.Duration) time.Duration { return longest },
	}, script...)
}

func setUpWith(t *testing.T, maker Maker, w *waits, r llm.Retry, script ...Answer) *bench {
	t.Helper()
	s := NewServer(t, script...)
	hc := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(hc.CloseIdleConnections)
	return &bench{maker(t, s.URL, hc, r), s, w}
}

func question() *prompt.Prompt {
	return &prompt.Prompt{
		Model:    "another-model",
		System:   []prompt.System{{Text: "Be brief.", Role: "system"}},
		Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "What is new?"}}}},
		Tools:    []prompt.Tool{{Name: "look", Description: "Looks.", Schema: `{"type":"object","properties":{"at":{"type":"string"}}}`}},
	}
}

var schema = &llm.Schema{
	Name: "report", Description: "What was found.",
	JSON: `{"type":"object","properties":{"found":{"type":"array","items":{"type":"string"}}},"required":["found"],"additionalProperties":false}`,
}

var full = wire.Usage{Input: 120, CacheRead: 80, CacheWrite: 10, Output: 30, Known: true}

var answers = []struct {
	name string
	a    Answer
	stop wire.Stop
	err  error
}{
	{"plain", Answer{Text: "Nothing new: \"all\" is well, é 漢字 😀.\nReally.", Usage: full}, wire.StopEnd, nil},
	{"reasoning", Answer{Reasoning: "Let me think about it.", Text: "Yes.", Usage: full}, wire.StopEnd, nil},
	{"call", Answer{Text: "Looking.", Calls: []thread.ToolCall{{ID: "call_1", Name: "look", Arguments: `{"at":"the \"top\""}`}}}, wire.StopTool, nil},
	{"calls", Answer{Calls: []thread.ToolCall{
		{ID: "call_1", Name: "look", Arguments: `{"at":"a"}`}, {ID: "call_2", Name: "look", Arguments: `{"at":"b"}`},
	}}, wire.StopTool, nil},
	{"refusal", Answer{Text: "I will not.", Stop: wire.StopRefusal}, wire.StopRefusal, llm.ErrRefused},
	{"length", Answer{Text: "This is cut", Stop: wire.StopLength, Usage: full}, wire.StopLength, llm.ErrTruncated},
	{"context", Answer{Text: "This is cu", Stop: wire.StopContext}, wire.StopContext, llm.ErrOverflow},
	{"other", Answer{Text: "Wait.", Stop: wire.StopOther}, wire.StopOther, llm.ErrResponse},
	{"empty", Answer{}, wire.StopEnd, nil},
	{"unknown fields", Answer{Text: "Fine.", Unknown: true, Usage: full}, wire.StopEnd, nil},
	{"usage missing", Answer{Text: "Fine."}, wire.StopEnd, nil},
	{"usage zero", Answer{Text: "Fine.", Usage: wire.Usage{}}, wire.StopEnd, nil},
}

func testAnswers(t *testing.T, maker Maker) {
	for _, test := range answers {
		t.Run(test.name, func(t *testing.T) {
			a := test.a
			a.RequestID = "req_same"
			b := setUp(t, maker, a)
			whole, err := b.Generate(t.Context(), question(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if whole.Stop != test.stop {
				t.Errorf("Stop = %q, want %q", whole.Stop, test.stop)
			}
			if err := whole.Err(); !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Errorf("Err() = %v, want %v", err, test.err)
			}
			if whole.Message.Role != thread.Assistant || whole.Model != "test-model" || whole.RequestID != "req_same" {
				t.Errorf("role %q, model %q, request id %q", whole.Message.Role, whole.Model, whole.RequestID)
			}
			if a.Stop != wire.StopRefusal && whole.Text != a.Text {
				t.Errorf("Text = %q, want %q", whole.Text, a.Text)
			}
			calls := whole.Message.Calls()
			if len(calls) != len(a.Calls) {
				t.Fatalf("%d calls, want %d", len(calls), len(a.Calls))
			}
			for i, c := range a.Calls {
				if calls[i].ID != c.ID || calls[i].Name != c.Name || calls[i].Arguments != c.Arguments {
					t.Errorf("call %d = %+v, want %+v", i, calls[i], c)
				}
			}
			if diff := cmp.Diff(a.Usage, whole.Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
			if whole.JSON != "" {
				t.Errorf("JSON = %q, want none", whole.JSON)
			}
		})
	}
}

func testStructured(t *testing.T, maker Maker) {
	const object = `{"found":["a <b>","é"]}`
	b := setUp(t, maker, Answer{Text: object, Usage: full})
	whole, err := b.Generate(t.Context(), question(), &llm.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	if whole.JSON != object || whole.Text != object || whole.Stop != wire.StopEnd {
		t.Errorf("JSON %q, text %q, stop %q", whole.JSON, whole.Text, whole.Stop)
	}
	if len(whole.Message.Calls()) > 0 {
		t.Error("a structured answer must not leave a call open")
	}
	for _, s := range []llm.Schema{{Name: "", JSON: schema.JSON}, {Name: "a b", JSON: schema.JSON}, {Name: "a", JSON: "{"}, {Name: "a", JSON: `{"type":"array"}`}} {
		if _, err := b.Generate(t.Context(), question(), &llm.Options{Schema: &s}); !errors.Is(err, llm.ErrInvalid) {
			t.Errorf("schema %+v: %v, want ErrInvalid before anything is sent", s, err)
		}
	}
}

// A model that stops early may leave out the object; one that is done may not.
func testNoObject(t *testing.T, maker Maker) {
	b := setUp(t, maker,
		Answer{Text: `{"found":["a`, Stop: wire.StopLength},
		Answer{Text: `{"found":["a"]}, and`, Stop: wire.StopLength},
		Answer{Text: "No.", Stop: wire.StopRefusal},
		Answer{Calls: []thread.ToolCall{{ID: "call_1", Name: "look", Arguments: `{}`}}},
	)
	for _, want := range []wire.Stop{wire.StopLength, wire.StopLength, wire.StopRefusal, wire.StopTool} {
		r, err := b.Generate(t.Context(), question(), &llm.Options{Schema: schema})
		if err != nil || r.Stop != want || r.JSON != "" {
			t.Errorf("reply %+v, error %v, want stop %q and no object", r, err, want)
		}
	}
	for _, text := range []string{`{"other":[]}`, "{}"} {
		b := setUp(t, maker, Answer{Text: text})
		_, err := b.Generate(t.Context(), question(), &llm.Options{Schema: schema})
		wantAPIError(t, err, llm.ErrResponse)
	}
}

// What is asked reaches the model, and the prompt stays as it was.
func testPrompt(t *testing.T, maker Maker) {
	b := setUp(t, maker, Answer{Text: "Yes."}, Answer{Text: "Yes."})
	p, heat := question(), 0.25
	p.MaxOutput = 7
	if _, err := b.Generate(t.Context(), p, &llm.Options{Temperature: &heat, MaxOutput: 99}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(func() *prompt.Prompt { p := question(); p.MaxOutput = 7; return p }(), p); diff != "" {
		t.Errorf("the prompt was changed:\n%s", diff)
	}
	if _, err := b.Generate(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	got := b.server.Requests()
	first, second := got[0].Prompt, got[1].Prompt
	if first.Model != b.Model() || first.MaxOutput != 99 || second.MaxOutput != 7 {
		t.Errorf("model %q, limits %d and %d", first.Model, first.MaxOutput, second.MaxOutput)
	}
	if !strings.Contains(got[0].Body, `"temperature":0.25`) || strings.Contains(got[1].Body, "temperature") {
		t.Errorf("temperature: %s\n%s", got[0].Body, got[1].Body)
	}
	if len(first.System) != 1 || first.System[0].Text != "Be brief." || len(first.Tools) != 1 || first.Messages[0].Text() != "What is new?" {
		t.Errorf("the request holds %+v", first)
	}
}

func testConcurrent(t *testing.T, maker Maker) {
	const n = 8
	script := []Answer{}
	for range n {
		script = append(script, Answer{Text: "Yes.", Usage: full})
	}
	b := setUp(t, maker, script...)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if r, err := b.Generate(t.Context(), question(), nil); err != nil || r.Text != "Yes." {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wg.Wait()
}
