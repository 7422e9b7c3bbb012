package policy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func say(role thread.Role, text string) thread.Message {
	return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
}

// call is an assistant message with a text and a call, toolResult the answer.
func call(n int, text, tool, arguments string) thread.Message {
	m := say(thread.Assistant, text)
	m.Parts = append(m.Parts, thread.ToolCall{ID: fmt.Sprintf("call_%d", n), Name: tool, Arguments: arguments})
	return m
}

func toolResult(n int, tool, text string) thread.Message {
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
		CallID: fmt.Sprintf("call_%d", n), Tool: tool, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}},
	}}}
}

// trace writes down what an agent, its summarizer and its events see.
type trace struct {
	strings.Builder
	model *llmtest.Scripted
	// summarizer is the Compactor's; nil for policies that ask model themselves.
	summarizer summarize.Summarizer
	asked      int
	system     bool // what the summarizer is told was written
	events     []event.Event
}

func (r *trace) Emit(_ context.Context, e event.Event) {
	if e.Type != event.PromptPrepared { // it comes with every step
		r.events = append(r.events, e)
	}
}

// told are the events since it was asked the last time, a line each.
func (r *trace) told() []string {
	var told []string
	for _, e := range r.events {
		if e.Type == event.CheckStarted || e.Type == event.Asked {
			continue // as often as it is looked, and as summaries are tried
		}
		line := string(e.Type)
		if e.Span != nil {
			line += fmt.Sprintf(" span=%d", e.Span.Len())
		}
		if e.Err != "" {
			line += " err=" + e.Err
		}
		for _, key := range []string{"round", "source", "trigger", "first_kept", "fallback"} {
			if v, ok := e.Details[key]; ok {
				line += fmt.Sprintf(" %s=%v", key, v)
			}
		}
		told = append(told, line)
	}
	r.events = nil
	return told
}

// step writes what happened since the last step, and the prompt.
func (r *trace) step(n int, p *prompt.Prompt) {
	told := r.told()
	if len(told) == 0 {
		return
	}
	fmt.Fprintf(r, "==== before call %d ====\n", n)
	asked := r.model.Asked()
	for _, q := range asked[r.asked:] {
		temperature := "default"
		if q.Options.Temperature != nil {
			temperature = fmt.Sprint(*q.Options.Temperature)
		}
		fmt.Fprintf(r, "---- asked: temperature %s, at most %d tokens, within %s ----\n", temperature, q.Options.MaxOutput, q.Options.Timeout)
		if r.summarizer == nil || !r.system { // only the mark in it changes
			fmt.Fprintf(r, "%s\n", q.Prompt.System[0].Text)
			r.system = true
		}
		fmt.Fprintf(r, "---- as the user ----\n%s\n", squeezed(q.Prompt.Messages[0].Text()))
	}
	r.asked = len(asked)
	fmt.Fprintf(r, "---- events ----\n%s\n---- prompt ----\n", strings.Join(told, "\n"))
	for i := range p.Messages {
		r.message(i, &p.Messages[i])
	}
}

// squeezed writes lines that repeat themselves once.
func squeezed(text string) string {
	var b strings.Builder
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		n := 1
		for i+n < len(lines) && lines[i+n] == lines[i] {
			n++
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(lines[i])
		if n > 2 {
			fmt.Fprintf(&b, "  … %d times", n)
		} else if n == 2 {
			b.WriteString("\n" + lines[i])
		}
		i += n
	}
	return b.String()
}

func (r *trace) message(i int, m *thread.Message) {
	fmt.Fprintf(r, "(%d) %s", i, m.Role)
	if text := m.Text(); text != "" {
		fmt.Fprintf(r, ": %s", text)
	}
	for _, c := range m.Calls() {
		fmt.Fprintf(r, " → %s %s", c.Name, c.ID)
	}
	if result, ok := m.Result(); ok {
		text := result.Text()
		fmt.Fprintf(r, ": %s… (%d bytes)", strings.TrimSpace(text[:min(len(text), 24)]), len(text))
	}
	r.WriteByte('\n')
}

// flashcards is an agent that builds an app in steps of a call and its result;
// every sixth step the user says something.
func flashcards(n int) (news []thread.Message, answer thread.Message) {
	file := fmt.Sprintf("src/part%d.ts", n)
	switch {
	case n == 0:
		news = []thread.Message{say(thread.User, "Build a flashcard app.\nNever touch legacy/.")}
	case n%6 == 0:
		news = []thread.Message{
			toolResult(n-1, "Write", "ok"),
			say(thread.Assistant, fmt.Sprintf("Parts up to %d are done.", n-1)),
			say(thread.User, fmt.Sprintf("Good. Now add feature %d.", n/6)),
		}
	default:
		news = []thread.Message{toolResult(n-1, "Write", fmt.Sprintf("wrote part %d\n%s", n-1, strings.Repeat("export const x = 1\n", 40)))}
	}
	return news, call(n, fmt.Sprintf("I write %s next.", file), "Write", fmt.Sprintf(`{"file_path": %q, "content": "export"}`, file))
}

// run plays the agent through the front door and returns the prompts.
func run(t *testing.T, p policy.Policy, r *trace, steps int, step palimpsest.Step) (*palimpsest.Session, []*prompt.Prompt) {
	t.Helper()
	config := palimpsest.Config{Policy: p, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }}
	if r != nil {
		config.Events, config.Summarizer = r, r.summarizer
	}
	c, err := palimpsest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session("cards")
	if step.Base == nil {
		step.Base = &prompt.Prompt{System: []prompt.System{{Text: "You are a careful coding agent."}}}
	}
	if step.Profile.API == "" {
		step.Profile = render.For(wire.Chat)
	}
	var prompts []*prompt.Prompt
	for n := range steps {
		var answer thread.Message
		step.Messages, answer = flashcards(n)
		for i := range step.Messages {
			step.Messages[i].ID = thread.ID(fmt.Sprintf("m%02d.%d", n, i))
		}
		answer.ID = thread.ID(fmt.Sprintf("m%02d.a", n))
		out, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		prompts = append(prompts, out.Prompt)
		if r != nil {
			r.step(n, out.Prompt)
		}
		if err := th.FinishStep(t.Context(), nil, wire.Usage{}, answer); err != nil {
			t.Fatal(err)
		}
	}
	return th, prompts
}

// shape lists roles and the beginnings of texts.
func shape(messages []thread.Message) []string {
	var out []string
	for i := range messages {
		m := &messages[i]
		text, _, _ := strings.Cut(m.Text(), "\n")
		if result, ok := m.Result(); ok {
			text = result.Text()
		}
		for _, c := range m.Calls() {
			text = strings.TrimSpace(text + " +" + c.Name)
		}
		out = append(out, string(m.Role)+": "+text[:min(len(text), 60)])
	}
	return out
}

// plans returns all plans of a thread.
func plans(t *testing.T, th *palimpsest.Session, want int) []string {
	t.Helper()
	all, err := th.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < want {
		t.Fatalf("%d compactions, want at least %d", len(all), want)
	}
	var texts []string
	for n, p := range all {
		if len(p.Summarizations) != 1 || len(p.Refs()) != 1 {
			t.Fatalf("plan %d has other records than one summary: %v", n+1, p.Refs())
		}
		if n > 0 {
			before := all[n-1].Summarizations[0].Span.MessageIDs
			now := p.Summarizations[0].Span.MessageIDs
			if len(now) <= len(before) || !slices.Equal(now[:len(before)], before) {
				t.Errorf("plan %d does not go on from plan %d", n+1, n)
			}
		}
		texts = append(texts, p.Summarizations[0].Stand[0].Text)
	}
	return texts
}
