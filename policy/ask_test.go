package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// narrow is a model with a small window: it refuses what is longer, and tells of
// the rest which worker it has read of last.
type narrow struct {
	window         int // bytes
	asked, refused int
	seen           map[string]bool
}

func (*narrow) Model() string { return "narrow" }

func (m *narrow) Generate(_ context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	m.asked++
	text := p.Messages[len(p.Messages)-1].Text()
	if len(text) > m.window {
		m.refused++
		return nil, &llm.APIError{Kind: llm.ErrOverflow}
	}
	for _, name := range worker.FindAllString(text, -1) {
		m.seen[name] = true
	}
	return (&ill{cured: true}).Generate(context.Background(), p, o)
}

// TestSummarizerWithASmallWindow: under every policy a summarizer whose window
// is smaller than what it is to read gets it in parts, and reads all of it. D6
func TestSummarizerWithASmallWindow(t *testing.T) {
	for name := range withModel(&narrow{}) {
		if name == "auto" {
			continue // it does without a summary here, and asks as the ladder does
		}
		t.Run(name, func(t *testing.T) {
			m, steps := &narrow{window: 12_000, seen: map[string]bool{}}, 24
			if name == "workstream" { // it leaves the results of this tool out
				m.window, steps = 3_000, 90
			}
			told := &trace{}
			config := withModel(m)[name]
			config.Events = told
			c, err := palimpsest.New(config)
			if err != nil {
				t.Fatal(err)
			}
			step := palimpsest.Step{Profile: render.For(wire.Chat), Budget: window}
			for n := range steps {
				news, answer := queueWork(n)
				step.Messages = append(append(step.Messages, news...), answer)
			}
			step.Messages = append(step.Messages, toolResult(steps-1, "Bash", queueReport(steps-1)), say(thread.User, "Go on."))
			p, err := c.Session("queue").PrepareStep(t.Context(), step)
			if err != nil || len(p.Messages) >= len(step.Messages) {
				t.Fatalf("%d messages, %v", len(p.Messages), err)
			}
			if m.refused == 0 || m.asked == m.refused {
				t.Fatalf("%d of %d requests were refused: the test shows nothing", m.refused, m.asked)
			}
			for n := range 10 {
				if name := fmt.Sprintf("worker-%d", 20+n); !m.seen[name] {
					t.Errorf("it has not read of %s", name)
				}
			}
			for _, e := range told.events {
				if e.Type == event.Failed || strings.HasPrefix(fmt.Sprint(e.Details["fallback"]), "truncation") {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}
