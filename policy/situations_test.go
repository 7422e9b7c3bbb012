package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// promptText writes a prompt for people.
func promptText(p *prompt.Prompt) string {
	var b strings.Builder
	for _, s := range p.System {
		fmt.Fprintf(&b, "## system\n%s\n", s.Text)
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		fmt.Fprintf(&b, "## %s\n", m.Role)
		for _, part := range m.Parts {
			switch part := part.(type) {
			case thread.Text:
				b.WriteString(part.Text + "\n")
			case thread.ToolCall:
				fmt.Fprintf(&b, "call %s %s\n", part.Name, part.Arguments)
			case thread.ToolResult:
				fmt.Fprintf(&b, "result %s: %s\n", part.Tool, part.Text())
			}
		}
	}
	for _, c := range p.CachePoints {
		fmt.Fprintf(&b, "cache after %d\n", c.After)
	}
	return b.String()
}

// sendable checks that every provider would take a thread under a plan.
func sendable(t testing.TB, th *thread.Thread, p *plan.Plan) {
	t.Helper()
	for _, c := range []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}} {
		out, _, err := render.Render(th, p, &prompt.Prompt{Model: "m", MaxOutput: 1000}, &render.Options{Profile: render.For(c.API())})
		if err != nil {
			t.Fatal(err)
		}
		body, err := c.Encode(out)
		if err != nil {
			t.Fatalf("%s: %v", c.API(), err)
		}
		for _, problem := range c.Validate(body) {
			if !problem.Advice {
				t.Errorf("%s: %v\n%s", c.API(), problem, body)
			}
		}
	}
}

func speak(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}

func callTool(id, tool, arguments, words string) thread.Message {
	m := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Reasoning{Text: "secret thought"}}}
	if words != "" {
		m.Parts = append(m.Parts, thread.Text{Text: words})
	}
	m.Parts = append(m.Parts, thread.ToolCall{ID: id, Name: tool, Arguments: arguments})
	return m
}

func answerTool(id, tool, text string) thread.Message {
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
		CallID: id, Tool: tool, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}},
	}}}
}

func fixedNow() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// stateOf is a thread before a call, under a plan.
func stateOf(t testing.TB, th *thread.Thread, current *plan.Plan) *policy.Situation {
	t.Helper()
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	given := policy.Situation{
		Thread: th, Current: current, Base: &prompt.Prompt{}, Counter: counter,
		Now: fixedNow(), Fixed: counter.Prompt(&prompt.Prompt{}),
	}
	for _, m := range th.All() {
		given.ChangedSizes = append(given.ChangedSizes, counter.Message(m))
	}
	given.PlainSizes = given.ChangedSizes
	s, err := policy.Situate(given)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func threadOf(t testing.TB, messages ...thread.Message) *thread.Thread {
	t.Helper()
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	return th
}
