package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// longTalk is a request of an agent that has read so many files.
func longTalk(results int) string {
	var b strings.Builder
	b.WriteString(`{"model":"claude-sonnet-4-5","max_tokens":1000,"system":"Be brief.","tools":[{"name":"Read","description":"Read a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}],"messages":[{"role":"user","content":"Tidy the queue."}`)
	for n := range results {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"path":"queue/file%d.go"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%q}]}`,
			n, n, n, strings.Repeat(fmt.Sprintf("func handle%d(order Order) error { return nil }\n", n), 200))
	}
	b.WriteString(`]}`)
	return b.String()
}

// TestOutcomeOfAgent: how the task of an agent behind the proxy ended can be told, under
// the name of its thread.
func TestOutcomeOfAgent(t *testing.T) {
	alone(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}`)
	}))
	defer upstream.Close()
	address, stop := running(t, "--store", "memory:", "--anthropic-upstream", upstream.URL, "--window", "30000")
	defer stop()
	ask(t, address+"/v1/messages", longTalk(1))
	_, header, _ := ask(t, address+"/v1/messages", longTalk(40))
	thread := address + "/v1/threads/" + header.Get("X-Palimpsest-Thread") + "/outcome"
	for _, body := range []string{`{"task":"success"}`, `{}`} {
		status, _, text := ask(t, thread, body)
		if status != http.StatusOK || !strings.Contains(text, `"compactions":1`) || !strings.Contains(text, `"task_completion":"success"`) {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if status, _, text := ask(t, thread, `{"task":"meh"}`); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, text)
	}
}

// TestPageAfterRestart: what the agent last asked for is known to the page of a
// conversation behind the proxy, and to that of the next process too: the model with its
// prices, the window, and what system prompt and tools took.
func TestPageAfterRestart(t *testing.T) {
	dir := alone(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}`)
	}))
	defer upstream.Close()
	args := []string{"--store", "sqlite:" + filepath.Join(dir, "p.db"), "--anthropic-upstream", upstream.URL}
	looked := func(address, thread string) (v view.View) {
		answer, err := http.Get(address + "/v1/threads/" + thread + "/view")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	address, stop := running(t, args...)
	ask(t, address+"/v1/messages", longTalk(1))
	_, header, _ := ask(t, address+"/v1/messages", longTalk(40))
	thread := header.Get("X-Palimpsest-Thread")
	was := looked(address, thread)
	stop()
	address, stop = running(t, args...)
	defer stop()
	is := looked(address, thread)
	for when, v := range map[string]view.View{"before": was, "after": is} {
		head := v.Prompt[0]
		if v.Model != "claude-sonnet-4-5" || v.Window != 200_000 || !v.Cached || v.Steps[len(v.Steps)-1].SentUSD == 0 || head.Role != "system" || head.Tokens < 20 || v.Fixed != head.Tokens {
			t.Errorf("%s the restart: model %q, window %d, prices %v, %d tokens fixed, first in the prompt %+v", when, v.Model, v.Window, v.Cached, v.Fixed, head)
		}
	}
	if was.Before != is.Before || was.After != is.After || was.PlanVersion != 1 {
		t.Errorf("%d → %d tokens before the restart, %d → %d after it, plan %d", was.Before, was.After, is.Before, is.After, was.PlanVersion)
	}
	answer, err := http.Get(address + "/v1/threads/" + thread + "/text?part=0")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); !strings.Contains(string(text), "Only their size is kept") {
		t.Errorf("the first part says %q", text)
	}
}

// TestServePasses: an agent that is pointed at the daemon reaches its provider;
// what does not fit is compacted, is kept in the daemon's store, and the same after
// a restart.
func TestServePasses(t *testing.T) {
	dir := alone(t)
	var mu sync.Mutex
	var bodies []string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		bodies = append(bodies, r.Header.Get("X-Api-Key")+" "+r.URL.Path+" "+string(body))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}`)
	}))
	defer upstream.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ask := func(address, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v1/messages", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "sk-provider")
		r.Header.Set("Anthropic-Version", "2023-06-01")
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		return answer
	}
	args := []string{"--store", "sqlite:" + filepath.Join(dir, "p.db"), "--anthropic-upstream", upstream.URL, "--window", "30000"}
	small, long := longTalk(1), longTalk(40)
	for run := range 2 {
		address, stop := running(t, args...)
		ask(address, small)
		if answer := ask(address, long); answer.StatusCode != http.StatusOK {
			t.Errorf("run %d: %s", run, answer.Status)
		}
		metrics, err := transport.RoundTrip(get(t, address+"/metrics"))
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(metrics.Body)
		metrics.Body.Close()
		// The second run finds the plan of the first.
		if compacted := strings.Contains(string(page), `palimpsest_compactions_total{error_class="",outcome="completed",policy="auto"} 1`); err != nil || compacted != (run == 0) {
			t.Errorf("run %d: the metrics have a compaction: %v", run, compacted)
		}
		if status, log := stop(); status != exitDone || strings.Contains(log, "handle7") || strings.Contains(log, "sk-provider") {
			t.Fatalf("status %d:\n%s", status, log)
		}
	}
	if len(bodies) != 4 {
		t.Fatalf("the provider was asked %d times", len(bodies))
	}
	if want := "sk-provider /v1/messages " + small; bodies[0] != want || bodies[2] != want {
		t.Error("a request that fits was changed")
	}
	compacted := strings.TrimPrefix(bodies[1], "sk-provider /v1/messages ")
	if len(compacted) > len(long)/2 {
		t.Errorf("of %d bytes %d were sent", len(long), len(compacted))
	}
	if problems := (anthropic.Codec{}).Validate([]byte(compacted)); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
	if bodies[1] != bodies[3] {
		t.Error("after a restart another prompt was sent")
	}

	// A thread that is deleted while the daemon knows it begins anew, and its
	// request is made smaller as before.
	address, stop := running(t, args...)
	ask(address, long)
	c := client(t, address, "")
	for range 2 {
		threads, err := c.Threads(t.Context(), "", 0)
		if err != nil || len(threads.Items) == 0 {
			t.Fatalf("%+v: %v", threads, err)
		}
		for _, th := range threads.Items {
			if err := c.DeleteThread(t.Context(), th.ID); err != nil {
				t.Error(err)
			}
		}
		bodies = nil
		if answer := ask(address, long); answer.StatusCode != http.StatusOK || answer.Header.Get("X-Palimpsest-Action") != "compacted" {
			t.Errorf("after its thread was deleted: %s %v", answer.Status, answer.Header)
		}
		if len(bodies) != 1 || strings.TrimPrefix(bodies[0], "sk-provider /v1/messages ") != compacted {
			t.Error("after its thread was deleted another prompt was sent")
		}
	}
	stop()

	if status, log := refuse(t, "--anthropic-upstream", "ftp://x"); status != exitUsage {
		t.Errorf("a wrong upstream: status %d\n%s", status, log)
	}
}

// get is a request that only reads.
func get(t *testing.T, address string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// refuse runs a daemon that does not start.
func refuse(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var log strings.Builder
	status := Run(t.Context(), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), Streams{In: strings.NewReader(""), Out: io.Discard, Err: &log})
	return status, log.String()
}
