package policy

import (
	"context"
	"strings"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// asked is what the user wants this summary to keep in mind, as the end of a
// request to a model; empty where the user said nothing. It stands outside of
// all that is data.
func (s *State) asked() string {
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

// ask has a model answer a text with a text. A refusal, an answer that was cut
// off, one that calls tools and one that says nothing are errors like a failed
// call; all of them are *llm.APIError where the generator keeps its contract.
func ask(ctx context.Context, model llm.Generator, system, user string, o *llm.Options) (string, error) {
	reply, err := model.Generate(ctx, &prompt.Prompt{
		System:   []prompt.System{{Text: strings.TrimSpace(system)}},
		Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: strings.TrimSpace(user)}}}},
	}, o)
	if err != nil {
		return "", err
	}
	if err := reply.Err(); err != nil {
		return "", err
	}
	text := strings.TrimSpace(reply.Text)
	switch {
	case reply.Stop == llm.StopTool || len(reply.Message.Calls()) > 0:
		return "", &llm.APIError{Kind: llm.ErrResponse, RequestID: reply.RequestID, Message: "the model called a tool where a summary was asked for"}
	case text == "":
		return "", &llm.APIError{Kind: llm.ErrResponse, RequestID: reply.RequestID, Message: "the model's answer is empty"}
	}
	return text, nil
}
