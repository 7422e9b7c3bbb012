package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// places are where the proxy runs: in the agent's process, as the transport of
// its SDK, or as a server that the SDK is pointed at by its base URL.
var places = []string{"transport", "server"}

// through returns the ordinary agent of an API whose requests go to the server by
// way of a proxy, and what it was answered.
func through(t *testing.T, place, api string, server *llmtest.Server, stream bool, o proxy.Options) (*ordinary, *witness, func() proxy.Totals) {
	t.Helper()
	if place == "transport" {
		p, err := proxy.NewTransport(&o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.CloseIdleConnections)
		w := &witness{to: p}
		return newOrdinary(newClient(api, server.URL, &http.Client{Transport: w}), stream), w, p.Totals
	}
	o.Anthropic, o.OpenAI = server.URL, server.URL+"/v1"
	p, err := proxy.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	w := &witness{to: front.Client().Transport}
	return newOrdinary(newClient(api, front.URL, &http.Client{Transport: w}), stream), w, p.Totals
}

// witness sees every byte between the SDK and the proxy.
type witness struct {
	to      http.RoundTripper
	mu      sync.Mutex
	asked   []string // bodies of requests
	answers []*testimony
}

// testimony is an answer as the SDK reads it.
type testimony struct {
	io.ReadCloser
	status int
	action string
	said   bytes.Buffer
}

func (a *testimony) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.said.Write(p[:n])
	return n, err
}

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	res, err := w.to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &testimony{ReadCloser: res.Body, status: res.StatusCode, action: res.Header.Get(proxy.ActionHeader)}
	w.asked, w.answers = append(w.asked, string(body)), append(w.answers, a)
	res.Body = a
	return res, nil
}

// ours is a call of a tool that the agent does not have, in any API.
var ours = regexp.MustCompile(`"name":\s*"(?:` + recall.RecallTool + `|` + recall.ReadArtifactTool + `)"`)

// unseen checks that the agent saw nothing of the proxy: no refusal, no tools of
// it, neither in answers nor in what it keeps.
func unseen(t *testing.T, a *ordinary, w *witness) {
	t.Helper()
	for i, answer := range w.answers {
		if answer.status >= 400 && answer.status < 500 && answer.status != http.StatusTooManyRequests {
			t.Errorf("answer %d has the status %d: %.300s", i, answer.status, answer.said.String())
		}
		if found := ours.FindString(answer.said.String()); found != "" {
			t.Errorf("answer %d shows the agent %s", i, found)
		}
	}
	kept, err := json.Marshal(a.history.params())
	if err != nil {
		t.Fatal(err)
	}
	if found := ours.Find(kept); found != nil {
		t.Errorf("the agent's history has %s", found)
	}
}

// finish lets the agent do the task and checks what came of it.
func finish(t *testing.T, a *ordinary, w *witness) {
	t.Helper()
	report, err := a.run(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, p := range a.world.problems(report) {
		t.Error(p)
	}
	unseen(t, a, w)
}

// lookups counts the calls of the proxy's tools whose answers the model got.
func lookups(requests []llmtest.Request) int {
	seen := map[string]bool{}
	for _, r := range requests {
		for i := range r.Prompt.Messages {
			for _, c := range r.Prompt.Messages[i].Calls() {
				if c.Name == recall.RecallTool || c.Name == recall.ReadArtifactTool {
					seen[c.ID] = true
				}
			}
		}
	}
	return len(seen)
}

// looksUp reports whether a request is a further round: it ends with what the proxy
// answered.
func looksUp(r llmtest.Request) bool {
	messages := r.Prompt.Messages
	for i := len(messages) - 1; i >= 0; i-- {
		for _, c := range messages[i].Calls() {
			if c.Name == recall.RecallTool || c.Name == recall.ReadArtifactTool {
				return true
			}
		}
		if messages[i].Role == thread.Assistant {
			return false
		}
	}
	return false
}

// TestOrdinaryAgent: an agent that knows nothing of the proxy, written with the
// official SDK, finishes a task of five times its window through it. It sees
// neither a refusal nor a tool that is not its own, and the usage that it is told
// is what the provider counted of the last round. A21
func TestOrdinaryAgent(t *testing.T) {
	for _, place := range places {
		for _, api := range apis {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/stream=%t", place, api, stream), func(t *testing.T) {
					t.Parallel()
					server := llmtest.NewProvider(t, llmtest.Provider{Windows: windows, Reply: reply})
					a, w, totals := through(t, place, api, server, stream, proxy.Options{Window: window})
					finish(t, a, w)
					for _, r := range server.Refused() {
						t.Errorf("a request of %d tokens was refused: %d %s", r.Request.Tokens, r.Status, r.Message)
					}
					requests, input := server.Requests(), 0
					for i, r := range requests {
						if i+1 == len(requests) || !looksUp(requests[i+1]) {
							input += r.Tokens // of several rounds the agent is told of the last
						}
					}
					if a.used.Input != input || a.used.Output == 0 {
						t.Errorf("the agent was told of %d tokens, the provider counted %d", a.used.Input, input)
					}
					sum, looked := totals(), lookups(requests)
					if sum.Compactions < 5 || sum.Faults > 0 || sum.Recovered > 0 {
						t.Errorf("%+v", sum)
					}
					if looked == 0 || len(requests) <= len(w.answers) {
						t.Errorf("%d lookups in %d requests for %d of the agent: the proxy answered none", looked, len(requests), len(w.answers))
					}
					t.Logf("%d requests for %d of the agent, %d lookups, %+v", len(requests), len(w.answers), looked, sum)
				})
			}
		}
	}
}

// TestOrdinaryAgentUnsteady: the same with a provider that fails now and then and
// counts more than the proxy, so that it refuses what should fit.
func TestOrdinaryAgentUnsteady(t *testing.T) {
	for i, api := range apis {
		place, stream := places[i%2], i != 1
		t.Run(fmt.Sprintf("%s/%s/stream=%t", place, api, stream), func(t *testing.T) {
			t.Parallel()
			u := &unsteady{every: 17, asked: map[string]int{}, given: map[string]int{}}
			server := llmtest.NewProvider(t, llmtest.Provider{Windows: windows, Reply: u.reply})
			a, w, totals := through(t, place, api, server, stream, proxy.Options{Window: window})
			finish(t, a, w)
			for _, r := range server.Refused() {
				t.Errorf("a request of %d tokens was refused: %d %s", r.Request.Tokens, r.Status, r.Message)
			}
			for _, kind := range []string{"429", "500", "overloaded", "cut off", "overflow"} {
				if u.given[kind] == 0 {
					t.Errorf("the provider never failed by %q: %v", kind, u.given)
				}
			}
			sum := totals()
			if sum.Compactions < 5 || sum.Faults > 0 || sum.Recovered == 0 {
				t.Errorf("%+v", sum)
			}
			t.Logf("%d requests for %d of the agent, %d again, %v, %+v", len(server.Requests()), len(w.answers), a.again, u.given, sum)
		})
	}
}

// full is a store that takes nothing more for a while.
type full struct {
	store.Memory
	mu    sync.Mutex
	fails int // so many times still
}

func (f *full) Append(ctx context.Context, id string, version int, messages []thread.Message) (*thread.Thread, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails > 0 {
		f.fails--
		return nil, errors.New("no space left on device")
	}
	return f.Memory.Append(ctx, id, version, messages)
}

// TestOrdinaryAgentFullDisk: where the store takes nothing the agent goes on as
// without a proxy, byte for byte, to the end of its window.
func TestOrdinaryAgentFullDisk(t *testing.T) {
	for i, api := range apis {
		for j, stream := range []bool{false, true} {
			place := places[(i+j)%2]
			t.Run(fmt.Sprintf("%s/%s/stream=%t", place, api, stream), func(t *testing.T) {
				t.Parallel()
				server := llmtest.NewProvider(t, llmtest.Provider{Windows: windows, Reply: reply})
				disk := &full{fails: 1 << 20}
				a, w, totals := through(t, place, api, server, stream, proxy.Options{Window: window, Config: palimpsest.Config{Store: store.Tenant{Log: disk, Plans: disk}}})
				_, err := a.run(t.Context())
				if !overflowed(a.client, err) {
					t.Errorf("the run ended with %v", err)
				}
				requests := server.Requests()
				if len(requests) != len(w.asked) {
					t.Fatalf("%d requests for %d of the agent", len(requests), len(w.asked))
				}
				for i, r := range requests {
					if r.Body != w.asked[i] {
						t.Errorf("request %d is not the agent's", i)
					}
				}
				if last := requests[len(requests)-1]; last.Tokens+maxOutput <= window || len(a.world.read) < 5 {
					t.Errorf("the agent ended after %d manifests, at %d tokens", len(a.world.read), last.Tokens)
				}
				if sum := totals(); sum.Faults == 0 || sum.Edited > 0 {
					t.Errorf("%+v", sum)
				}
			})
		}
	}
}

// TestOrdinaryAgentRoomAgain: where the store takes messages again before the
// window is full, the task is finished as if nothing had been.
func TestOrdinaryAgentRoomAgain(t *testing.T) {
	for i, api := range apis {
		place, stream := places[i%2], i%2 == 0
		t.Run(fmt.Sprintf("%s/%s/stream=%t", place, api, stream), func(t *testing.T) {
			t.Parallel()
			server := llmtest.NewProvider(t, llmtest.Provider{Windows: windows, Reply: reply})
			disk := &full{fails: 2}
			a, w, totals := through(t, place, api, server, stream, proxy.Options{Window: window, Config: palimpsest.Config{Store: store.Tenant{Log: disk, Plans: disk}}})
			finish(t, a, w)
			if sum := totals(); sum.Faults != 2 || sum.Compactions < 5 {
				t.Errorf("%+v", sum)
			}
		})
	}
}
