package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// counting gives an agent a long history at whose end code at the provider goes on beside other calls: a cut
// before the newest messages parts it from the call that it makes last.
func counting(a *agent) (last []string) {
	a.user("Begin.")
	for n := range 40 {
		a.history = append(a.history, fmt.Sprintf(`{"role":"assistant","content":"Answer %d."}`, n))
		a.user(fmt.Sprintf("Question %d%s", n, strings.Repeat(", of the bolts", 40)))
	}
	a.tools, a.native = []string{"read"}, ""
	a.history = append(a.history,
		`{"role":"assistant","content":[{"type":"text","text":"I count."},{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"read()"}}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"row 1"}]}`)
	return []string{
		`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"read","input":{},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"row 2"}]}`,
	}
}

// TestCutMovesToValid: where a policy would cut between code at the provider and a call of it, the cut moves;
// where the call comes when the plan is in force already, another plan takes its place. The provider refuses
// neither request. G8
func TestCutMovesToValid(t *testing.T) {
	for _, later := range []bool{false, true} {
		up := proxytest.New(t)
		newest := policy.Custom{Ladder: strategy.Cut(cut.LastMessages{N: 2})}
		url, p := start(t, up, proxy.Options{Window: 4000, Config: palimpsest.Config{Counter: counter(), Policy: newest}})
		a := newAgent(t, wire.Anthropic, url, false)
		a.output = 100
		last := counting(a)
		if later {
			if s := a.peek(); s.action() != proxy.Compacted || strings.Contains(string(up.Requests()[0].Body), "srvtoolu_1") {
				t.Fatalf("before the call: status %d, %q: %.300s", s.status, s.action(), s.raw)
			}
			up.Forget()
		}
		a.history = append(a.history, last...)
		s := a.peek()
		sent := up.Requests()
		if len(sent) != 1 || s.status != 200 || s.action() != proxy.Compacted || !strings.Contains(string(sent[0].Body), `"id":"srvtoolu_1"`) || strings.Contains(string(sent[0].Body), "Question 1,") {
			t.Errorf("later %t: status %d, %q after %d requests, %+v: %.2000s", later, s.status, s.action(), len(sent), p.Totals(), sent[0].Body)
		}
	}
}

// TestLateResult: the result of a call that a plan hides comes steps later: it is shown as text behind the same
// prefix under the same plan, with a result of the client's as with one of the provider's. G2, G8
func TestLateResult(t *testing.T) {
	for name, c := range map[string]struct{ call, result, says string }{
		"the provider's": {`{"type":"multi_agent_call","call_id":"call_late","action":"spawn_agent","arguments":"{}"}`,
			`{"type":"multi_agent_call_output","call_id":"call_late","action":"spawn_agent","output":[{"type":"output_text","text":"late report"}]}`, "late report"},
		"the client's": {`{"type":"function_call","call_id":"call_late","name":"run","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"call_late","output":"late report"}`, "late report"},
	} {
		t.Run(name, func(t *testing.T) {
			up := proxytest.New(t)
			url, p := start(t, up, proxy.Options{Window: 12_000, Config: palimpsest.Config{Counter: counter()}})
			a := newAgent(t, wire.Responses, url, false)
			a.user("Begin.")
			a.history = append(a.history, c.call)
			for n := range 120 {
				a.user(fmt.Sprintf("Question %d%s", n, strings.Repeat(", of the bolts", 40)))
				a.history = append(a.history, fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Answer %d.","annotations":[]}]}`, n))
			}
			a.user("Go on.")
			if s := a.ask(); s.action() != proxy.Compacted || strings.Contains(string(up.Requests()[0].Body), `"call_late"`) {
				t.Fatalf("status %d, %q: %.300s", s.status, s.action(), s.raw)
			}
			a.history = append(a.history, c.result)
			a.user("And?")
			for range 2 {
				s := a.ask()
				a.user("Then?")
				sent := up.Requests()
				if last := string(sent[len(sent)-1].Body); s.status != 200 || s.action() != proxy.Planned || !strings.Contains(last, c.says) || strings.Contains(last, `"call_late"`) {
					t.Errorf("status %d, %q: %.600s ... %s", s.status, s.action(), last, last[max(0, len(last)-600):])
				}
			}
			prefixes(t, up.Requests(), 1)
			if totals := p.Totals(); totals.Compactions != 1 || totals.Faults != 0 {
				t.Errorf("totals: %+v", totals)
			}
		})
	}
}
