package e2e

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/anthropic"
	"github.com/palimpsest-ai/palimpsest/llm/openai"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// window is the context window of the scripted model, in tokens: about a fifth
// of what the task reads.
const window = 14_000

// estimated is the window that those policies are told of which count a token for
// four or three characters, tools not at all: numbers and paths take more.
const estimated = window * 4 / 5

// windows are the models of the server. The summarizer reads more than the
// worker, as cheap models with large windows do.
var windows = map[string]int{"worker": window, "summarizer": 4 * window}

// cases are the policies, each by rule and with a model where it can use one.
var cases = []struct {
	name   string
	policy func(llm.Generator) policy.Policy
}{
	{"auto", func(llm.Generator) policy.Policy { return policy.Auto{} }},
	{"notes", func(llm.Generator) policy.Policy { return policy.Notes{} }},
	{"ladder", func(llm.Generator) policy.Policy { return policy.Ladder{MaxInputTokens: window - maxOutput} }},
	{"session", func(m llm.Generator) policy.Policy {
		return policy.Session{Model: m, ContextLimit: estimated, SystemReserve: 800, OutputReserve: maxOutput, SafetyBuffer: 1000}
	}},
	{"timeline", func(m llm.Generator) policy.Policy { return policy.Timeline{Model: m} }},
	{"workstream", func(m llm.Generator) policy.Policy {
		return policy.Workstream{Model: m, ContextSize: estimated, OutputReserve: maxOutput, SafetyMargin: 1000}
	}},
	{"loop", func(m llm.Generator) policy.Policy { return policy.Loop{Model: m, ContextLimit: estimated} }},
}

const threadID = "release"

var apis = []string{wire.Anthropic, wire.Chat, wire.Responses}

// TestTaskContinuation: an agent written with the official SDK finishes a long
// task through five compactions and more, under every policy, with every fact
// that it was given, and no request is refused. A21
func TestTaskContinuation(t *testing.T) {
	for _, c := range cases {
		for _, api := range apis {
			for _, with := range []string{"rule", "model"} {
				t.Run(c.name+"/"+api+"/"+with, func(t *testing.T) {
					t.Parallel()
					server := llmtest.NewProvider(t, llmtest.Provider{Windows: windows, Reply: reply})
					var generator llm.Generator
					config := palimpsest.Config{}
					if with == "model" {
						generator = newSummarizer(t, api, server.URL)
						config.Summarizer = model.New(nil, generator)
					}
					config.Policy = c.policy(generator)
					// What a model summarizes is streamed, what a rule does is not.
					a := work(t, config, server, api, with == "model")
					for _, r := range server.Refused() {
						t.Errorf("a request of %d tokens was refused: %d %s", r.Request.Tokens, r.Status, r.Message)
					}
					if a.refused > 0 {
						t.Errorf("%d requests did not fit", a.refused)
					}
				})
			}
		}
	}
}

// reply answers as one of the two models behind the server.
func reply(r llmtest.Request) llmtest.Answer {
	if r.Prompt.Model == "summarizer" {
		return summarizer(r)
	}
	return worker(r)
}

func newSummarizer(t *testing.T, api, url string) llm.Generator {
	t.Helper()
	var g llm.Generator
	var err error
	if api == wire.Anthropic {
		g, err = anthropic.New(anthropic.Config{Model: "summarizer", BaseURL: url, Key: "key"})
	} else {
		g, err = openai.New(openai.Config{Model: "summarizer", BaseURL: url + "/v1", Key: "key", Responses: api == wire.Responses})
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// newAgent returns an agent that asks the server and keeps its thread in memory.
func newAgent(t *testing.T, config palimpsest.Config, server *llmtest.Server, api string, stream bool) *agent {
	t.Helper()
	memory := &store.Memory{}
	config.Store.Log, config.Store.Plans = memory, memory
	c, err := palimpsest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return &agent{
		client: newClient(api, server.URL, http.DefaultClient), thread: c.Session(threadID), log: memory,
		world: &world{}, window: window, stream: stream,
	}
}

// work lets an agent do the task and checks what came of it.
func work(t *testing.T, config palimpsest.Config, server *llmtest.Server, api string, stream bool) *agent {
	t.Helper()
	config.Recall = &palimpsest.Recall{}
	a := newAgent(t, config, server, api, stream)
	report, err := a.run(t.Context())
	if err != nil {
		t.Error(err)
	}
	if strings.HasPrefix(report, lost) {
		t.Error(report)
	}
	for _, p := range a.world.problems(report) {
		t.Error(p)
	}
	plans, err := a.thread.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(plans) < 5 {
		t.Errorf("%d compactions", len(plans))
	}
	complete(t, a)
	t.Logf("%d requests, %d compactions, %d lookups, %d messages", len(server.Requests()), len(plans), a.lookups, len(a.said))
	return a
}

// complete checks that the log holds everything, in order, as it was said.
func complete(t *testing.T, a *agent) {
	t.Helper()
	log, err := a.log.Load(t.Context(), threadID)
	if err != nil {
		t.Fatal(err)
	}
	if log.Len() != len(a.said) {
		t.Errorf("the log has %d messages, %d were said", log.Len(), len(a.said))
		return
	}
	for i, m := range log.All() {
		want := a.said[i]
		if m.Role != want.Role || !reflect.DeepEqual(m.Parts, want.Parts) || !reflect.DeepEqual(m.Frame, want.Frame) {
			t.Errorf("message %d of the log is not what was said", i)
		}
	}
}

// TestNothingToLookItUpWith: without the tools for it the model does not find a
// fact that the policy took away. What TestTaskContinuation shows would else be
// no more than a model that knows the answers.
func TestNothingToLookItUpWith(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			server := llmtest.NewProvider(t, llmtest.Provider{Windows: windows, Reply: reply})
			a := newAgent(t, palimpsest.Config{Policy: cases[len(cases)-1].policy(nil)}, server, api, false)
			report, err := a.run(t.Context())
			if err != nil || !strings.HasPrefix(report, lost) {
				t.Errorf("the agent said %q, error %v", report, err)
			}
		})
	}
}
