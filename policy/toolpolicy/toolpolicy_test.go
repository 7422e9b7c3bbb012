package toolpolicy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// A9: built-in declarations, defaults, overrides per tool.
func TestRegistry(t *testing.T) {
	r := New(map[string]Policy{
		"create-order": {Durability: thread.NonReplayable, PreserveFields: []string{"order_id"}, ReplayCost: Expensive},
		"Bash":         {ExternalizeThreshold: 250},
	})
	for _, c := range []struct {
		registry *Registry
		tool     string
		want     Policy
	}{
		{r, "unheard_of", Policy{Durability: thread.Anchoring, ExternalizeThreshold: 1000, ReplayCost: Cheap}},
		{r, "Read", Policy{Durability: thread.Replayable, ExternalizeThreshold: 1000, ReplayCost: Free}},
		{r, "WebSearch", Policy{Durability: thread.NonReplayable, ExternalizeThreshold: 1000, ReplayCost: Expensive}},
		{r, "LS", Policy{Durability: thread.Ephemeral, ExternalizeThreshold: 1000, ReplayCost: Free}},
		{r, "bash", Policy{Durability: thread.Anchoring, ExternalizeThreshold: 250, ReplayCost: Cheap}},
		{r, "mcp__shop__Create_Order", Policy{Durability: thread.NonReplayable, PreserveFields: []string{"order_id"}, ExternalizeThreshold: 1000, ReplayCost: Expensive}},
		{nil, "bash", Policy{Durability: thread.Anchoring, ExternalizeThreshold: 1000, ReplayCost: Cheap}},
		{&Registry{}, "bash", Policy{Durability: thread.Anchoring, ExternalizeThreshold: 1000, ReplayCost: Cheap}},
	} {
		if diff := cmp.Diff(c.want, c.registry.Policy(c.tool)); diff != "" {
			t.Errorf("Policy(%s) (-want +got)\n%s", c.tool, diff)
		}
	}
	if got := r.Durability(thread.ToolResult{Tool: "Read", Durability: thread.NonReplayable}); got != thread.NonReplayable {
		t.Errorf("what a result declares must win, got %s", got)
	}
	if got := r.Durability(thread.ToolResult{Tool: "Read"}); got != thread.Replayable {
		t.Errorf("Durability of a read = %s", got)
	}
}

// A6, A7: preserved fields are found in structured content, in content that is
// JSON and in arguments, and what the tool set itself wins.
func TestPreservedFields(t *testing.T) {
	r := New(map[string]Policy{"create_order": {PreserveFields: []string{"order_id", "status", "total", "customer", "missing"}}})
	call := thread.ToolCall{Name: "create_order", Arguments: `{"customer":"c-9","status":"asked"}`}
	res := thread.ToolResult{
		Tool: "create_order", Outcome: thread.Success, KeyFields: thread.Fields{"status": "paid"},
		Content: []thread.Part{thread.Text{Text: `{"data":{"order":{"order_id":"o-17","status":"open","total":12.5}}}`}},
	}
	got := r.KeyFields(call, res)
	want := thread.Fields{"order_id": "o-17", "status": "paid", "total": 12.5, "customer": "c-9"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("KeyFields (-want +got)\n%s", diff)
	}
	if s := res.Cleared(got); s != "[create_order: success]\nKey data: {\"customer\": \"c-9\", \"order_id\": \"o-17\", \"status\": \"paid\", \"total\": 12.5}" {
		t.Errorf("Cleared = %s", s)
	}
}
