package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestLargeSession: a session of 34 MB of pictures goes on, whether the window is known or not, and whether they are
// results, or the user's own. G5
func TestLargeSession(t *testing.T) {
	data := strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAADwAAAA8", 1<<20/32)
	for name, o := range map[string]proxy.Options{
		"known window":   {Window: 1_000_000, Config: palimpsest.Config{Counter: counter()}},
		"unknown window": {Config: palimpsest.Config{Counter: counter()}},
	} {
		own := o.Window == 0
		t.Run(name, func(t *testing.T) {
			up := proxytest.New(t)
			up.Model = func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: "well"} } // the server refuses more than 32 MB
			url, p := start(t, up, o)
			a := newAgent(t, wire.Anthropic, url, false)
			a.user("Look at all of them.")
			picture := fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`, data)
			for n := range 34 {
				call := fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"shot_%d","name":"read_file","input":{"path":"%d.png"}}]}`, n, n)
				result := fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"shot_%d","content":[%s]}]}`, n, picture)
				if own {
					call, result = `{"role":"assistant","content":"And the next?"}`, `{"role":"user","content":[`+picture+`]}`
				}
				a.history = append(a.history, call, result)
			}
			for n := range 2 {
				if s := a.peek(); s.status != 200 {
					t.Errorf("step %d: status %d, %s %s: %.300s", n, s.status, s.action(), s.header.Get(proxy.ReasonHeader), s.raw)
				}
				a.grow(50+n, 1)
			}
			sent := up.Requests()
			for _, q := range sent {
				if n := strings.Count(string(q.Body), `"type":"image"`); n < 20 || n > 24 {
					t.Errorf("%d pictures were sent", n)
				}
			}
			if got := p.Totals(); len(sent) != 2 || got.Compactions != 1 || got.Faults != 0 {
				t.Errorf("%d requests, %+v", len(sent), got)
			}
		})
	}
}
