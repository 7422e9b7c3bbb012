package daemon_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// reads has a thread read the same files twice, and returns the plan in force and
// what was externalized. source says what a file looks like at a step; nil says nothing.
func reads(t *testing.T, tools *toolpolicy.Registry, source func(step int) *thread.Determinism) (*plan.Plan, []artifact.Metadata) {
	t.Helper()
	c := start(t, daemon.Config{Compactor: palimpsest.Config{
		Policy: policy.Ladder{MaxInputTokens: 22_000, DisableSummarization: true, ExternalizeThreshold: 100_000, PreserveRecentTurns: 1}, Tools: tools,
	}}).client(t, "")
	ctx := t.Context()
	th, err := c.CreateThread(ctx, api.NewThread{ID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) []neutral.Part { return []neutral.Part{{Type: neutral.TextPart, Text: s}} }
	news := []neutral.Message{{Role: "user", Parts: text("Read everything twice.")}}
	for n := range 20 {
		if _, err := c.Prepare(ctx, th.ID, api.Any, api.Step{Messages: news, Window: 40_000, Output: 1_000}); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("c", n)
		call := neutral.Part{Type: neutral.ToolCallPart, CallID: id, Tool: "Read", Arguments: fmt.Sprintf(`{"file_path":"f%d.go"}`, n%10)}
		if _, err := c.Finish(ctx, th.ID, api.Any, api.Answer{Messages: []neutral.Message{{Role: "assistant", Parts: []neutral.Part{call}}}}); err != nil {
			t.Fatal(err)
		}
		result := neutral.Part{Type: neutral.ToolResultPart, CallID: id, Tool: "Read", Content: text(output(n))}
		if source != nil {
			result.Determinism = source(n)
		}
		news = []neutral.Message{{Role: "tool", Parts: []neutral.Part{result}}}
	}
	p, err := c.Plan(ctx, th.ID, api.Any)
	if err != nil {
		t.Fatal(err)
	}
	aside, err := c.Artifacts(ctx, th.ID, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	return p.Plan, aside.Items
}

// TestReplayableOverHTTP: a result whose source looks, by the newest word of the
// client, as it did is cleared; one whose source has changed, or of which nothing
// is known, or that is expensive to have again, is externalized. Hash goes before ETag,
// ETag before the time, the time before the version. A7, A8, A9
func TestReplayableOverHTTP(t *testing.T) {
	same := func(int) *thread.Determinism { return &thread.Determinism{ContentHash: "h"} }
	changed := func(step int) *thread.Determinism {
		return &thread.Determinism{ContentHash: fmt.Sprint(step / 10)}
	}
	at := func(d func(read int) thread.Determinism) func(int) *thread.Determinism {
		return func(step int) *thread.Determinism {
			looks := d(step / 10)
			return &looks
		}
	}
	word := func(read int) string { return fmt.Sprint("read ", read) }
	costly := toolpolicy.New(map[string]toolpolicy.Policy{"Read": {ReplayCost: toolpolicy.Expensive}})
	for _, tt := range []struct {
		name    string
		tools   *toolpolicy.Registry
		source  func(int) *thread.Determinism
		cleared bool
	}{
		{"the same", nil, same, true},
		{"changed since", nil, changed, false},
		{"nothing is known", nil, nil, false},
		{"read once", nil, func(step int) *thread.Determinism {
			if step >= 10 {
				return nil
			}
			return &thread.Determinism{ContentHash: "h"} // which nothing has confirmed since
		}, false},
		{"the same, but expensive", costly, same, false},
		{"another ETag, but the same hash", nil, at(func(n int) thread.Determinism { return thread.Determinism{ContentHash: "h", ETag: word(n)} }), true},
		{"the same ETag, but another hash", nil, at(func(n int) thread.Determinism { return thread.Determinism{ContentHash: word(n), ETag: "e"} }), false},
		{"the same ETag, and a later time", nil, at(func(n int) thread.Determinism { return thread.Determinism{ETag: "e", MTime: float64(1 + n)} }), true},
		{"another ETag", nil, at(func(n int) thread.Determinism { return thread.Determinism{ETag: word(n), MTime: 1} }), false},
		{"the same time", nil, at(func(n int) thread.Determinism { return thread.Determinism{MTime: 7, Version: word(n)} }), true},
		{"a later time", nil, at(func(n int) thread.Determinism { return thread.Determinism{MTime: float64(1 + n), Version: "v"} }), false},
		{"the same version", nil, at(func(int) thread.Determinism { return thread.Determinism{Version: "v"} }), true},
		{"another version", nil, at(func(n int) thread.Determinism { return thread.Determinism{Version: word(n)} }), false},
		{"nothing to compare", nil, at(func(n int) thread.Determinism {
			return []thread.Determinism{{ContentHash: "h"}, {ETag: "e"}}[min(n, 1)]
		}), false},
	} {
		p, aside := reads(t, tt.tools, tt.source)
		if (len(p.Clearings) > 0) != tt.cleared || !tt.cleared && len(aside) == 0 {
			t.Errorf("%s: %d cleared, %d externalized", tt.name, len(p.Clearings), len(aside))
		}
	}
}

// TestDeclaredOfTools: sensitivity and time to live of what is externalized are those
// that the tool declares. A9, A20
func TestDeclaredOfTools(t *testing.T) {
	for _, declared := range []bool{false, true} {
		var tools *toolpolicy.Registry
		sensitivity, ttl := artifact.Internal, 0
		if declared {
			tools = toolpolicy.New(map[string]toolpolicy.Policy{"Read": {Sensitivity: "restricted", TTL: 90 * time.Minute}})
			sensitivity, ttl = artifact.Restricted, 5400
		}
		_, aside := reads(t, tools, nil)
		if len(aside) == 0 {
			t.Fatal("nothing was externalized")
		}
		for _, m := range aside {
			if m.Sensitivity != sensitivity || m.TTLSeconds < ttl || m.TTLSeconds > ttl+60 { // it is counted from when it was last kept
				t.Errorf("declared %v: %s for %d seconds", declared, m.Sensitivity, m.TTLSeconds)
			}
		}
	}
}
