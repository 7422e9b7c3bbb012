package proxy

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// numbered gives Gemini's calls that have no ids of their own the numbers that they
// have behind others, and the results of these calls with them. It is false where
// that cannot be told without those before: where results come first, or name a call
// that is not here.
func numbered(news []thread.Message, before []thread.Message) bool {
	if news[0].Role != thread.Assistant {
		return false
	}
	called, first := map[string]bool{}, -1
	for i := range news {
		m := &news[i]
		for k, part := range m.Parts {
			switch p := part.(type) {
			case thread.ToolCall:
				called[p.ID] = true
				if !thread.IsLocalID(p.ID) {
					continue
				}
				if ownID(p.Raw) != "" {
					return false // it only looks like a number
				}
				if first < 0 {
					first = numbers(before)
				}
				p.ID = renumbered(p.ID, first)
				m.Parts[k] = p
			case thread.ToolResult:
				if id := ownID(p.Raw); !called[p.CallID] || id != "" && (id != p.CallID || thread.IsLocalID(id)) {
					return false
				}
				if thread.IsLocalID(p.CallID) {
					p.CallID = renumbered(p.CallID, first)
					m.Parts[k] = p
				}
			}
		}
	}
	return true
}

// ownID is the id that a call or a response has on the wire.
func ownID(part string) (id string) {
	gjson.Parse(part).ForEach(func(_, v gjson.Result) bool {
		if v.IsObject() {
			if own := v.Get("id"); own.Exists() {
				id = own.String()
			}
		}
		return true
	})
	return id
}

// numbers is how many calls have numbers for ids.
func numbers(messages []thread.Message) int {
	n := 0
	for i := range messages {
		for _, part := range messages[i].Parts {
			if c, ok := part.(thread.ToolCall); ok && thread.IsLocalID(c.ID) && ownID(c.Raw) == "" {
				n++
			}
		}
	}
	return n
}

func renumbered(id string, first int) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, strings.TrimSuffix(thread.LocalID(0), "0"))) // as the codec made it
	return thread.LocalID(first + n)
}
