package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
)

// observed is what a daemon with these settings is seen to do. It stops in the end.
type observer func(t *testing.T, args ...string) string

// TestEverySettingActs: each setting of `serve`, set as on its command line, changes
// what the running daemon does. A setting that is not in the table fails. F6
func TestEverySettingActs(t *testing.T) {
	dir := alone(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// Two addresses of each provider, that say which was asked.
	upstream := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Provider", name)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":2}}`)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	one, other := upstream("one"), upstream("other")
	summaries := writer(t, false)
	environment(t, summaries.URL)
	master := write("master.key", said(t, "keys", "master"))
	models := write("models.json", `{"models":[{"name":"model-of-ours","window":6000,"counter":"o200k","source":"a test"}]}`)
	usual := talk{steps: 14, window: 12_000, output: 1_000, large: 90}
	unknown, injecting, approaching := usual, usual, usual
	approaching.steps, approaching.lines, approaching.large = 45, 12, 12
	injecting.steps, injecting.every = 24, 3
	unknown.model, unknown.window = "model-of-ours", 0
	flagsOf := func(args []string) map[string]string {
		flags := map[string]string{}
		for i := 0; i+1 < len(args); i += 2 {
			flags[strings.TrimPrefix(args[i], "--")] = args[i+1]
		}
		return flags
	}
	held := map[string]string{} // the usual conversation is held once for all settings
	talking := func(k talk) observer {
		return func(t *testing.T, args ...string) string {
			key := fmt.Sprintf("%q %+v", args, k)
			if held[key] == "" {
				held[key] = heldWith(t, flagsOf(args), k)
			}
			return held[key]
		}
	}
	asking := func(path, body string, header ...string) observer {
		return func(t *testing.T, args ...string) string {
			address, stop := running(t, args...)
			defer stop()
			status, header, text := ask(t, address+path, body, header...)
			return fmt.Sprint(status, header.Get("X-Provider"), header.Get("X-Palimpsest-Action"), problemOf(text), strings.Contains(text, "plums"))
		}
	}
	logging := func(t *testing.T, args ...string) string {
		address, stop := running(t, args...)
		ask(t, address+"/v1/threads", "")
		_, log := stop()
		return fmt.Sprint(strings.Contains(log, "listening"), strings.Contains(log, `{"time"`))
	}
	const token = "ghp_012345678901234567890123456789012345"
	// masking: the address of a provider that cannot be reached stands in the log.
	masking := func(t *testing.T, args ...string) string {
		address, stop := running(t, args...)
		ask(t, address+"/v1/messages", longTalk(1))
		_, log := stop()
		return fmt.Sprint(strings.Contains(log, token), strings.Contains(log, "[secret: GitHub token, 40 characters]"))
	}
	bursting := func(t *testing.T, args ...string) string {
		var passed atomic.Int64
		began := time.Now()
		address, stop := servedWith(t, flagsOf(args), func(c *daemon.Config) {
			c.Now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
		})
		defer stop()
		refused := false
		for range 60 {
			status, _, _ := ask(t, address+"/v1/threads", "")
			refused = refused || status == http.StatusTooManyRequests
		}
		passed.Add(int64(300 * time.Millisecond))
		after, _, _ := ask(t, address+"/v1/threads", "")
		return fmt.Sprint(refused, after)
	}
	streaming := func(t *testing.T, args ...string) string {
		address, stop := running(t, args...)
		defer stop()
		ask(t, address+"/v1/threads", `{"id":"t"}`)
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		var statuses []int
		for range 3 {
			answer, err := transport.RoundTrip(get(t, address+"/v1/threads/t/events"))
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			statuses = append(statuses, answer.StatusCode)
		}
		return fmt.Sprint(statuses)
	}
	// A request whose provider has not answered yet when the daemon stops: it is
	// interrupted, or waits for the answer.
	draining := func(t *testing.T, args ...string) string {
		asked, gone, release := make(chan bool, 1), make(chan bool, 1), make(chan bool)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // only then is it seen that the client is gone
			asked <- true
			select {
			case <-r.Context().Done():
				gone <- true
			case <-release:
			}
		}))
		address, stop := running(t, append(args, "--anthropic-upstream", s.URL)...)
		ended, stopped := make(chan bool), make(chan bool)
		go func() {
			defer close(ended)
			if answer, err := http.Post(address+"/v1/messages", "application/json", strings.NewReader(longTalk(1))); err == nil {
				answer.Body.Close()
			}
		}()
		<-asked
		go func() {
			defer close(stopped)
			stop()
		}()
		refused := false // then it has begun to stop
		for !refused {
			conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
			if refused = err != nil; !refused {
				conn.Close()
			}
		}
		var late time.Duration
		if args[len(args)-1] == "1ms" {
			late = 10 * time.Second // less than the setting is by default
		}
		answers := time.AfterFunc(late, func() { close(release) })
		defer answers.Stop()
		<-stopped
		<-ended
		http.DefaultClient.CloseIdleConnections()
		s.Close() // waits for the provider to be through with the request
		select {
		case <-gone:
			return "interrupted"
		default:
			return "waits"
		}
	}
	measuring := func(k talk, names ...string) observer {
		return func(t *testing.T, args ...string) string {
			address, stop := running(t, args...)
			defer stop()
			k.hold(t, address)
			_, _, page := ask(t, address+"/metrics", "")
			var b strings.Builder
			for line := range strings.Lines(page) {
				for _, name := range names {
					if strings.HasPrefix(line, name) {
						b.WriteString(line)
					}
				}
			}
			return b.String()
		}
	}
	remembering := func(t *testing.T, args ...string) string {
		address, stop := running(t, args...)
		defer stop()
		for n := range 2 {
			talk := strings.Replace(longTalk(1), "Tidy", fmt.Sprintf("%d. Tidy", n), 1)
			ask(t, address+"/v1/messages", talk, "X-Palimpsest-Thread", fmt.Sprint("remembered-", n))
		}
		_, _, page := ask(t, address+"/metrics", "")
		_, rest, _ := strings.Cut(page, "\npalimpsest_proxy_memory_bytes ")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	kept := func(t *testing.T, args ...string) string {
		address, stop := running(t, args...)
		ask(t, address+"/v1/threads", `{"id":"t"}`)
		stop()
		address, stop = running(t, args...)
		defer stop()
		status, _, _ := ask(t, address+"/v1/threads/t", "")
		return fmt.Sprint(status)
	}
	legible := func(t *testing.T, args ...string) string {
		file := filepath.Join(t.TempDir(), "sealed.db")
		address, stop := running(t, append(args, "--store", "sqlite:"+file)...)
		ask(t, address+"/v1/threads", `{"id":"t"}`)
		ask(t, address+"/v1/threads/t/messages", `{"messages":[{"role":"user","parts":[{"type":"text","text":"CANARY"}]}]}`)
		stop()
		files, _ := filepath.Glob(file + "*")
		found := false
		for _, name := range files {
			data, _ := os.ReadFile(name) // one is a folder
			found = found || bytes.Contains(data, []byte("CANARY"))
		}
		return fmt.Sprint(found)
	}
	secured := func(t *testing.T, args ...string) string {
		var report strings.Builder
		if len(args) > 0 {
			// The pair is tested in package daemon; here it is seen to be read.
			args = append(args, "--tls-key", filepath.Join(dir, "none.pem"), "--tls-cert", filepath.Join(dir, "none.pem"))
			Run(t.Context(), append([]string{"serve", "--store", "memory:"}, args...), Streams{In: strings.NewReader(""), Out: io.Discard, Err: &report})
		}
		return report.String()
	}
	// A model whose vectors say that a harbour is a port.
	vectors := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.URL.Path != "/v1/embeddings" {
			t.Errorf("%s: %v", r.URL, err)
		}
		data := []any{}
		for i, text := range q.Input {
			v := []int{0, 1}
			if strings.Contains(text, "harbour") || strings.Contains(text, "order_id") {
				v = []int{1, 0}
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(vectors.Close)
	searching := func(t *testing.T, args ...string) string {
		t.Setenv("OPENAI_BASE_URL", vectors.URL+"/v1")
		address, stop := running(t, args...)
		defer stop()
		usual.hold(t, address)
		status, _, text := ask(t, address+"/v1/threads/t/recall?q=harbour", "")
		return fmt.Sprint(status, strings.Contains(text, "order_id"))
	}
	// A provider that counts more tokens than we do.
	counts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.HasSuffix(r.URL.Path, "/count_tokens") {
			t.Errorf("asked at %s", r.URL)
		}
		fmt.Fprintf(w, `{"input_tokens":%d}`, len(body))
	}))
	t.Cleanup(counts.Close)
	measured := func(t *testing.T, args ...string) string {
		t.Setenv("ANTHROPIC_BASE_URL", counts.URL)
		k := usual
		k.model = "claude-sonnet-4-5"
		return talking(k)(t, args...)
	}
	waiting := write("waiting.yaml", "base: workstream\ntrigger: {context_size: 9000, output_reserve: 500, safety_margin: 500}\n")
	message := longTalk(1)
	deep := `{"labels":` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 101)
	chatBody := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	compactBody := `{"model":"claude-sonnet-4-5","max_tokens":1000,"context_management":{"edits":[{"type":"compact_20260112"}]},"messages":[{"role":"user","content":"hi"}]}`

	// A tenant that keeps as much as it may, and an agent of it, whose requests pass.
	keeping := func(t *testing.T, args ...string) string {
		address, stop := running(t, append(args, "--store", filepath.Join(t.TempDir(), "p.db"), "--anthropic-upstream", one)...)
		defer stop()
		ask(t, address+"/v1/threads", `{"id":"t"}`)
		appended, _, text := ask(t, address+"/v1/threads/t/messages", `{"messages":[{"role":"user","parts":[{"type":"text","text":"one"}]}]}`)
		for range 2 {
			if status, _, text := ask(t, address+"/v1/messages", longTalk(40)); status != 200 {
				t.Errorf("an agent gets %d %s", status, text)
			}
		}
		return fmt.Sprint(appended, problemOf(text))
	}
	// Whether a model is asked for summaries.
	spending := func(t *testing.T, args ...string) string {
		var asked atomic.Int64
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		defer up.Close()
		t.Setenv("OPENAI_BASE_URL", up.URL+"/v1")
		t.Setenv("OPENAI_API_KEY", "k")
		address, stop := running(t, append(args, "--summarizer", "openai:gpt-5-mini")...)
		defer stop()
		usual.hold(t, address)
		return fmt.Sprint(asked.Load() > 0)
	}

	// A session of an agent that is not in its usual folder.
	agents := filepath.Join(dir, "agents")
	elsewhere := filepath.Join(agents, "projects", "-src-shop", "0a0a0a0a-0001.jsonl")
	if err := errors.Join(os.MkdirAll(filepath.Dir(elsewhere), 0o755), os.WriteFile(elsewhere, []byte(`{"type":"user","uuid":"u","sessionId":"s","cwd":"/src/shop","message":{"role":"user","content":"Count the plums."}}`), 0o644)); err != nil {
		t.Fatal(err)
	}
	listing := asking("/v1/sessions", "")

	cases := map[string]struct {
		value string
		with  []string // what is set beside, both times
		see   observer
	}{
		"listen": {"127.0.0.2:0", nil, func(t *testing.T, args ...string) string {
			address, stop := running(t, args...)
			stop()
			return address[:len("http://127.0.0.1")]
		}},
		"socket": {filepath.Join(shortDir(t), "s", "daemon.sock"), nil, func(t *testing.T, args ...string) string {
			address, stop := running(t, args...)
			defer stop()
			status, _, _ := ask(t, address+"/v1/threads", "")
			return fmt.Sprint(status)
		}},
		"idle": {"1ms", nil, func(t *testing.T, args ...string) string {
			address, stop := running(t, args...)
			defer stop()
			for slices.Contains(args, "--idle") { // it ends, or the test does not
				r, err := http.Get(address + "/healthz")
				if err != nil {
					return "ended"
				}
				r.Body.Close()
				http.DefaultClient.CloseIdleConnections()
				runtime.Gosched()
			}
			for range 100 {
				ask(t, address+"/healthz", "")
			}
			return "serves"
		}},
		"store":              {"sqlite:" + filepath.Join(dir, "kept.db"), nil, kept},
		"master-key":         {master, nil, legible},
		"tls-cert":           {"x", nil, secured},
		"tls-key":            {"x", nil, secured},
		"policy":             {"last-messages:3", nil, talking(usual)},
		"summarizer":         {"openai:gpt-5-mini", nil, talking(usual)},
		"counter":            {"chars/4", nil, talking(usual)},
		"favor":              {"quality", nil, talking(usual)},
		"recall":             {"off", []string{"--policy", write("aside.yaml", "base: ladder\ntrigger: {max_input_tokens: 9000}\n")}, talking(usual)},
		"context-tools":      {"on", nil, talking(usual)},
		"context-reminder":   {"on", []string{"--context-tools", "on"}, talking(approaching)},
		"inject":             {"2000", nil, talking(injecting)},
		"embedder":           {"openai:vectors", nil, searching},
		"measure":            {"on", []string{"--counter", "claude"}, measured},
		"quality":            {"off", []string{"--policy", write("aside.yaml", "base: ladder\ntrigger: {max_input_tokens: 9000}\n")}, measuring(rereading, "palimpsest_context_requests_total")},
		"anthropic-upstream": {other, []string{"--anthropic-upstream", one}, asking("/v1/messages", message)},
		"openai-upstream":    {other, []string{"--openai-upstream", one}, asking("/v1/chat/completions", chatBody)},
		"gemini-upstream":    {other, []string{"--gemini-upstream", one}, asking("/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`)},
		"emulate":            {"anthropic", []string{"--anthropic-upstream", one}, asking("/v1/messages", compactBody, "Anthropic-Beta", "compact-2026-01-12")},
		"proxy":              {"off", []string{"--anthropic-upstream", one}, asking("/v1/messages", message)},
		"proxy-memory":       {"1KB", []string{"--anthropic-upstream", one}, remembering},
		"proxy-bodies":       {"1KB", []string{"--anthropic-upstream", one}, asking("/v1/messages", longTalk(40))},
		"memory": {"1KB", nil, func(t *testing.T, args ...string) string {
			t.Setenv("GOMEMLIMIT", "off") // or this process would collect all the time
			return asking("/v1/threads", `{"id":"t"}`)(t, args...)
		}},
		"tenant-bodies":       {"1KB", []string{"--anthropic-upstream", one}, asking("/v1/messages", longTalk(40))},
		"tenant-disk":         {"1", nil, keeping},
		"tenant-spending":     {"1", nil, spending},
		"tenant-requests":     {"1", nil, crowding},
		"tenant-rate":         {"2", nil, bursting},
		"mcp":                 {"off", []string{"--proxy", "off"}, asking("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Accept", "application/json, text/event-stream")},
		"proxy-tenant-memory": {"1KB", []string{"--anthropic-upstream", one}, remembering},
		"window":              {"9000", nil, talking(talk{steps: 14, output: 1_000, model: "nobody-knows"})},
		"models":              {models, nil, talking(unknown)},
		"session-folders":     {"claude-code=" + agents, nil, listing},
		"session-exclude":     {"/src", []string{"--session-folders", "claude-code=" + agents}, listing},
		"max-body":            {"10", nil, asking("/v1/threads", `{"id":"t","labels":{}}`)},
		"max-depth":           {"5", nil, asking("/v1/threads", deep)},
		"rate":                {"1", []string{"--burst", "20"}, bursting},
		"burst":               {"5", nil, bursting},
		"max-streams":         {"1", nil, streaming},
		"patience":            {"1ms", []string{"--policy", waiting, "--summarizer", "openai:gpt-5-mini", "--patience", "10m"}, waitingForModel},
		"lease":               {"50ms", []string{"--policy", waiting, "--patience", "10m", "--lease", "10m"}, waitingForDead},
		"drain":               {"1ms", []string{"--drain", "10m"}, draining},
		"mask-secrets":        {"off", []string{"--anthropic-upstream", "http://[::1%25" + token + "]:1"}, masking},
		"weekly": {"on", nil, func(t *testing.T, args ...string) string { // the command alone heeds it
			loaded, err := loadSettings("", map[string]string{"weekly": args[len(args)-1]})
			if err != nil {
				return ""
			}
			return loaded.Text("weekly")
		}},
		"log-level":  {"error", nil, logging},
		"log-format": {"json", nil, logging},
	}
	for _, s := range config.Settings() {
		tt, ok := cases[s.Name]
		if !ok {
			t.Errorf("%s: nothing shows that it acts; add it to the table", s.Name)
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			usual := tt.with
			if s.Name != "store" && s.Name != "master-key" {
				usual = append([]string{"--store", "memory:"}, usual...)
			}
			if s.Name == "tls-cert" || s.Name == "tls-key" {
				usual = nil
			}
			before := usual
			if s.Name == "store" {
				before = []string{"--store", "memory:"}
			}
			a, b := tt.see(t, before...), tt.see(t, append(append([]string{}, usual...), "--"+s.Name, tt.value)...)
			if a == b {
				t.Errorf("%s changes nothing: %.300s", tt.value, a)
			}
		})
	}
}

// shortDir is a folder whose name leaves room for that of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// crowding asks for something while a request is at work.
func crowding(t *testing.T, args ...string) string {
	began, hold := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(began)
		<-hold
	}))
	defer up.Close()
	address, stop := running(t, append(args, "--anthropic-upstream", up.URL)...)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ask(t, address+"/v1/messages", longTalk(1))
	}()
	<-began
	status, _, text := ask(t, address+"/v1/threads", "")
	close(hold)
	<-ended
	return fmt.Sprint(status, problemOf(text))
}

// rereading is a conversation whose agent asks for what was removed.
var rereading = talk{steps: 14, window: 12_000, output: 1_000, large: 90, misses: true}

// said is what a command prints.
func said(t *testing.T, args ...string) string {
	t.Helper()
	var out, report strings.Builder
	if status := Run(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &report}); status != exitDone {
		t.Fatal(report.String())
	}
	return out.String()
}

// ask sends a body, or asks for a page where there is none.
func ask(t *testing.T, address, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	r := get(t, address)
	if body != "" {
		r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Anthropic-Version", "2023-06-01")
		r.Header.Set("X-Api-Key", "k")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(data)
}

// problemOf is the kind of problem that an answer tells of.
func problemOf(text string) string {
	var p api.Problem
	_ = json.Unmarshal([]byte(text), &p)
	return p.Kind()
}
