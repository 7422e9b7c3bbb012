package anthropic

import (
	"context"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	codec "github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

var _ llm.TokenCounter = (*Client)(nil)

// countedMembers are the only members that the counting endpoint accepts.
// https://docs.anthropic.com/en/api/messages-count-tokens
var countedMembers = [...]string{"messages", "system", "tools", "tool_choice", "thinking"}

// CountTokens asks /v1/messages/count_tokens; see llm.TokenCounter. The
// endpoint is free and has its own rate limits.
func (c *Client) CountTokens(ctx context.Context, p *prompt.Prompt) (int, error) {
	body, err := codec.Codec{}.Encode(p)
	if err != nil {
		return 0, fmt.Errorf("anthropic: %w", err)
	}
	ask := new(rawjson.Object).Str("model", c.model)
	for _, name := range countedMembers {
		ask.Raw(name, gjson.GetBytes(body, name).Raw)
	}
	return c.countExchange.Count(ctx, ask.String(), "input_tokens")
}
