package render_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestMemo: whatever the thread, the plan and the steps in which it grows, a
// memo renders what Render renders.
func TestMemo(t *testing.T) {
	for _, api := range threadgen.APIs {
		t.Run(api, func(t *testing.T) {
			property.Check(t, func(rt *rapid.T) {
				th := threadgen.Thread().Draw(rt, "thread")
				var memo render.Memo
				n := 0
				for n < th.Len() {
					var p *plan.Plan
					if rapid.Bool().Draw(rt, "with a plan") {
						p = drawnPlan(th.Prefix(n)).Draw(rt, "plan")
					}
					for range rapid.IntRange(1, 6).Draw(rt, "steps under it") {
						n = min(th.Len(), n+rapid.IntRange(0, 4).Draw(rt, "messages"))
						o := &render.Options{Profile: render.For(api), Rewritten: rapid.SampledFrom([]int{0, 0, n / 2, n}).Draw(rt, "rewritten")}
						want, wantManifest, wantErr := render.Render(th.Prefix(n), p, base(api), o)
						got, manifest, err := memo.Render(th.Prefix(n), p, base(api), o)
						if wantErr != nil || err != nil {
							if wantErr == nil || err == nil || err.Error() != wantErr.Error() {
								rt.Fatalf("at %d messages the memo says %v, a first rendering %v", n, err, wantErr)
							}
							break // a result came late for a call that the plan hides
						}
						if !reflect.DeepEqual(got, want) || !equalManifests(manifest, wantManifest) {
							rt.Fatalf("at %d messages the memo gives\n%+v\n%+v\nand a first rendering\n%+v\n%+v", n, got, manifest, want, wantManifest)
						}
					}
				}
			})
		})
	}
}

// equalManifests does not tell an empty list from none.
func equalManifests(a, b *render.Manifest) bool {
	same := func(x, y any, n, m int) bool { return n+m == 0 || reflect.DeepEqual(x, y) }
	return a.Format == b.Format &&
		same(a.Messages, b.Messages, len(a.Messages), len(b.Messages)) &&
		same(a.Hidden, b.Hidden, len(a.Hidden), len(b.Hidden)) &&
		same(a.Repairs, b.Repairs, len(a.Repairs), len(b.Repairs))
}

// TestMemoResumes: a step under the plan in force does not go through the
// history again.
func TestMemoResumes(t *testing.T) {
	th := thread.New("t")
	step := func() {
		t.Helper()
		next, err := th.Append(
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "on I go"}}},
			thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "go on"}}},
		)
		if err != nil {
			t.Fatal(err)
		}
		th = next
	}
	for range 2_000 {
		step()
	}
	var ids []thread.ID
	for _, m := range th.Messages() {
		ids = append(ids, m.ID)
	}
	span, err := thread.NewSpan(th, ids...)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", ThreadVersion: th.Version(), Drops: []plan.Removal{{Span: span}}}
	var memo render.Memo
	render1 := func() {
		if _, _, err := memo.Render(th, p, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	step()
	render1()
	step()
	if allocs := testing.AllocsPerRun(5, render1); allocs > 100 {
		t.Errorf("a step took %v allocations: the history was rendered again", allocs)
	}
}

// TestMemoOfALoopWithoutThoughts: a message that leaves the prompt as it is finished is left out of what the next
// step goes on from only once.
func TestMemoOfALoopWithoutThoughts(t *testing.T) {
	said := func(role thread.Role, parts ...thread.Part) thread.Message {
		return thread.Message{Role: role, Parts: parts}
	}
	text, thought := thread.Text{Text: "a"}, thread.Reasoning{Text: "b", Signature: "c", Source: thread.Source{API: wire.Anthropic, Raw: `{"type":"thinking","thinking":"b","signature":"c"}`}}
	call := func(id string) thread.Part { return thread.ToolCall{ID: id, Name: "x", Arguments: "{}"} }
	result := func(id string) thread.Message {
		return said(thread.Tool, thread.ToolResult{CallID: id, Tool: "x", Content: []thread.Part{text}})
	}
	log, err := thread.New("t").Append(said(thread.User, text), said(thread.Assistant, call("1")), result("1"),
		said(thread.Assistant, thought), said(thread.Assistant, text, call("2")), result("2"), said(thread.Assistant, text, call("3")))
	if err != nil {
		t.Fatal(err)
	}
	var memo render.Memo
	o := &render.Options{Profile: render.For(wire.Anthropic), Rewritten: 2, Shared: true}
	o.Profile.BoundReasoning = true
	for range 2 {
		want, origins, err := render.Render(log, nil, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		got, remembered, err := memo.Render(log, nil, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(want.Messages) != len(got.Messages) || !slices.Equal(origins.Messages, remembered.Messages) {
			t.Errorf("%d messages, %v, not %d messages, %v", len(got.Messages), remembered.Messages, len(want.Messages), origins.Messages)
		}
		if log, err = log.Append(result("3"), said(thread.User, text)); err != nil {
			t.Fatal(err)
		}
	}
}
