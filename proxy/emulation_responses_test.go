package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// plainUpstream is a strict upstream that cannot compact.
func plainUpstream(t testing.TB) *proxytest.Upstream {
	up := strict(t)
	up.NoCompaction, up.Chains = true, true
	return up
}

func refusals(t *testing.T, up *proxytest.Upstream) {
	t.Helper()
	for _, q := range up.Requests() {
		if q.Refused != "" {
			t.Errorf("request %d was refused: %.400s", q.N, q.Refused)
		}
	}
}

// posted sends a body as it is.
func posted(t *testing.T, url, body string) (int, http.Header, string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(raw)
}

// triggered asks for a compaction as Codex does: its whole history with the
// trigger as the last item. It returns the items of the answer.
func (a *agent) triggered() []gjson.Result {
	a.t.Helper()
	history := a.history
	a.history = append(history[:len(history):len(history)], `{"type":"compaction_trigger"}`)
	s, err := a.try()
	a.history = history
	if err != nil || s.status != http.StatusOK {
		a.t.Fatalf("%v %d %s", err, s.status, s.raw)
	}
	return gjson.Parse(s.element).Array()
}

// TestTrigger: an agent that compacts as Codex does (a trigger as the last item,
// of the answer exactly one compaction, of its history the user's words) finishes
// its task in front of a provider that knows nothing of it, and what it read at
// first is still known at the end.
func TestTrigger(t *testing.T) {
	for _, stream := range ways(t) {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) {
			t.Parallel()
			up := plainUpstream(t)
			up.Model = steps(24, false)
			url, p := start(t, up, proxy.Options{Window: window, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}})
			a := newAgent(t, wire.Responses, url, stream)
			a.user("Read all parts.")
			compactions := 0
			for {
				s := a.ask()
				if len(s.calls) == 0 {
					break
				}
				a.results(s.calls, partOf)
				if s.input < 10_000 {
					continue
				}
				compactions++
				items := a.triggered()
				if len(items) != 1 || items[0].Get("type").Str != "compaction" || items[0].Get("encrypted_content").Str == "" {
					t.Fatalf("the answer to a trigger: %v", items)
				}
				a.history = append(retainedWords(a.history), items[0].Raw)
			}
			refusals(t, up)
			if totals := p.Totals(); compactions < 2 || totals.Faults != 0 || int(totals.Compactions) < compactions || totals.TokensBefore < 2*totals.TokensSent {
				t.Errorf("%d compactions, totals %+v", compactions, totals)
			}
			largest := 0
			for _, q := range up.Requests() {
				largest = max(largest, q.Tokens)
				if strings.Contains(string(q.Body), "palimpsest.c1.") || strings.Contains(string(q.Body), "compaction") {
					t.Fatalf("the upstream got what is ours: %s", q.Body)
				}
			}
			if largest > 15_000 {
				t.Errorf("the largest request has %d tokens", largest)
			}
			last := up.Requests()[len(up.Requests())-1]
			if n := strings.Count(string(last.Body), `"text":"Read all parts."`); n != 1 {
				t.Errorf("the last request has the task %d times", n)
			}
			for _, part := range []string{"part_000.go", "part_023.go"} {
				if !strings.Contains(string(last.Body), part) {
					t.Errorf("the last request does not know %s", part)
				}
			}
		})
	}
}

// retainedWords is what Codex keeps of its history.
func retainedWords(history []string) []string {
	var kept []string
	for _, item := range history {
		if role := gjson.Get(item, "role").Str; role == "user" || role == "developer" {
			kept = append(kept, item)
		}
	}
	return kept
}

// TestCompactEndpoint: POST /v1/responses/compact gives the user's messages and
// one compaction, and what is made of them goes on.
func TestCompactEndpoint(t *testing.T) {
	up := plainUpstream(t)
	up.Model = steps(14, false)
	url, _ := start(t, up, proxy.Options{Window: window, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}})
	a := newAgent(t, wire.Responses, url, false)
	a.user("Read all parts.")
	for range 8 {
		s := a.ask()
		a.results(s.calls, partOf)
	}
	body, _ := sjson.Delete(string(a.body()), "stream")
	status, _, answer := posted(t, url+"/v1/responses/compact", body)
	v := gjson.Parse(answer)
	output := v.Get("output").Array()
	if status != 200 || v.Get("object").Str != "response.compaction" || v.Get("created_at").Int() == 0 || v.Get("id").Str == "" || !v.Get("usage.total_tokens").Exists() ||
		len(output) != 2 || output[0].Get("content.0.text").Str != "Read all parts." || output[1].Get("type").Str != "compaction" {
		t.Fatalf("%d %s", status, answer)
	}
	a.history = []string{output[0].Raw, output[1].Raw}
	for {
		s := a.ask()
		if len(s.calls) == 0 {
			break
		}
		a.results(s.calls, partOf)
	}
	refusals(t, up)
}

// TestThreshold: with context_management the answer begins with a compaction once
// the threshold is crossed, whole and as a stream, whether the client keeps what
// stood before it or not.
func TestThreshold(t *testing.T) {
	for _, stream := range ways(t) {
		for _, prunes := range []bool{false, true} {
			t.Run(fmt.Sprintf("stream %t, prunes %t", stream, prunes), func(t *testing.T) {
				t.Parallel()
				up := plainUpstream(t)
				up.Model = steps(24, false)
				url, p := start(t, up, proxy.Options{Window: window, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}})
				a := newAgent(t, wire.Responses, url, stream)
				a.native = `,"context_management":[{"type":"compaction","compact_threshold":10000}]`
				a.user("Read all parts.")
				shown := 0
				for {
					before := len(a.history)
					s := a.ask()
					for n, item := range a.history[before:] {
						if gjson.Get(item, "type").Str == "compaction" {
							if n != 0 {
								t.Errorf("the compaction is item %d of the answer", n)
							}
							shown++
							if prunes {
								a.history = a.history[before:]
							}
						}
					}
					if len(s.calls) == 0 {
						break
					}
					a.results(s.calls, partOf)
				}
				refusals(t, up)
				if shown < 2 || p.Totals().Faults != 0 {
					t.Errorf("%d compactions, totals %+v", shown, p.Totals())
				}
				for _, q := range up.Requests() {
					if q.Tokens > 12_500 {
						t.Errorf("request %d has %d tokens", q.N, q.Tokens)
					}
				}
			})
		}
	}
}

// partOf is the part that a call reads.
func partOf(c thread.ToolCall) string {
	n := 0
	fmt.Sscanf(gjson.Get(c.Arguments, "path").Str, "part_%d.go", &n)
	return result(n)
}

// TestThresholdChain: a client that leaves its history to the provider and its
// compaction too.
func TestThresholdChain(t *testing.T) {
	up := plainUpstream(t)
	up.Model = steps(30, false)
	url, p := start(t, up, proxy.Options{Window: window, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}})
	c := newChained(t, url, true)
	c.always = `,"context_management":[{"type":"compaction","compact_threshold":10000}]`
	c.user("Read all parts.")
	c.run()
	refusals(t, up)
	if c.compactions < 2 || p.Totals().Faults != 0 {
		t.Errorf("%d compactions, %+v", c.compactions, p.Totals())
	}
	for _, q := range up.Requests() {
		if q.Tokens > 12_500 {
			t.Errorf("request %d has %d tokens", q.N, q.Tokens)
		}
	}
}

// TestCodexSample: what Codex really sent, with a trigger behind it, is answered
// with one compaction; what Codex then keeps of it goes on, its instructions and
// environment once each, and every byte of a message as it was.
func TestCodexSample(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(corpus.Dir(t, "wire-samples"), "codex", "step.json"))
	if err != nil {
		t.Fatal(err)
	}
	up := plainUpstream(t)
	url, p := start(t, up, proxy.Options{Window: window, Emulate: []string{"openai"}, Config: palimpsest.Config{Counter: counter()}})
	body := gjson.GetBytes(data, "body").Raw
	asks, _ := sjson.SetRaw(body, "input.-1", `{"type":"compaction_trigger"}`)
	status, _, answer := posted(t, url+"/v1/responses", asks)
	if status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	var items []gjson.Result
	for line := range strings.Lines(answer) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && gjson.Get(data, "type").Str == "response.output_item.done" {
			items = append(items, gjson.Get(data, "item"))
		}
	}
	if len(items) != 1 || items[0].Get("type").Str != "compaction" {
		t.Fatalf("%s", answer)
	}
	var history []string
	for _, item := range gjson.Get(body, "input").Array() {
		history = append(history, item.Raw)
	}
	next, _ := sjson.SetRaw(body, "input", "["+strings.Join(append(retainedWords(history), items[0].Raw), ",")+"]")
	if status, _, answer = posted(t, url+"/v1/responses", next); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	refusals(t, up)
	sent := gjson.GetBytes(up.Requests()[0].Body, "input").Array()
	at := 0
	for _, item := range sent { // what goes out is a part of what Codex knew, in its order, and a note
		if item.Get("content").Str == render.Tools.Note() {
			continue
		}
		found := slices.Index(history[at:], item.Raw)
		if role := item.Get("role").Str; found < 0 && (role == "user" || role == "developer") {
			t.Errorf("not of the history: %.300s", item.Raw)
		}
		at += found + 1
	}
	if words := retainedWords(history); len(sent) < len(words) || p.Totals().Faults != 0 {
		t.Errorf("%d items of %d, %+v", len(sent), len(history), p.Totals())
	}
}
