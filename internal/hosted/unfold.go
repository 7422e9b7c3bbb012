package hosted

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// said is where a type of block says what it was asked, and what came out. A block without output is a
// call alone, or a result alone: its text is the output.
type said struct{ api, kind, tool, input, output string }

var sayings = []said{
	{wire.Anthropic, "server_tool_use", "", "input", ""},
	{wire.Anthropic, "mcp_tool_use", "", "input", ""},
	{wire.Responses, "program", "", "code", ""},
	{wire.Responses, "multi_agent_call", "", "arguments", ""},
	{wire.Responses, "web_search_call", "", "action", "action.sources.#.url"},
	{wire.Responses, "file_search_call", "", "queries", "results.#.text"},
	{wire.Responses, "code_interpreter_call", "", "code", "outputs.#.logs"},
	{wire.Responses, "image_generation_call", "", "revised_prompt", "status"},
	{wire.Responses, "mcp_call", "name", "arguments", "output"},
	{wire.Gemini, "toolCall", "", "toolCall.args", ""},
	{wire.Gemini, "executableCode", "", "executableCode.code", ""},
}

// failures are the paths that hold something only where a hosted call failed.
var failures = []string{"is_error", "error", "content.error_code", "content.return_code", "toolResponse.response.error"}

// Unfold returns messages in which calls and results of the provider are calls and results like those
// of the client, for readers: a result follows the message that holds it, under the same id. Without
// any it is the same slice.
func Unfold(messages []thread.Message) []thread.Message {
	var out []thread.Message // nil until the first
	names := map[string]string{}
	for i := range messages {
		parts, results := unfold(&messages[i], names)
		if parts == nil {
			if out != nil {
				out = append(out, messages[i])
			}
			continue
		}
		if out == nil {
			out = append(make([]thread.Message, 0, len(messages)+8), messages[:i]...)
		}
		m := messages[i]
		m.Parts = parts
		out = append(out, m)
		for _, r := range results {
			m.Role, m.Parts = thread.Tool, []thread.Part{r}
			out = append(out, m)
		}
	}
	if out == nil {
		return messages
	}
	return out
}

// unfold returns the parts of a message of the model without hosted results, and these; nil if it has
// nothing of the provider's tools.
func unfold(m *thread.Message, names map[string]string) (parts []thread.Part, results []thread.ToolResult) {
	for n, p := range m.Parts {
		o, opaque := p.(thread.Opaque)
		s := saying(&o)
		if !opaque || m.Role != thread.Assistant || o.Call == "" && s == nil {
			if parts != nil {
				parts = append(parts, p)
			}
			continue
		}
		if parts == nil {
			parts = append(make([]thread.Part, 0, len(m.Parts)), m.Parts[:n]...)
		}
		id := cmp.Or(o.Call, gjson.Get(o.Raw, "id").Str)
		if !o.Answers {
			call := thread.ToolCall{ID: id, Name: cmp.Or(o.Tool, strings.TrimSuffix(o.Kind, "_call")), Arguments: o.Text, Parent: o.Parent}
			if s != nil {
				call.Name, call.Arguments = cmp.Or(gjson.Get(o.Raw, cmp.Or(s.tool, "-")).Str, call.Name), gjson.Get(o.Raw, s.input).String()
			}
			names[id] = call.Name
			parts = append(parts, call)
		}
		if o.Answers || s != nil && s.output != "" {
			results = append(results, resultOf(&o, s, id, names[id]))
		}
	}
	return parts, results
}

func saying(o *thread.Opaque) *said {
	for i := range sayings {
		if s := &sayings[i]; s.api == o.API && s.kind == o.Kind {
			return s
		}
	}
	return nil
}

func resultOf(o *thread.Opaque, s *said, id, tool string) thread.ToolResult {
	r := thread.ToolResult{CallID: id, Tool: tool, Outcome: thread.Success, Program: o.Parent != ""}
	text := cmp.Or(o.Text, gjson.Get(o.Raw, "toolResponse.response").Raw)
	if s != nil {
		var lines []string
		gjson.Get(o.Raw, s.output).ForEach(func(_, v gjson.Result) bool {
			lines = append(lines, v.String())
			return true
		})
		text = strings.Join(lines, "\n")
	}
	for _, path := range failures {
		if v := gjson.Get(o.Raw, path); v.Exists() && v.Type != gjson.Null && v.Type != gjson.False && v.Raw != "0" {
			r.Outcome = thread.Failure
			if s != nil && text == "" {
				text = v.String()
			}
		}
	}
	if outcome := gjson.Get(o.Raw, "codeExecutionResult.outcome").Str; outcome != "" && outcome != "OUTCOME_OK" {
		r.Outcome = thread.Failure
	}
	r.Content = []thread.Part{thread.Text{Text: text}}
	return r
}
