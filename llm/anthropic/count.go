package anthropic

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	codec "github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

var _ llm.TokenCounter = (*Client)(nil)

// countedMembers are the members of a request that the counting endpoint takes; it
// refuses others, such as max_tokens.
// https://docs.anthropic.com/en/api/messages-count-tokens
var countedMembers = [...]string{"messages", "system", "tools", "tool_choice", "thinking"}

// CountTokens asks /v1/messages/count_tokens; see llm.TokenCounter. It is free of
// charge and has rate limits of its own.
func (c *Client) CountTokens(ctx context.Context, p *prompt.Prompt) (int, error) {
	body, err := codec.Codec{}.Encode(p)
	if err != nil {
		return 0, fmt.Errorf("anthropic: %w", err)
	}
	ask := map[string]json.RawMessage{"model": json.RawMessage(rawjson.Quote(c.model))}
	for _, member := range countedMembers {
		if v := gjson.GetBytes(body, member); v.Exists() {
			ask[member] = json.RawMessage(v.Raw)
		}
	}
	if body, err = json.Marshal(ask); err != nil {
		return 0, fmt.Errorf("anthropic: %w", err)
	}
	return c.countExchange.Count(ctx, body, "input_tokens")
}
