package dialect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// usageFields says which members of a usage count what the model wrote. Clients take the input of
// an answer for the size of their context, so a sum over rounds would mislead them: only what
// was written is summed, with money and the calls of tools that the provider runs.
type usageFields struct {
	// written are summed over the rounds; everything else is that of the last round.
	written []string
	// output are those of written that count tokens of the answer, and total is their sum with
	// the prompt's; empty if the API has none.
	output []string
	total  string
	// rounds says that the API lists the rounds of a request (usage.iterations). The clients of
	// the others may refuse a member that they do not know.
	rounds bool
}

// joinUsage joins the usage of the earlier rounds, itself joined, with that of one more. If one of
// them is missing it is the other.
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
		wrote += earlier.Get(name).Int()
	}
	if all := last.Get(f.total); f.total != "" && all.Type == gjson.Number {
		out = jsonedit.Set(out, f.total, strconv.FormatInt(all.Int()+wrote, 10))
	}
	if f.rounds {
		out = jsonedit.Set(out, "iterations", rawjson.Array(slices.Concat(iterations(used), iterations(now))))
	}
	return out
}

// iterations are those that a usage lists, or the usage itself as one.
func iterations(usage string) []string {
	v := gjson.Parse(usage)
	list := rawjson.RawItems(v.Get("iterations"), nil)
	if list != nil || !v.IsObject() {
		return list
	}
	return []string{native.MessageIteration(usage)}
}

// countLevels bounds how deep counts may be nested. Providers nest them twice.
const countLevels = 8

// addCounts adds the summed counts of an earlier object to a later one, objects within them
// included. Anything else is the later one's, if it has it.
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

func addNumbers(a, b gjson.Result) string {
	if strings.ContainsAny(a.Raw+b.Raw, ".eE") {
		return strconv.FormatFloat(a.Num+b.Num, 'f', -1, 64)
	}
	return strconv.FormatInt(a.Int()+b.Int(), 10)
}
