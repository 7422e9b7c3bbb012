package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// heldAgent is an agent whose history the provider holds: a request sends what is new, and names
// what that continues.
type heldAgent interface {
	ask() said
	run() // the task to its end
	held() *heldClient
}

// heldClient is what these agents have in common.
type heldClient struct {
	*agent
	previous string         // the answer that the next request continues
	whole    []string       // the history before the new messages, of clients that keep it
	actions  map[string]int // how often the proxy took each action
	replays  int            // how often the whole history was sent again
}

func newHeldClient(a *agent) *heldClient { return &heldClient{agent: a, actions: map[string]int{}} }

func (c *heldClient) held() *heldClient { return c }

// heldKinds are the ways to hold a history, with the member of a request that names it.
var heldKinds = []struct {
	name, member string
	agent        func(t testing.TB, url string, stream bool) heldAgent
}{
	{"response", "previous_response_id", func(t testing.TB, url string, stream bool) heldAgent { return newChained(t, url, stream) }},
	{"thread", "thread", func(t testing.TB, url string, stream bool) heldAgent { return newThreaded(t, url, stream) }},
	{"conversation", "conversation", func(t testing.TB, url string, stream bool) heldAgent { return newConversing(t, url, stream) }},
}

// heldUpstream is a provider that holds histories, for the task of so many steps.
func heldUpstream(t testing.TB, n int) *proxytest.Upstream {
	up := plainUpstream(t)
	up.Model = steps(n, false)
	return up
}

// holdNothing makes a provider one that holds no histories.
func holdNothing(up *proxytest.Upstream) {
	up.Chains = false
	up.Refuse = func(body []byte) string {
		switch {
		case gjson.GetBytes(body, "previous_response_id").Exists():
			return "Unknown parameter: 'previous_response_id'."
		case gjson.GetBytes(body, "thread").Exists():
			return "thread: Extra inputs are not permitted"
		}
		return ""
	}
}

// modelRequests are the requests that asked the model.
func modelRequests(up *proxytest.Upstream) []*proxytest.Request {
	return slices.DeleteFunc(up.Requests(), func(q *proxytest.Request) bool { return q.Prompt == nil && q.Refused == "" })
}

// lastBody is the body of the last request that asked the model.
func lastBody(up *proxytest.Upstream) string {
	all := modelRequests(up)
	return string(all[len(all)-1].Body)
}

func wantTexts(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%q is missing in %.500s", text, body)
		}
	}
}

// TestHeld: a history that the provider holds passes as it is below the mark. Above it the whole is
// put together here, the provider gets an ordinary request that fits, and the client sends
// no more than what is new. The task ends where the provider alone would have refused it.
func TestHeld(t *testing.T) {
	for _, kind := range heldKinds {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", kind.name, stream), func(t *testing.T) {
				t.Parallel()
				up := heldUpstream(t, 40)
				url, p := start(t, up, smallWindow())
				a := kind.agent(t, url, stream)
				c := a.held()
				c.user("Read all parts.")
				a.run()
				refusals(t, up)
				if totals := p.Totals(); totals.Faults != 0 || totals.Compactions < 1 || c.actions[proxy.Passed] < 3 || c.actions[proxy.Planned] < 3 || c.replays != 0 {
					t.Errorf("totals %+v, actions %v, %d replays", totals, c.actions, c.replays)
				}
				named, whole := 0, 0
				for n, q := range modelRequests(up) {
					switch {
					case gjson.GetBytes(q.Body, kind.member).Exists():
						named++
					case n > 0:
						whole++
					}
				}
				if named < 3 || whole < 3 {
					t.Errorf("%d requests named the history, %d held it", named, whole)
				}
				wantTexts(t, lastBody(up), "Read all parts.", "part_039.go", "You are a careful agent.", `"name":"read_file"`)
			})
		}
	}
}

// TestHeldRestart: a new proxy over the same store continues a history whose beginning it has not
// seen.
func TestHeldRestart(t *testing.T) {
	for _, kind := range heldKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			up := heldUpstream(t, 40)
			again := restarts(t, up)
			a := kind.agent(t, again(), true)
			c := a.held()
			c.user("Read all parts.")
			for n := range 17 {
				if n == 5 {
					c.url = again()
				}
				c.results(a.ask().calls, partOf)
			}
			c.url = again()
			a.run()
			refusals(t, up)
			if c.actions[proxy.Compacted] == 0 || c.replays != 0 {
				t.Errorf("actions %v, %d replays", c.actions, c.replays)
			}
		})
	}
}

// TestHeldElsewhere: a provider that holds no histories, or has forgotten one, gets the whole, and the
// client goes on as if it held it.
func TestHeldElsewhere(t *testing.T) {
	for _, kind := range heldKinds {
		for _, forgets := range []bool{false, true} {
			if kind.name == "conversation" && !forgets {
				continue // it cannot even be begun
			}
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, forgets %t, stream %t", kind.name, forgets, stream), func(t *testing.T) {
					t.Parallel()
					up := heldUpstream(t, 24)
					if !forgets {
						holdNothing(up)
					}
					url, p := start(t, up, smallWindow())
					a := kind.agent(t, url, stream)
					c := a.held()
					c.user("Read all parts.")
					for range 2 {
						c.results(a.ask().calls, partOf)
					}
					up.ForgetResponses()
					a.run()
					// What was said cannot be put into a conversation that the provider has forgotten.
					faults := p.Totals().Faults
					if refused := refusedBy(up); refused != 1 || faults != 0 && kind.name != "conversation" || c.replays != 0 {
						t.Errorf("%d requests were refused, %d faults, %d replays", refused, faults, c.replays)
					}
					if c.actions[proxy.Planned]+c.actions[proxy.Compacted] < 10 {
						t.Errorf("actions %v", c.actions)
					}
					wantTexts(t, lastBody(up), "Read all parts.", "part_023.go")
					for _, q := range modelRequests(up)[5:] {
						// The client marks the end of each of its requests, and means that of the conversation.
						messages := gjson.GetBytes(q.Body, "messages").Array()
						if kind.name == "thread" && !strings.Contains(messages[len(messages)-1].Raw, "cache_control") {
							t.Errorf("request %d: no mark at the end", q.N)
						}
					}
				})
			}
		}
	}
}

// TestHeldFork: two requests may continue the same answer, also if the provider lets only one do so.
func TestHeldFork(t *testing.T) {
	for _, kind := range heldKinds {
		if kind.name == "conversation" {
			continue // which has one end
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			up := plainUpstream(t)
			up.Model = func(q *proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: fmt.Sprint("answer ", q.N)} }
			url, p := start(t, up, smallWindow())
			a := kind.agent(t, url, false)
			c := a.held()
			say := func(text string) {
				c.user(text)
				if s := a.ask(); s.status != 200 {
					t.Fatalf("%d: %.300s", s.status, s.raw)
				}
			}
			for n := range 4 {
				say(result(n))
			}
			previous, whole := c.previous, c.whole
			for way, other := range map[string]string{"left": "right part_", "right": "left File"} {
				c.previous, c.whole = previous, whole
				for n := range 24 {
					say(way + " " + result(100+n))
				}
				full, _ := sjson.Delete(lastBody(up), "tools")
				if strings.Contains(full, other) || !strings.Contains(full, way+" File") {
					t.Errorf("%s: the last request is of the other way", way)
				}
			}
			if totals := p.Totals(); totals.Faults != 0 || totals.Compactions == 0 || c.replays != 0 {
				t.Errorf("%+v, %d replays", totals, c.replays)
			}
		})
	}
}
