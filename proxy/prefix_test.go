package proxy_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
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
		if strings.Contains(list[i], "cache_control") {
			list[i] = marks.ReplaceAllString(list[i], "")
		}
	}
	return list
}

// prefixes checks that each request goes on where the last one ended, apart from
// as many as may break. It returns the share of bytes that a cache would have
// read.
func prefixes(t testing.TB, requests []*proxytest.Request, allowed int) float64 {
	t.Helper()
	breaks, kept := breaks(requests)
	if len(breaks) > allowed {
		t.Errorf("%d requests part from the one before, %d may: %v", len(breaks), allowed, breaks)
	}
	return kept
}

// breaks finds the requests that do not go on where the last one ended.
func breaks(requests []*proxytest.Request) (list []int, kept float64) {
	var last []string
	same, all := 0, 0
	for i, q := range requests {
		now := elements(q)
		n := 0
		for n < len(last) && n < len(now) && last[n] == now[n] {
			n++
		}
		if n < len(last)-1 { // what ends a request may grow in the next one
			list = append(list, i+1)
		}
		for i, e := range now {
			if all += len(e); i < n {
				same += len(e)
			}
		}
		last = now
	}
	return list, float64(same) / float64(max(all, 1))
}
