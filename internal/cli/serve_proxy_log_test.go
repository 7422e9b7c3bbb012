package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// provider answers every request in one way.
func provider(t *testing.T, status int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const (
	wellAnswered = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}`
	refusedLong  = `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 70000 tokens > 60000 maximum"}}`
	overloaded   = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	noKey        = `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`
	refusedWrong = `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: required"}}`
)

// logged runs a daemon, sends it the requests one after the other over one connection, and
// returns its metrics and the records of its log but for those of the start and the end.
func logged(t *testing.T, format string, args []string, bodies ...string) (metrics string, log []string) {
	t.Helper()
	address, stop := running(t, append(args, "--log-format", format)...)
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	send := func(r *http.Request) string {
		t.Helper()
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, body := range bodies {
		r := get(t, address+"/v1/messages")
		r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader(body)), int64(len(body))
		r.Header.Set("X-Api-Key", "sk-secret")
		send(r)
	}
	metrics = send(get(t, address+"/metrics"))
	status, text := stop()
	if status != exitDone || strings.Contains(text, "sk-secret") || strings.Contains(text, "handle7") {
		t.Fatalf("status %d:\n%s", status, text)
	}
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "is not a setting") && !strings.Contains(line, "serving on") && !strings.Contains(line, "listening") && !strings.Contains(line, "compacts at") && !strings.Contains(line, "stopping") && !strings.Contains(line, "GET /metrics") {
			log = append(log, strings.TrimSpace(line))
		}
	}
	return metrics, log
}

// TestProxyLog: at the usual level each request of an agent is one record of the log, which says
// what was done with it, and each compaction is one; the metrics count the same.
func TestProxyLog(t *testing.T) {
	dir := alone(t)
	for _, format := range []string{"text", "json"} {
		args := []string{"--store", filepath.Join(dir, format+".db"), "--anthropic-upstream", provider(t, 200, wellAnswered), "--window", "30000"}
		long := strings.ReplaceAll(longTalk(40), "claude-sonnet-4-5", "unknown-model")
		longer := strings.ReplaceAll(longTalk(41), "claude-sonnet-4-5", "unknown-model")
		metrics, log := logged(t, format, args, longTalk(1), long, longer)
		if len(log) != 4 {
			t.Fatalf("%s: %d records:\n%s", format, len(log), strings.Join(log, "\n"))
		}
		for n, want := range [][]string{
			{"msg=request", "route=proxy/anthropic", "status=200", "took=", "action=passed", "reason=below-mark"},
			{"=compaction_completed", "thread_id=px-", "tokens_before=", "tokens_after=", "duration="},
			{"msg=request", "route=proxy/anthropic", "thread_id=px-", "action=compacted", "tokens_before=", "tokens_after="},
			{"msg=request", "route=proxy/anthropic", "thread_id=px-", "action=planned", "tokens_before=", "tokens_after="},
		} {
			line := log[n]
			if format == "json" {
				var record map[string]any
				if err := json.Unmarshal([]byte(line), &record); err != nil {
					t.Fatal(err)
				}
				line = ""
				for k, v := range record {
					line += fmt.Sprint(" ", k, "=", v)
				}
			}
			if missing := slices.IndexFunc(want, func(w string) bool { return !strings.Contains(line, w) }); missing >= 0 || !strings.Contains(line, "level=INFO") {
				t.Errorf("%s: record %d has no %s:\n%s", format, n, want[max(missing, 0)], line)
			}
		}
		for _, want := range []string{
			`palimpsest_proxy_requests_total{action="passed",error_class="",reason="below-mark",route="anthropic",status="200"} 1`,
			`palimpsest_proxy_requests_total{action="compacted",error_class="",reason="",route="anthropic",status="200"} 1`,
			`palimpsest_proxy_requests_total{action="planned",error_class="",reason="",route="anthropic",status="200"} 1`,
			`palimpsest_http_requests_total{route="proxy/anthropic",status="200"} 3`,
		} {
			if !strings.Contains(metrics, want+"\n") {
				t.Errorf("%s: the metrics have no %s", format, want)
			}
		}
	}
}

// TestProxyFailuresInLog: the log says what failed, whose failure it is and why.
func TestProxyFailuresInLog(t *testing.T) {
	dir := alone(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tt := range []struct {
		name     string
		upstream string
		args     []string
		says     []string // in one record
		metrics  string
		silent   string // what no record says
	}{
		{"full", provider(t, 200, wellAnswered), []string{"--tenant-disk", "1KB"}, []string{
			"level=WARN msg=compaction_failed", "error_class=storage", "the tenant has used up its quota",
		}, `{action="passed",error_class="",reason="compaction-failed",route="anthropic",status="200"} 1`, ""},
		{"down", gone.URL, nil, []string{
			"level=WARN msg=request_proxied", "error_class=provider", "connection refused", "details.reason=no-answer",
		}, `{action="compacted",error_class="provider",reason="no-answer",route="anthropic",status=""} 1`, "compaction_failed"},
		{"refused", provider(t, 400, refusedWrong), nil, []string{
			"level=WARN msg=request_proxied", "error_class=provider", "invalid request (status 400)", "details.action=passed", "details.reason=refused",
		}, `{action="passed",error_class="provider",reason="refused",route="anthropic",status="400"} 1`, "compaction_failed"},
		{"overloaded", provider(t, 529, overloaded), nil, []string{
			"level=WARN msg=request_proxied", "error_class=provider", "overloaded (status 529)", "details.action=compacted", "details.status=529",
		}, `{action="compacted",error_class="provider",reason="",route="anthropic",status="529"} 1`, "compaction_failed"},
		{"no key", provider(t, 401, noKey), nil, []string{
			"level=WARN msg=request_proxied", "error_class=provider", "not authorized (status 401)", "details.status=401",
		}, `{action="compacted",error_class="provider",reason="",route="anthropic",status="401"} 1`, "compaction_failed"},
		{"refused again", provider(t, 400, refusedLong), nil, []string{
			"level=WARN msg=request_proxied", "error_class=provider", "context overflow (status 400)", "details.action=compacted", "details.reason=refused",
		}, `{action="compacted",error_class="provider",reason="refused",route="anthropic",status="400"} 1`, "recovered"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			metrics, log := logged(t, "text", append(tt.args, "--store", filepath.Join(dir, tt.name+".db"), "--anthropic-upstream", tt.upstream, "--window", "30000"),
				strings.ReplaceAll(longTalk(40), "claude-sonnet-4-5", "unknown-model"))
			if !slices.ContainsFunc(log, func(line string) bool {
				return !slices.ContainsFunc(tt.says, func(want string) bool { return !strings.Contains(line, want) })
			}) {
				t.Errorf("no record says all of %q:\n%s", tt.says, strings.Join(log, "\n"))
			}
			if text := strings.Join(log, "\n"); tt.silent != "" && strings.Contains(text, tt.silent) || strings.Contains(text, "max_tokens") || strings.Contains(text, "llm.") {
				t.Errorf("the log:\n%s", text)
			}
			if want := "palimpsest_proxy_requests_total" + tt.metrics + "\n"; !strings.Contains(metrics, want) {
				t.Errorf("the metrics have no %s", want)
			}
		})
	}
}

// TestGivenWindow: the log says at the start what the given window means, and later when a
// provider named a smaller one. A larger one does not replace it.
func TestGivenWindow(t *testing.T) {
	dir := alone(t)
	body := func(results int) string {
		return strings.ReplaceAll(longTalk(results), "claude-sonnet-4-5", "unknown-model")
	}
	for named, want := range map[string]int{"15000": 1, "60000": 0} {
		args := []string{"--store", filepath.Join(dir, named+".db"), "--window", "30000", "--anthropic-upstream", provider(t, 400, strings.ReplaceAll(refusedLong, "60000", named))}
		_, log := logged(t, "text", args, body(40), body(41), body(42))
		text := strings.Join(log, "\n")
		if n := strings.Count(text, "level=INFO msg=window_learned details.instead_of=30000 details.model=unknown-model"); n != want || strings.Count(text, "details.window=15000") != want {
			t.Errorf("the provider named %s: told %d times\n%s", named, n, text)
		}
		if all, given := strings.Count(text, " budget_limit="), strings.Count(text, " budget_limit=29000 "); (given == all) != (want == 0) { // less the answer
			t.Errorf("the provider named %s: %d of %d compactions by the given window\n%s", named, given, all, text)
		}
	}
	_, stop := running(t, "--store", "memory:", "--window", "30000")
	if _, log := stop(); !strings.Contains(log, `msg="compacts at 18,000 to 27,000 of 30,000 tokens (90 % of what a request leaves for its messages) and keeps 10,000 to 15,000`) {
		t.Errorf("the log:\n%s", log)
	}
}
