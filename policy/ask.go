package policy

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// asked is what the user wants this summary to keep in mind, as the end of a
// request to a model; empty where the user said nothing. It stands outside of
// all that is data.
func (s *Situation) asked() string {
	text := strings.TrimSpace(s.Instructions)
	if text == "" {
		return ""
	}
	return "\n\n## The user asks you to weigh this for the summary\n" + text
}

// inParts has a model summarize entries on top of an earlier summary. Where they
// are too long for its window it reads them in halves, the second on top of what
// it made of the first.
func inParts(entries []entry, previous string, summarize func([]entry, string) (string, error)) (string, error) {
	text, err := summarize(entries, previous)
	if !llm.IsOverflow(err) || len(entries) < 2 {
		return text, err
	}
	half := len(entries) / 2
	if text, err = inParts(entries[:half], previous, summarize); err != nil {
		return "", err
	}
	return inParts(entries[half:], text, summarize)
}

// asker asks a policy's model for the summary of one plan, each question once,
// and keeps what there is to report.
type asker struct {
	s      *Situation
	model  llm.Generator // nil: nobody is asked
	trust  Trust
	report summarize.Report
	lost   int                // bytes of the model's text that were left out
	most   int                // bytes that a text which is not checked may take
	others []summarize.Report // of the situation's summarizer
}

// generate has the model answer. A refusal, an answer that calls tools and one that
// says nothing are errors like a failed call; all of them are *llm.APIError where the
// generator keeps its contract. A text that was cut off at its limit is what it says
// until there, in whole sentences; anything else that was cut off is an error.
func (a *asker) generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	reply, err := a.s.Answers.Ask(ctx, a.model, p, o)
	if err != nil {
		return nil, err
	}
	if whole := clip.Sentences(reply.Text, len(reply.Text)-1); reply.Stop == llm.StopLength && (o == nil || o.Schema == nil) && whole != "" {
		a.report = a.report.With(summarize.Report{By: a.model.Model(), Proposed: 1, Dropped: map[string]int{"cut": 1},
			Left: []summarize.Left{{Text: clip.Head(strings.TrimSpace(reply.Text[len(whole):]), 200), Cause: "cut"}}})
		cut := *reply
		cut.Text, cut.Stop = whole, llm.StopEnd
		if n := len(cut.Attempts); n > 0 {
			cut.Attempts = slices.Clone(cut.Attempts)
			cut.Attempts[n-1].Err = nil
		}
		reply = &cut
	}
	if err := unusable(reply); err != nil {
		if n := len(reply.Attempts); n > 0 {
			all := slices.Clone(reply.Attempts)
			all[n-1].Err = err
			return nil, &llm.AttemptsError{Attempts: all}
		}
		return nil, err
	}
	a.report = a.report.With(summarize.Replied(a.model.Model(), reply))
	return reply, nil
}

func unusable(reply *llm.Reply) error {
	switch {
	case reply.Err() != nil:
		return reply.Err()
	case reply.Stop == llm.StopTool || len(reply.Message.Calls()) > 0:
		return &llm.APIError{Kind: llm.ErrResponse, RequestID: reply.RequestID, Message: "the model called a tool where a summary was asked for"}
	case strings.TrimSpace(reply.Text) == "" && reply.JSON == "":
		return &llm.APIError{Kind: llm.ErrResponse, RequestID: reply.RequestID, Message: "the model's answer is empty"}
	}
	return nil
}

// text has the model answer a text with a text.
func (a *asker) text(ctx context.Context, system prompt.System, user string, o *llm.Options) (string, error) {
	system.Text = strings.TrimSpace(system.Text)
	reply, err := a.generate(ctx, &prompt.Prompt{
		System:   []prompt.System{system},
		Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: strings.TrimSpace(user)}}}},
	}, o)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(reply.Text), nil
}

// summarized keeps the report of a summary that the situation's summarizer made.
func (a *asker) summarized(out summarize.Result, err error) (summary.Summary, error) {
	if out.Report.By != "" {
		a.others = append(a.others, out.Report)
	}
	return out.Summary, err
}

// reports are those of the plan: who wrote its summary, or, when there is a
// failure, what took the place of the model.
func (a *asker) reports(instead string, failure error) []summarize.Report {
	r := a.report
	if failure != nil {
		who := byCode
		if a.model != nil {
			who = cmp.Or(r.By, a.model.Model())
		}
		r.Failures = append(r.Failures, summarize.Failures(who, failure)...)
		r.By = instead
	}
	if r.By == "" {
		return a.others
	}
	return append(a.others, r)
}
