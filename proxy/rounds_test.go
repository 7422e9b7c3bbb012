package proxy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func offered(q *proxytest.Request) bool {
	for _, tool := range q.Prompt.Tools {
		if tool.Name == recall.RecallTool {
			return true
		}
	}
	return false
}

// last is the text of the results at the end of a request, with what they answer.
func last(q *proxytest.Request) (text string, tools []string) {
	for i := len(q.Prompt.Messages) - 1; i >= 0 && q.Prompt.Messages[i].Role == thread.Tool; i-- {
		r, _ := q.Prompt.Messages[i].Result()
		text += r.Text()
		tools = append(tools, r.Tool)
	}
	return text, tools
}

// curious is a model that does the task of steps, and once our tools are there
// asks for early facts: now alone, now beside a call of the client's.
type curious struct {
	mu    sync.Mutex
	t     testing.TB
	inner func(*proxytest.Request) proxytest.Answer
	asked int
	found int
	mixed int
	think bool
}

func (c *curious) answer(q *proxytest.Request) proxytest.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, tools := last(q)
	for _, tool := range tools {
		if tool == recall.RecallTool && strings.Contains(text, "the code of part 2 is K15838") {
			c.found++
		}
	}
	a := proxytest.Answer{}
	if c.think {
		a.Thinking = fmt.Sprintf("Let me see, %d.", q.N)
	}
	call := thread.ToolCall{ID: fmt.Sprintf("ours_%04d", q.N), Name: recall.RecallTool, Arguments: `{"query":"\"the code of part 2\""}`}
	switch {
	case !offered(q):
	case q.N%6 == 0:
		c.asked++
		a.Text = fmt.Sprintf("I look it up, %d.", q.N)
		a.Calls = []thread.ToolCall{call}
		return a
	case q.N%11 == 1:
		a = c.inner(q)
		if len(a.Calls) > 0 {
			c.asked++
			c.mixed++
			a.Calls = append(a.Calls, call)
		}
		return a
	}
	return c.inner(q)
}

// TestToolsInTheProxy: what was removed is read again in further requests that
// the client never sees, whatever else the model calls.
func TestToolsInTheProxy(t *testing.T) {
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			t.Run(fmt.Sprintf("%s, stream %t", api, stream), func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				model := &curious{t: t, inner: steps(60, true), think: true}
				up.Model = model.answer
				url, p := start(t, up, smallWindow())
				a := newAgent(t, api, url, stream)
				a.think = api == wire.Anthropic
				runTask(t, a, 60)
				for _, q := range up.Requests() {
					if q.Refused != "" {
						t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
					}
				}
				if model.found < 6 || model.mixed < 2 || model.found < model.asked-1 {
					t.Errorf("the model asked %d times, %d of them beside other calls, and found it %d times", model.asked, model.mixed, model.found)
				}
				for _, element := range a.history {
					if strings.Contains(element, recall.RecallTool+`"`) || strings.Contains(element, "ours_") {
						t.Fatalf("the client was shown our tools: %.300s", element)
					}
				}
				totals := p.Totals()
				if totals.Faults != 0 {
					t.Errorf("totals: %+v", totals)
				}
				prefixes(t, up.Requests(), int(totals.Compactions))
			})
		}
	}
}

// TestAgainAfterRounds: a client that asks the same again and again, because an
// answer of several rounds did not reach it, is answered each time.
func TestAgainAfterRounds(t *testing.T) {
	for _, api := range half(t) {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				if _, tools := last(q); offered(q) && !slices.Contains(tools, recall.RecallTool) {
					return proxytest.Answer{Calls: []thread.ToolCall{{ID: fmt.Sprintf("ours_%04d", q.N), Name: recall.RecallTool, Arguments: `{"query":"code"}`}}}
				}
				return proxytest.Answer{Text: "ok"}
			}
			url, p := start(t, up, smallWindow())
			a := newAgent(t, api, url, false)
			a.grow(0, 24)
			const times = 5
			for range times {
				if s := a.peek(); s.status != 200 || s.text != "ok" || s.action() == proxy.Passed {
					t.Fatalf("status %d, %q: %s", s.status, s.action(), s.raw)
				}
			}
			if n := len(up.Requests()); n != 2*times || p.Totals().Faults != 0 {
				t.Errorf("%d requests upstream, totals %+v", n, p.Totals())
			}
		})
	}
}

// TestOneStream: the chunks of all rounds have the id of the first. The official
// SDK does not take a chunk of another answer.
func TestOneStream(t *testing.T) {
	up := strict(t)
	up.Model = func(q *proxytest.Request) proxytest.Answer {
		if _, tools := last(q); offered(q) && !slices.Contains(tools, recall.RecallTool) {
			return proxytest.Answer{Text: "I look.", Calls: []thread.ToolCall{{ID: fmt.Sprintf("ours_%04d", q.N), Name: recall.RecallTool, Arguments: `{"query":"code"}`}}}
		}
		return proxytest.Answer{Text: "ok"}
	}
	url, _ := start(t, up, smallWindow())
	a := newAgent(t, wire.Chat, url, true)
	a.grow(0, 24)
	s := a.peek()
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`"id":"chatcmpl[^"]*"`).FindAllString(string(s.raw), -1) {
		ids[m] = true
	}
	if len(up.Requests()) != 2 || len(ids) != 1 {
		t.Errorf("%d requests upstream, ids %v: %s", len(up.Requests()), ids, s.raw)
	}
}

// TestRoundsUsedUp: a model that looks things up without end is told to stop, and
// answers or goes on with the client's tools. Only one that does not heed it ends
// its turn with what it has said.
func TestRoundsUsedUp(t *testing.T) {
	told := func(q *proxytest.Request) bool {
		text, _ := last(q)
		return strings.Contains(text, "Nothing more can be looked up in this turn")
	}
	read := thread.ToolCall{ID: "call_9999", Name: "read_file", Arguments: `{"path":"part_001.go"}`}
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			for name, end := range map[string]proxytest.Answer{
				"answers": {Text: "All is well."},
				"goes on": {Text: "I read it.", Calls: []thread.ToolCall{read}},
				"is deaf": {},
			} {
				t.Run(fmt.Sprintf("%s, stream %t, %s", api, stream, name), func(t *testing.T) {
					t.Parallel()
					up := strict(t)
					var choices []string
					up.Model = func(q *proxytest.Request) proxytest.Answer {
						for _, path := range []string{"tool_choice", "toolConfig"} {
							choices = append(choices, gjson.GetBytes(q.Body, path).Raw)
						}
						if told(q) && name != "is deaf" {
							return end
						}
						return lookup(q)
					}
					url, p := start(t, up, proxy.Options{Window: window, Rounds: 3, Config: palimpsest.Config{Counter: counter()}})
					a := newAgent(t, api, url, stream)
					a.grow(0, 24)
					s := a.ask()
					want := "Look 0.Look 1.Look 2." + end.Text
					if name == "is deaf" {
						want += "Look 3."
					}
					if strings.ReplaceAll(s.text, "\n", "") != want || len(s.calls) != len(end.Calls) || len(s.calls) == 1 && s.calls[0].Name != read.Name {
						t.Errorf("%q, %v", s.text, s.calls)
					}
					if name != "goes on" && (s.stop == "tool_use" || s.stop == "tool_calls") {
						t.Errorf("the model stopped for %q", s.stop)
					}
					if n := len(up.Requests()); n != 4 || p.Totals().Faults != 0 {
						t.Errorf("%d requests upstream, totals %+v", n, p.Totals())
					}
					if slices.ContainsFunc(choices, func(c string) bool { return c != "" }) {
						t.Errorf("tools were chosen: %q", choices)
					}
					for _, c := range s.calls {
						a.results([]thread.ToolCall{c}, func(thread.ToolCall) string { return "nothing" })
					}
					a.user("Go on.")
					up.Model = nil
					if next := a.ask(); next.status != 200 || next.thread() != s.thread() {
						t.Errorf("the next step: %d, %q after %q", next.status, next.thread(), s.thread())
					}
					for _, q := range up.Requests() {
						if q.Refused != "" {
							t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
						}
					}
				})
			}
		}
	}
}
