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
	// Body is a request body of that API: the request around the messages, and in
	// it the messages that came since the last step.
	Body json.RawMessage `json:"body,omitempty"`
	// Base is the request around the messages in neutral form. Not both.
	Base *neutral.Prompt `json:"base,omitempty"`
	// Messages came since the last step, in neutral form; after those of Body.
	Messages []neutral.Message `json:"messages,omitempty"`
	// Model stands in place of the one in Body or Base.
	Model string `json:"model,omitempty"`
	// Window is the model's context window in tokens. 0 is that of the model,
	// where it is known, else the daemon's own setting.
	Window int `json:"window,omitempty"`
	// Output is what is kept free for the answer, in tokens. 0 is what the
	// request asks for, at most 20,000.
	Output int `json:"output,omitempty"`
	// Budget bounds the whole request in tokens, where it should be smaller than
	// the window.
	Budget int `json:"budget,omitempty"`
	// Edits asks for the answer as changes to the messages of the thread, for hosts
	// that hold the messages themselves and know them by the ids that they brought.
	Edits bool `json:"edits,omitempty"`
	// Force has prepare compact now, for hosts that say themselves when: to what the
	// policy keeps or, where the conversation takes less, to half of it. Other
	// operations refuse it.
	Force bool `json:"force,omitempty"`
	// Instructions are what the user wants the summaries of a compaction to keep in
	// mind: of compact, and of prepare with Force. Other operations refuse them.
	Instructions string `json:"instructions,omitempty"`
}

// Compact asks for a compaction now. The step must bring no messages.
type Compact struct {
	Step
	// Policy makes the plan in place of the daemon's own, by its name. Favor is what
	// the policy auto favours: quality, balanced or cost.
	Policy string `json:"policy,omitempty"`
	Favor  string `json:"favor,omitempty"`
}

// Prepared is the request to send to the model.
type Prepared struct {
	// Version and PlanVersion are those that the prompt was made from.
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
	// Edits make the messages of the prompt of those of the thread, in the order of
	// the thread; a message that is in none of them stays as the host has it. Where
	// they were asked for, Body is empty and Prompt has no messages: it is what stands
	// around them.
	Edits []neutral.Edit `json:"edits,omitempty"`
	// Manifest says where each message of the prompt came from and, in the answer
	// of render, what was hidden by which record. A step leaves that list empty: it
	// grows with the history.
	Manifest *render.Manifest `json:"manifest"`
}

// ApplyEdits applies the edits to the messages that a host holds, which are known by their
// ids; own is not changed.
func (p *Prepared) ApplyEdits(own []neutral.Message) []neutral.Message {
	edits := map[string]neutral.Edit{}
	for _, e := range p.Edits {
		edits[e.MessageID] = e
	}
	var out []neutral.Message
	for _, m := range own {
		e := edits[m.ID]
		if m.ID == "" { // not known here
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

// Answer is what the model said, in one of two forms.
type Answer struct {
	// API names the form of Response.
	API string `json:"api,omitempty"`
	// Response is the provider's response body (of a stream, what it adds up to).
	// Its usage is taken too.
	Response json.RawMessage `json:"response,omitempty"`
	// Messages are the answer in neutral form.
	Messages []neutral.Message `json:"messages,omitempty"`
	// Usage is what the provider counted; it goes before that in Response.
	Usage *neutral.Usage `json:"usage,omitempty"`
}

// CutOff is an answer that ended at the limit on the output, in one message.
type CutOff struct {
	Answer
	// Step is the last step, without its messages. Its API is the form of the
	// request that comes back.
	Step Step `json:"step,omitzero"`
}
