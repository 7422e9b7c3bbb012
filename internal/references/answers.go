package references

import (
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// answer is a result and the call that asked for it.
type answer struct {
	pos    int // of the result
	call   thread.ToolCall
	args   gjson.Result
	file   string // that the arguments name; "" for none
	result thread.ToolResult
}

// answers are the results of a thread whose calls are known, in order.
func answers(t *thread.Thread) []answer {
	var all []answer
	calls := map[string]thread.ToolCall{}
	for i, m := range uncopied.All(t) {
		for _, c := range m.Calls() {
			calls[c.ID] = c
		}
		r, ok := m.Result()
		if c, known := calls[r.CallID]; ok && known {
			args := gjson.Parse(c.Arguments)
			all = append(all, answer{i, c, args, fileOf(args), r})
		}
	}
	return all
}
