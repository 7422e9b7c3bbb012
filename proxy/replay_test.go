package proxy_test

import (
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var windows = []int{32_000, 64_000, 128_000}

// restartEvery is after how many steps the proxy of a third run is started anew.
const restartEvery = 40

// TestReplay: real sessions, step by step, their first steps only unless the run
// is a long one. No request is refused, none is over
// the window, the prefix holds between compactions, and neither a second run nor
// a proxy that is started anew over the same store sends anything else.
func TestReplay(t *testing.T) {
	steps := 44 // beyond restartEvery
	if corpus.Long() {
		steps = 120
	}
	for _, c := range corpus.EveryNth([]struct {
		file, api string
		size      int
	}{
		{"pi-mono/before-compaction.jsonl.gz", "anthropic", 32_000},
		{"entire-cli/long-63bd3f9b02f2-0.jsonl.gz", "responses", 64_000},
		{"entire-cli/long-63bd3f9b02f2-0.jsonl.gz", "gemini", 32_000},
		{"entire-cli/long-bccb77bb88fa-1.jsonl.gz", "anthropic", 128_000},
		{"vscode-copilot-chat/claude-30530d66.jsonl.gz", "openai", 32_000},
	}, 4) {
		t.Run(fmt.Sprintf("%s, %s, %d", filepath.Dir(c.file), c.api, c.size), func(t *testing.T) {
			t.Parallel()
			for _, r := range record(t, c.file, c.api, steps) {
				r.replay(t, []int{c.size}, filepath.Join(t.TempDir(), "threads.db"))
			}
		})
	}
}

// TestReplayAll is TestReplay with every step of every long session, at every
// window, for every API. It takes half an hour, and so runs only where it is asked
// for. What it saw stands in e2e/agents/results.md.
func TestReplayAll(t *testing.T) {
	if os.Getenv("PALIMPSEST_TEST_REPLAY") != "all" {
		t.Skip("half an hour long: set PALIMPSEST_TEST_REPLAY=all")
	}
	var mu sync.Mutex
	sums := map[string]*replayed{}
	t.Run("sessions", func(t *testing.T) {
		for _, pattern := range []string{"pi-mono/*.gz", "vscode-copilot-chat/*.gz", "own-runs/*.gz", "entire-cli/long-*.gz"} {
			files, err := filepath.Glob(filepath.Join(corpus.Dir(t, "transcripts"), pattern))
			if err != nil || len(files) == 0 {
				t.Fatal("no file is called ", pattern)
			}
			for _, file := range files {
				rel := filepath.Join(filepath.Dir(pattern), filepath.Base(file))
				for _, api := range apis {
					t.Run(rel+"/"+api, func(t *testing.T) {
						t.Parallel()
						for _, r := range record(t, rel, api, 1<<20) {
							for size, one := range r.replay(t, windows, "") {
								mu.Lock()
								key := fmt.Sprint(api, size)
								if sums[key] == nil {
									sums[key] = &replayed{}
								}
								sums[key].add(one)
								mu.Unlock()
							}
						}
					})
				}
			}
		}
	})
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| API\t| window\t| sessions\t| requests\t| refused\t| over the window\t| compactions\t| the client's own changes\t| prefix kept, mean\t| steps that keep all\t| second run differs\t| after restart differs\t|")
	for _, api := range apis {
		for _, size := range windows {
			if r := sums[fmt.Sprint(api, size)]; r != nil {
				fmt.Fprintf(w, "| %s\t| %d\t| %d\t| %d\t| %d\t| %d\t| %d\t| %d\t| %.2f %%\t| %.2f %%\t| %d\t| %d\t|\n", api, size, r.sessions, r.requests, r.refused, r.over, r.compactions, r.own,
					100*r.kept/float64(max(r.steps, 1)), 100*float64(r.whole)/float64(max(r.steps, 1)), r.second, r.restarted)
			}
		}
	}
	w.Flush()
	t.Logf("what was replayed:\n%s", b.String())
}

// replayed is what was seen of a session at one window.
type replayed struct {
	sessions, requests, refused, over, compactions int
	own                                            int // steps at which the client itself begins otherwise
	// steps are those behind the first. kept is the sum of the shares of what was
	// sent before that the next request begins with, whole how often it is all.
	steps, whole      int
	kept              float64
	second, restarted int // requests that were not the same as in the first run
}

func (r *replayed) add(o *replayed) {
	r.sessions += o.sessions
	r.requests += o.requests
	r.refused += o.refused
	r.over += o.over
	r.compactions += o.compactions
	r.own += o.own
	r.steps += o.steps
	r.whole += o.whole
	r.kept += o.kept
	r.second += o.second
	r.restarted += o.restarted
}

// replay sends the steps of a session at every window, three times each: to one
// proxy, to another one with a store of its own, and to proxies that are started
// anew over one store: in a file of SQLite's, or, without a name for it, in memory.
func (r *recording) replay(t *testing.T, windows []int, file string) map[int]*replayed {
	t.Helper()
	provider := &provider{up: proxytest.New(t), seed: maphash.MakeSeed(), seen: map[[32]byte]*asked{}}
	provider.up.Count = counted()
	front := httptest.NewServer(provider)
	defer front.Close()
	own := r.breaks()
	all := map[int]*replayed{}
	for _, size := range windows {
		out := &replayed{sessions: 1, requests: len(r.asked), own: own}
		all[size] = out
		first, totals := r.run(t, provider, front.URL, size, 0, "")
		out.compactions = int(totals.Compactions)
		if totals.Faults != 0 || totals.Recovered != 0 {
			t.Errorf("%s at %d: %+v", r.name, size, totals)
		}
		var before []element
		for i, sum := range first {
			q := provider.seen[sum]
			if q.refused != "" {
				out.refused++
				t.Errorf("%s at %d: request %d was refused: %.300s", r.name, size, i, q.refused)
			}
			if q.tokens > size {
				out.over++
				t.Errorf("%s at %d: request %d has %d tokens", r.name, size, i, q.tokens)
			}
			if q.own {
				t.Errorf("%s at %d: request %d ends with the model's own turn", r.name, size, i)
			}
			if i > 0 {
				out.steps++
				same := common(before, q.elements)
				if same >= len(before)-1 { // what ends a request may grow in the next one
					out.whole++
				}
				out.kept += float64(length(before[:same])) / float64(length(before))
			}
			before = q.elements
		}
		if broken := out.steps - out.whole; broken > out.compactions+own {
			t.Errorf("%s at %d: %d requests part from the one before, after %d compactions", r.name, size, broken, out.compactions)
		}
		second, _ := r.run(t, provider, front.URL, size, 0, "")
		out.second = r.differ(t, size, first, second, "a second run")
		third, _ := r.run(t, provider, front.URL, size, restartEvery, file)
		out.restarted = r.differ(t, size, first, third, "a proxy that is started anew")
		t.Logf("%s at %d: %d steps, %d compactions, %.1f %% of the prefix kept, all of it at %d of %d steps",
			r.name, size, len(r.asked), out.compactions, 100*out.kept/float64(max(out.steps, 1)), out.whole, out.steps)
	}
	return all
}

// run sends every step, and returns which requests arrived.
func (r *recording) run(t *testing.T, up *provider, url string, size, restart int, file string) ([][32]byte, proxy.Totals) {
	t.Helper()
	up.arrived = nil
	memory := &store.Memory{}
	o := proxy.Options{Anthropic: url, OpenAI: url + "/v1", Gemini: url, Window: size, Base: plainly}
	// The same clock for every run: times of arrival stand in summaries.
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	o.Config = palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: memory, Plans: memory}, Now: func() time.Time { return noon }}
	var totals proxy.Totals
	var p *proxy.Proxy
	stop := func() {}
	begin := func() string {
		var db *sqlite.DB
		var err error
		if file != "" {
			if db, err = sqlite.Open(t.Context(), file, nil); err != nil {
				t.Fatal(err)
			}
			kept := db.Tenant("")
			o.Config.Store.Log, o.Config.Store.Plans = kept.Log, kept.Plans
		}
		if p, err = proxy.New(&o); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(p)
		stop = func() {
			server.Close()
			totals.Compactions += p.Totals().Compactions
			if db != nil {
				db.Close()
			}
		}
		return server.URL
	}
	at := begin()
	defer func() { stop() }()
	for i := range r.asked {
		if restart > 0 && i%restart == restart-1 {
			stop()
			at = begin()
		}
		res, err := plainly.RoundTrip(request(t, at+paths[r.api], r.body(i)))
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("%s at %d: step %d of %d: status %d: %.300s", r.name, size, i, len(r.asked), res.StatusCode, said)
		}
		if len(up.arrived) != i+1 {
			t.Fatalf("%s at %d: step %d of %d made %d requests", r.name, size, i, len(r.asked), len(up.arrived)-i)
		}
	}
	now := p.Totals()
	now.Compactions += totals.Compactions
	return up.arrived, now
}

// differ counts the requests that are not those of the first run.
func (r *recording) differ(t *testing.T, size int, first, other [][32]byte, who string) int {
	t.Helper()
	n := 0
	for i := range first {
		if first[i] != other[i] {
			if n++; n == 1 {
				t.Errorf("%s at %d: %s sends something else at request %d", r.name, size, who, i)
			}
		}
	}
	return n
}

// common is how many elements two requests have in common at their beginning.
func common[E comparable](a, b []E) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func length(list []element) int {
	n := 0
	for _, e := range list {
		n += e.bytes
	}
	return n
}

// element is one of those that the function of that name finds, without its text.
type element struct {
	sum   uint64
	bytes int
}

// provider is a strict upstream that looks at a request only the first time that
// it gets it, because a session is replayed again and again. One client at a time
// may ask it.
type provider struct {
	up      *proxytest.Upstream
	seed    maphash.Seed
	seen    map[[32]byte]*asked
	arrived [][32]byte
}

// asked is what a provider knows of a request.
type asked struct {
	refused  string
	tokens   int
	own      bool // it ends with the model's own turn
	elements []element
	status   int
	answer   []byte
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	sum := sha256.Sum256(body)
	p.arrived = append(p.arrived, sum)
	q := p.seen[sum]
	if q == nil {
		q = p.ask(r, body)
		p.seen[sum] = q
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(q.status)
	w.Write(q.answer)
}

func (p *provider) ask(r *http.Request, body []byte) *asked {
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	said := httptest.NewRecorder()
	p.up.ServeHTTP(said, r)
	got := p.up.Requests()[0]
	p.up.Forget()
	q := &asked{refused: got.Refused, tokens: got.Tokens, status: said.Code, answer: said.Body.Bytes()}
	for _, e := range elements(got) {
		q.elements = append(q.elements, element{maphash.String(p.seed, e), len(e)})
	}
	if got.Prompt != nil {
		m := got.Prompt.Messages
		q.own = m[len(m)-1].Role == thread.Assistant
	}
	return q
}
