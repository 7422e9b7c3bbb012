package proxy_test

import (
	"bytes"

	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestThreads: which requests go on with one log, and which are forks.
func TestThreads(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			url, p := start(t, up, smallWindow())
			a := newAgent(t, api, url, false)
			a.header.Set("X-Session-Id", "ses_1")
			a.grow(0, 24)
			first := a.peek()
			a.grow(24, 3)
			second := a.peek()
			if first.thread() == "" || first.thread() != second.thread() {
				t.Errorf("two steps of one conversation are %q and %q", first.thread(), second.thread())
			}
			if first.action() != proxy.Compacted || second.action() != proxy.Planned {
				t.Errorf("the steps were %q and %q", first.action(), second.action())
			}
			if again := a.peek(); again.thread() != second.thread() || again.action() != proxy.Planned {
				t.Errorf("the same request again is %q, %q", again.thread(), again.action())
			}
			whole := a.history

			// A rewind: the history ends earlier, and goes on otherwise.
			rewound := *a
			rewound.history = append([]string(nil), whole[:len(whole)-2]...)
			back := rewound.peek()
			if back.thread() == second.thread() || back.action() != proxy.Planned {
				t.Errorf("a rewind is %q, %q", back.thread(), back.action())
			}
			rewound.grow(99, 1)
			other := rewound.peek()
			if other.thread() == second.thread() || other.action() != proxy.Planned {
				t.Errorf("a fork is %q, %q: the plan should still hold", other.thread(), other.action())
			}
			rewound.grow(100, 1)
			if next := rewound.peek(); next.thread() != other.thread() || next.action() != proxy.Planned {
				t.Errorf("the fork goes on as %q, %q", next.thread(), next.action())
			}

			// An edit in the middle of what the plan covers.
			edited := *a
			edited.history = append([]string(nil), whole...)
			edited.history[4] = strings.Replace(edited.history[4], "handle1_3", "handleX", 1)
			if s := edited.peek(); s.thread() == second.thread() || s.status != 200 {
				t.Errorf("an edit is %q, %q, status %d", s.thread(), s.action(), s.status)
			}

			// The client's own compaction: another first message.
			fresh := *a
			fresh.history = nil
			fresh.user("This session is being continued from a previous conversation. Summary: all went well.")
			fresh.history = append(fresh.history, whole[1:]...)
			if s := fresh.peek(); s.thread() == second.thread() || s.status != 200 {
				t.Errorf("the client's own compaction is %q, status %d", s.thread(), s.status)
			}

			// Another model, another session.
			for name, change := range map[string]func(*agent){
				"model":   func(a *agent) { a.model = "other-model" },
				"session": func(a *agent) { a.header = a.header.Clone(); a.header.Set("X-Session-Id", "ses_2") },
			} {
				b := *a
				change(&b)
				if s := b.peek(); name == "model" && s.thread() == second.thread() || s.status != 200 {
					t.Errorf("another %s is %q, status %d", name, s.thread(), s.status)
				}
			}

			// The log goes on where it was.
			a.grow(27, 1)
			if s := a.peek(); s.thread() != second.thread() || s.action() != proxy.Planned {
				t.Errorf("after all that the conversation is %q, %q", s.thread(), s.action())
			}
			for _, q := range up.Requests() {
				if q.Refused != "" {
					t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
				}
			}
			if totals := p.Totals(); totals.Faults != 0 {
				t.Errorf("totals: %+v", totals)
			}
		})
	}
}

// peek asks without going on.
func (a *agent) peek() said {
	a.t.Helper()
	s, err := a.try()
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

func (s said) thread() string { return s.header.Get(proxy.ThreadHeader) }
func (s said) action() string { return s.header.Get(proxy.ActionHeader) }

// TestNamedThread: the header names the log, and nothing of it goes upstream.
func TestNamedThread(t *testing.T) {
	up := strict(t)
	url, _ := start(t, up, smallWindow())
	a := newAgent(t, wire.Chat, url, false)
	a.header.Set(proxy.ThreadHeader, "ticket-4711")
	a.grow(0, 2)
	if s := a.peek(); s.thread() != "ticket-4711" || s.action() != proxy.Passed {
		t.Errorf("%q, %q", s.thread(), s.action())
	}
	a.header.Set(proxy.ThreadHeader, "no id of ours: äöü")
	if s := a.peek(); !strings.HasPrefix(s.thread(), "px-") {
		t.Errorf("%q", s.thread())
	}
	for _, q := range up.Requests() {
		if q.Header.Get(proxy.ThreadHeader) != "" {
			t.Error("our header went upstream")
		}
	}
}

// TestSideRequests: requests that are no steps of the agent pass unchanged.
func TestSideRequests(t *testing.T) {
	up := proxytest.New(t)
	url, p := start(t, up, proxy.Options{Window: 20_000, Config: palimpsest.Config{Counter: counter()}})
	for _, api := range apis {
		a := newAgent(t, api, url, false)
		a.tools = nil
		a.user("Give this conversation a title of five words: " + strings.Repeat("It was about queues and orders. ", 3000))
		if api == wire.Gemini {
			continue // its test client always sends a tools member
		}
		want := a.body()
		if s := a.peek(); s.action() != proxy.Passed || s.header.Get(proxy.ReasonHeader) != "side-request" {
			t.Errorf("%s: %q, %q", api, s.action(), s.header.Get(proxy.ReasonHeader))
		}
		if got := up.Requests(); !bytes.Equal(got[len(got)-1].Body, want) {
			t.Errorf("%s: the body changed", api)
		}
	}
	if totals := p.Totals(); totals.Edited != 0 {
		t.Errorf("totals: %+v", totals)
	}
}

// TestRestart: a second proxy over the same store sends the same bytes as the
// first would have.
func TestRestart(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			memory := &store.Memory{}
			run := func(restart bool) []*proxytest.Request {
				up := strict(t)
				o := smallWindow()
				kept := &store.Memory{}
				if restart {
					kept = memory
				}
				o.Config.Store.Log, o.Config.Store.Plans = kept, kept
				url, _ := start(t, up, o)
				a := newAgent(t, api, url, false)
				a.grow(0, 10)
				for n := 10; n < 30; n++ {
					if restart && n%5 == 0 {
						a.url, _ = start(t, up, o)
					}
					a.grow(n, 1)
					if s := a.peek(); s.status != 200 {
						t.Fatalf("status %d: %.300s", s.status, s.raw)
					}
				}
				return up.Requests()
			}
			once, often := run(false), run(true)
			for i := range once {
				if !bytes.Equal(once[i].Body, often[i].Body) {
					t.Fatalf("request %d of %d differs after a restart", i+1, len(once))
				}
			}
		})
	}
}

// TestCounts: a request to count tokens is about what would be sent.
func TestCounts(t *testing.T) {
	up := strict(t)
	url, _ := start(t, up, smallWindow())
	a := newAgent(t, wire.Anthropic, url, false)
	a.grow(0, 24)
	if s := a.peek(); s.action() != proxy.Compacted {
		t.Fatal(s.action())
	}
	a.grow(24, 1)
	whole := a.body()
	res := post(t, url+"/v1/messages/count_tokens?beta=true", whole, nil)
	if got := res.Header.Get(proxy.ActionHeader); got != proxy.Planned {
		t.Errorf("the count was %q", got)
	}
	s := a.peek()
	requests := up.Requests()
	counted, sent := requests[len(requests)-2], requests[len(requests)-1]
	if s.action() != proxy.Planned || !bytes.Equal(counted.Body, sent.Body) || bytes.Equal(whole, sent.Body) {
		t.Errorf("counted were %d bytes, sent %d, the client's are %d", len(counted.Body), len(sent.Body), len(whole))
	}
}

// TestGrowsPastSmall: a conversation that was too small to be looked at is
// recognised whole once it has grown, and is one conversation from then on.
func TestGrowsPastSmall(t *testing.T) {
	for _, api := range half(t) {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			memory := &store.Memory{}
			url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: memory, Plans: memory}}})
			a := newAgent(t, api, url, false)
			a.user("Count the parts. Never change a file.")
			small, large := 0, 0
			thread := ""
			for n := range 40 {
				s := a.ask()
				if s.status != 200 {
					t.Fatalf("status %d: %.300s", s.status, s.raw)
				}
				switch {
				case s.thread() == "":
					small++
					if len(up.Requests()[n].Body) > 12<<10 || large > 0 {
						t.Errorf("step %d has no thread", n)
					}
				case thread == "":
					thread = s.thread()
					fallthrough
				default:
					large++
					log, err := memory.Load(t.Context(), thread)
					if err != nil {
						t.Fatal(err)
					}
					// The answer of this step comes with the next.
					if want := 2*n + 1; log.Len() != want || s.thread() != thread {
						t.Fatalf("step %d: the log %q of %d messages, want %d of %q", n, s.thread(), log.Len(), want, thread)
					}
					if first := log.At(0).Text(); first != "Count the parts. Never change a file." {
						t.Fatalf("the log begins with %q", first)
					}
				}
				a.user(strings.Repeat("More of it, if you please. ", 30+n*20))
			}
			if totals := p.Totals(); small < 3 || large < 20 || totals.Compactions < 1 || totals.Faults != 0 {
				t.Errorf("%d small steps, %d large, totals %+v", small, large, totals)
			}
			refused(t, up.Requests())
		})
	}
}
