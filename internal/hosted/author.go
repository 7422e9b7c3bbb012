package hosted

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// authored are the blocks whose type says who wrote them.
var authored = map[[2]string]thread.Author{
	{wire.Responses, "multi_agent_call_output"}: thread.ByAgent,
	{wire.Anthropic, "fallback"}:                thread.ByProvider,
	{wire.Anthropic, "compaction"}:              thread.ByCompaction,
	{wire.Responses, "compaction"}:              thread.ByCompaction,
}

// rootAgent is the name of the agent whose conversation a request of Responses is.
const rootAgent = "/" + "root"

// Author returns who wrote a part of a message of the model, if not the model: the provider made the results
// of its own tools, and another agent what Responses names one for. It is empty for all others.
func Author(part thread.Part) thread.Author {
	from := part.From()
	o, opaque := part.(thread.Opaque)
	if by := authored[[2]string{from.API, o.Kind}]; opaque && by != "" {
		return by
	}
	if from.API == wire.Responses && strings.Contains(from.Raw, rootAgent) {
		path := "agent.agent_name"
		if o.Kind == "agent_message" {
			path = "author"
		}
		if name := gjson.Get(from.Raw, path).Str; name != "" && name != rootAgent {
			return thread.ByAgent
		}
	}
	if opaque && o.Answers {
		return thread.ByProvider
	}
	return ""
}
