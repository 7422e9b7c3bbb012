package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// conversation is user, call, result, answer; twice.
func conversation(t testing.TB) *thread.Thread {
	t.Helper()
	var messages []thread.Message
	for n := range 2 {
		id := fmt.Sprint("call", n)
		messages = append(messages,
			thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprint("ask ", n)}}},
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "read", Arguments: "{}"}}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "read"}}},
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: fmt.Sprint("done ", n)}}},
		)
	}
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

func empty(th *thread.Thread) plan.Plan {
	return plan.Plan{Schema: plan.SchemaVersion, ThreadID: th.ID(), ThreadVersion: th.Version()}
}

// TestPrecedence: Drop > Externalize > Summarize > Clear > Include, one action a
// message, overlaps reported. A4
func TestPrecedence(t *testing.T) {
	th := conversation(t)
	p := empty(th)
	p.Clearings = []plan.Clearing{{Span: th.Range(2, 3)}}
	p.Summarizations = []plan.Summarization{{Span: th.Range(0, 4)}, {Span: th.Range(3, 5)}}
	p.Externalizations = []plan.Externalization{{Span: th.Range(2, 3), ArtifactID: "art_1"}}
	p.Drops = []plan.Removal{{Span: th.Range(0, 1)}}

	n, warnings := p.Normalize()
	want := []plan.Action{plan.Drop, plan.Summarize, plan.Externalize, plan.Summarize, plan.Summarize, plan.Include, plan.Include, plan.Include}
	actions := n.Actions()
	for i, action := range want {
		if got := actions[th.At(i).ID].Action; got != action {
			t.Errorf("message %d: %s, want %s", i, got, action)
		}
	}
	if len(n.Clearings) != 0 || len(warnings) != 4 {
		t.Errorf("%d clearings left, warnings %q", len(n.Clearings), warnings)
	}
	if got := n.Summarizations[0].Span.First(); got != th.At(1).ID {
		t.Errorf("the summary begins at %s, not at its first remaining message", got)
	}
	if len(p.Clearings) != 1 || p.Summarizations[0].Span.Len() != 4 {
		t.Error("normalizing changed the draft")
	}
}

// TestValidate: what would part a call from its result, or does not belong to
// the thread, is refused with the record and the message. A2, A4
func TestValidate(t *testing.T) {
	th := conversation(t)
	open, err := th.Append(
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "more"}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "waits", Name: "read", Arguments: "{}"}}})
	if err != nil {
		t.Fatal(err)
	}
	stands := func(stand ...plan.Replacement) func(*plan.Plan) {
		return func(p *plan.Plan) { p.Summarizations = []plan.Summarization{{Span: th.Range(0, 3), Stand: stand}} }
	}
	tests := []struct {
		name string
		edit func(*plan.Plan)
		want string // part of the error; "" for valid
	}{
		{"nothing", func(*plan.Plan) {}, ""},
		{"clear a result", func(p *plan.Plan) { p.Clearings = []plan.Clearing{{Span: th.Range(2, 3)}} }, ""},
		{"externalize a result in place", func(p *plan.Plan) { p.Externalizations = []plan.Externalization{{Span: th.Range(2, 3)}} }, ""},
		{"drop a pair", func(p *plan.Plan) { p.Drops = []plan.Removal{{Span: th.Range(1, 3)}} }, ""},
		{"drop a call alone", func(p *plan.Plan) { p.Drops = []plan.Removal{{Span: th.Range(1, 2)}} }, "the call goes but its result"},
		{"summarize a call alone", func(p *plan.Plan) { p.Summarizations = []plan.Summarization{{Span: th.Range(0, 2)}} }, "the call goes but its result"},
		{"drop a result alone", func(p *plan.Plan) { p.Drops = []plan.Removal{{Span: th.Range(2, 3)}} }, "the result goes but its call"},
		{"touch an open call", func(p *plan.Plan) { p.Clearings = []plan.Clearing{{Span: open.Range(9, 10)}} }, "waits for a result"},
		{"empty span", func(p *plan.Plan) { p.Drops = []plan.Removal{{}} }, "has no messages"},
		{"unknown id", func(p *plan.Plan) { p.Drops = []plan.Removal{{Span: thread.Span{MessageIDs: []thread.ID{"x"}}}} }, "drops[0]: x: message id is not in the thread"},
		{"twice", func(p *plan.Plan) {
			p.Drops = []plan.Removal{{Span: th.Range(0, 1)}}
			p.Clearings = []plan.Clearing{{Span: th.Range(0, 1)}}
		}, "normalize"},
		{"a text of its own", stands(plan.Replacement{Text: "SUM"}, plan.Replacement{Role: thread.User, Text: "SUM"}, plan.Replacement{Role: thread.System, Text: "SUM"}, plan.Replacement{Role: thread.Assistant, Text: "SUM"}), ""},
		{"a result out of nothing", stands(plan.Replacement{Role: thread.Tool, Text: "SUM"}), "\"tool\""},
		{"a role that there is not", stands(plan.Replacement{Text: "SUM"}, plan.Replacement{Role: "tol", Text: "SUM"}), "\"tol\""},
		{"nothing in place of it", stands(plan.Replacement{Role: thread.User, Text: " \n"}), "has no text"},
		{"other thread", func(p *plan.Plan) { p.ThreadID = "other" }, "other"},
		{"edited later", func(p *plan.Plan) { p.Edited = 99 }, "edited at 99"},
		{"later version", func(p *plan.Plan) { p.ThreadVersion = 99 }, "version 99"},
		{"after its version", func(p *plan.Plan) { p.ThreadVersion = 2; p.Drops = []plan.Removal{{Span: th.Range(3, 4)}} }, "after the version 2"},
	}
	for _, tt := range tests {
		p := empty(open)
		tt.edit(&p)
		err := p.Validate(open)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !errors.Is(err, plan.ErrInvalid) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

// TestRewritten: what a model was sent before a compaction or an edit counts, whichever was
// last, and of a plan without records only the edit.
func TestRewritten(t *testing.T) {
	drops := []plan.Removal{{}}
	for want, p := range []*plan.Plan{
		nil,
		{ThreadVersion: 8, Edited: 1},
		{ThreadVersion: 8, Arrived: 6, Drops: drops},
		{ThreadVersion: 8, Arrived: 6, Edited: 3, Drops: drops},
		{ThreadVersion: 4, Edited: 3, Drops: drops},
	} {
		if got := p.Rewritten(); got != want {
			t.Errorf("%+v: %d, want %d", p, got, want)
		}
	}
}

// draw makes a random draft over a random thread; its spans overlap freely.
func draw(rt *rapid.T) (*thread.Thread, plan.Plan) {
	th := threadgen.Thread().Filter(func(t *thread.Thread) bool { return t.Len() > 0 }).Draw(rt, "thread")
	p := empty(th)
	for range rapid.IntRange(0, 8).Draw(rt, "records") {
		i := rapid.IntRange(0, th.Len()-1).Draw(rt, "from")
		j := rapid.IntRange(i+1, th.Len()).Draw(rt, "to")
		span, origin := th.Range(i, j), plan.Origin{Strategy: "s", Reason: "r", TokensBefore: 9, TokensAfter: 1}
		switch rapid.IntRange(0, 3).Draw(rt, "action") {
		case 0:
			p.Add(plan.Clearing{Span: span, PreservedFields: thread.Fields{"k": "v"}, Origin: origin})
		case 1:
			p.Add(plan.Summarization{Span: span, Summary: summary.Summary{Facts: []summary.Item{{Text: threadgen.Text().Draw(rt, "fact")}}}, SummaryTokens: 3, Origin: origin})
		case 2:
			p.Add(plan.Externalization{Span: span, ArtifactID: "art_1", RehydrateHint: "h", Origin: origin})
		default:
			p.Add(plan.Removal{Span: span, Origin: origin})
		}
	}
	return th, p
}

// TestNormalizeHolds: every covered message has one record, the one with the
// highest precedence; normalizing again changes nothing. A4
func TestNormalizeHolds(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th, p := draw(rt)
		n, _ := p.Normalize()
		seen := map[thread.ID]bool{}
		for _, ref := range n.Refs() {
			span := n.Record(ref).Covers()
			if err := span.Check(th); err != nil {
				rt.Fatal(err)
			}
			for _, id := range span.MessageIDs {
				if seen[id] {
					rt.Fatalf("%s is in two records", id)
				}
				seen[id] = true
			}
		}
		before, after := p.Actions(), n.Actions()
		if len(before) != len(after) {
			rt.Fatalf("%d messages were covered, now %d", len(before), len(after))
		}
		for id, ref := range before {
			if after[id].Action != ref.Action {
				rt.Fatalf("%s: %s became %s", id, ref.Action, after[id].Action)
			}
		}
		again, warnings := n.Normalize()
		if !reflect.DeepEqual(n, again) || len(warnings) > 0 {
			rt.Fatalf("normalizing twice changed something: %v", warnings)
		}
	})
}

// TestJSONRoundTrip: a plan survives JSON with all it holds. A3, A4
func TestJSONRoundTrip(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		_, p := draw(rt)
		p.CreatedAt = time.Date(2026, 11, 21, 3, 4, 5, 6, time.UTC)
		p.OriginalTokens, p.CompactedTokens, p.Policy, p.Counter = 10, 5, "auto", "o200k"
		data, err := json.Marshal(p)
		if err != nil {
			rt.Fatal(err)
		}
		q, err := plan.Parse(data)
		if err != nil {
			rt.Fatal(err)
		}
		second, err := json.Marshal(q)
		if err != nil {
			rt.Fatal(err)
		}
		if string(data) != string(second) {
			rt.Fatalf("wrote\n%s\nread back\n%s", data, second)
		}
		if d := plan.Diff(&p, q); len(d) > 0 {
			rt.Fatalf("the plan that was read back differs: %v", d)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	for _, data := range []string{``, `null`, `[]`, `{}`, `{"schema_version":2}`, `{"schema_version":0}`, `{"schema_version":1,"drops":7}`, `{"schema_version":1`,
		`{"schema_version":1,"summarizations":7}`, `{"schema_version":1,"summarizations":[{}]}`, `{"schema_version":1,"summarizations":[{"span":{"message_ids":["a"]}},{"span":{"message_ids":[]}}]}`, `{"schema_version":1,"summarizations":[7]}`} {
		if _, err := plan.Parse([]byte(data)); !errors.Is(err, plan.ErrSchema) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestDiff(t *testing.T) {
	th := conversation(t)
	a, b := empty(th), empty(th)
	a.Clearings = []plan.Clearing{{Span: th.Range(2, 3)}}
	b.Clearings = []plan.Clearing{{Span: th.Range(2, 3)}, {Span: th.Range(6, 7)}}
	b.Drops = []plan.Removal{{Span: th.Range(0, 1)}}
	got := plan.Diff(&a, &b)
	want := []plan.Change{
		{ID: th.At(6).ID, To: plan.Ref{Action: plan.Clear, Index: 1}},
		{ID: th.At(0).ID, To: plan.Ref{Action: plan.Drop}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if d := plan.Diff(&b, &b); len(d) > 0 {
		t.Errorf("a plan differs from itself: %+v", d)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"schema_version":1,"thread_id":"t","drops":[{"span":{"message_ids":["a"]}}]}`))
	f.Add([]byte(`{"schema_version":1,"summarizations":[{"span":{"message_ids":["a"]},"summary":{"facts":[{"text":"x"}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := plan.Parse(data)
		if err != nil {
			return
		}
		n, _ := p.Normalize()
		if _, warnings := n.Normalize(); len(warnings) > 0 {
			t.Fatalf("not idempotent: %v", warnings)
		}
		th := conversation(t)
		if p.Validate(th) == nil && !p.Empty() && p.ThreadID != th.ID() {
			t.Fatal("a plan of another thread holds")
		}
		plan.Diff(p, &n)
	})
}

// TestHostedUnit: of a call that ran at the provider, with what its program called, all is hidden or
// nothing, and nothing while it runs.
func TestHostedUnit(t *testing.T) {
	messages := []thread.Message{
		{ID: "ask", Role: thread.User, Parts: []thread.Part{thread.Text{Text: "count"}}},
		{ID: "starts", Role: thread.Assistant, Parts: []thread.Part{thread.Opaque{Kind: "code", Call: "s"}, thread.ToolCall{ID: "a", Name: "read", Parent: "s"}}},
		{ID: "read", Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "a", Tool: "read"}}},
		{ID: "ends", Role: thread.Assistant, Parts: []thread.Part{thread.Opaque{Kind: "out", Call: "s", Answers: true}}},
	}
	for n, valid := range map[int]map[[2]int]bool{
		4: {{0, 1}: true, {1, 4}: true, {0, 4}: true, {1, 3}: false, {0, 2}: false, {3, 4}: false},
		3: {{0, 1}: true, {1, 3}: false, {0, 3}: false},
	} {
		th, err := thread.New("t").Append(messages[:n]...)
		if err != nil {
			t.Fatal(err)
		}
		for span, want := range valid {
			p := &plan.Plan{ThreadID: "t", ThreadVersion: n, Drops: []plan.Removal{{Span: th.Range(span[0], span[1])}}}
			if err := p.Validate(th); (err == nil) != want {
				t.Errorf("of %d messages, %d to %d: %v, want valid %t", n, span[0], span[1], err, want)
			}
		}
	}
}

// TestLateResult: a plan that hides a call stays valid when the result comes after somebody has spoken.
func TestLateResult(t *testing.T) {
	person := func(id thread.ID) thread.Message {
		return thread.Message{ID: id, Role: thread.User, Parts: []thread.Part{thread.Text{Text: "go on"}}}
	}
	for name, c := range map[string]struct{ call, result thread.Message }{
		"of the client":   {thread.Message{ID: "call", Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "a", Name: "read"}}}, thread.Message{ID: "result", Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "a", Tool: "read"}}}},
		"of the provider": {thread.Message{ID: "call", Role: thread.Assistant, Parts: []thread.Part{thread.Opaque{Kind: "code", Call: "a"}}}, thread.Message{ID: "result", Role: thread.Assistant, Parts: []thread.Part{thread.Opaque{Kind: "out", Call: "a", Answers: true}}}},
		"as an output":    {thread.Message{ID: "call", Role: thread.Assistant, Parts: []thread.Part{thread.Opaque{Kind: "code", Call: "a"}}}, thread.Message{ID: "result", Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "a"}}}},
	} {
		th, err := thread.New("t").Append(person("ask"), c.call, person("next"))
		if err != nil {
			t.Fatal(err)
		}
		p := &plan.Plan{ThreadID: "t", ThreadVersion: 3, Drops: []plan.Removal{{Span: th.Range(0, 2)}}}
		if err := p.Validate(th); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if th, err = th.Append(c.result, person("last")); err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(th); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
