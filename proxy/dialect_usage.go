package proxy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// usageFields says which members of a usage are of what the model wrote, and which is
// their sum with the prompt's.
type usageFields struct {
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
	messagesUsage  = usageFields{written: []string{"output_tokens", "output_tokens_details", "server_tool_use"}, rounds: true}
	chatUsage      = usageFields{written: []string{"completion_tokens", "completion_tokens_details", "cost", "cost_details"}, output: []string{"completion_tokens"}, total: "total_tokens"}
	responsesUsage = usageFields{written: []string{"output_tokens", "output_tokens_details", "cost", "cost_details"}, output: []string{"output_tokens"}, total: "total_tokens"}
	contentsUsage  = usageFields{written: []string{"candidatesTokenCount", "thoughtsTokenCount"}, output: []string{"candidatesTokenCount", "thoughtsTokenCount"}, total: "totalTokenCount"}
)

// joinUsage is the usage that a client is told of several rounds: used is that of the
// earlier ones, joined, now that of one more. Where one of them says nothing, it is
// the other.
//
// Only Anthropic's API has a place for the rounds themselves (usage.iterations). For
// the others they are left out: there are clients that refuse members which they do
// not know.
func (f usageFields) joinUsage(used, now string) string {
	earlier, last := gjson.Parse(used), gjson.Parse(now)
	switch {
	case !earlier.IsObject():
		return now
	case !last.IsObject():
		return used
	}
	out := addCounts(earlier, last, countLevels, func(name string) bool { return slices.Contains(f.written, name) })
	wrote := int64(0)
	for _, name := range f.output {
		wrote += field(earlier, name).Int()
	}
	if all := field(last, f.total); f.total != "" && all.Type == gjson.Number {
		out = jsonedit.Set(out, f.total, strconv.FormatInt(all.Int()+wrote, 10))
	}
	if f.rounds {
		out = jsonedit.Set(out, "iterations", rawjson.Array(slices.Concat(iterations(used), iterations(now))))
	}
	return out
}

// countLevels is how deep counts are gone through. Providers nest them twice.
const countLevels = 8

// addCounts adds the counts of an earlier object, as far as they are summed: numbers are added,
// objects gone through; anything else is that of the later one, where it has it.
func addCounts(earlier, later gjson.Result, levels int, summed func(name string) bool) string {
	out := later.Raw
	for name, before := range rawjson.Members(earlier) {
		if before.Type == gjson.Null || !summed(name) {
			continue
		}
		path := gjson.Escape(name)
		switch now := later.Get(path); {
		case !now.Exists() || now.Type == gjson.Null:
			out = jsonedit.Set(out, path, before.Raw)
		case before.Type == gjson.Number && now.Type == gjson.Number:
			out = jsonedit.Set(out, path, addNumbers(before, now))
		case levels > 1 && before.IsObject() && now.IsObject():
			out = jsonedit.Set(out, path, addCounts(before, now, levels-1, func(string) bool { return true }))
		}
	}
	return out
}

// mergeMembers puts the members of b over those of a: what a stream counts last is the
// whole.
func mergeMembers(a, b string) string {
	counts := gjson.Parse(b)
	if !counts.IsObject() {
		return a
	}
	out := cmp.Or(a, "{}")
	for name, v := range rawjson.Members(counts) {
		if v.Type != gjson.Null {
			out = jsonedit.Set(out, gjson.Escape(name), v.Raw)
		}
	}
	return out
}

func addNumbers(a, b gjson.Result) string {
	if strings.ContainsAny(a.Raw+b.Raw, ".eE") {
		return strconv.FormatFloat(a.Num+b.Num, 'f', -1, 64)
	}
	return strconv.FormatInt(a.Int()+b.Int(), 10)
}

// field is a member of an object by its plain name.
func field(v gjson.Result, name string) gjson.Result { return v.Get(gjson.Escape(name)) }
