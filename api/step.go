package api

import (
	"encoding/json"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/render"
)

// Step is what an agent is about to ask its model. Model, system and tools come
// from Body, a provider's request, or from Base; new messages from Body or from
// Messages.
type Step struct {
	// API names the provider's form: anthropic, openai, responses or gemini. The
	// answer holds a request body of it. Empty asks for a neutral prompt.
	API string `json:"api,omitempty"`
	// Body is a request body of that API, whose messages are those since the last step.
	Body json.RawMessage `json:"body,omitempty"`
	// Base is the request around the messages in neutral form. Send Body or Base, not
	// both.
	Base *neutral.Prompt `json:"base,omitempty"`
	// Messages are those since the last step, in neutral form; they follow those of Body.
	Messages []neutral.Message `json:"messages,omitempty"`
	// Model replaces the one in Body or Base.
	Model string `json:"model,omitempty"`
	// Window is the context window in tokens. 0 for that of the model where it is known,
	// else the daemon's setting.
	Window int `json:"window,omitempty"`
	// Output is what is kept free for the answer, in tokens. 0 for what the request asks
	// for, at most 20,000.
	Output int `json:"output,omitempty"`
	// Budget bounds the whole request in tokens, if it should be smaller than the window.
	// Compact, its dry run and its preview fill it; without one the policy's own target
	// holds.
	Budget int `json:"budget,omitempty"`
	// Edits asks for the prompt as edits of the messages of the thread, for hosts that hold
	// the messages themselves, with the ids that they sent.
	Edits bool `json:"edits,omitempty"`
	// Force has prepare compact now, for hosts that decide themselves when: to what the
	// policy keeps or, when the conversation takes less, to half of it. Other operations
	// refuse it.
	Force bool `json:"force,omitempty"`
	// Instructions are the user's wishes for the summaries of a compaction, for compact and
	// for prepare with Force. Other operations refuse them.
	Instructions string `json:"instructions,omitempty"`
	// Why is for overflowed: what the provider refused the request for. "tokens" or empty, "pictures" (too many,
	// or too large), "bytes" (of the body), or "output" (the answer that was asked for leaves no room). Other
	// operations refuse it.
	Why string `json:"why,omitempty"`
}

// Compact asks for a compaction now. The step must bring no messages.
type Compact struct {
	Step
	// Policy names another policy than the daemon's to make the plan. Favor is what the
	// policies auto and notes favor: quality, balanced or cost.
	Policy string `json:"policy,omitempty"`
	Favor  string `json:"favor,omitempty"`
}

// Prepared is the request to send to the model.
type Prepared struct {
	// Version and PlanVersion are those of the log and the plan that the prompt was made
	// from.
	Version     int `json:"version"`
	PlanVersion int `json:"plan_version"`
	// Tokens is the size of the whole request.
	Tokens int `json:"tokens"`
	// API is the provider's form of Body; empty with a neutral prompt.
	API string `json:"api,omitempty"`
	// Body is the request body for that API.
	Body json.RawMessage `json:"body,omitempty"`
	// Prompt is the request in neutral form, where no API was named.
	Prompt *neutral.Prompt `json:"prompt,omitempty"`
	// Edits turn the messages of the thread into those of the prompt, in the order of the
	// thread; a message without an edit stays as the host has it. With them Body is empty,
	// and Prompt is the request around the messages.
	Edits []neutral.Edit `json:"edits,omitempty"`
	// Manifest says where each message of the prompt comes from and, in the answer of
	// render, which records hide which messages. The other operations leave that list
	// empty: it grows with the history.
	Manifest *render.Manifest `json:"manifest"`
}

// ApplyEdits applies the edits to the messages that a host holds, by their ids. It does
// not change own.
func (p *Prepared) ApplyEdits(own []neutral.Message) []neutral.Message {
	edits := map[string]neutral.Edit{}
	for _, e := range p.Edits {
		edits[e.MessageID] = e
	}
	var out []neutral.Message
	for _, m := range own {
		e := edits[m.ID]
		if m.ID == "" { // the thread does not have it
			e = neutral.Edit{}
		}
		out = append(out, e.InsertBefore...)
		if e.Content != nil {
			m.Parts = e.Content
		}
		if !e.Omit {
			out = append(out, m)
		}
	}
	return append(out, edits[""].InsertBefore...)
}

// Answer is the model's answer, in one of two forms.
type Answer struct {
	// API names the form of Response.
	API string `json:"api,omitempty"`
	// Response is the provider's response body (of a stream, what it adds up to), with its
	// usage.
	Response json.RawMessage `json:"response,omitempty"`
	// Messages are the answer in neutral form.
	Messages []neutral.Message `json:"messages,omitempty"`
	// Usage is what the provider counted; it replaces that in Response.
	Usage *neutral.Usage `json:"usage,omitempty"`
}

// CutOff is an answer that ended at the limit on the output, in one message.
type CutOff struct {
	Answer
	// Step is the last step, without its messages. Its API is the form of the request in
	// the answer.
	Step Step `json:"step,omitzero"`
}
