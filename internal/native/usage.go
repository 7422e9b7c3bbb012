package native

import (
	"cmp"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// MergeUsage sets the members of one usage in another: the last counts of a stream are the whole. An
// empty text is a usage without members.
func MergeUsage(usage, last string) string {
	counts := gjson.Parse(last)
	if !counts.IsObject() {
		return usage
	}
	usage = cmp.Or(usage, "{}")
	for name, v := range rawjson.Members(counts) {
		if v.Type != gjson.Null {
			usage = jsonedit.Set(usage, gjson.Escape(name), v.Raw)
		}
	}
	return usage
}

// MessageIteration is the usage of a message as an iteration of a longer one.
func MessageIteration(usage string) string {
	message := `{"type":"message"}`
	for _, name := range []string{"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "cache_creation"} {
		if v := gjson.Get(usage, name); v.Exists() && v.Type != gjson.Null {
			message = jsonedit.Set(message, name, v.Raw)
		}
	}
	return message
}
