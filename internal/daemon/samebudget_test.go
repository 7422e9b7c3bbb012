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

// TestSameBudget: a preview, a dry run and a compaction of one budget agree. All count what the
// agent's last request holds besides the messages, which the caller need not send again.
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
	if dry.Plan.CompactedTokens != made.Plan.CompactedTokens || shown.After != made.Plan.CompactedTokens || shown.After > step.Budget || shown.Before != v.Before {
		t.Errorf("of %d, in %d tokens: the preview has %d (of %d), the dry run %d, the plan %d", v.Before, step.Budget, shown.After, shown.Before, dry.Plan.CompactedTokens, made.Plan.CompactedTokens)
	}
}
