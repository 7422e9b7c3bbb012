package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Profile is what the renderer must know of a provider. The zero value is a provider
// without rules beyond tool pairs.
type Profile struct {
	// API names the codec that will write the prompt; parts of other APIs that cannot be
	// translated (reasoning, opaque blocks) are left out.
	API string
	// FirstUser: the first message must be the user's. A summary that comes first then
	// gets the user's role.
	FirstUser bool
	// LastUser: the newest models refuse a request that ends with a turn of their own. A
	// replacement at the end of the conversation then gets the user's role; a turn that
	// the caller ends with stays as it is.
	LastUser bool
	// BoundReasoning: the provider checks reasoning against everything before it, so once
	// a plan, or an edit, changes anything, the reasoning of all messages of that time is
	// left out.
	BoundReasoning bool
	// ReasoningEverywhere: every message in the assistant's role must hold the model's
	// reasoning, which nobody else can write. Replacements then get the user's role, and
	// messages of the model that are shortened keep theirs. Suited sets it for conversations
	// that show it.
	ReasoningEverywhere bool `json:",omitempty"`
	// ResultsInCallOrder: the results of parallel calls must come in the order of the
	// calls.
	ResultsInCallOrder bool
	// ObjectArguments: the arguments of a call must be a JSON object. The free text that
	// other providers' custom tools take becomes its member "input".
	ObjectArguments bool
	// SystemFirst: instructions come only before the conversation. A later one from
	// elsewhere gets the user's role, marked as what it is: lowered, never raised.
	SystemFirst bool
	// CachePoints is how many cache marks a request may carry; 0 when the provider caches
	// by itself.
	CachePoints int
	// Reach is how the reader of the prompt gets at what was removed; empty is Tools.
	Reach Reach `json:",omitempty"`
	// Key signs replacements, so that a text that only looks like one can be told when a
	// prompt comes back; empty for no signature. It is never written out.
	Key string `json:"-"`
}

// Reach is how the reader of a prompt gets at what was removed from it. Pointers in the
// prompt tell it.
type Reach string

// The ways.
const (
	// Tools: the reader is offered read_artifact.
	Tools Reach = "tools"
	// Command: the reader can run `palimpsest artifact get`.
	Command Reach = "command"
	// Nowhere: the reader can do neither.
	Nowhere Reach = "none"
	// Told is Nowhere, with a note that something was removed.
	Told Reach = "told"
)

// RemovedNote begins the note by which a prompt tells its reader that something was removed.
const RemovedNote = "[Parts of this conversation were removed to save room."

// Note is the whole note where the reader is offered the tools, or is only told. It is
// the same for all prompts, stands behind the system prompt, and is for prompts from which
// something was removed. Whoever lets the reader run a command writes a note of his own.
func (r Reach) Note() string {
	switch r {
	case "", Tools:
		return RemovedNote + ` To read one in full, call read_artifact with its ID; to search them, call recall with words.]`
	case Told:
		return RemovedNote + "]"
	}
	return ""
}

// AddNote is a system prompt with the note behind it, once.
func (r Reach) AddNote(system []prompt.System) []prompt.System {
	note := r.Note()
	if note == "" || slices.ContainsFunc(system, func(s prompt.System) bool { return s.Text == note }) {
		return system
	}
	return append(slices.Clone(system), prompt.System{Text: note})
}

// how is what the reader does to read an artifact: the verb, and what it calls or runs; empty where it cannot.
func (r Reach) how(id string) (verb, what string) {
	switch r {
	case "", Tools:
		return "call", fmt.Sprintf("read_artifact(%q)", id)
	case Command:
		return "run", "palimpsest artifact get " + id
	}
	return "", ""
}

// For returns the profile of an API for its newest models; for other APIs only the name is
// set. Sources: the providers' pages as of 2026-11 (thinking bound to its prefix, four
// cache breakpoints, first message of the user, order of Gemini's function responses).
func For(api string) Profile {
	switch api {
	case wire.Anthropic:
		return Profile{API: api, FirstUser: true, LastUser: true, BoundReasoning: true, ObjectArguments: true, SystemFirst: true, CachePoints: 4}
	case wire.Gemini:
		return Profile{API: api, FirstUser: true, LastUser: true, ResultsInCallOrder: true, ObjectArguments: true, SystemFirst: true}
	}
	return Profile{API: api}
}

// Suited is the profile for a conversation. Servers that speak OpenAI's Chat Completions API
// and give reasoning with their answers may demand it on every message of the model
// (DeepSeek, Kimi and GLM do): where one has it, ReasoningEverywhere is set.
func (p Profile) Suited(t *thread.Thread) Profile {
	if p.API != wire.Chat || p.BoundReasoning || p.ReasoningEverywhere {
		return p
	}
	p.ReasoningEverywhere = slices.ContainsFunc(t.Messages(), func(m thread.Message) bool {
		return m.Role == thread.Assistant && slices.ContainsFunc(m.Parts, func(part thread.Part) bool {
			_, is := part.(thread.Reasoning)
			return is && p.admits(part)
		})
	})
	return p
}

// ours is the role of a message that is made here in the assistant's name.
func (p Profile) ours() thread.Role {
	if p.ReasoningEverywhere {
		return thread.User
	}
	return thread.Assistant
}

// admits reports whether a part can be sent to the profile's API as it is. The codec
// translates text, media, calls and results.
func (p Profile) admits(part thread.Part) bool {
	switch part.(type) {
	case thread.Reasoning, thread.Opaque:
		return p.API != "" && part.From().API == p.API
	}
	return true
}

// freeText reports whether a part is a call whose arguments the provider could not take as
// they are, or a result that its source wrote for such a call.
func (p Profile) freeText(part thread.Part) bool {
	if r, ok := part.(thread.ToolResult); ok && p.ObjectArguments && p.API == wire.Responses {
		return gjson.Get(r.Raw, "type").Str == "custom_tool_call_output"
	}
	call, ok := part.(thread.ToolCall)
	return ok && p.ObjectArguments && call.Type == "custom" && !(rawjson.Valid(call.Arguments) && gjson.Parse(call.Arguments).IsObject())
}

// Translate removes from a message what the provider could not read or would refuse; a
// message without such parts is returned as it is. changed says that something in the
// message or before it is not sent as it was when the model answered, so that bound
// reasoning must go. A message that is left without parts cannot be sent at all.
func (p Profile) Translate(m thread.Message, changed bool) thread.Message {
	foreign := m.Frame == nil || m.Frame.API() != p.API
	own := func(part thread.Part) bool { o, ok := part.(thread.Opaque); return ok && o.API == p.API }
	if m.Role == thread.System && foreign && p.SystemFirst && !slices.ContainsFunc(m.Parts, own) {
		text := "<system>\n" + m.Text() + "\n</system>"
		m = edited(m, []thread.Part{thread.Text{Text: text}})
		m.Role = thread.User
		if m.Kind == thread.Plain {
			m.Kind = thread.Injected // what stands in place of others stays marked as that
		}
		return m
	}
	keep := func(part thread.Part) bool {
		switch part := part.(type) {
		case thread.Reasoning:
			if changed && p.BoundReasoning {
				return false
			}
		case thread.Text:
			if foreign && strings.TrimSpace(part.Text) == "" {
				return false
			}
		}
		return p.admits(part)
	}
	runs := p.API == wire.Anthropic || p.API == wire.Responses
	read := func(part thread.Part) bool { // by the model: the program that asked ran at another provider
		r, ok := part.(thread.ToolResult)
		return ok && r.Program && (!runs || foreign && m.Frame != nil)
	}
	if !slices.ContainsFunc(m.Parts, func(part thread.Part) bool { return !keep(part) || p.freeText(part) || read(part) }) {
		return m
	}
	var parts []thread.Part
	for _, part := range m.Parts {
		if read(part) {
			r := part.(thread.ToolResult)
			r.Program = false
			part = r
		}
		if p.freeText(part) {
			switch x := part.(type) {
			case thread.ToolCall:
				x.Arguments, x.Type, x.Source = `{"input":`+rawjson.Quote(x.Arguments)+`}`, "", thread.Source{}
				part = x
			case thread.ToolResult: // is written anew as what its call became
				x.Source = thread.Source{}
				part = x
			}
		}
		if keep(part) {
			parts = append(parts, part)
			continue
		}
		if x, opaque := part.(thread.Opaque); opaque && strings.TrimSpace(x.Text) != "" {
			parts = append(parts, thread.Text{Text: "[" + x.Kind + "]\n" + x.Text})
		}
	}
	return edited(m, parts)
}

// wholeLoops removes the reasoning of the tool loop that was under way when something was
// rewritten, up to its end: to the provider such a loop is one turn, which must begin with its
// reasoning or have none at all.
func (r *renderer) wholeLoops() {
	if !r.profile.BoundReasoning || r.rewritten == 0 {
		return
	}
	n := slices.IndexFunc(r.manifest.Messages, func(o Origin) bool {
		at, known := r.thread.Index(o.ID)
		return known && at >= r.rewritten
	})
	r.manifest.Messages = slices.Clone(r.manifest.Messages) // a Memo may have them
	if r.asLogged {
		r.out, r.asLogged = slices.Clone(r.out), false
	}
	for n >= 0 && n < len(r.out) && !r.afterUser(n) {
		r.out[n] = r.profile.Translate(r.out[n], true)
		if len(r.out[n].Parts) > 0 {
			n++
			continue
		}
		r.repair(r.manifest.Messages[n].ID, unsendable)
		r.out = slices.Delete(r.out, n, n+1)
		r.manifest.Messages = slices.Delete(r.manifest.Messages, n, n+1)
		if r.current > n {
			r.current--
		}
	}
}

// thinkFirst gives summaries at the beginning of a turn of the model the user's role where
// the model's own message follows with its reasoning: the turn must begin with that.
func (r *renderer) thinkFirst() {
	if r.profile.API != wire.Anthropic || r.profile.BoundReasoning {
		return
	}
	stands := func(n int) bool { return r.out[n].Role == thread.Assistant && r.manifest.Messages[n].Synthetic }
	for n := 0; n < len(r.out); n++ {
		if !stands(n) || !r.afterUser(n) {
			continue
		}
		end := n
		for end < len(r.out) && stands(end) {
			end++
		}
		if end < len(r.out) && r.out[end].Role == thread.Assistant && reasons(&r.out[end]) {
			for i := n; i < end; i++ {
				r.out[i].Role = thread.User
			}
		}
		n = end - 1
	}
}

func reasons(m *thread.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p thread.Part) bool { _, is := p.(thread.Reasoning); return is })
}

// afterUser reports whether a turn of the model begins at n: the user spoke before it, and
// no results came in between.
func (r *renderer) afterUser(n int) bool {
	spoke := false
	for n--; n >= 0; n-- {
		switch r.out[n].Role {
		case thread.User:
			spoke = true
			continue
		case thread.System:
			continue
		case thread.Tool:
			return false
		}
		break
	}
	return spoke || n < 0
}
