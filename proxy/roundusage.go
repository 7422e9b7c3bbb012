package proxy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// figures says which members of a usage are of what the model wrote, and which is
// their sum with the prompt's.
type figures struct {
	// written are summed over the rounds of a request; everything else is that of
	// the last round.
	written []string
	// output are those of written that count tokens of the answer, and total what
	// holds them beside the prompt's; empty where the API has none.
	output []string
	total  string
	// rounds says that the API lists the passes of one request.
	rounds bool
}

// The figures of each API. An agent takes the input of an answer for the size of
// its context, so that a sum over rounds would look like a multiple of it. Money,
// and the calls of tools that the provider runs, were spent in every round.
var (
	messagesFigures  = figures{written: []string{"output_tokens", "output_tokens_details", "server_tool_use"}, rounds: true}
	chatFigures      = figures{written: []string{"completion_tokens", "completion_tokens_details", "cost", "cost_details"}, output: []string{"completion_tokens"}, total: "total_tokens"}
	responsesFigures = figures{written: []string{"output_tokens", "output_tokens_details", "cost", "cost_details"}, output: []string{"output_tokens"}, total: "total_tokens"}
	contentsFigures  = figures{written: []string{"candidatesTokenCount", "thoughtsTokenCount"}, output: []string{"candidatesTokenCount", "thoughtsTokenCount"}, total: "totalTokenCount"}
)

// joined is the usage that a client is told of several rounds: used is that of the
// earlier ones, joined, now that of one more. Where one of them says nothing, it is
// the other.
//
// Only Anthropic's API has a place for the rounds themselves (usage.iterations). For
// the others they are left out: there are clients that refuse members which they do
// not know.
func (f figures) joined(used, now string) string {
	earlier, last := gjson.Parse(used), gjson.Parse(now)
	switch {
	case !earlier.IsObject():
		return now
	case !last.IsObject():
		return used
	}
	out, wrote := now, int64(0)
	for _, name := range f.written {
		before := field(earlier, name)
		if !before.Exists() || before.Type == gjson.Null {
			continue
		}
		if slices.Contains(f.output, name) {
			wrote += before.Int()
		}
		switch now := field(last, name); {
		case before.Type == gjson.Number && now.Type == gjson.Number:
			out = set(out, name, sum(before, now))
		case before.IsObject() && now.IsObject():
			out = set(out, name, add(before.Raw, now.Raw))
		case !now.Exists() || now.Type == gjson.Null:
			out = set(out, name, before.Raw)
		}
	}
	if all := field(last, f.total); f.total != "" && all.Type == gjson.Number {
		out = set(out, f.total, strconv.FormatInt(all.Int()+wrote, 10))
	}
	if f.rounds {
		out = set(out, "iterations", "["+strings.Join(slices.Concat(iterations(used), iterations(now)), ",")+"]")
	}
	return out
}
