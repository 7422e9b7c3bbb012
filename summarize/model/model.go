// Package model makes summaries with a language model. Model (model.go) asks it once;
// New (chain.go) puts Verified, Chunked and Fallback around it.
//
// A model proposes facts, decisions, steps of the plan, open items and failed attempts, each
// with the messages that it comes from. The user's words, files and calls come from code alone.
// Which of the user's sentences stand, Judged (judged.go) asks a model, which answers in numbers.
//
// request.go writes the request and delta.go reads the answer. shared.go writes the request as
// a continuation of the conversation's own, which the provider has cached.
package model

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Model summarises with one request to a model and merges the answer into what Extractive finds.
// It does not check the answer: put Verified around it. Generator must be set. Safe for
// concurrent use, not to be copied after first use.
type Model struct {
	Generator llm.Generator
	// Extractive makes what code can say, and counts tokens. Nil means a new one.
	Extractive *summarize.Extractive
	// MaxOutput bounds the answer in tokens, reasoning included; 0 means 4,000.
	MaxOutput int
	// Timeout bounds the request, retries included; 0 means two minutes.
	Timeout time.Duration

	own summarize.Extractive
}

var _ summarize.Summarizer = (*Model)(nil)

const (
	defaultOutput  = 4000
	temperature    = 0.3
	defaultTimeout = 2 * time.Minute
)

// Summarize implements summarize.Summarizer. The error is that of the Generator or of
// Extractive, or a *summarize.RejectedError that says what is wrong with the answer.
func (m *Model) Summarize(ctx context.Context, in summarize.Input) (summarize.Result, error) {
	code := cmp.Or(m.Extractive, &m.own)
	ask := in.Untold()
	if len(ask.Messages) == 0 {
		return code.Summarize(ctx, in) // nothing to ask about
	}
	generator := in.Answers.GeneratorFor(m.Generator)
	own, o, err := m.request(&ask)
	if err != nil {
		return summarize.Result{}, err
	}
	// The key of the cached answer is the transcript's request, whichever form is sent.
	reply, err := in.Answers.AskWith(ctx, generator, own.prompt, o, func(ctx context.Context) (*llm.Reply, error) {
		return askCheaper(ctx, generator, &ask, own, o, code)
	})
	if err != nil {
		return summarize.Result{}, err
	}
	proposed, err := read(reply, &ask)
	if err != nil {
		return summarize.Result{}, err
	}
	out, err := code.Complete(ctx, in, proposed)
	out.Report, out.Outdated = summarize.Replied(generator.Model(), reply), proposed.Outdated
	return out, err
}

// askCheaper sends the request in the cheaper form.
func askCheaper(ctx context.Context, g llm.Generator, in *summarize.Input, own *question, o *llm.Options, code *summarize.Extractive) (*llm.Reply, error) {
	if q := shared(g, in, own, code); q != nil {
		plain := *o
		plain.Schema = nil // as a forced tool it would change the beginning
		reply, err := send(ctx, g, q, &plain)
		if err == nil {
			_, err = read(reply, in)
		}
		if err == nil || ctx.Err() != nil {
			return reply, err
		}
		// It did not fit after the conversation, or the model continued the conversation.
	}
	return send(ctx, g, own.prompt, o)
}

// send sends one request, and again without schema and temperature if it is invalid.
func send(ctx context.Context, g llm.Generator, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	reply, err := g.Generate(ctx, p, o)
	if errors.Is(err, llm.ErrInvalid) && ctx.Err() == nil {
		// Some servers know no schema and some models take no temperature. The prompt
		// describes the answer too.
		plain := *o
		plain.Schema, plain.Temperature = nil, nil
		reply, err = g.Generate(ctx, p, &plain)
	}
	return reply, err
}

// read returns what an answer proposes.
func read(reply *llm.Reply, in *summarize.Input) (summarize.Result, error) {
	object, err := answer(reply)
	if err != nil {
		return summarize.Result{}, err
	}
	return readDelta(object, in.Messages)
}

// answer returns the JSON object in a reply, or says why there is none.
func answer(r *llm.Reply) (string, error) {
	reject := func(reason summarize.Reason, detail string) error {
		return &summarize.RejectedError{Reason: reason, Detail: detail}
	}
	switch r.Stop {
	case wire.StopRefusal, wire.StopFilter:
		return "", reject(summarize.Refused, "stopped: "+string(r.Stop))
	case wire.StopLength:
		if r.Text == "" && r.JSON == "" {
			return "", reject(summarize.ReasoningOnly, "the output limit was reached before the answer began")
		}
		return "", reject(summarize.CutOff, "the output limit was reached")
	case wire.StopTool:
		return "", reject(summarize.ToolCalled, "")
	case wire.StopEnd, "":
	default:
		return "", r.Err()
	}
	if len(r.Message.Calls()) > 0 && r.JSON == "" {
		return "", reject(summarize.ToolCalled, "")
	}
	text := cmp.Or(r.JSON, r.Text)
	object, ok := rawjson.FindObject(text)
	switch {
	case ok:
		return object, nil
	case text == "" && len(r.Message.Parts) > 0:
		return "", reject(summarize.ReasoningOnly, "")
	case text == "":
		return "", reject(summarize.Empty, "")
	case refuses(text):
		return "", reject(summarize.Refused, "in words")
	}
	return "", reject(summarize.Unreadable, "no JSON object")
}
