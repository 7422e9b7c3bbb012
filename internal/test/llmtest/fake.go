// Package llmtest has what tests of and with models need: deterministic fakes
// (Echo, Script), a real HTTP server that answers as it is told in three APIs
// (Server), and the tests that every llm.Generator passes (TestGenerator).
package llmtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Echo is a model that says what it was told: the text of the last message, or
// for a structured answer {"echo": text}. The zero value is ready to use and
// safe for concurrent use. Usage counts bytes.
type Echo struct{}

// Model returns "echo".
func (Echo) Model() string { return "echo" }

// Generate answers with the text of the last message. The error is that of a
// context that is done.
func (Echo) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	if err := done(ctx); err != nil {
		return nil, err
	}
	text := ""
	if n := len(p.Messages); n > 0 {
		text = p.Messages[n-1].Text()
	}
	if o != nil && o.Schema != nil {
		text = canonjson.Spaced(map[string]string{"echo": text})
	}
	return (&Turn{Reply: llm.Reply{
		Text: text, Usage: wire.Usage{Input: len(text), Output: len(text), Known: true},
	}}).reply("echo", o), nil
}

// Turn is one scripted answer: a reply or an error.
type Turn struct {
	// Reply is the answer. Where Message is empty it is made from Text, where
	// Stop is empty it is StopEnd, and JSON is read from Text when it was asked
	// for.
	Reply llm.Reply
	// Err is returned in place of the reply when it is not nil.
	Err error
}

// Say is a turn that answers with a text.
func Say(text string) Turn { return Turn{Reply: llm.Reply{Text: text}} }

// Fail is a turn that fails. A bare llm.Kind becomes an *llm.APIError.
func Fail(err error) Turn {
	if kind, ok := err.(llm.Kind); ok {
		err = &llm.APIError{Provider: "script", Kind: kind, Message: "scripted"}
	}
	return Turn{Err: err}
}

func (t *Turn) reply(model string, o *llm.Options) *llm.Reply {
	r := t.Reply
	r.Stop = cmp.Or(r.Stop, wire.StopEnd)
	r.Model = cmp.Or(r.Model, model)
	if len(r.Message.Parts) == 0 && r.Text != "" {
		r.Message.Parts = []thread.Part{thread.Text{Text: r.Text}}
	}
	r.Message.Role = thread.Assistant
	if r.Text == "" {
		r.Text = r.Message.Text()
	}
	if o != nil && o.Schema != nil && r.JSON == "" && r.Stop == wire.StopEnd {
		r.JSON, _ = rawjson.FindObject(r.Text)
	}
	return &r
}

// Scripted is a model that says what was written down, in order. It is safe for
// concurrent use.
type Scripted struct {
	mu    sync.Mutex
	turns []Turn
	asked []Asked
}

// Asked is one request that a Scripted got.
type Asked struct {
	Prompt  *prompt.Prompt
	Options llm.Options
}

// Script returns a model named "script" that gives the turns in order. Beyond
// the last one it fails.
func Script(turns ...Turn) *Scripted { return &Scripted{turns: turns} }

// Model returns "script".
func (s *Scripted) Model() string { return "script" }

// Generate gives the next turn and records the request, also one whose context
// is done, which takes no turn.
func (s *Scripted) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	s.mu.Lock()
	asked := Asked{Prompt: p}
	if o != nil {
		asked.Options = *o
	}
	s.asked = append(s.asked, asked)
	err := done(ctx)
	var turn Turn
	if err == nil {
		if len(s.turns) == 0 {
			err = fmt.Errorf("llmtest: the script has no turn for request %d", len(s.asked))
		} else {
			turn, s.turns = s.turns[0], s.turns[1:]
			err = turn.Err
		}
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return turn.reply("script", o), nil
}

// Asked returns the requests so far, in order.
func (s *Scripted) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Asked(nil), s.asked...)
}

// Remaining returns how many turns were not given yet.
func (s *Scripted) Remaining() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns)
}

func done(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	kind := llm.ErrCanceled
	if errors.Is(err, context.DeadlineExceeded) {
		kind = llm.ErrTimeout
	}
	return &llm.APIError{Provider: "script", Kind: kind, Message: err.Error(), Err: err}
}
