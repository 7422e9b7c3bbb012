package proxytest

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// compaction names what a request says of the providers' own compaction; empty
// where it says nothing.
func compaction(q *Request, body gjson.Result) string {
	for _, name := range []string{"context_management", "compaction"} {
		if body.Get(name).Exists() {
			return name
		}
	}
	for _, line := range q.Header.Values("Anthropic-Beta") {
		for _, beta := range []string{"context-management-", "compact-"} {
			if strings.Contains(line, beta) {
				return "anthropic-beta: " + line
			}
		}
	}
	for i, m := range body.Get("messages").Array() {
		for k, b := range m.Get("content").Array() {
			if b.Get("type").Str == "compaction" {
				return fmt.Sprintf("messages.%d.content.%d", i, k)
			}
		}
	}
	for i, item := range body.Get("input").Array() {
		if strings.HasPrefix(item.Get("type").Str, "compaction") {
			return fmt.Sprintf("input[%d]", i)
		}
	}
	return ""
}
