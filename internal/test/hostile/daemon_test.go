//go:build unix

package hostile_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
)

// patience is how long a client waits for an answer. It is no ceiling: only a daemon
// that hangs takes so long.
const patience = 2 * time.Minute

// served is a daemon in a child.
type served struct {
	*child
	url  string
	http *http.Client
}

func serve(t *testing.T, args ...string) *served {
	t.Helper()
	c := startChild(t)
	d := c.do(t, order{Serve: append([]string{"serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--rate", "1000000", "--burst", "1000000", "--window", "20000", "--log-level", "error"}, args...)})
	if d.Address == "" {
		t.Fatalf("the daemon does not serve: %s", d.Said)
	}
	return &served{child: c, url: d.Address, http: &http.Client{Timeout: patience, Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 4}}}
}

// request is what is sent.
type request struct {
	method, path string
	header       map[string]string
	body         []byte
}

// send sends it, and gives the status and the body. Status 0 is a connection that the
// other side has closed.
func (s *served) send(t *testing.T, q request) (int, []byte) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, s.url, bytes.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	r.URL.Opaque = q.path // as it is
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	res, err := s.http.Do(r)
	if err != nil {
		if ctx.Err() == nil && !strings.Contains(err.Error(), "Timeout") {
			return 0, []byte(err.Error())
		}
		t.Fatalf("%s %.100s: %v", q.method, q.path, err)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") && res.StatusCode == 200 && strings.HasSuffix(q.path, "/events") {
		return res.StatusCode, nil // it goes on until somebody leaves
	}
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, []byte(err.Error())
	}
	return res.StatusCode, data
}

// message is a message of a thread as JSON.
func message(role, text string) string {
	return `{"role":"` + role + `","parts":[{"type":"text","text":` + rawjson.Quote(text) + `}]}`
}

// bodies are ordinary bodies of the operations that take one; an operation that is not
// here fails the test. VERSION stands for the version of the plan in force, and ID for
// a message that it hides.
var bodies = map[string]string{
	"create":       `{"labels":{"team":"build"}}`,
	"append":       `{"messages":[` + message("user", "Go on with the parser and run its tests.") + `]}`,
	"prepare":      `{"api":"anthropic","body":{"model":"claude-sonnet-4-5","max_tokens":1000,"system":"You repair builds.","tools":[{"name":"Grep","description":"search","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Find out why the build fails, and never touch vendor.lock."}]},"window":20000,"output":1000}`,
	"finish":       `{"api":"anthropic","response":{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","stop_reason":"tool_use","content":[{"type":"text","text":"I look into the handlers first."},{"type":"tool_use","id":"c","name":"Grep","input":{"pattern":"Handle"}}],"usage":{"input_tokens":900,"output_tokens":40}}}`,
	"answer":       `{"type":"tool_call","call_id":"c","tool":"recall","arguments":"{\"query\":\"handler parses line\"}"}`,
	"overflowed":   `{"base":{"model":"claude-sonnet-4-5","system":[{"text":"You repair builds."}]},"window":20000,"budget":6000}`,
	"cut-off":      `{"messages":[` + message("assistant", "I was about to say that the parser") + `],"step":{"base":{"model":"claude-sonnet-4-5"},"window":20000}}`,
	"remember":     `{"entries":["The user wants the tests to be run after each change."]}`,
	"outcome":      `{"task":"success"}`,
	"compact":      `{"base":{"model":"claude-sonnet-4-5"},"window":20000,"budget":6000,"instructions":"Keep the names of the files."}`,
	"preview":      `{"base":{"model":"claude-sonnet-4-5"},"window":20000,"budget":6000}`,
	"session-view": `{"base":{"model":"claude-sonnet-4-5"},"window":20000,"budget":6000}`,
	"pin":          `{"message_id":"0123456789abcdef0123456789abcdef"}`,
	"dry-run":      `{"base":{"model":"claude-sonnet-4-5"},"window":20000,"budget":6000}`,
	"undo":         `{"version":0}`,
	"expand":       `{"message_id":"0123456789abcdef0123456789abcdef"}`,
	"render":       `{"plan_version":1,"step":{"base":{"model":"claude-sonnet-4-5","system":[{"text":"You repair builds."}],"tools":[{"name":"Grep","schema":{"type":"object"}}]}}}`,
}

// TestOperations: whatever is sent to an operation of the daemon, it answers in its
// own words and goes on.
func TestOperations(t *testing.T) {
	s := serve(t)
	n, share := size()
	threads := 0
	// thread makes a thread with a plan in force.
	thread := func() string {
		threads++
		id := fmt.Sprintf("thread-%d", threads)
		var said []string
		for i := range 12 {
			said = append(said, message("user", "Look at the next file."), message("assistant", prose(1500)+fmt.Sprint(i)))
		}
		for _, q := range []request{
			{"POST", api.Root, nil, []byte(`{"id":"` + id + `"}`)},
			{"POST", api.Root + "/" + id + "/messages", nil, []byte(`{"messages":[` + strings.Join(said, ",") + `]}`)},
			{"POST", api.Root + "/" + id + "/compact", nil, []byte(`{"base":{"model":"claude-sonnet-4-5"},"window":20000,"budget":4000}`)},
		} {
			if status, answer := s.send(t, q); status/100 != 2 {
				t.Fatalf("an ordinary %s %s: %d %.300s", q.method, q.path, status, answer)
			}
		}
		return id
	}
	all, tried := &worst{}, 0
	for i, op := range api.Operations() {
		t.Run(op.ID, func(t *testing.T) {
			body, ok := bodies[op.ID]
			if ok != (op.Request != nil) {
				t.Fatal("an operation takes a body exactly when bodies has an ordinary one: give it one")
			}
			id := thread()
			at := func(id string) string {
				return strings.NewReplacer("{thread}", id, "{version}", "1", "{artifact}", "0123456789abcdef", "{session}", "0123456789abcdef").Replace(op.Path)
			}
			s.do(t, order{})
			ordinary := request{op.Method, at(id), nil, nil}
			if ok {
				ordinary.body = longest([]byte(body), rawjson.Quote(prose(n)))
			}
			if status, answer := s.send(t, ordinary); status == 0 || status >= 500 {
				t.Fatalf("an ordinary one: %d %.300s", status, answer)
			}
			f := s.do(t, order{}).figures
			limit := ceiling{n, f.CPU, f.Peak}
			w := &worst{}
			try := func(name string, q request, size int) {
				if tried++; tried%10 == 0 {
					id = thread()
				}
				q.method = op.Method
				if q.path == "" {
					q.path = at(id)
				}
				status, answer := s.send(t, q)
				f := s.do(t, order{}).figures
				w.see(name, f)
				all.see(op.ID+": "+name, f)
				limit.holds(t, size, f)
				if status >= 500 || status == 0 && len(q.body) == 0 && len(q.path) < 32<<10 {
					t.Errorf("%s: %d %.300s", name, status, answer)
				}
				if status >= 400 && len(answer) > 4000 {
					t.Errorf("%s: %d with %d bytes", name, status, len(answer))
				}
				if t.Failed() {
					t.Fatalf("%s: the last case", name)
				}
			}
			if ok {
				for c := range inTurn(slices.Values(some(hostile.Whole(n), i, share)), slices.Values(hostile.Broken([]byte(body), n)), hostile.Changed([]byte(body), n, i, share), slices.Values(some(hostile.Packed([]byte(body), n/8), i, share))) {
					q := request{body: c.Data}
					if c.Encoding != "" {
						q.header = map[string]string{"Content-Encoding": c.Encoding}
					}
					try(c.Name, q, len(c.Data))
				}
			}
			for k, text := range some(hostile.Whole(8<<10), i, share) {
				word := url.QueryEscape(string(text.Data))
				for _, name := range append(slices.Clone(op.Query), "unheard") {
					try("the query "+name+" is "+text.Name, request{path: at(id) + "?" + name + "=" + word, body: ordinary.body}, 2*n)
				}
				if strings.Contains(op.Path, "{") && k%2 == 0 {
					path := strings.NewReplacer("{thread}", word, "{version}", word, "{artifact}", word, "{session}", word).Replace(op.Path)
					try("names in the address are "+text.Name, request{path: path, body: ordinary.body}, 2*n)
				}
			}
			for _, value := range []string{"", "*", `"`, `"99999999999999999999"`, strings.Repeat(`"1",`, 2000), "W/\"1\"", "\xff\xfe"} {
				try("If-Match "+value, request{header: map[string]string{"If-Match": value, "Last-Event-ID": value, "Authorization": "Bearer " + value, "Content-Type": value}, body: ordinary.body}, 2*n)
			}
			if status, answer := s.send(t, request{"GET", api.Root + "/" + thread(), nil, nil}); status != 200 {
				t.Errorf("an ordinary one after them: %d %.300s", status, answer)
			}
			w.tell(t, limit)
		})
	}
	t.Logf("%d cases in all, at most %v (%s) and %d MB (%s)", all.cases, all.cpu, all.slow, all.peak>>20, all.wide)
	f := s.do(t, order{}).figures
	s.http.CloseIdleConnections()
	if f.Goroutines > 200 || f.Files > 100 {
		t.Errorf("afterwards there are %d goroutines and %d open files", f.Goroutines, f.Files)
	}
}

// some is every so many-th of the cases, from another one on each time.
func some(cases []hostile.Case, first, share int) (list []hostile.Case) {
	for i := range cases {
		if (i+first)%max(1, share/4) == 0 {
			list = append(list, cases[i])
		}
	}
	return list
}
