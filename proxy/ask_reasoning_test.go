package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
)

// chatMessages are steps of an agent whose messages carry a member each, which member makes.
func chatMessages(steps int, member func(step int) string) (messages []string) {
	messages = append(messages, `{"role":"system","content":"You count lamps."}`, `{"role":"user","content":"Count the lamps. Never touch lamp 9."}`)
	for n := range steps {
		lamp := fmt.Sprintf("lamp %d: %s", n, strings.Repeat(fmt.Sprintf("row %d is lit ", n), 180))
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":"","tool_calls":[{"id":"call_%d","type":"function","function":{"name":"look","arguments":"{\"lamp\":%d}"}}]%s}`, n, n, member(n)),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%s}`, n, rawjson.Quote(lamp)))
	}
	return messages
}

func chatBody(messages []string, stream bool) []byte {
	return fmt.Appendf(nil, `{"model":"lamp-counter","stream":%t,"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"lamp":{"type":"integer"}}}}}],"messages":[%s]}`,
		stream, strings.Join(messages, ","))
}

// demanding refuses messages in the assistant's role that lack a member which its model wrote.
func demanding(path string, refusal string) func([]byte) string {
	return func(body []byte) string {
		for _, m := range gjson.GetBytes(body, "messages").Array() {
			if m.Get("role").Str == "assistant" && !strings.HasPrefix(m.Get(path).String(), "thought of lamp") {
				return refusal
			}
		}
		return ""
	}
}

// TestReasoningOnEveryMessage: servers that demand reasoning on every message of the model get
// none without it, and no refusal is needed where the conversation shows it. Where it does not,
// one refusal is enough, in any words, for all conversations with the model.
func TestReasoningOnEveryMessage(t *testing.T) {
	text := func(name string) func(int) string {
		return func(n int) string { return fmt.Sprintf(`,%q:"thought of lamp %d"`, name, n) }
	}
	for _, k := range []struct {
		name, path, refusal string
		member              func(int) string
		refused             int
	}{
		{"reasoning_content", "reasoning_content", "The `reasoning_content` in the thinking mode must be passed back to the API.", text("reasoning_content"), 0},
		{"reasoning", "reasoning", "messages: field required", text("reasoning"), 0},
		{"details", "reasoning_details.0.text", "reasoning details are missing", func(n int) string {
			return fmt.Sprintf(`,"reasoning_details":[{"type":"reasoning.text","text":"thought of lamp %d","signature":"c2ln"}]`, n)
		}, 0},
		{"blocks", "thinking_blocks.0.thinking", "Expected `thinking`, but found `text`", func(n int) string {
			return fmt.Sprintf(`,"thinking_blocks":[{"type":"thinking","thinking":"thought of lamp %d","signature":"c2ln"}]`, n)
		}, 0},
		{"a member that is not known", "musings", "assistant message 2 is not what the model wrote", text("musings"), 1},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", k.name, stream), func(t *testing.T) {
				up := proxytest.New(t)
				up.Refuse = demanding(k.path, k.refusal)
				documents := &store.Memory{}
				url, p := start(t, up, proxy.Options{Window: 16_000, Config: palimpsest.Config{Store: store.Tenant{Documents: documents}}, NoTools: true})
				changed := 0
				for _, name := range []string{"first", "second"} {
					for n := range 30 {
						res := post(t, url+"/v1/chat/completions", chatBody(chatMessages(n, k.member), stream), http.Header{proxy.ThreadHeader: {name}})
						if res.StatusCode != 200 || res.Header.Get(proxy.ReasonHeader) == "refused" {
							t.Fatalf("%s conversation, step %d: status %d, %q", name, n, res.StatusCode, res.Header.Get(proxy.ReasonHeader))
						}
						if res.Header.Get(proxy.ActionHeader) != proxy.Passed {
							changed++
						}
						res.Body.Close()
					}
				}
				refused := refusedBy(up)
				if changed < 10 || refused != k.refused || p.Totals().Faults != 0 {
					t.Errorf("%d of 60 requests were changed, %d refused, totals %+v", changed, refused, p.Totals())
				}
				up.Forget() // the rule outlives the process, and is kept of the upstream and model alone
				other, _ := start(t, up, proxy.Options{Window: 16_000, Config: palimpsest.Config{Store: store.Tenant{Documents: documents}}, NoTools: true})
				post(t, other+"/v1/chat/completions", chatBody(chatMessages(29, k.member), stream), nil).Body.Close()
				if last := up.Requests(); len(last) != 1 || last[0].Refused != "" {
					t.Errorf("after a restart: %d requests, refused %q", len(last), last[0].Refused)
				}
			})
		}
	}
}

// TestReasoningDoesNotHelp: a provider that takes nothing of ours is asked for that form once.
func TestReasoningDoesNotHelp(t *testing.T) {
	up := proxytest.New(t)
	up.Refuse = func(body []byte) string {
		if strings.Contains(string(body), "[Context Summary") {
			return "no summaries"
		}
		return ""
	}
	url, p := start(t, up, proxy.Options{Window: 16_000, NoTools: true})
	member := func(int) string { return `,"musings":"x"` }
	for n := 20; n < 24; n++ {
		post(t, url+"/v1/chat/completions", chatBody(chatMessages(n, member), false), nil).Body.Close()
	}
	if got := len(up.Requests()); got != 3+2+2+2 || p.Totals().Faults != 4 {
		t.Errorf("%d requests, totals %+v", got, p.Totals())
	}
}

// thinkingSteps are steps of an agent at Anthropic whose messages carry thinking.
func thinkingSteps(steps int, thinking bool) []byte {
	messages := []string{`{"role":"user","content":"Count the lamps. Never touch lamp 9."}`}
	for n := range steps {
		said := fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"look","input":{"lamp":%d}}`, n, n)
		if thinking {
			said = fmt.Sprintf(`{"type":"thinking","thinking":"lamp %d is next","signature":"c2ln"},`, n) + said
		}
		messages = append(messages, `{"role":"assistant","content":[`+said+`]}`,
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%s}]}`, n, rawjson.Quote(strings.Repeat(fmt.Sprintf("row %d is lit ", n), 180))))
	}
	return fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":100,"tools":[{"name":"look","input_schema":{"type":"object"}}],"messages":[%s]}`, strings.Join(messages, ","))
}

// TestReasoningTakenOut: where the provider takes neither our request nor the client's own for their
// reasoning, the one without it is told as what it is, and not as a fault of ours.
func TestReasoningTakenOut(t *testing.T) {
	up := proxytest.New(t)
	up.Refuse = func(body []byte) string {
		if strings.Contains(string(body), `"thinking":"lamp`) {
			return "messages.1.content.0: Invalid `signature` in `thinking` block"
		}
		return ""
	}
	url, p := start(t, up, proxy.Options{Window: 16_000, NoTools: true})
	res := post(t, url+"/v1/messages", thinkingSteps(30, true), http.Header{proxy.ThreadHeader: {"lamps"}})
	res.Body.Close()
	h, totals, sent := res.Header, p.Totals(), up.Requests()
	if res.StatusCode != 200 || len(sent) != 3 || h.Get(proxy.ReasonHeader) != "without-reasoning" || h.Get(proxy.ThreadHeader) == "" || h.Get(proxy.SentHeader) == "" {
		t.Errorf("status %d after %d requests: %v", res.StatusCode, len(sent), h)
	}
	if totals.Faults != 0 || totals.Edited != 1 || totals.TokensSent == 0 || totals.TokensBefore < totals.TokensSent {
		t.Errorf("totals: %+v", totals)
	}
}

// TestNoReasoningToTakeOut: a request without reasoning is not sent the same again.
func TestNoReasoningToTakeOut(t *testing.T) {
	up := proxytest.New(t)
	up.Refuse = func([]byte) string { return "the thinking budget is too small" }
	url, _ := start(t, up, proxy.Options{Window: 1_000_000, NoTools: true})
	res := post(t, url+"/v1/messages", thinkingSteps(30, false), nil)
	res.Body.Close()
	if sent := up.Requests(); res.StatusCode != 400 || len(sent) != 1 {
		t.Errorf("status %d after %d requests", res.StatusCode, len(sent))
	}
}
