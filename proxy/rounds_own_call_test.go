package proxy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// events is a stream of events, each with its type as its name.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		if _, rest, named := strings.Cut(d, `{"type":"`); named {
			name, _, _ := strings.Cut(rest, `"`)
			b.WriteString("event: " + name + "\n")
		}
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// lookingUp answers the first request that offers our tools, and the others with "ok".
func lookingUp(up *proxytest.Upstream, first proxytest.Answer) {
	up.Model = func(q *proxytest.Request) proxytest.Answer {
		if _, tools := last(q); offered(q) && !slices.Contains(tools, recall.RecallTool) {
			return first
		}
		return proxytest.Answer{Text: "ok"}
	}
}

const (
	anthropicBegin  = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}`
	responsesBegin  = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}`
	searchCall      = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"bolts"}}`
	searchResult    = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://bolts.example","title":"Bolts","encrypted_content":"c2ln"}]}`
	ownUse          = `{"type":"tool_use","id":"ours_1","name":"recall","input":{"query":"code"}}`
	shellCall       = `{"type":"shell_call","id":"sh_1","call_id":"call_sh","status":"completed","action":{"commands":["ls"]},"environment":{"type":"container_reference","container_id":"cntr_1"}}`
	shellOutput     = `{"type":"shell_call_output","id":"sho_1","call_id":"call_sh","status":"completed","output":[{"stdout":"bolts.txt","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`
	ownFunction     = `{"type":"function_call","id":"fc_1","call_id":"ours_1","name":"recall","arguments":"{\"query\":\"code\"}","status":"completed"}`
	anthropicEnding = `"usage":{"input_tokens":9,"output_tokens":9}`
)

// TestHostedBesideOwnCall: what ran at the provider reaches the client once, whole and streamed, when the same
// answer calls a tool of ours, which does not; the provider gets both back.
func TestHostedBesideOwnCall(t *testing.T) {
	for _, c := range []struct {
		api     string
		first   proxytest.Answer
		outputs []string
	}{
		{wire.Anthropic, proxytest.Answer{Status: 200, Body: `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` + searchCall + `,` + searchResult + `,{"type":"text","text":"I look."},` + ownUse + `],"stop_reason":"tool_use","stop_sequence":null,` + anthropicEnding + `}`},
			[]string{"srvtoolu_1", "https://bolts.example", "I look."}},
		{wire.Anthropic, proxytest.Answer{Stream: events(anthropicBegin,
			`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"bolts\"}"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":`+searchResult+`}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"I look."}}`, `{"type":"content_block_stop","index":2}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"ours_1","name":"recall","input":{}}}`, `{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"code\"}"}}`, `{"type":"content_block_stop","index":3}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)},
			[]string{"https://bolts.example", "I look."}},
		{wire.Responses, proxytest.Answer{Status: 200, Body: `{"id":"resp_1","object":"response","status":"completed","output":[` + shellCall + `,` + shellOutput + `,` + ownFunction + `],` + anthropicEnding + `}`},
			[]string{"sho_1", "bolts.txt"}},
		{wire.Responses, proxytest.Answer{Stream: events(responsesBegin,
			`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":`+shellCall+`}`, `{"type":"response.output_item.done","sequence_number":2,"output_index":0,"item":`+shellCall+`}`,
			`{"type":"response.output_item.added","sequence_number":3,"output_index":1,"item":`+strings.Replace(shellOutput, "bolts.txt", "", 1)+`}`, `{"type":"response.output_item.done","sequence_number":4,"output_index":1,"item":`+shellOutput+`}`,
			`{"type":"response.output_item.added","sequence_number":5,"output_index":2,"item":`+ownFunction+`}`, `{"type":"response.output_item.done","sequence_number":6,"output_index":2,"item":`+ownFunction+`}`,
			`{"type":"response.completed","sequence_number":7,"response":{"id":"resp_1","object":"response","status":"completed","output":[`+shellCall+`,`+shellOutput+`,`+ownFunction+`],`+anthropicEnding+`}}`)},
			[]string{"bolts.txt"}},
	} {
		up := strict(t)
		lookingUp(up, c.first)
		url, p := start(t, up, smallWindow())
		a := newAgent(t, c.api, url, c.first.Stream != "")
		a.grow(0, 24)
		s := a.peek0()
		raw := string(s.raw)
		if s.status != 200 || !strings.Contains(raw, "ok") || strings.Contains(raw, "ours_1") || strings.Contains(raw, `"recall"`) || p.Totals().Faults != 0 {
			t.Errorf("%s, stream %t: status %d, %+v: %s", c.api, a.stream, s.status, p.Totals(), raw)
		}
		sent := up.Requests()
		back := string(sent[len(sent)-1].Body)
		for _, output := range c.outputs {
			// A stream of Responses says each item again where it ends.
			most := map[bool]int{true: 2, false: 1}[a.stream && c.api == wire.Responses]
			if output == "srvtoolu_1" {
				most = 2 // the call and its result
			}
			if n := strings.Count(raw, output); n == 0 || n > most || !strings.Contains(back, output) {
				t.Errorf("%s, stream %t: %q stands %d times in the answer, sent back %t: %s", c.api, a.stream, output, n, strings.Contains(back, output), raw)
			}
		}
		if len(sent) != 2 || !strings.Contains(back, "ours_1") || sent[1].Refused != "" {
			t.Errorf("%s, stream %t: %d requests, %q", c.api, a.stream, len(sent), sent[len(sent)-1].Refused)
		}
	}
}

// TestHalfOwnCall: where a stream can no longer be read in the middle of a call of ours, the call does not reach
// the client, and all the rest does.
func TestHalfOwnCall(t *testing.T) {
	const broken = `{"broken": [`
	for api, stream := range map[string][]string{
		wire.Anthropic: {anthropicBegin, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I look."}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"ours_1","name":"recall","input":{}}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"co"}}`,
			broken, `{"type":"ping","behind":true}`},
		wire.Chat: {`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"I look."},"finish_reason":null}]}`,
			`{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"ours_1","type":"function","function":{"name":"recall","arguments":"{\"query\":\"co"}}]},"finish_reason":null}]}`,
			broken, `{"behind":true}`},
		wire.Responses: {responsesBegin, `{"type":"response.output_text.delta","sequence_number":1,"output_index":0,"content_index":0,"item_id":"msg_1","delta":"I look."}`,
			`{"type":"response.output_item.added","sequence_number":2,"output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"ours_1","name":"recall","arguments":"","status":"in_progress"}}`, `{"type":"response.function_call_arguments.delta","sequence_number":3,"output_index":1,"item_id":"fc_1","delta":"{\"query\":\"co"}`,
			broken, `{"type":"response.in_progress","behind":true}`},
	} {
		up, faults := strict(t), &faultEvents{}
		lookingUp(up, proxytest.Answer{Stream: events(stream...)})
		url, _ := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Events: faults}})
		a := newAgent(t, api, url, true)
		a.grow(0, 24)
		raw := string(a.peek0().raw)
		for _, whole := range []string{"I look.", broken, `"behind":true`} {
			if !strings.Contains(raw, whole) {
				t.Errorf("%s: %s is missing: %s", api, whole, raw)
			}
		}
		if strings.Contains(raw, "ours_1") || strings.Contains(raw, `"recall"`) || strings.Contains(raw, "co\"") {
			t.Errorf("%s: half a call of ours got out: %s", api, raw)
		}
		faults.mu.Lock()
		if !slices.Contains(faults.where, "proxy_answer") {
			t.Errorf("%s: the events tell of %q", api, faults.where)
		}
		faults.mu.Unlock()
	}
}
