package proxy_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestItemReferences: a history whose calls are only named, as the Vercel AI SDK sends it where the
// provider keeps responses, passes as it is: what answers a call that is not there cannot be moved.
func TestItemReferences(t *testing.T) {
	up := proxytest.New(t)
	url, p := start(t, up, smallWindow())
	a := newAgent(t, wire.Responses, url, false)
	a.stored = true
	for n := range 30 {
		a.grow(n, 1)
		call := len(a.history) - 2
		if gjson.Get(a.history[call], "type").Str != "function_call" {
			t.Fatalf("no call: %s", a.history[call])
		}
		a.history[call] = fmt.Sprintf(`{"type":"item_reference","id":"fc_%d"}`, n)
		for _, path := range []string{a.path(), "/v1/responses/input_tokens"} {
			up.Forget()
			want := a.body()
			res := post(t, url+path, want, nil)
			if got := up.Requests(); res.StatusCode != 200 || res.Header.Get(proxy.ActionHeader) != proxy.Passed || len(got) != 1 || !bytes.Equal(got[0].Body, want) {
				t.Fatalf("%s after %d results: status %d, %q %q", path, n+1, res.StatusCode, res.Header.Get(proxy.ActionHeader), res.Header.Get(proxy.ReasonHeader))
			}
			if why := res.Header.Get(proxy.ReasonHeader); n > 10 && why != "server-side-history" {
				t.Errorf("%s after %d results: it passed for %q", path, n+1, why)
			}
		}
	}
	// What does not fit is the client's to deal with, in the provider's words.
	up.Model = func(*proxytest.Request) proxytest.Answer {
		return proxytest.Answer{Status: 400, Body: `{"error":{"message":"This model's maximum context length is 30000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`}
	}
	up.Forget()
	s, err := a.try()
	if err != nil || s.status != 400 || len(up.Requests()) != 1 || p.Totals().Faults != 0 || p.Totals().Compactions != 0 {
		t.Errorf("status %d after %d requests, %v, %+v", s.status, len(up.Requests()), err, p.Totals())
	}
}
