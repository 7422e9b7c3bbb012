package thread_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestUnits: a hosted call, its result, and what its program calls are one unit, and nothing of it
// is done before the result is there.
func TestUnits(t *testing.T) {
	person := thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "count"}}}
	starts := func(id string) thread.Part { return thread.Opaque{Kind: "code", Call: id} }
	nested := func(id, parent string) thread.Part {
		return thread.Opaque{Kind: "code", Call: id, Parent: parent}
	}
	ends := func(id string) thread.Part {
		return thread.Opaque{Kind: "out", Call: id, Answers: true}
	}
	call := func(id, parent string) thread.Part { return thread.ToolCall{ID: id, Name: "read", Parent: parent} }
	model := func(parts ...thread.Part) thread.Message { return thread.Message{Role: thread.Assistant, Parts: parts} }
	result := func(id string) thread.Message {
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "read"}}}
	}
	for name, c := range map[string]struct {
		messages []thread.Message
		units    string // first and last of each message
		open     string
	}{
		"in one message":       {[]thread.Message{person, model(starts("s"), ends("s")), person}, "0-0 1-1 2-2", "..."},
		"over messages":        {[]thread.Message{person, model(starts("s"), call("a", "s")), result("a"), model(call("b", "s")), result("b"), model(ends("s")), person}, "0-0 1-5 1-5 1-5 1-5 1-5 6-6", "......."},
		"runs":                 {[]thread.Message{person, model(starts("s"), call("a", "s")), result("a"), model(call("b", "s")), result("b")}, "0-0 1-4 1-4 1-4 1-4", ".oooo"},
		"waits":                {[]thread.Message{person, model(starts("s"), call("a", "s"))}, "0-0 1-1", ".o"},
		"given up":             {[]thread.Message{person, model(starts("s"), call("a", "s")), result("a"), person, model(thread.Text{Text: "well"})}, "0-0 1-2 1-2 3-3 4-4", "....."},
		"gone on without it":   {[]thread.Message{person, model(starts("s")), model(call("a", "")), result("a"), model(thread.Text{Text: "well"})}, "0-0 1-1 2-2 3-3 4-4", "....."},
		"the result is late":   {[]thread.Message{person, model(starts("s")), person, model(ends("s"))}, "0-0 1-1 2-2 3-3", "...."},
		"one within the other": {[]thread.Message{model(starts("s")), model(nested("i", "s")), model(ends("i")), model(ends("s")), model(starts("t"), ends("t"))}, "0-3 0-3 0-3 0-3 4-4", "....."},
		"one after the other":  {[]thread.Message{model(starts("s")), model(ends("s"), starts("t")), model(ends("t")), person}, "0-2 0-2 0-2 3-3", "...."},
		"a tool message ends":  {[]thread.Message{model(starts("s"), call("a", "s")), result("a"), result("s"), model(thread.Text{Text: "done"})}, "0-2 0-2 0-2 3-3", "...."},
		"a plain call":         {[]thread.Message{model(call("a", "")), result("a"), person}, "0-0 1-1 2-2", "..."},
	} {
		t.Run(name, func(t *testing.T) {
			th, err := thread.New("t").Append(number(c.messages)...)
			if err != nil {
				t.Fatal(err)
			}
			p, units, open := thread.Pair(th), "", ""
			for i := range th.Len() {
				first, last := p.Unit(i)
				units += fmt.Sprintf(" %d-%d", first, last)
				together := p.Together(i)
				if !slices.Contains(together, i) || together[0] > first || together[len(together)-1] < last {
					t.Errorf("message %d stands with %v", i, together)
				}
				for _, k := range together {
					if !slices.Equal(p.Together(k), together) {
						t.Errorf("message %d stands with %v, and message %d of them with %v", i, together, k, p.Together(k))
					}
				}
				if call, ok := p.Call(i); ok && !slices.Contains(together, call) {
					t.Errorf("result %d stands without its call", i)
				}
				if p.Open(i) {
					open += "o"
				} else {
					open += "."
				}
			}
			if units[1:] != c.units || open != c.open {
				t.Errorf("units%s, open %s; want %s, %s", units, open, c.units, c.open)
			}
		})
	}
}

// number gives messages ids of their own, since some are alike.
func number(messages []thread.Message) []thread.Message {
	for i := range messages {
		messages[i].ID = thread.ID(fmt.Sprint("m", i))
	}
	return messages
}

// TestUnitsAreLinear: calls within calls within calls.
func TestUnitsAreLinear(t *testing.T) {
	const n = 100_000
	var messages []thread.Message
	for i := range 2 * n {
		call := thread.Opaque{Kind: "code", Call: fmt.Sprint(min(i, 2*n-1-i)), Answers: i >= n}
		if i > 0 && i < n {
			call.Parent = fmt.Sprint(i - 1)
		}
		messages = append(messages, thread.Message{Role: thread.Assistant, Parts: []thread.Part{call}})
	}
	th, err := thread.New("t").Append(number(messages)...)
	if err != nil {
		t.Fatal(err)
	}
	if first, last := thread.Pair(th).Unit(n); last-first < 2 {
		t.Errorf("the unit is %d to %d", first, last)
	}
}
