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
		out = set(out, "iterations", array(slices.Concat(iterations(used), iterations(now))))
	}
	return out
}

// add sums up two objects of counts, such as a usage: numbers are added, objects
// gone through, anything else is that of the later one.
func add(a, b string) string { return addWithin(a, b, countLevels) }

// countLevels is how deep counts are gone through. Providers nest them twice.
const countLevels = 8

func addWithin(a, b string, levels int) string {
	if !gjson.Parse(a).IsObject() {
		return b
	}
	if !gjson.Parse(b).IsObject() {
		return a
	}
	out := []byte("{")
	member := func(key, raw string) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), raw...)
	}
	seen := map[string]bool{}
	other := gjson.Parse(b)
	gjson.Parse(a).ForEach(func(k, v gjson.Result) bool {
		seen[k.Str] = true
		w := field(other, k.Str)
		switch {
		case !w.Exists() || w.Type == gjson.Null:
			member(k.Raw, v.Raw)
		case v.Type == gjson.Number && w.Type == gjson.Number:
			member(k.Raw, sum(v, w))
		case levels > 1 && v.IsObject() && w.IsObject():
			member(k.Raw, addWithin(v.Raw, w.Raw, levels-1))
		default:
			member(k.Raw, w.Raw)
		}
		return true
	})
	other.ForEach(func(k, v gjson.Result) bool {
		if !seen[k.Str] {
			member(k.Raw, v.Raw)
		}
		return true
	})
	return string(append(out, '}'))
}

// over is the members of b put over those of a: what a stream counts last is the
// whole.
func over(a, b string) string {
	counts := gjson.Parse(b)
	if !counts.IsObject() {
		return a
	}
	out := or(a, "{}")
	counts.ForEach(func(k, v gjson.Result) bool {
		if v.Type != gjson.Null {
			out = set(out, gjson.Escape(k.Str), v.Raw)
		}
		return true
	})
	return out
}

func sum(a, b gjson.Result) string {
	if strings.ContainsAny(a.Raw+b.Raw, ".eE") {
		return strconv.FormatFloat(a.Num+b.Num, 'f', -1, 64)
	}
	return strconv.FormatInt(a.Int()+b.Int(), 10)
}

// field is a member of an object by its plain name.
func field(v gjson.Result, name string) gjson.Result { return v.Get(gjson.Escape(name)) }
