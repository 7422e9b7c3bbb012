package daemon

import (
	"encoding/json"
	"reflect"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func unknownAPI(name string) error {
	return badField("api", "want anthropic, openai, responses or gemini, got %.40q", name)
}

func decodeBody(name string, body json.RawMessage) (*prompt.Prompt, error) {
	codec := apicodec.For(name)
	switch {
	case codec == nil:
		return nil, unknownAPI(name)
	case len(body) == 0:
		return nil, badField("body", "send a request body of the api that is named")
	}
	p, err := codec.Decode(string(body))
	if err != nil {
		return nil, badField("body", "%s", err)
	}
	p.Messages = injected.MarkKinds(p.Messages, nil)
	return p, nil
}

// decodeResponse reads a provider's response body: the answer, and the usage, which is
// nil where it is missing or does not count the prompt alone.
func decodeResponse(name string, body json.RawMessage) ([]thread.Message, *neutral.Usage, error) {
	codec := apicodec.For(name)
	if codec == nil {
		return nil, nil, unknownAPI(name)
	}
	a, err := codec.DecodeAnswer(body)
	if err != nil {
		return nil, nil, badField("response", "%s; send the whole response body as the provider gave it; of a stream, what it adds up to", err)
	}
	var usage *neutral.Usage
	if u := a.Usage; u.Known && !u.Mixed {
		usage = &neutral.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output}
	}
	if a.Message.Frame == nil && len(a.Message.Parts) == 0 {
		return nil, usage, nil // the model said nothing
	}
	return []thread.Message{a.Message}, usage, nil
}

// preparedAsEdits writes a prompt as edits of the messages of a thread, and the request
// around them in neutral form.
func preparedAsEdits(name string, log *thread.Thread, p *prompt.Prompt, m *render.Manifest, out *api.Prepared) *api.Prepared {
	out.API, out.Edits = name, editsOf(name, log, p.Messages, m.Messages)
	around := *p
	around.Messages, around.CachePoints = nil, nil
	out.Prompt = neutral.PromptOf(&around)
	return out
}

// editsOf turns the messages of a thread into those of a prompt. A message that stands
// in both in the same order stays; any other is omitted, or inserted where the prompt has
// it.
func editsOf(name string, log *thread.Thread, messages []thread.Message, origins []render.Origin) []neutral.Edit {
	var all []neutral.Edit
	var waiting []neutral.Message // to insert before the next message that stays
	next := 0                     // the first message of the thread not dealt with yet
	for i := range messages {
		m := &messages[i]
		at, ok := log.Index(origins[i].ID)
		// A placeholder stands where the content was, so that a call keeps its result.
		synthetic := origins[i].Synthetic && origins[i].Record.Action != plan.Externalize
		if !ok || synthetic || at < next || log.At(at).Role != m.Role {
			added := neutral.MessageOf(m)
			added.ID = "" // it is not a message of the thread
			waiting = append(waiting, added)
			continue
		}
		for ; next < at; next++ {
			all = append(all, neutral.Edit{MessageID: string(log.At(next).ID), Omit: true})
		}
		next++
		e := neutral.Edit{MessageID: string(origins[i].ID), InsertBefore: waiting}
		waiting = nil
		// A host that names no API sends its messages itself: parts that only some
		// providers read are left to it.
		if name != "" || origins[i].Record.Action != plan.Include {
			if said, own := neutral.MessageOf(m), neutral.MessageOf(log.At(at)); !reflect.DeepEqual(said.Parts, own.Parts) {
				e.Content = said.Parts
			}
		}
		if e.InsertBefore != nil || e.Content != nil {
			all = append(all, e)
		}
	}
	for ; next < log.Len(); next++ {
		all = append(all, neutral.Edit{MessageID: string(log.At(next).ID), Omit: true})
	}
	if waiting != nil {
		all = append(all, neutral.Edit{InsertBefore: waiting})
	}
	return all
}
