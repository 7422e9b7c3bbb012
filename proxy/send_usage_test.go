package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// dense is a provider that counts more tokens than our counter does.
func dense(t testing.TB, factor float64) *proxytest.Upstream {
	up := strict(t)
	counting := counter().Remembering(nil)
	var mu sync.Mutex
	up.Count = func(p *prompt.Prompt) int {
		mu.Lock()
		defer mu.Unlock()
		return int(factor * float64(counting.Prompt(p)))
	}
	return up
}

// TestUsage: what the provider counts corrects our own count, thread by thread and
// also in rounds that the client does not see, so that a provider which counts
// more is not asked for too much.
func TestUsage(t *testing.T) {
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			t.Run(fmt.Sprintf("%s, stream %t", api, stream), func(t *testing.T) {
				t.Parallel()
				const factor = 1.5
				up := dense(t, factor)
				model := &curious{t: t, inner: steps(60, false)}
				up.Model = model.answer
				url, p := start(t, up, smallWindow())
				a := newAgent(t, api, url, stream)
				a.user("Read all parts in order and tell me when you are done. Never change a file.")
				done, near := 0, 0
				for {
					before := len(up.Requests())
					s := a.ask()
					if s.status != 200 {
						t.Fatalf("status %d: %.300s", s.status, s.raw)
					}
					if ours, err := strconv.Atoi(s.header.Get(proxy.SentHeader)); err == nil && s.action() == proxy.Planned {
						if q := up.Requests()[before]; ours > q.Tokens*97/100 && ours < q.Tokens*103/100 {
							near++
						}
					}
					if len(s.calls) == 0 {
						break
					}
					a.results(s.calls, func(thread.ToolCall) string { done++; return result(done - 1) })
				}
				for _, q := range up.Requests() {
					if q.Refused != "" {
						t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
					}
				}
				totals := p.Totals()
				if totals.Recovered != 0 || totals.Faults != 0 || totals.Compactions < 3 || totals.Compactions > 15 || model.asked < 3 {
					t.Errorf("asked %d times, totals %+v", model.asked, totals)
				}
				if near < int(totals.Edited)/3 {
					t.Errorf("of %d requests, we counted %d as the provider did", totals.Edited, near)
				}
			})
		}
	}
}

// TestUsageOfSomethingElse: figures that are not of the prompt alone correct
// nothing.
func TestUsageOfSomethingElse(t *testing.T) {
	const calls = `"content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","stop_sequence":null`
	for name, body := range map[string]string{
		"nothing":           `{"id":"m","type":"message","role":"assistant","model":"m",` + calls + `}`,
		"zeros":             `{"id":"m","type":"message","role":"assistant","model":"m",` + calls + `,"usage":{"input_tokens":0,"output_tokens":0}}`,
		"the provider's":    `{"id":"m","type":"message","role":"assistant","model":"m",` + calls + `,"usage":{"input_tokens":40000,"output_tokens":1,"server_tool_use":{"web_search_requests":2}}}`,
		"its own clearing":  `{"id":"m","type":"message","role":"assistant","model":"m",` + calls + `,"usage":{"input_tokens":13000,"output_tokens":1},"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_input_tokens":30000}]}}`,
		"several questions": `{"id":"m","type":"message","role":"assistant","model":"m",` + calls + `,"usage":{"input_tokens":40000,"output_tokens":1,"iterations":[{"type":"compaction"},{"type":"message"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := func(body string) string {
				up := strict(t)
				up.Model = func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Body: body} }
				url, _ := start(t, up, smallWindow())
				a := newAgent(t, wire.Anthropic, url, false)
				a.grow(0, 10)
				a.ask()
				a.grow(10, 1)
				return a.ask().header.Get(proxy.BeforeHeader)
			}
			plain := `{"id":"m","type":"message","role":"assistant","model":"m",` + calls + `,"usage":{"input_tokens":1,"output_tokens":1}}`
			if with, without := sent(body), sent(plain); with != without || with == "" {
				t.Errorf("we count %s after it, else %s", with, without)
			}
		})
	}
}

// TestUsageOfHostedCalls: the usage of an answer in which the provider's own tools ran corrects nothing, whole and in
// streams, also in those that do not repeat their items at the end.
func TestUsageOfHostedCalls(t *testing.T) {
	answers := map[string]string{
		wire.Responses: `{"id":"resp_1","object":"response","model":"m","status":"completed","output":[{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"box"}},` +
			`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ok","annotations":[]}]}],"usage":{"input_tokens":40000,"output_tokens":1}}`,
		wire.Anthropic: `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"mcp_tool_use","id":"mcptoolu_1","name":"find","server_name":"s","input":{}},` +
			`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[]},{"type":"text","text":"ok"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":40000,"output_tokens":1}}`,
	}
	for api, answer := range answers {
		sent := func(a proxytest.Answer, stream bool) string {
			up := strict(t)
			up.Model = func(*proxytest.Request) proxytest.Answer {
				if len(up.Requests()) > 1 {
					return proxytest.Answer{Text: "ok"}
				}
				return a
			}
			url, _ := start(t, up, smallWindow())
			agent := newAgent(t, api, url, stream)
			agent.grow(0, 16)
			res, err := http.Post(url+agent.path(), "application/json", bytes.NewReader(agent.body()))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
				t.Fatal(res.Status, err)
			}
			agent.grow(16, 1)
			return agent.ask().header.Get(proxy.BeforeHeader)
		}
		streamed := func(once bool) proxytest.Answer {
			return proxytest.Answer{Stream: strings.Join(wiretest.Events(api, answer, &wiretest.StreamOptions{Once: once}), "")}
		}
		plain, _ := sjson.Delete(answer, "usage")
		want := sent(proxytest.Answer{Body: plain}, false)
		for name, got := range map[string]string{"whole": sent(proxytest.Answer{Body: answer}, false), "streamed": sent(streamed(false), true), "streamed once": sent(streamed(true), true)} {
			if got != want || want == "" {
				t.Errorf("%s, %s: we count %s after it, else %s", api, name, got, want)
			}
		}
	}
}
