package proxy_test

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/proxy/proxytest"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestUsageOfRounds: a request that became several upstream tells the client the
// input of the last, by which agents read how large their context is, and the
// output of all. Anthropic's API lists each round, the others none.
func TestUsageOfRounds(t *testing.T) {
	const looks = 3
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			t.Run(fmt.Sprintf("%s, stream %t", api, stream), func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				asked := 0
				up.Model = func(q *proxytest.Request) proxytest.Answer {
					if !offered(q) || asked == looks {
						return proxytest.Answer{Text: "ok"}
					}
					asked++
					return lookup(q)
				}
				url, p := start(t, up, smallWindow())
				a := newAgent(t, api, url, stream)
				a.grow(0, 24)
				s := a.ask()
				sent := up.Requests()
				if len(sent) != looks+1 || s.status != 200 || p.Totals().Faults != 0 {
					t.Fatalf("status %d, %d requests upstream: %s", s.status, len(sent), s.raw)
				}
				// The provider of the tests counts a request's tokens and one more, and
				// seven of each answer.
				input, output := int64(sent[looks].Tokens+1), int64(7*(looks+1))
				if s.input != input || s.output != output {
					t.Errorf("input %d and output %d, want %d and %d", s.input, s.output, input, output)
				}
				total := map[string]string{wire.Chat: "usage.total_tokens", wire.Responses: "usage.total_tokens", wire.Gemini: "usageMetadata.totalTokenCount"}[api]
				if total != "" && s.whole.Get(total).Int() != input+output {
					t.Errorf("the total is %d, want %d", s.whole.Get(total).Int(), input+output)
				}
				passes := s.whole.Get("usage.iterations").Array()
				if api != wire.Anthropic {
					if s.whole.Get("usage.iterations").Exists() || s.whole.Get("usageMetadata.iterations").Exists() {
						t.Errorf("the API has no iterations: %s", s.whole.Raw)
					}
					return
				}
				if len(passes) != looks+1 {
					t.Fatalf("%d iterations: %s", len(passes), s.whole.Get("usage").Raw)
				}
				for n, pass := range passes {
					if pass.Get("type").Str != "message" || pass.Get("input_tokens").Int() != int64(sent[n].Tokens+1) || pass.Get("output_tokens").Int() != 7 {
						t.Errorf("iteration %d: %s", n, pass.Raw)
					}
				}
			})
		}
	}
}

// TestJoinedFigures: what belongs to the prompt is the last round's, what was
// written or paid for is summed, and what nobody knows is the last's.
func TestJoinedFigures(t *testing.T) {
	for _, c := range []struct{ api, first, second, want string }{
		{
			wire.Anthropic,
			`{"input_tokens":10,"cache_creation_input_tokens":400,"cache_read_input_tokens":3000,"cache_creation":{"ephemeral_5m_input_tokens":400},"output_tokens":20,"server_tool_use":{"web_search_requests":1},"service_tier":"standard"}`,
			`{"input_tokens":12,"cache_creation_input_tokens":50,"cache_read_input_tokens":3400,"cache_creation":{"ephemeral_5m_input_tokens":50},"output_tokens":30,"server_tool_use":{"web_search_requests":2},"service_tier":"priority"}`,
			`{"input_tokens":12,"cache_creation_input_tokens":50,"cache_read_input_tokens":3400,"cache_creation":{"ephemeral_5m_input_tokens":50},"output_tokens":50,"server_tool_use":{"web_search_requests":3},"service_tier":"priority",` +
				`"iterations":[{"type":"message","input_tokens":10,"cache_creation_input_tokens":400,"cache_read_input_tokens":3000,"cache_creation":{"ephemeral_5m_input_tokens":400},"output_tokens":20},` +
				`{"type":"message","input_tokens":12,"cache_creation_input_tokens":50,"cache_read_input_tokens":3400,"cache_creation":{"ephemeral_5m_input_tokens":50},"output_tokens":30}]}`,
		},
		{
			wire.Chat,
			`{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":5},"cost":0.5}`,
			`{"prompt_tokens":130,"completion_tokens":30,"total_tokens":160,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":6},"cost":0.25}`,
			`{"prompt_tokens":130,"completion_tokens":50,"total_tokens":180,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":11},"cost":0.75}`,
		},
		{
			wire.Responses,
			`{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":120}`,
			`{"input_tokens":130,"input_tokens_details":{"cached_tokens":96},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":6},"total_tokens":160}`,
			`{"input_tokens":130,"input_tokens_details":{"cached_tokens":96},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":11},"total_tokens":180}`,
		},
		{
			wire.Gemini,
			`{"promptTokenCount":100,"candidatesTokenCount":20,"thoughtsTokenCount":7,"totalTokenCount":127}`,
			`{"promptTokenCount":130,"cachedContentTokenCount":90,"candidatesTokenCount":30,"totalTokenCount":160}`,
			`{"promptTokenCount":130,"cachedContentTokenCount":90,"candidatesTokenCount":50,"totalTokenCount":187,"thoughtsTokenCount":7}`,
		},
		{wire.Chat, ``, `{"prompt_tokens":1}`, `{"prompt_tokens":1}`},
		{wire.Chat, `{"prompt_tokens":1}`, ``, `{"prompt_tokens":1}`},
		{wire.Chat, `{"prompt_tokens":1,"completion_tokens":2}`, `null`, `{"prompt_tokens":1,"completion_tokens":2}`},
		{wire.Responses, `{"output_tokens":2}`, `{"input_tokens":9,"output_tokens":null}`, `{"input_tokens":9,"output_tokens":2}`},
	} {
		if got := proxy.JoinedUsage(c.api, c.first, c.second); got != c.want || !gjson.Valid(got) {
			t.Errorf("%s:\n got %s\nwant %s", c.api, got, c.want)
		}
	}
}
