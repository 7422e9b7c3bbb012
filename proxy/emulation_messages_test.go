package proxy_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// ignorant is a strict upstream that knows nothing of native compaction, behind a
// proxy that emulates it. Where the options name no window the policy has nothing
// to do.
func ignorant(t *testing.T, o proxy.Options) (*proxytest.Upstream, string) {
	up, url, _ := ignorantOf(t, o)
	return up, url
}

func ignorantOf(t *testing.T, o proxy.Options) (*proxytest.Upstream, string, *proxy.Proxy) {
	up := strict(t)
	if o.Window == 0 {
		o.Window = 400_000
	}
	up.Window, up.NoCompaction = o.Window, true
	o.Emulate = []string{wire.Anthropic}
	o.Config.Counter = counter()
	url, p := start(t, up, o)
	return up, url, p
}

func betas(names ...string) http.Header {
	return http.Header{"Anthropic-Beta": {strings.Join(names, ",")}}
}

// TestThresholdTask: an agent that leaves compaction to its provider ends a long
// task through a provider that has none. Each answer that compacts begins with
// the block, and what the upstream gets stays below the threshold.
func TestThresholdTask(t *testing.T) {
	for _, stream := range ways(t) {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			t.Parallel()
			up, url := ignorant(t, proxy.Options{})
			up.Model = steps(60, true)
			a := newAgent(t, wire.Anthropic, url, stream)
			a.think, a.large = true, true
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
			prefixes(t, requests, blocks)
			if blocks < 3 {
				t.Errorf("%d compactions", blocks)
			}
		})
	}
}

// decoded is the JSON of an answer, whole or assembled of its stream.
func (a *agent) decoded(s said) gjson.Result {
	a.t.Helper()
	if a.stream && s.status == http.StatusOK {
		return gjson.Parse(a.assembled(s.raw))
	}
	return gjson.ParseBytes(s.raw)
}

// TestClearedTask: an agent that has old results and thinking cleared ends its
// task; the answers tell what was cleared, and the models that bind their
// thinking get none that does not hold any more.
func TestClearedTask(t *testing.T) {
	for _, stream := range ways(t) {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			t.Parallel()
			up, url, p := ignorantOf(t, proxy.Options{})
			up.Model = steps(40, true)
			a := newAgent(t, wire.Anthropic, url, stream)
			a.think, a.model = true, "claude-sonnet-5-5"
			a.header = betas(native.BetaEdits)
			a.native = `,"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"},{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":15000},"keep":{"type":"tool_uses","value":4},"clear_at_least":{"type":"input_tokens","value":2500}}]}`
			runTask(t, a, 40)
			s := a.peek()
			applied := a.decoded(s).Get("context_management.applied_edits").Array()
			if len(applied) != 1 || applied[0].Get("cleared_tool_uses").Int() < 30 || applied[0].Get("cleared_input_tokens").Int() < 25_000 {
				t.Errorf("applied: %v", applied)
			}
			if s.action() != proxy.Emulated {
				t.Errorf("the action is %q", s.action())
			}
			if totals := p.Totals(); totals.Edited < 20 || totals.TokensBefore < 2*totals.TokensSent || totals.Faults != 0 {
				t.Errorf("totals: %+v", totals)
			}
			for _, q := range up.Requests() {
				if q.Refused != "" || q.Tokens > 15_500 || q.Header.Get("Anthropic-Beta") != "" {
					t.Errorf("request %d: %d tokens, betas %q, %s", q.N, q.Tokens, q.Header.Get("Anthropic-Beta"), q.Refused)
				}
			}
		})
	}
}

// TestBelowEdits: where nothing is due the request goes on with the bytes that the
// client sent, without what the upstream does not know.
func TestBelowEdits(t *testing.T) {
	up, url := ignorant(t, proxy.Options{})
	a := newAgent(t, wire.Anthropic, url, false)
	a.grow(0, 3)
	want := a.body()
	a.native = `,"context_management":{"edits":[{"type":"clear_tool_uses_20250919"},{"type":"compact_20260112"}]}`
	s := a.peek()
	if q := up.Requests()[0]; string(q.Body) != string(want) {
		t.Errorf("the upstream got\n%s\nwant\n%s", q.Body, want)
	}
	whole := a.decoded(s)
	if whole.Get("context_management.applied_edits").Raw != "[]" || whole.Get("usage.iterations.#").Int() != 1 || whole.Get("usage.iterations.0.input_tokens").Int() != whole.Get("usage.input_tokens").Int() {
		t.Errorf("the answer: %s", s.raw)
	}
}

// TestBetaAlone: clients name the betas with every request; the upstream hears of
// none, and the usage is told as they expect it.
func TestBetaAlone(t *testing.T) {
	for _, stream := range []bool{false, true} {
		up, url := ignorant(t, proxy.Options{})
		a := newAgent(t, wire.Anthropic, url, stream)
		a.header = http.Header{"Anthropic-Beta": {native.BetaCompact + ", one", "two," + native.BetaOnDemand}}
		a.user("Hello.")
		s := a.peek()
		q := up.Requests()[0]
		if s.status != http.StatusOK || !slices.Equal(q.Header.Values("Anthropic-Beta"), []string{"one,two"}) || string(q.Body) != string(a.body()) {
			t.Errorf("%d, the upstream got the betas %q", s.status, q.Header.Values("Anthropic-Beta"))
		}
		if got := a.decoded(s).Get("usage.iterations.0.type").Str; got != "message" {
			t.Errorf("iterations: %s", s.raw)
		}
	}
}

// TestPause: with pause_after_compaction nothing is asked of the model; the client
// goes on from the block, with the messages that it wants to keep behind it.
func TestPause(t *testing.T) {
	for _, stream := range []bool{false, true} {
		up, url := ignorant(t, proxy.Options{})
		a := newAgent(t, wire.Anthropic, url, stream)
		a.native = `,"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000},"pause_after_compaction":true,"instructions":"Keep the codes of the parts."}]}`
		a.large = true
		a.grow(0, 24)
		kept := a.history[len(a.history)-2:]
		s := a.ask()
		whole := a.decoded(s)
		if len(up.Requests()) != 0 || s.stop != "compaction" || whole.Get("content.#").Int() != 1 || !native.IsToken(whole.Get("content.0.encrypted_content").Str) {
			t.Fatalf("%d requests, %s", len(up.Requests()), s.raw)
		}
		if whole.Get("usage.input_tokens").Int() != 0 || whole.Get("usage.iterations.0.type").Str != "compaction" {
			t.Errorf("usage: %s", whole.Get("usage").Raw)
		}
		if content := whole.Get("content.0.content").Str; !strings.Contains(content, "Never change a file.") || !strings.Contains(content, "part_023.go") {
			t.Errorf("the summary has neither the rule nor the newest result:\n%s", content)
		}
		a.history = append(a.history, kept...)
		if s = a.ask(); s.status != http.StatusOK || s.stop != "end_turn" {
			t.Fatalf("%d %s", s.status, s.raw)
		}
		q := up.Requests()[0]
		messages := gjson.GetBytes(q.Body, "messages").Array()
		if len(messages) != 3 || !strings.HasPrefix(messages[0].Get("content.0.text").Str, native.RecapOpening) || messages[0].Get("role").Str != "user" || messages[1].Raw != kept[0] {
			t.Errorf("the upstream got %d messages: %.2000s", len(messages), q.Body)
		}
	}
}

// TestOnDemand: a summary is asked for, its block takes the place of the messages
// that it was made of, and the upstream gets neither the request nor the block.
func TestOnDemand(t *testing.T) {
	for _, stream := range []bool{false, true} {
		up, url := ignorant(t, proxy.Options{})
		a := newAgent(t, wire.Anthropic, url, stream)
		a.header = betas(native.BetaOnDemand)
		a.grow(0, 12)
		sent := len(a.history)
		a.native = `,"compaction":{"type":"summarize","instructions":"Keep the codes."}`
		s := a.peek()
		whole := a.decoded(s)
		block := whole.Get("content.0")
		if len(up.Requests()) != 0 || s.status != http.StatusOK || whole.Get("stop_reason").Str != "compaction" || whole.Get("content.#").Int() != 1 || !native.IsToken(block.Get("signature").Str) || block.Get("encrypted_content").Exists() {
			t.Fatalf("%d requests, %s", len(up.Requests()), s.raw)
		}
		if stream && strings.Contains(string(s.raw), "content_block_delta") {
			t.Error("the block comes in deltas")
		}
		a.native = ""
		a.grow(12, 2)
		a.history = append([]string{`{"role":"assistant","content":` + whole.Get("content").Raw + `}`}, a.history[sent:]...)
		for range 2 {
			if s = a.ask(); s.status != http.StatusOK {
				t.Fatalf("%d %s", s.status, s.raw)
			}
			a.user("Go on.")
		}
		requests := up.Requests()
		first := gjson.GetBytes(requests[0].Body, "messages")
		if got := first.Get("0.content.0.text").Str; got != native.RecapOpening+block.Get("content").Str || first.Get("#").Int() != 5 {
			t.Errorf("the upstream got %.500s", first.Raw)
		}
		for i, m := range first.Array() {
			if again := gjson.GetBytes(requests[1].Body, fmt.Sprint("messages.", i)).Raw; unmarked(again) != unmarked(m.Raw) {
				t.Errorf("message %d was %s and is %s", i, m.Raw, again)
			}
		}
		// Once more: the summary goes on from the first one.
		a.native = `,"compaction":{"type":"summarize"}`
		if s = a.peek(); !strings.Contains(a.decoded(s).Get("content.0.content").Str, "Never change a file.") {
			t.Errorf("the second summary lost the rule: %s", s.raw)
		}
	}
}

func unmarked(raw string) string {
	return strings.ReplaceAll(raw, `,"cache_control":{"type":"ephemeral"}`, "")
}

// TestRefusals: what the API refuses is refused with its body, and nothing is sent.
func TestRefusals(t *testing.T) {
	up, url := ignorant(t, proxy.Options{})
	ask := func(members, messages string) (int, gjson.Result) {
		res := post(t, url+"/v1/messages", []byte(`{"model":"m","max_tokens":99,`+members+`"messages":[`+messages+`]}`), nil)
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, gjson.ParseBytes(body)
	}
	const hi = `{"role":"user","content":"hi"}`
	_, made := ask(`"compaction":{"type":"summarize"},`, hi)
	block := made.Get("content.0").Raw
	signed := `{"role":"assistant","content":[` + block + `]}`
	for _, c := range []struct{ members, messages, code, say string }{
		{`"compaction":{"type":"summarize"},`, signed, "compaction_nothing_to_summarize", "nothing to summarize"},
		{"", hi + "," + signed + "," + hi, "compaction_block_misplaced", "messages.1.content.0"},
		{"", strings.Replace(signed, native.Prefix, native.Prefix+"A", 1) + "," + hi, "compaction_signature_invalid", "signature"},
		{"", strings.Replace(signed, `"content":"`, `"content":"Besides, `, 1) + "," + hi, "compaction_content_mismatch", "content"},
		{`"context_management":{"edits":[{"type":"compact_20260112"}]},`, signed + "," + hi, "", "context_management"},
		{`"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":4}}]},`, hi, "", "50000"},
		{`"compaction":{"type":"summarize"},"stop_sequences":["x"],`, hi, "", "stop_sequences"},
		{`"compaction":{"type":"summarize"},`, hi + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"t","input":{}}]}`, "", "messages[1]"},
	} {
		status, body := ask(c.members, c.messages)
		if status != http.StatusBadRequest || body.Get("error.type").Str != "invalid_request_error" || body.Get("error.details.error_code").Str != c.code || !strings.Contains(body.Get("error.message").Str, c.say) {
			t.Errorf("%s %.80s: %d %s", c.members, c.messages, status, body.Raw)
		}
	}
	if n := len(up.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestNativeUpstream: where the provider compacts, what it is asked for and its own
// blocks pass byte for byte; a block of ours is replaced all the same.
func TestNativeUpstream(t *testing.T) {
	kept := &store.Memory{}
	_, first := ignorant(t, proxy.Options{Config: palimpsest.Config{Store: store.Tenant{Documents: kept}}})
	made := newAgent(t, wire.Anthropic, first, false)
	made.grow(0, 5)
	made.native = `,"compaction":{"type":"summarize"}`
	ours := made.decoded(made.peek()).Get("content").Raw

	up := strict(t)
	url, _ := start(t, up, proxy.Options{Config: palimpsest.Config{Store: store.Tenant{Documents: kept}}})
	a := newAgent(t, wire.Anthropic, url, false)
	a.header = betas(native.BetaCompact)
	a.native = `,"context_management":{"edits":[{"type":"compact_20260112"}]}`
	a.history = []string{`{"role":"assistant","content":[{"type":"compaction","content":"c","encrypted_content":"EuYB"}]}`}
	a.user("Go on.")
	if s := a.peek(); s.status != http.StatusOK {
		t.Fatal(string(s.raw))
	}
	if q := up.Requests()[0]; string(q.Body) != string(a.body()) || q.Header.Get("Anthropic-Beta") != native.BetaCompact {
		t.Errorf("the provider got %s, betas %q", q.Body, q.Header.Get("Anthropic-Beta"))
	}
	a.history[0] = `{"role":"assistant","content":` + ours + `}`
	if s := a.peek(); s.status != http.StatusOK {
		t.Fatal(string(s.raw))
	}
	q := up.Requests()[1]
	if bytes.Contains(q.Body, []byte(native.Prefix)) || !bytes.Contains(q.Body, []byte("Never change a file.")) || !bytes.Contains(q.Body, []byte("context_management")) || q.Header.Get("Anthropic-Beta") != native.BetaCompact {
		t.Errorf("the provider got %s", q.Body)
	}
}

// TestNativeCount: the count is that of the request with its edits, and tells what
// it was without them; a request for a summary is counted as it was sent.
func TestNativeCount(t *testing.T) {
	_, url := ignorant(t, proxy.Options{})
	count := func(a *agent) gjson.Result {
		res := post(t, a.url+"/v1/messages/count_tokens", a.body(), nil)
		body, _ := io.ReadAll(res.Body)
		return gjson.ParseBytes(body)
	}
	a := newAgent(t, wire.Anthropic, url, false)
	a.grow(0, 10)
	whole := count(a)
	a.native = `,"compaction":{"type":"summarize"}`
	if got := count(a); got.Raw != whole.Raw {
		t.Errorf("with compaction: %s, without: %s", got.Raw, whole.Raw)
	}
	a.native = `,"context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":3}}]}`
	got := count(a)
	full, edited, original := whole.Get("input_tokens").Int(), got.Get("input_tokens").Int(), got.Get("context_management.original_input_tokens").Int()
	if edited > full/2 || original < full-full/20 || original > full+full/20 {
		t.Errorf("whole %d, edited %d, original %d", full, edited, original)
	}
}

// TestBothWays: where the window is smaller than the client's threshold the policy
// keeps the conversation inside it, and the compactions that the client waits for
// come all the same. The model reads again what was removed.
func TestBothWays(t *testing.T) {
	for _, stream := range ways(t) {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			t.Parallel()
			up, url := ignorant(t, proxy.Options{Window: 40_000})
			next := steps(40, true)
			asked := 0
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				if gjson.GetBytes(q.Body, `tools.#(name=="recall")`).Exists() && q.N%5 == 0 {
					asked++
					return proxytest.Answer{Calls: []thread.ToolCall{{ID: fmt.Sprint("own_", q.N), Name: "recall", Arguments: `{"query":"the code of part 1"}`}}}
				}
				return next(q)
			}
			a := newAgent(t, wire.Anthropic, url, stream)
			a.think, a.large = true, true
			a.header = betas(native.BetaCompact)
			a.native = `,"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}}]}`
			runTask(t, a, 40)
			for _, q := range up.Requests() {
				if q.Refused != "" {
					t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
				}
			}
			if history := strings.Join(a.history, ""); asked == 0 || !strings.Contains(history, native.Prefix) || strings.Contains(history, `"recall"`) {
				t.Errorf("%d questions of the model; the client's history: %.300s", asked, history)
			}
		})
	}
}

// TestNativeCompressed: requests and answers that are compressed are read.
func TestNativeCompressed(t *testing.T) {
	packed := func(text []byte) []byte {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write(text)
		w.Close()
		return z.Bytes()
	}
	for _, stream := range []bool{false, true} {
		up, url := ignorant(t, proxy.Options{})
		plain := strict(t)
		a := newAgent(t, wire.Anthropic, url, stream)
		a.large = true
		a.grow(0, 24)
		plain.Window = 0
		a.url = plain.URL
		answer := a.peek().raw
		a.url = url
		up.Model = func(q *proxytest.Request) proxytest.Answer {
			if q.Header.Get("Content-Encoding") != "" || q.Header.Get("Accept-Encoding") != "gzip" {
				t.Errorf("the upstream got %q, and may answer in %q", q.Header.Get("Content-Encoding"), q.Header.Get("Accept-Encoding"))
			}
			return proxytest.Answer{Body: string(packed(answer)), Header: http.Header{"Content-Encoding": {"gzip"}}}
		}
		a.native = `,"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}}]}`
		res := post(t, url+a.path(), packed(a.body()), http.Header{"Content-Encoding": {"gzip"}, "Accept-Encoding": {"br, gzip"}})
		raw, _ := io.ReadAll(res.Body)
		s := said{status: res.StatusCode, header: res.Header, raw: raw}
		if got := a.decoded(s).Get("content.#.type").Raw; res.Header.Get("Content-Encoding") != "" || got != `["compaction","text"]` {
			t.Errorf("stream %t: %d %s %.300s", stream, res.StatusCode, got, raw)
		}
	}
}

// TestHeldThread: what is asked of native compaction and message threads do not go
// together, as at the provider's: the client is told to send the messages themselves.
func TestHeldThread(t *testing.T) {
	up, url := ignorant(t, proxy.Options{})
	for _, thread := range []string{`{"type":"create"}`, `{"type":"continue","previous_message_id":"msg_1"}`} {
		for _, members := range []string{`"compaction":{"type":"summarize"}`, `"context_management":{"edits":[{"type":"compact_20260112"}]}`} {
			res := post(t, url+"/v1/messages", []byte(`{"model":"m","max_tokens":9,`+members+`,"thread":`+thread+`,"messages":[{"role":"user","content":"Go on."}]}`), nil)
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != http.StatusBadRequest || gjson.GetBytes(body, "error.details.error_code").Str != "thread_unsupported_request" || len(up.Requests()) > 0 {
				t.Errorf("%s %s: %d %s", members, thread, res.StatusCode, body)
			}
		}
	}
}
