// Package threadgen draws random threads for property tests: parallel calls,
// aborted calls, late and duplicate results, orphans, reasoning, media, empty,
// long and huge messages, text of every class of Unicode, system messages in
// mid-conversation, and stretches that were read from requests of each API,
// with its own blocks and seals.
package threadgen

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/thread"
)

var tools = []string{"Read", "Bash", "Edit", "WebFetch", "unknown_tool"}

// Text draws a text that a person, a model or a tool might have written.
func Text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 40).Draw(t, "size") == 40 {
			return strings.Repeat("2025-05-12 08:14:02 the queue holds orders that no worker has taken yet\n", rapid.IntRange(200, 800).Draw(t, "huge"))
		}
		switch rapid.IntRange(0, 6).Draw(t, "class") {
		case 0:
			return ""
		case 1:
			return rapid.String().Draw(t, "any")
		case 2:
			return strings.Repeat("líne of pröse 漢字 👩‍👩‍👧 e\u0301 \n", rapid.IntRange(1, 40).Draw(t, "lines"))
		case 3:
			return strings.Repeat("x", rapid.IntRange(1, 4000).Draw(t, "run"))
		case 4:
			return " \n\t"
		case 5:
			return fmt.Sprintf("error: store/queue.go:%d: undefined: Retry%d\nFAIL", rapid.IntRange(1, 999).Draw(t, "line"), rapid.IntRange(1, 9).Draw(t, "n"))
		}
		return fmt.Sprintf("You must never touch internal/api%d. Keep ORD-%05d.", rapid.IntRange(1, 9).Draw(t, "n"), rapid.IntRange(1, 99999).Draw(t, "order"))
	})
}

// Thread draws a thread of up to about a hundred messages.
func Thread() *rapid.Generator[*thread.Thread] {
	return rapid.Custom(func(t *rapid.T) *thread.Thread {
		g := generator{t: t}
		steps := rapid.IntRange(0, 20).Draw(t, "steps")
		if rapid.Bool().Draw(t, "long") {
			steps += 10 // small numbers are drawn far more often than large ones
		}
		for range steps {
			g.step()
		}
		th, err := thread.New("random").Append(g.messages...)
		if err != nil {
			t.Fatal(err)
		}
		return th
	})
}

type generator struct {
	t        *rapid.T
	messages []thread.Message
	calls    int
	late     []thread.Message // results that come after other messages
}

func (g *generator) add(m thread.Message) { g.messages = append(g.messages, m) }

func (g *generator) step() {
	switch rapid.IntRange(0, 11).Draw(g.t, "step") {
	case 0, 1, 2:
		g.add(thread.Message{Role: thread.User, Parts: g.userParts()})
	case 3:
		g.add(thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: Text().Draw(g.t, "say")}}})
	case 4:
		kind := rapid.SampledFrom([]thread.Kind{thread.Injected, thread.Recap}).Draw(g.t, "kind")
		g.add(thread.Message{Role: thread.User, Kind: kind, Parts: []thread.Part{thread.Text{Text: "<reminder> " + Text().Draw(g.t, "note")}}})
	case 5:
		g.add(thread.Message{Role: thread.System, Parts: []thread.Part{thread.Text{Text: "mid-conversation rule"}}})
	case 6:
		g.add(result("nobody-asked", "Read", Text().Draw(g.t, "orphan"), thread.Success))
	case 7, 8:
		g.calls++
		g.messages = append(g.messages, Vendor(g.t, rapid.SampledFrom(APIs).Draw(g.t, "api"), g.calls)...)
	default:
		g.callStep()
	}
	if len(g.late) > 0 && rapid.Bool().Draw(g.t, "late arrives") {
		g.messages = append(g.messages, g.late...)
		g.late = nil
	}
}

func (g *generator) userParts() []thread.Part {
	parts := []thread.Part{thread.Text{Text: Text().Draw(g.t, "ask")}}
	if rapid.IntRange(0, 9).Draw(g.t, "media") == 0 {
		parts = append(parts, thread.Media{Type: thread.Image, MIME: "image/png", Data: pixel})
	}
	return parts
}

// callStep adds an assistant message with calls, and their results in some
// order: answered, answered with an error, late, twice, or never.
func (g *generator) callStep() {
	m := thread.Message{Role: thread.Assistant}
	if rapid.Bool().Draw(g.t, "reasoning") {
		m.Parts = append(m.Parts, thread.Reasoning{Text: "let me think", Signature: "c2lnbmF0dXJl"})
	}
	if rapid.Bool().Draw(g.t, "words") {
		m.Parts = append(m.Parts, thread.Text{Text: Text().Draw(g.t, "words")})
	}
	var results []thread.Message
	for range rapid.IntRange(1, 3).Draw(g.t, "parallel") {
		g.calls++
		id := fmt.Sprintf("call_%d", g.calls)
		tool := rapid.SampledFrom(tools).Draw(g.t, "tool")
		arguments := fmt.Sprintf(`{"file_path":"pkg/f%d.go","limit":%d}`, g.calls%5, g.calls)
		if rapid.IntRange(0, 3).Draw(g.t, "long arguments") == 0 {
			arguments = fmt.Sprintf(`{"file_path":"pkg/f%d.go","edits":[{"new":"%s","n":1.50}]}`, g.calls%5, strings.Repeat(`a\"é `, 100))
		}
		m.Parts = append(m.Parts, thread.ToolCall{ID: id, Name: tool, Arguments: arguments})
		r := result(id, tool, Text().Draw(g.t, "output"), thread.Success)
		switch rapid.IntRange(0, 11).Draw(g.t, "fate") {
		case 0: // aborted
		case 1:
			g.late = append(g.late, r)
		case 2:
			results = append(results, r, result(id, tool, "again: "+Text().Draw(g.t, "again"), thread.Success))
		case 3:
			results = append(results, result(id, tool, "error: it failed", thread.Failure))
		default:
			results = append(results, r)
		}
	}
	g.add(m)
	g.messages = append(g.messages, results...)
}

func result(id, tool, text string, outcome thread.Outcome) thread.Message {
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
		CallID: id, Tool: tool, Outcome: outcome, Content: []thread.Part{thread.Text{Text: text}},
	}}}
}
