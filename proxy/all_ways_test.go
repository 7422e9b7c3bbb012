package proxy_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestAllWays: whatever ways to compact and to leave its history to the provider
// a client mixes, and whenever the proxy is started anew, no request is refused,
// the provider sees nothing of ours, and always the user's last words.
func TestAllWays(t *testing.T) {
	t.Parallel()
	var lookups, compactions atomic.Int64
	property.Few(t, 25, func(rt *rapid.T) {
		up := plainUpstream(t)
		up.Window = 24_000
		up.Model = func(q *proxytest.Request) proxytest.Answer {
			a := proxytest.Answer{Text: fmt.Sprintf("answer %d", q.N)}
			switch {
			case q.N%4 == 2 && slices.ContainsFunc(q.Prompt.Tools, func(t prompt.Tool) bool { return t.Name == "recall" }):
				lookups.Add(1)
				a.Calls = []thread.ToolCall{{ID: fmt.Sprintf("call_%d", q.N), Name: "recall", Arguments: `{"query":"words"}`}}
			case q.N%3 == 1:
				a.Calls = []thread.ToolCall{{ID: fmt.Sprintf("call_%d", q.N), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"part_%03d.go"}`, q.N)}}
			}
			return a
		}
		kept := &store.Memory{}
		begin := func() (*httptest.Server, *proxy.Proxy) {
			p, err := proxy.New(&proxy.Options{OpenAI: up.URL + "/v1", Window: up.Window, Emulate: []string{"openai"},
				Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}}})
			if err != nil {
				rt.Fatal(err)
			}
			return httptest.NewServer(p), p
		}
		server, p := begin()
		defer func() { server.Close() }()
		a := newAgent(t, wire.Responses, server.URL, rapid.Bool().Draw(rt, "stream"))
		a.stored = true
		previous, words := "", 0
		var open []thread.ToolCall
		say := func() {
			if len(open) > 0 {
				a.results(open, partOf)
				open = nil
			} else {
				words++
				a.user(fmt.Sprintf("words %d. %s", words, strings.Repeat("and more of it ", 200)))
			}
		}
		ask := func(extra string) {
			a.native = extra
			if previous != "" {
				a.native += fmt.Sprintf(`,"previous_response_id":%q`, previous)
			}
			s, err := a.try()
			if err != nil || s.status != 200 {
				rt.Fatalf("%v %d %.400s", err, s.status, s.raw)
			}
			all := responseID.FindAllSubmatch(s.raw, -1)
			if id := string(all[len(all)-1][1]); previous != "" {
				previous, a.history = id, nil
			} else {
				a.take(s)
			}
			open = s.calls
			requests := up.Requests()
			last := string(requests[len(requests)-1].Body)
			if gjson.Get(last, "previous_response_id").Exists() {
				return // the provider holds the words
			}
			if !strings.Contains(last, fmt.Sprintf("words %d.", words)) {
				rt.Fatalf("the user's last words, %d, are not in %.600s", words, last)
			}
		}
		for range rapid.IntRange(5, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "way") {
			case 0, 1, 2, 3:
				say()
				ask("")
			case 4, 5:
				say()
				ask(`,"context_management":[{"type":"compaction","compact_threshold":8000}]`)
			case 6: // compacts by a trigger, and keeps what Codex keeps, or nothing
				if len(open) > 0 || len(a.history) == 0 || previous != "" {
					continue
				}
				item := a.triggered()[0].Raw
				if rapid.Bool().Draw(rt, "keeps") {
					a.history = append(retainedWords(a.history), item)
				} else {
					a.history = []string{item}
				}
			case 7: // drops what stands before the newest compaction
				for i := len(a.history) - 1; i >= 0; i-- {
					if gjson.Get(a.history[i], "type").Str == "compaction" {
						a.history = a.history[i:]
						break
					}
				}
			case 8: // leaves its history to the provider from here on
				if previous == "" && words > 0 {
					say()
					a.native = ""
					s, err := a.try()
					if err != nil || s.status != 200 {
						rt.Fatalf("%v %d %.400s", err, s.status, s.raw)
					}
					all := responseID.FindAllSubmatch(s.raw, -1)
					previous, a.history, open = string(all[len(all)-1][1]), nil, s.calls
				}
			case 9:
				if p.Totals().Faults > 0 {
					rt.Fatalf("%+v", p.Totals())
				}
				server.Close()
				server, p = begin()
				a.url = server.URL
			}
		}
		for _, q := range up.Requests() {
			if q.Refused != "" || strings.Contains(string(q.Body), "palimpsest.c1.") {
				rt.Fatalf("request %d was refused: %.400s", q.N, q.Refused)
			}
		}
		if p.Totals().Faults > 0 {
			rt.Fatalf("%+v", p.Totals())
		}
		compactions.Add(p.Totals().Compactions)
	})
	if lookups.Load() == 0 || compactions.Load() == 0 {
		t.Errorf("%d lookups, %d compactions: nothing was tried", lookups.Load(), compactions.Load())
	}
}
