package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestSameBudget: a preview, a dry run and a compaction of one budget agree, and fill it. All
// count what the agent's last request holds besides the messages, which the caller need not
// send again. A budget that bounds the agent's requests is not filled: without another the
// policy's own target holds, also where a host has prepare compact.
func TestSameBudget(t *testing.T) {
	h := start(t, daemon.Config{})
	c, ctx := h.client(t, ""), t.Context()
	looked(t, c)
	tools := make([]map[string]any, 20)
	for i := range tools {
		tools[i] = map[string]any{"name": fmt.Sprintf("tool_%d", i), "description": strings.Repeat("It does a thing. ", 30), "input_schema": map[string]any{"type": "object"}}
	}
	body, err := json.Marshal(map[string]any{
		"model": "claude-sonnet-4-5", "max_tokens": 100, "system": strings.Repeat("Be kind. ", 200), "tools": tools,
		"messages": []map[string]string{{"role": "user", "content": "What is next?"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Prepare(ctx, "look", api.Any, api.Step{API: wire.Anthropic, Body: body, Window: 100_000}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Finish(ctx, "look", api.Any, api.Answer{API: wire.Anthropic, Response: response(1)}); err != nil {
		t.Fatal(err)
	}
	v, err := c.View(ctx, "look", api.Any)
	if err != nil {
		t.Fatal(err)
	}
	own, err := c.DryRun(ctx, "look", api.Step{Window: v.Before})
	if err != nil {
		t.Fatal(err)
	}
	step := api.Step{Budget: v.Before * 2 / 3}
	shown, err := c.Preview(ctx, "look", api.Compact{Step: step})
	if err != nil {
		t.Fatal(err)
	}
	dry, err := c.DryRun(ctx, "look", step)
	if err != nil {
		t.Fatal(err)
	}
	made, err := c.Compact(ctx, "look", 0, api.Compact{Step: step})
	if err != nil {
		t.Fatal(err)
	}
	if dry.Plan.CompactedTokens != made.Plan.CompactedTokens || shown.After != made.Plan.CompactedTokens || shown.After > step.Budget || shown.After < step.Budget*9/10 || shown.Before != v.Before {
		t.Errorf("of %d, in %d tokens: the preview has %d (of %d), the dry run %d, the plan %d", v.Before, step.Budget, shown.After, shown.Before, dry.Plan.CompactedTokens, made.Plan.CompactedTokens)
	}
	if own.Plan.CompactedTokens > v.Before*5/8 {
		t.Errorf("without a budget %d tokens of %d are left", own.Plan.CompactedTokens, v.Before)
	}
	// From here on each request of the agent has a budget.
	if _, err := c.Undo(ctx, "look", api.Any, 0); err != nil {
		t.Fatal(err)
	}
	bounded := api.Step{API: wire.Anthropic, Body: body, Model: "without-prices", Budget: v.Before * 3}
	if _, err := c.Prepare(ctx, "look", api.Any, bounded); err != nil {
		t.Fatal(err)
	}
	if dry, err = c.DryRun(ctx, "look", api.Step{}); err == nil {
		t.Errorf("below the target of the agent's budget %d tokens would be left", dry.Plan.CompactedTokens)
	}
	bounded.Budget = v.Before * 13 / 10 // half of what it leaves to messages is the target
	if _, err := c.Prepare(ctx, "look", api.Any, bounded); err != nil {
		t.Fatal(err)
	}
	if dry, err = c.DryRun(ctx, "look", api.Step{}); err != nil || dry.Plan.CompactedTokens > v.Before*8/10 {
		t.Errorf("in the budget of the agent's requests, %d: %+v, %v", bounded.Budget, dry, err)
	}
	bounded.Force = true
	forced, err := c.Prepare(ctx, "look", api.Any, bounded)
	if err != nil || forced.Tokens > v.Before*8/10 {
		t.Errorf("forced, in the budget of the agent's requests: %+v, %v", forced, err)
	}
}
