package proxy_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// searching is a model that looks once for the code of part 2 where it can.
func searching(q *proxytest.Request) proxytest.Answer {
	text, tools := last(q)
	switch {
	case len(tools) > 0 && tools[len(tools)-1] == recall.RecallTool:
		if strings.Contains(text, "the code of part 2 is K15838") {
			return proxytest.Answer{Text: "It is K15838."}
		}
		return proxytest.Answer{Text: "It is nowhere."}
	case offered(q):
		return proxytest.Answer{Calls: []thread.ToolCall{{ID: "ours_1", Name: recall.RecallTool, Arguments: `{"query":"\"the code of part 2\""}`}}}
	}
	return proxytest.Answer{Text: "I cannot look it up."}
}

// summedUp is an agent that has read three parts, had them summed up in a request
// beside the conversation, and goes on with the summary alone.
func summedUp(t *testing.T, api, url, session string) *agent {
	t.Helper()
	a := newAgent(t, api, url, false)
	a.large = true
	a.header.Set("X-Session-Id", session)
	a.grow(0, 3)
	if s := a.peek(); s.status != 200 || s.action() != proxy.Passed {
		t.Fatalf("status %d, %s: %.300s", s.status, s.action(), s.raw)
	}
	aside := newAgent(t, api, url, false)
	aside.header, aside.tools, aside.system = a.header, nil, "You sum up conversations."
	aside.user("Sum this up: " + strings.Join(a.history, "\n"))
	if s := aside.peek(); s.action() != proxy.Passed || s.header.Get(proxy.ReasonHeader) != "side-request" {
		t.Fatalf("%s: %.300s", s.action(), s.raw)
	}
	b := newAgent(t, api, url, false)
	b.header, b.large = a.header, true
	b.user("What was done: parts 0 to 2 were read. Go on.")
	b.grow(10, 2)
	return b
}

// TestOwnSummary: what a client's own summary left out is found in the log where
// it stood before, also after a restart; other sessions and proxies without tools
// pass as they are.
func TestOwnSummary(t *testing.T) {
	for _, api := range []string{wire.Anthropic, wire.Chat, wire.Responses} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			up.Model = searching
			kept := &store.Memory{}
			o := proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}}}
			url, p := start(t, up, o)
			a := summedUp(t, api, url, "one")
			if s := a.peek(); s.text != "It is K15838." || s.action() != proxy.Planned {
				t.Errorf("%s; the agent is told %q: %.300s", s.action(), s.text, s.raw)
			}
			a.url, _ = start(t, up, o)
			if s := a.peek(); s.text != "It is K15838." {
				t.Errorf("after a restart the agent is told %q", s.text)
			}
			other := newAgent(t, api, url, false)
			other.header.Set("X-Session-Id", "two")
			other.large = true
			other.user("What was done elsewhere: parts 0 to 2 were read. Go on.")
			other.grow(10, 2)
			if s := other.peek(); s.text != "I cannot look it up." || s.action() != proxy.Passed {
				t.Errorf("another session: %s, %q", s.action(), s.text)
			}
			tail := newAgent(t, api, url, false)
			tail.header.Set("X-Session-Id", "one")
			tail.large = true
			tail.user("In short: parts were read, and two results are kept.")
			tail.grow(10, 2)
			if s := tail.peek(); s.text != "It is K15838." {
				t.Errorf("a summary before the last results: %q", s.text)
			}
			if totals := p.Totals(); totals.Faults != 0 {
				t.Errorf("totals: %+v", totals)
			}
			o.NoTools = true
			plain, _ := start(t, up, o)
			b := summedUp(t, api, plain, "three")
			b.peek()
			requests := up.Requests()
			if got := requests[len(requests)-1].Body; !bytes.Equal(got, b.body()) {
				t.Errorf("without tools the body changed: %.300s", got)
			}
		})
	}
}

// TestShortened: a client that cuts its old results still reaches them.
func TestShortened(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			up.Model = searching
			url, p := start(t, up, smallWindow())
			a := newAgent(t, api, url, false)
			a.grow(0, 5)
			if s := a.peek(); s.text != "I cannot look it up." {
				t.Fatalf("nothing was removed, and the agent is told %q", s.text)
			}
			long := strings.Trim(rawjson.Quote(result(2)), `"`)
			for i := range a.history {
				a.history[i] = strings.ReplaceAll(a.history[i], long, "[cleared to save room]")
			}
			if s := a.peek(); s.text != "It is K15838." {
				t.Errorf("the agent is told %q: %.300s", s.text, s.raw)
			}
			// One that goes back takes nothing with it.
			back := newAgent(t, api, url, false)
			back.system = "You are another agent."
			back.grow(0, 5)
			back.peek()
			back.history = back.history[:len(back.history)-2]
			if s := back.peek(); s.text != "I cannot look it up." {
				t.Errorf("after going back the agent is told %q", s.text)
			}
			if totals := p.Totals(); totals.Faults != 0 {
				t.Errorf("totals: %+v", totals)
			}
		})
	}
}

// TestClearedUnderPlan: a client that clears old results by a known mark goes on in the same conversation, under the
// same plan and with the same bytes, and clears more of them later. Another mark is a change of the history.
func TestClearedUnderPlan(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			up.Model = func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: "Read."} }
			url, p := start(t, up, smallWindow())
			a := newAgent(t, api, url, false)
			a.grow(0, 38)
			if api == wire.Anthropic { // two results in one message
				a.history = append(a.history, `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_38","name":"read_file","input":{}},{"type":"tool_use","id":"toolu_39","name":"read_file","input":{}}]}`)
				a.results([]thread.ToolCall{{ID: "toolu_38"}, {ID: "toolu_39"}}, func(c thread.ToolCall) string { return a.result(map[string]int{"toolu_38": 38, "toolu_39": 39}[c.ID]) })
			} else {
				a.grow(38, 2)
			}
			before := a.peek()
			if before.action() != proxy.Compacted {
				t.Fatalf("%s: %.300s", before.action(), before.raw)
			}
			requests := up.Requests()
			want := requests[len(requests)-1].Body
			clear := func(mark string, results ...int) {
				for _, n := range results {
					long := strings.Trim(rawjson.Quote(a.result(n)), `"`)
					for i := range a.history {
						a.history[i] = strings.ReplaceAll(a.history[i], long, mark)
					}
				}
			}
			for _, results := range [][]int{{2, 3, 39}, {5}, {6, 38}} {
				clear("[Old tool result content cleared]", results...)
				s := a.peek()
				requests = up.Requests()
				if got := requests[len(requests)-1].Body; s.thread() != before.thread() || s.action() != proxy.Planned || !bytes.Equal(got, want) {
					t.Fatalf("%v cleared: %s in %s, was %s; the bytes are the same: %v", results, s.action(), s.thread(), before.thread(), bytes.Equal(got, want))
				}
			}
			a.grow(40, 1)
			if s := a.peek(); s.thread() != before.thread() || s.action() != proxy.Planned {
				t.Errorf("a step later: %s in %s, was %s", s.action(), s.thread(), before.thread())
			}
			clear("nothing was found", 8)
			if s := a.peek(); s.thread() == before.thread() {
				t.Errorf("another result is taken for a mark")
			}
			if totals := p.Totals(); totals.Faults != 0 {
				t.Errorf("totals: %+v", totals)
			}
		})
	}
}

// TestClearedWithoutPlan: a client that clears old results by a known mark, long before anything is compacted, goes on in
// the same conversation: what it has cleared is sent cleared, can be looked up, and is not counted. Without tools its own
// bytes are sent.
func TestClearedWithoutPlan(t *testing.T) {
	for _, api := range apis {
		for _, tools := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, tools %t", api, tools), func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				up.Model = func(q *proxytest.Request) proxytest.Answer {
					out := searching(q)
					for i := range out.Calls {
						out.Calls[i].ID = fmt.Sprintf("ours_%d", len(up.Requests()))
					}
					return out
				}
				url, p := start(t, up, proxy.Options{NoTools: !tools, Window: 60_000, Config: palimpsest.Config{Counter: counter()}})
				a := newAgent(t, api, url, false)
				a.grow(0, 12)
				before := a.ask()
				if before.action() != proxy.Passed {
					t.Fatalf("%s: %.300s", before.action(), before.raw)
				}
				for _, n := range []int{2, 5} {
					long := strings.Trim(rawjson.Quote(a.result(n)), `"`)
					for i := range a.history {
						a.history[i] = strings.ReplaceAll(a.history[i], long, "[Old tool result content cleared]")
					}
					a.user("What is the code?")
					body, sent := a.body(), len(up.Requests())
					s := a.ask()
					first := up.Requests()[sent]
					if s.thread() != before.thread() || strings.Contains(string(first.Body), long) {
						t.Errorf("result %d cleared: %s in %s, was %s; it is sent: %t", n, s.action(), s.thread(), before.thread(), strings.Contains(string(first.Body), long))
					}
					if !tools && (s.action() != proxy.Passed || !bytes.Equal(first.Body, body)) {
						t.Errorf("without tools: %s", s.action())
					}
					if tools && (s.action() != proxy.Planned || s.text != "It is K15838.") {
						t.Errorf("result %d cleared: %s, and the agent is told %q", n, s.action(), s.text)
					}
					ours, err := strconv.Atoi(s.header.Get(proxy.SentHeader))
					if last := up.Requests()[len(up.Requests())-1]; tools && (err != nil || ours > last.Tokens*103/100) {
						t.Errorf("result %d cleared: we count %d tokens, %v, and the provider %d", n, ours, err, last.Tokens)
					}
				}
				a.user("Go on.")
				a.grow(12, 1)
				if s := a.ask(); s.thread() != before.thread() {
					t.Errorf("a step later: %s in %s, was %s", s.action(), s.thread(), before.thread())
				}
				if totals := p.Totals(); totals.Faults != 0 || totals.Compactions != 0 {
					t.Errorf("totals: %+v", totals)
				}
			})
		}
	}
}

// TestRoundsAreListed: the usage of an answer that took several requests has the
// input of the last, and lists them as iterations.
func TestRoundsAreListed(t *testing.T) {
	for _, stream := range []bool{false, true} {
		up := strict(t)
		up.Model = searching
		url, _ := start(t, up, smallWindow())
		a := summedUp(t, wire.Anthropic, url, "one")
		a.stream = stream
		before := len(up.Requests())
		s := a.peek()
		rounds := up.Requests()[before:]
		if len(rounds) != 2 {
			t.Fatalf("%d rounds: %.300s", len(rounds), s.raw)
		}
		var usage gjson.Result
		for _, line := range append(strings.Split(string(s.raw), "\n"), string(s.raw)) {
			if v := gjson.Get(strings.TrimPrefix(line, "data: "), "usage"); v.Exists() {
				usage = v
			}
		}
		first, second := int64(rounds[0].Tokens+1), int64(rounds[1].Tokens+1)
		list := usage.Get("iterations").Array()
		if usage.Get("input_tokens").Int() != second || len(list) != 2 ||
			list[0].Get("input_tokens").Int() != first || list[1].Get("input_tokens").Int() != second || list[1].Get("type").Str != "message" {
			t.Errorf("stream %t: rounds of %d and %d tokens; usage %s", stream, first, second, usage.Raw)
		}
	}
}
