package palimpsest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

var codecs = []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}}

// depots is how many places the scripted agent must visit.
const depots = 30

// TestTaskGoesOn: a scripted agent that knows nothing but the request it is
// sent finishes a long task over several compactions, and has to do little of
// it twice. A21
func TestTaskGoesOn(t *testing.T) {
	counter := o200k(t)
	for n, c := range []struct {
		name         string
		every        int // visits from one writing of the list to the next; 0 is no list
		hard, target int
		visits       int // the most that are allowed, those made again included
	}{
		{"list each time", 1, 6_000, 4_000, depots},
		{"list each time, in little room", 1, 4_000, 3_000, depots},
		{"list every second time", 2, 6_000, 4_000, depots},
		{"list every third time", 3, 8_000, 5_000, depots},
		{"list every fifth time", 5, 8_000, 6_000, depots},
		{"from results alone", 0, 5_000, 3_500, depots + 2},
	} {
		for i, codec := range codecs {
			if !corpus.Long() && i != n%len(codecs) {
				continue // each case with one of them
			}
			t.Run(c.name+", "+codec.API(), func(t *testing.T) {
				agent := scriptedAgent{every: c.every}
				loop := newLoop(t, counter, codec.API(), &prompt.Prompt{Model: "scripted", Tools: scriptedTools, System: []prompt.System{{Text: "You count stock.", Role: "system"}}}, c.hard, c.target)
				loop.append(plain(thread.User, depotTask()))
				answer, visits := "", 0
				for range 300 {
					res, _ := loop.request()
					seen := overTheWire(t, codec, res.Prompt)
					m, done := agent.act(seen)
					loop.append(m)
					if done {
						answer = m.Text()
						break
					}
					for _, call := range m.Calls() {
						if call.Name == "visit_depot" {
							visits++
						}
						loop.append(runScripted(call))
					}
				}
				if answer != fmt.Sprintf("The total is %d.", depotTotal()) {
					t.Errorf("the agent said %q after %d visits, the total is %d", answer, visits, depotTotal())
				}
				if loop.cycles < 3 || visits > c.visits {
					t.Errorf("%d visits, %d compactions", visits, loop.cycles)
				}
				t.Logf("%d visits of %d depots, %d compactions, %d messages", visits, depots, loop.cycles, loop.thread.Len())
			})
		}
	}
}

// overTheWire gives the prompt as the provider reads it from the body.
func overTheWire(t testing.TB, codec wire.Codec, p *prompt.Prompt) *prompt.Prompt {
	t.Helper()
	body, err := codec.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range codec.Validate(body) {
		if !problem.Advice {
			t.Errorf("%s: %v", codec.API(), problem)
		}
	}
	read, err := codec.Decode(string(body))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// scriptedAgent decides by the request alone; it remembers nothing.
type scriptedAgent struct {
	every int // see TestTaskGoesOn
	calls int // only to give calls ids
}

var (
	depotName = regexp.MustCompile(`\bD-\d{4}\b`)
	stockLine = regexp.MustCompile(`\b(D-\d{4}): stock (\d+)\b`)
)

// act finds in the request which depots there are and which stocks are known,
// and goes on from there.
func (a *scriptedAgent) act(p *prompt.Prompt) (m thread.Message, done bool) {
	all := shown(p)
	_, list, found := strings.Cut(all, "Depots: ")
	if !found {
		return plain(thread.Assistant, "What is my task?"), true
	}
	list, _, _ = strings.Cut(list, ".")
	known := map[string]int{}
	for _, m := range stockLine.FindAllStringSubmatch(all, -1) {
		known[m[1]], _ = strconv.Atoi(m[2])
	}
	written := 0 // in the last list that is still to be seen
	for _, m := range p.Messages {
		for _, c := range m.Calls() {
			if c.Name == "todo_write" {
				written = strings.Count(c.Arguments, "completed")
			}
		}
	}
	names, total := depotName.FindAllString(list, -1), 0
	var open []string
	for _, name := range names {
		if stock, ok := known[name]; ok {
			total += stock
		} else {
			open = append(open, name)
		}
	}
	a.calls++
	id := fmt.Sprintf("call_%03d", a.calls)
	switch {
	case len(open) == 0:
		return plain(thread.Assistant, fmt.Sprintf("The total is %d.", total)), true
	case a.every > 0 && len(known) >= written+a.every:
		type todo struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		}
		var todos []todo
		for _, name := range names {
			if stock, ok := known[name]; ok {
				todos = append(todos, todo{fmt.Sprintf("%s: stock %d", name, stock), "completed"})
			}
		}
		args, _ := json.Marshal(map[string]any{"todos": todos}) // always marshals
		return call(id, "todo_write", string(args)), false
	}
	return call(id, "visit_depot", fmt.Sprintf(`{"depot":%q}`, open[0])), false
}

func call(id, tool, arguments string) thread.Message {
	return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: tool, Arguments: arguments}}}
}

var scriptedTools = []prompt.Tool{
	{Name: "visit_depot", Description: "Goes to a depot and counts.", Schema: `{"type":"object","properties":{"depot":{"type":"string"}},"required":["depot"]}`},
	{Name: "todo_write", Description: "Replaces the list.", Schema: `{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","properties":{"content":{"type":"string"},"status":{"type":"string"}}}}},"required":["todos"]}`},
}

// runScripted is what the tools answer.
func runScripted(c thread.ToolCall) thread.Message {
	text := "The list was saved."
	if c.Name == "visit_depot" {
		name := depotName.FindString(c.Arguments)
		var b strings.Builder
		fmt.Fprintf(&b, "Visit of %s\n", name)
		for aisle := range 28 {
			fmt.Fprintf(&b, "aisle %d: %d pallets, shelf labels in order, no damage reported by the night shift\n", aisle+1, (aisle*7+len(name))%13)
			if aisle == 13 {
				fmt.Fprintf(&b, "%s: stock %d\n", name, depotStock(name))
			}
		}
		text = b.String()
	}
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
		CallID: c.ID, Tool: c.Name, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}},
	}}}
}

func depotNames() []string {
	names := make([]string, depots)
	for n := range names {
		names[n] = fmt.Sprintf("D-%04d", 1000+n*n*37%8999)
	}
	return names
}

func depotStock(name string) int {
	n, _ := strconv.Atoi(name[2:])
	return n*31%977 + 1
}

func depotTotal() int {
	total := 0
	for _, name := range depotNames() {
		total += depotStock(name)
	}
	return total
}

func depotTask() string {
	return "Visit every depot of this list, one by one, and tell me the total stock at the end. Depots: " + strings.Join(depotNames(), ", ") + "."
}
