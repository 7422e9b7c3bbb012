package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/proxy/proxytest"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// ignorant is a strict upstream that knows nothing of native compaction, behind a
// proxy that emulates it. The policy has nothing to do: the window is never
// reached.
func ignorant(t *testing.T, o proxy.Options) (*proxytest.Upstream, string) {
	up := strict(t)
	up.Window, up.NoCompaction = 400_000, true
	o.Emulate = []string{wire.Anthropic}
	o.Window = 400_000
	o.Config.Counter = counter()
	url, _ := start(t, up, o)
	return up, url
}

func betas(names ...string) http.Header {
	return http.Header{"Anthropic-Beta": {strings.Join(names, ",")}}
}

// TestThresholdTask: an agent that leaves compaction to its provider ends a long
// task through a provider that has none. Each answer that compacts begins with
// the block, and what the upstream gets stays below the threshold.
func TestThresholdTask(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			t.Parallel()
			up, url := ignorant(t, proxy.Options{})
			up.Model = steps(60, true)
			a := newAgent(t, wire.Anthropic, url, stream)
			a.think = true
			a.header = betas(native.BetaCompact, "another-beta")
			a.native = `,"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}}]}`
			runTask(t, a, 60)
			blocks := 0
			for _, element := range a.history {
				if gjson.Get(element, "content.0.type").Str == "compaction" {
					blocks++
				}
			}
			requests := up.Requests()
			for _, q := range requests {
				if q.Refused != "" {
					t.Errorf("request %d was refused: %s", q.N, q.Refused)
				}
				if q.Tokens > 50_000 {
					t.Errorf("request %d has %d tokens", q.N, q.Tokens)
				}
				if got := q.Header.Get("Anthropic-Beta"); got != "another-beta" {
					t.Errorf("request %d names the betas %q", q.N, got)
				}
			}
			last := string(requests[len(requests)-1].Body)
			if !strings.Contains(last, "Never change a file.") {
				t.Error("the user's rule is not in the last request")
			}
			if blocks < 3 {
				t.Errorf("%d compactions", blocks)
			}
		})
	}
}
