package proxy_test

import (
	"fmt"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
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
