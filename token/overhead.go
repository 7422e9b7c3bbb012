package token

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// family is the overhead that a provider adds to text, in tokens. Providers document little of
// it; the sources are below.
type family struct {
	request     int // once
	message     int // per message
	toolMessage int // per message with a tool result
	name        int // per participant's name
	system      int // per instruction block
	call        int // per tool call, beyond name and arguments
	result      int // per tool result, beyond its content
	tools       int // once, when there are tools
	tool        int // per tool, beyond name, description and schema
	// sealed says that hidden reasoning is charged by its encrypted form, also if there is a
	// readable summary, or a call carries it.
	sealed bool
}

var families = map[string]family{
	// OpenAI's cookbook "How to count tokens with tiktoken": 3 a message and 1
	// for its role, 1 for a name, 3 to prime the answer; functions 7 each and 12
	// at the end (gpt-4o). Calls and results follow the same frame; measured by
	// nobody in public, taken as one more message header.
	"openai": {request: 3, message: 4, toolMessage: 4, name: 1, system: 4, call: 8, result: 4, tools: 12, tool: 7, sealed: true},
	// Anthropic documents only the prompt that tools bring: 346 tokens for
	// Claude 4 (tool use overview, "tool use system prompt token count", auto).
	// Messages, calls and results are fitted to recorded usage of Claude Code,
	// which adds about 60 tokens of its own to a call; other clients get by with
	// less, so theirs lie a little high (docs/tokens.md).
	"anthropic": {request: 6, message: 5, toolMessage: 5, name: 0, system: 3, call: 55, result: 25, tools: 346, tool: 30},
	// Gemini's countTokens adds next to nothing to the parts; one token for a
	// role is assumed, calls and results as the JSON that they are sent as.
	"gemini": {request: 1, message: 3, toolMessage: 3, name: 1, system: 1, call: 8, result: 8, tools: 10, tool: 10, sealed: true},
	// For plain ratios: nothing but the text.
	"none": {},
}

// familyOf returns the family of a provider. It is "", the family of the counter, for providers
// without one of their own; most of them use OpenAI's format.
func familyOf(provider string) string {
	switch provider {
	case "anthropic", "openai":
		return provider
	case "google":
		return "gemini"
	}
	return ""
}

// Tools returns the tokens of tool definitions. OpenAI shows them to the model as TypeScript
// declarations, which are shorter than the JSON schemas that are counted here.
func (c *Counter) Tools(tools []prompt.Tool) int {
	if c.base != nil {
		return c.scale(c.base.Tools(tools))
	}
	if len(tools) == 0 {
		return 0
	}
	n := c.family.tools
	for _, t := range tools {
		n += c.family.tool + c.Text(t.Name) + c.Text(t.Description) + c.Text(t.Schema)
		if t.Schema == "" && t.Description == "" {
			// The provider defines the tool, and its text.
			n += c.Text(t.Raw)
		}
	}
	return n
}

// reasoning counts thinking by its text, or by the length of its encrypted form, if there is only
// that or the provider charges for it.
func (c *Counter) reasoning(r thread.Reasoning) int {
	n := c.Text(r.Text)
	if r.Text == "" || c.family.sealed {
		n = max(n, sealedTokens(len(r.Signature)))
	}
	return n
}

// sealedTokens estimates hidden reasoning from the length of its encrypted form in base64: three
// quarters of it are bytes, about 650 of them are overhead, and a token is about four bytes, as in
// Codex. An empty signature, such as the value that tells Gemini to skip the check, has no tokens.
func sealedTokens(length int) int { return max(0, (length*3/4-650)/4) }

// sealedLength is the least length, in bytes, of a string in an opaque block that is taken for
// encrypted content.
const sealedLength = 512

// raw counts the JSON of an opaque block. Long base64 strings in it are encrypted content
// (results, compaction blocks, signatures).
func (c *Counter) raw(s string) int {
	n, from := 0, 0
	for i := 0; i < len(s); {
		open := strings.IndexByte(s[i:], '"')
		if open < 0 {
			break
		}
		start := i + open + 1
		end := start
		for end < len(s) && isBase64(s[end]) {
			end++
		}
		if end-start >= sealedLength && end < len(s) && s[end] == '"' {
			n += c.Text(s[from:start]) + sealedTokens(end-start)
			from = end
		}
		i = max(end, start)
	}
	return n + c.Text(s[from:])
}

func isBase64(c byte) bool {
	return c-'a' < 26 || c-'A' < 26 || c-'0' < 10 || c == '+' || c == '/' || c == '-' || c == '_' || c == '='
}
