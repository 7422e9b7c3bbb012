package proxy_test

import (
	"regexp"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy/proxytest"
	"github.com/palimpsest-ai/palimpsest/wire"
)

var arrays = map[string]string{wire.Anthropic: "messages", wire.Chat: "messages", wire.Responses: "input", wire.Gemini: "contents"}

var marks = regexp.MustCompile(`,?"cache_control":\{[^{}]*\}`)

// elements are what a provider's cache sees of a request, in order: tools and
// system first, without the cache marks themselves.
func elements(q *proxytest.Request) []string {
	v := gjson.ParseBytes(q.Body)
	list := []string{v.Get("tools").Raw, v.Get("system").Raw + v.Get("instructions").Raw + v.Get("systemInstruction").Raw}
	for _, m := range v.Get(arrays[q.API]).Array() {
		list = append(list, m.Raw)
	}
	for i := range list {
		list[i] = marks.ReplaceAllString(list[i], "")
	}
	return list
}

// prefixes checks that each request goes on where the last one ended, apart from
// as many as there were compactions. It returns the share of bytes that a cache
// would have read.
func prefixes(t testing.TB, requests []*proxytest.Request, compactions int) float64 {
	t.Helper()
	var last []string
	breaks, same, all := 0, 0, 0
	for _, q := range requests {
		now := elements(q)
		n := 0
		for n < len(last) && n < len(now) && last[n] == now[n] {
			n++
		}
		if n < len(last) {
			breaks++
			if breaks > compactions {
				t.Errorf("request %d parts from the one before at element %d of %d, after %d compactions", q.N, n, len(last), compactions)
			}
		}
		for i, e := range now {
			if all += len(e); i < n {
				same += len(e)
			}
		}
		last = now
	}
	return float64(same) / float64(max(all, 1))
}
