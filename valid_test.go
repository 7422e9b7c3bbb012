package palimpsest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// dropping drops everything up to a position, but for what must be kept.
type dropping struct {
	policy.Policy
	to      int
	heeds   bool
	planned *int
}

func (d dropping) Name() string { return "dropping" }

func (d dropping) Due(*policy.Situation) (bool, string) { return true, "always" }

func (d dropping) Plan(_ context.Context, s *policy.Situation) (*policy.Fitted, error) {
	*d.planned++
	var ids []thread.ID
	for i := range d.to {
		if !d.heeds || !slices.Contains(s.Keep, i) {
			ids = append(ids, s.Thread.At(i).ID)
		}
	}
	span, err := thread.NewSpan(s.Thread, ids...)
	if err != nil {
		return nil, err
	}
	p := s.Draft(d.Name())
	p.Drops = []plan.Removal{{Span: span}}
	f, err := s.Render(p)
	if first := s.Thread.At(d.to - len(s.Keep)); err == nil && (!d.heeds || first.Role == thread.Assistant) {
		broken := *f.Prompt // as a renderer that repairs nothing would leave it
		broken.Messages = append([]thread.Message{{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "nobodys", Content: []thread.Part{thread.Text{Text: "x"}}}}}}, f.Prompt.Messages...)
		f.Prompt = &broken
	}
	return f, err
}

// TestCutMovesToValid: a plan whose request the API would refuse is cut at the nearest place
// before; where none of eight is valid, the step goes out without it. G8
func TestCutMovesToValid(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		planned := 0
		c, err := palimpsest.New(palimpsest.Config{Policy: dropping{to: 13, heeds: heeds, planned: &planned}})
		if err != nil {
			t.Fatal(err)
		}
		var messages []thread.Message
		for n := range 10 {
			messages = append(messages, plain(thread.User, fmt.Sprintf("Question %d.", n)), plain(thread.Assistant, fmt.Sprintf("Answer %d.", n)))
		}
		messages = append(messages, plain(thread.User, "The last question."))
		p, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{
			Base: &prompt.Prompt{Model: "claude-sonnet-4-5", MaxOutput: 100}, Profile: render.For(wire.Anthropic), Messages: messages,
		})
		if err != nil {
			t.Fatal(err)
		}
		body, err := anthropic.Codec{}.Encode(p.Prompt)
		if err != nil {
			t.Fatal(err)
		}
		if problems := (anthropic.Codec{}).Validate(body); len(problems) > 0 {
			t.Errorf("heeds %t: %v", heeds, problems)
		}
		if heeds && (len(p.Messages) != 9 || planned != 2 || p.Failed != nil) {
			t.Errorf("%d messages after %d plans, %v", len(p.Messages), planned, p.Failed)
		}
		if !heeds && (len(p.Messages) != 21 || planned != 9 || p.Failed == nil || !strings.Contains(p.Failed.Error(), "would refuse")) {
			t.Errorf("%d messages after %d plans, %v", len(p.Messages), planned, p.Failed)
		}
	}
}

// pictured is a thread with results that hold a picture each.
func pictured(t *testing.T, n int, data string) []thread.Message {
	messages := []thread.Message{plain(thread.User, "Order the bolts.")}
	for i := range n {
		id := fmt.Sprintf("call_%d", i)
		messages = append(messages,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "shot", Arguments: `{}`}}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "shot", Content: []thread.Part{
				thread.Media{Type: thread.Image, MIME: "image/png", Data: data},
			}}}})
	}
	return messages
}

// TestPicturesAndBytesAreBudgets: a request with more pictures or bytes than the API takes loses
// old pictures, and nothing else. G5
func TestPicturesAndBytesAreBudgets(t *testing.T) {
	for name, given := range map[string]struct {
		n    int
		data string
		left int
	}{"number": {120, "AAAA", 50}, "bytes": {40, strings.Repeat("AAAA", 220<<10), 29}} {
		c, err := palimpsest.New(palimpsest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		base := &prompt.Prompt{Model: "claude-sonnet-4-5", MaxOutput: 100, Tools: []prompt.Tool{{Name: "shot", Schema: `{"type":"object"}`}}}
		log, err := thread.New("t").Append(pictured(t, given.n, given.data)...)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Base: base, Budget: 1_000_000, Profile: render.For(wire.Anthropic)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		left := 0
		for i := range res.Prompt.Messages {
			if hasPicture(&res.Prompt.Messages[i]) {
				left++
			}
		}
		body, err := anthropic.Codec{}.Encode(res.Prompt)
		if problems := (anthropic.Codec{}).Validate(body); err != nil || len(problems) > 0 {
			t.Errorf("%s: %v, %v", name, err, problems)
		}
		if left > given.left || left < given.left-4 || len(res.Prompt.Messages) != log.Len() || !hasPicture(&res.Prompt.Messages[log.Len()-1]) {
			t.Errorf("%s: %d pictures left, %d messages of %d", name, left, len(res.Prompt.Messages), log.Len())
		}
	}
}
