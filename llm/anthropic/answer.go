package anthropic

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/thread"
	wire "github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// answer is a message of the API, as it came or as a stream built it up.
type answer struct {
	id, model string
	blocks    []string // JSON
	broken    map[int]string
	stop      string
	usage     usage
}

// usage takes what several events say of the usage. The counts of a message
// only grow, and some gateways send zeros in one of the events, so the largest
// counts.
type usage struct{ input, output, read, write, thinking int }

func (u *usage) add(v gjson.Result) {
	largest(&u.input, v.Get("input_tokens"))
	largest(&u.output, v.Get("output_tokens"))
	largest(&u.read, v.Get("cache_read_input_tokens"))
	largest(&u.write, v.Get("cache_creation_input_tokens"))
	largest(&u.thinking, v.Get("output_tokens_details.thinking_tokens"))
}

func largest(to *int, v gjson.Result) {
	if v.Type == gjson.Number && v.Num > 0 && v.Num < 1<<53 {
		*to = max(*to, int(v.Num))
	}
}

func (u usage) counts() llm.Usage {
	return llm.Usage{
		Input:     u.input + u.read + u.write, // input_tokens leaves the cache out
		Output:    u.output,
		CacheRead: u.read, CacheWrite: u.write, Reasoning: u.thinking,
		Known: u != usage{},
	}
}

// readWhole reads an answer that is not streamed.
func readWhole(r *exchange.Response) (*answer, error) {
	body, err := exchange.Whole(provider, r)
	if err != nil {
		return nil, err
	}
	v := gjson.Parse(body)
	content := v.Get("content")
	if !content.IsArray() {
		return nil, exchange.Garbage(r, "the answer is not a message: it has no content", body)
	}
	a := &answer{id: v.Get("id").Str, model: v.Get("model").Str, stop: v.Get("stop_reason").Str}
	a.usage.add(v.Get("usage"))
	content.ForEach(func(_, block gjson.Result) bool {
		a.blocks = append(a.blocks, block.Raw)
		return true
	})
	return a, nil
}

// reply makes the portable answer.
func (a *answer) reply(r *exchange.Response, q *question) (*llm.Reply, error) {
	m, err := a.message()
	if err != nil {
		return nil, exchange.Garbage(r, "the answer cannot be read: "+err.Error(), "")
	}
	reply := &llm.Reply{
		Stop: stopOf(a.stop), Usage: a.usage.counts(), RequestID: r.RequestID, Model: a.model,
	}
	if q.forced != "" && unforce(&m, q.forced) && reply.Stop == llm.StopTool && len(m.Calls()) == 0 {
		reply.Stop = llm.StopEnd // nobody is to run the tool
	}
	reply.Message, reply.Text = m, m.Text()
	return reply, exchange.Structured(r, reply, q.schema)
}

func (a *answer) message() (thread.Message, error) {
	list, err := wire.DecodeMessage(`{"role":"assistant","content":[` + strings.Join(a.blocks, ",") + `]}`)
	if err != nil {
		return thread.Message{}, err
	}
	m := thread.Message{Role: thread.Assistant}
	if len(list) > 0 {
		m.Parts = list[0].Parts
	}
	for i, text := range a.broken {
		if call, ok := m.Parts[i].(thread.ToolCall); ok {
			// The output ended inside the arguments: they are kept as far as they
			// came, and the block is not one that could be sent back.
			call.Arguments, call.Source = text, thread.Source{}
			m.Parts[i] = call
		}
	}
	return m, nil
}

// unforce turns the call of the tool that stands for a structured answer into
// the text that it is, and reports whether there was one.
func unforce(m *thread.Message, name string) (found bool) {
	for i, p := range m.Parts {
		if call, ok := p.(thread.ToolCall); ok && call.Name == name {
			m.Parts[i] = thread.Text{Text: call.Arguments}
			found = true
		}
	}
	return found
}

func stopOf(reason string) llm.Stop {
	switch reason {
	case "end_turn", "stop_sequence":
		return llm.StopEnd
	case "max_tokens":
		return llm.StopLength
	case "tool_use":
		return llm.StopTool
	case "refusal":
		return llm.StopRefusal
	case "model_context_window_exceeded":
		return llm.StopContext
	}
	return llm.StopOther
}
