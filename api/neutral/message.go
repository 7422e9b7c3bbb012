// Package neutral is the JSON form of messages and prompts that belongs to no provider. The
// daemon uses it for callers that speak none of the providers' APIs; it holds all of a
// message except the bytes that it was read from, which only its own provider can read.
// Stores and exports keep those with it: Marshal and Unmarshal lose nothing.
//
//	m := neutral.MessageOf(log.At(0))       // to JSON
//	v, err := m.Value("messages[0]")        // and back, checked
package neutral

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Message is one message of a conversation in neutral form. A message with role
// "tool" holds exactly one part, a tool result.
type Message struct {
	// ID may be empty; then it is computed from the history. An id that the caller sets
	// must be new in the thread; sending the same message with the same id again changes
	// nothing.
	ID string `json:"id,omitempty"`
	// Role is system, user, assistant or tool.
	Role string `json:"role"`
	// Kind is injected for text that a harness sent in the user's name, attached for the user's
	// material (files, selections), relayed for what another agent wrote, and recap for the summary
	// of an earlier compaction; empty for a real message.
	Kind string `json:"kind,omitempty"`
	// Name is the participant's name, for providers that have one.
	Name string `json:"name,omitempty"`
	// Turn is set by the daemon.
	Turn int `json:"turn,omitempty"`
	// Time is when the message was made, if known.
	Time time.Time `json:"time,omitzero"`
	// Parts are the content of the message, in order; [] for none.
	Parts []Part `json:"parts"`
}

// Part is a piece of a message. Type decides which of the other fields count.
type Part struct {
	// Type is text, reasoning, media, tool_call, tool_result or opaque.
	Type string `json:"type"`
	// Text is the text itself, the readable text of an opaque part, or the text of a
	// document.
	Text string `json:"text,omitempty"`

	// Signature is a provider's signature on reasoning or a call.
	Signature string `json:"signature,omitempty"`

	// Media is the class of a media part: image, document, audio, video or file.
	// One of Data (base64), URL, FileID and Text has the content; none if nobody kept it.
	Media string `json:"media,omitempty"`
	// MIME is the media type, such as image/png.
	MIME string `json:"mime,omitempty"`
	// Name is the file name or title of a media part.
	Name string `json:"name,omitempty"`
	// Detail is the provider's setting of fidelity, such as low.
	Detail string `json:"detail,omitempty"`
	// Data is the content of a media part in base64.
	Data string `json:"data,omitempty"`
	// URL is where the content of a media part is.
	URL string `json:"url,omitempty"`
	// FileID names a file that was uploaded to the provider.
	FileID string `json:"file_id,omitempty"`

	// CallID pairs a call with its result. A call without it or without Tool is refused, as
	// no provider accepts one.
	CallID string `json:"call_id,omitempty"`
	// Tool is the name of the tool. A result may leave it out when the thread
	// holds the call.
	Tool string `json:"tool,omitempty"`
	// Arguments is the JSON that the model wrote, as a string, or the free text
	// of a custom tool.
	Arguments string `json:"arguments,omitempty"`
	// CallType is the provider's type of a call that is not a plain function.
	CallType string `json:"call_type,omitempty"`

	// Outcome of a result is success (also when empty), failure or partial.
	Outcome string `json:"outcome,omitempty"`
	// Denied of a result says that the agent's program did not run the call, because the
	// user or a rule did not allow it: the content is the program's words, with the user's.
	Denied bool `json:"denied,omitempty"`
	// Said of a result is what the user said in its content: answers to the tool's questions, and
	// words about a call that was not allowed. The rest of the content is the tool's.
	Said []thread.Said `json:"said,omitempty"`
	// Author of a result is agent if another agent wrote it.
	Author thread.Author `json:"author,omitempty"`
	// Content is what the model saw of a result: text, media and opaque parts.
	Content []Part `json:"content,omitempty"`
	// Structured is the content of a result as JSON, if the tool returned data.
	Structured json.RawMessage `json:"structured,omitempty"`
	// KeyFields of a result survive compaction.
	KeyFields thread.Fields `json:"key_fields,omitempty"`
	// Durability of a result is ephemeral, anchoring, replayable or
	// non_replayable; empty leaves it to the registry of tools.
	Durability string `json:"durability,omitempty"`
	// Determinism is what the source of a replayable result looked like.
	Determinism *thread.Determinism `json:"determinism,omitempty"`
	// Started and Completed say when the tool ran.
	Started   time.Time `json:"started,omitzero"`
	Completed time.Time `json:"completed,omitzero"`

	// Kind of an opaque part is the provider's type name.
	Kind string `json:"kind,omitempty"`
	// API and Raw are the provider and the exact JSON of an opaque part or reasoning; it is
	// sent to that provider only.
	API string `json:"api,omitempty"`
	Raw string `json:"raw,omitempty"`
}

// The values of Part.Type.
const (
	TextPart       = "text"
	ReasoningPart  = "reasoning"
	MediaPart      = "media"
	ToolCallPart   = "tool_call"
	ToolResultPart = "tool_result"
	OpaquePart     = "opaque"
)

// kinds are the values of Message.Kind.
var kinds = [...]string{thread.Plain: "", thread.Injected: "injected", thread.Recap: "recap", thread.Attached: "attached", thread.Relayed: "relayed"}

// MessageOf writes a message of a thread in neutral form.
func MessageOf(m *thread.Message) Message {
	out := Message{ID: string(m.ID), Role: string(m.Role), Name: m.Name, Turn: m.Turn, Time: m.Time, Parts: partsOf(m.Parts)}
	if int(m.Kind) < len(kinds) {
		out.Kind = kinds[m.Kind]
	}
	return out
}

func partsOf(parts []thread.Part) []Part {
	out := make([]Part, len(parts))
	for i, p := range parts {
		out[i] = partOf(p)
	}
	return out
}

// counted leaves out what does not count for a message's id, so that the same history has the same ids.
func counted(content []thread.Part) []thread.Part {
	return slices.DeleteFunc(slices.Clone(content), func(p thread.Part) bool { return p != nil && p.From().Beside })
}

func partOf(p thread.Part) Part {
	switch p := p.(type) {
	case thread.Text:
		return Part{Type: TextPart, Text: p.Text}
	case thread.Reasoning:
		return Part{Type: ReasoningPart, Text: p.Text, Signature: p.Signature, API: p.API, Raw: p.Raw}
	case thread.Media:
		return Part{
			Type: MediaPart, Media: string(p.Type), MIME: p.MIME, Name: p.Name, Detail: p.Detail,
			Data: p.Data, URL: p.URL, FileID: p.FileID, Text: p.Text,
		}
	case thread.ToolCall:
		return Part{Type: ToolCallPart, CallID: p.ID, Tool: p.Name, Arguments: p.Arguments, CallType: p.Type, Signature: p.Signature}
	case thread.ToolResult:
		out := Part{
			Type: ToolResultPart, CallID: p.CallID, Tool: p.Tool, Outcome: string(p.Outcome), Denied: p.Denied, Said: p.Said, Author: p.Author, Content: partsOf(counted(p.Content)),
			KeyFields: p.KeyFields, Durability: string(p.Durability), Determinism: p.Determinism, Started: p.Started, Completed: p.Completed,
		}
		var structured bytes.Buffer
		if json.Compact(&structured, []byte(p.Structured)) == nil {
			out.Structured = structured.Bytes()
		}
		return out
	case thread.Opaque:
		return Part{Type: OpaquePart, Kind: p.Kind, Text: p.Text, API: p.API, Raw: p.Raw}
	}
	return Part{}
}

// FieldError says which field of a request is wrong, and why. Path is a JSON path such as
// messages[2].parts[0].type.
type FieldError struct {
	Path, Reason string
}

// Error writes the path and the reason.
func (e *FieldError) Error() string { return e.Path + ": " + e.Reason }

func fieldErrorf(path, format string, args ...any) error {
	return &FieldError{Path: path, Reason: fmt.Sprintf(format, args...)}
}

// exact returns the message of a thread with these parts, which the caller made from
// m.Parts. It checks nothing; it is false if the kind is not known.
func (m *Message) exact(parts []thread.Part) (thread.Message, bool) {
	kind := slices.Index(kinds[:], m.Kind)
	return thread.Message{ID: thread.ID(m.ID), Role: thread.Role(m.Role), Kind: thread.Kind(max(kind, 0)), Name: m.Name, Time: m.Time, Parts: parts}, kind >= 0
}

// Value checks the message and returns it as a message of a thread. path is the JSON path of
// the message in its request. The error is a *FieldError.
func (m *Message) Value(path string) (thread.Message, error) {
	out, known := m.exact(nil)
	if err := oneOf(path+".role", m.Role, "system", "user", "assistant", "tool"); err != nil {
		return out, err
	}
	switch {
	case !known:
		return out, fieldErrorf(path+".kind", "want injected, recap, attached, relayed or nothing, got %.40q", m.Kind)
	case m.Parts == nil:
		return out, fieldErrorf(path+".parts", "a message has parts; [] stands for none")
	case out.Role == thread.Tool && len(m.Parts) != 1:
		return out, fieldErrorf(path+".parts", "a tool message holds exactly one tool_result; send each result as a message of its own")
	}
	for i := range m.Parts {
		at := fmt.Sprintf("%s.parts[%d]", path, i)
		if allowed := allowedParts[out.Role]; !slices.Contains(allowed, m.Parts[i].Type) {
			return out, fieldErrorf(at+".type", "a %s message may hold %v, got %.40q", m.Role, allowed, m.Parts[i].Type)
		}
		p, err := m.Parts[i].value(at)
		if err != nil {
			return out, err
		}
		out.Parts = append(out.Parts, p)
	}
	return out, nil
}

// allowedParts are the types of parts that a message of a role may hold.
var allowedParts = map[thread.Role][]string{
	thread.System:    {TextPart, MediaPart, OpaquePart},
	thread.User:      {TextPart, MediaPart, OpaquePart},
	thread.Assistant: {TextPart, ReasoningPart, MediaPart, ToolCallPart, OpaquePart},
	thread.Tool:      {ToolResultPart},
}

// oneOf returns an error unless a field has one of the values.
func oneOf(path, got string, want ...string) error {
	if slices.Contains(want, got) {
		return nil
	}
	last := len(want) - 1
	return fieldErrorf(path, "want %s or %s, got %.40q", strings.Join(want[:last], ", "), want[last], got)
}

// exact returns the part of a message with this source, and this content, which the caller
// made from p.Content. It checks nothing; it is false if the type is not known.
func (p *Part) exact(content []thread.Part, from thread.Source) (part thread.Part, known bool) {
	switch p.Type {
	case TextPart:
		return thread.Text{Text: p.Text, Source: from}, true
	case ReasoningPart:
		return thread.Reasoning{Text: p.Text, Signature: p.Signature, Source: from}, true
	case OpaquePart:
		return hosted.Mark(thread.Opaque{Kind: p.Kind, Text: p.Text, Source: from}), true
	case MediaPart:
		return thread.Media{
			Type: thread.MediaType(p.Media), MIME: p.MIME, Name: p.Name, Detail: p.Detail,
			Data: p.Data, URL: p.URL, FileID: p.FileID, Text: p.Text, Source: from,
		}, true
	case ToolCallPart:
		return thread.ToolCall{ID: p.CallID, Name: p.Tool, Arguments: p.Arguments, Type: p.CallType, Signature: p.Signature, Parent: hosted.Parent(from.API, from.Raw), Source: from}, true
	case ToolResultPart:
		return thread.ToolResult{
			CallID: p.CallID, Tool: p.Tool, Outcome: thread.Outcome(p.Outcome), Denied: p.Denied, Said: p.Said, Author: p.Author, Content: content, Structured: string(p.Structured), KeyFields: p.KeyFields,
			Durability: thread.Durability(p.Durability), Determinism: p.Determinism, Started: p.Started, Completed: p.Completed, Source: from,
		}, true
	}
	return nil, false
}

// value makes the part after checking it.
func (p *Part) value(path string) (thread.Part, error) {
	if err := p.check(path); err != nil {
		return nil, err
	}
	var content []thread.Part
	var from thread.Source
	switch p.Type {
	case ReasoningPart, OpaquePart:
		from = thread.Source{API: p.API, Raw: p.Raw}
	case ToolResultPart:
		for i := range p.Content {
			at := fmt.Sprintf("%s.content[%d]", path, i)
			if t := p.Content[i].Type; !slices.Contains(allowedParts[thread.User], t) {
				return nil, fieldErrorf(at+".type", "a result may hold text, media and opaque parts, got %.40q", t)
			}
			v, err := p.Content[i].value(at)
			if err != nil {
				return nil, err
			}
			content = append(content, v)
		}
	}
	out, _ := p.exact(content, from)
	if r, ok := out.(thread.ToolResult); ok && r.Outcome == "" {
		r.Outcome = thread.Success
		out = r
	}
	return out, nil
}

// check says what is wrong with the part itself.
func (p *Part) check(path string) error {
	switch p.Type {
	case TextPart:
	case ReasoningPart, OpaquePart: // raw is sent unchanged, so it must be JSON
		switch {
		case p.Raw == "" && p.Type == OpaquePart:
			return fieldErrorf(path+".raw", "an opaque part is the JSON of its block, as a string, and api says whose")
		case p.Raw != "" && !rawjson.Valid(p.Raw):
			return fieldErrorf(path+".raw", "not valid JSON")
		case p.Raw != "" && p.API == "":
			return fieldErrorf(path+".api", "say whose block raw is: anthropic, openai, responses or gemini")
		}
	case MediaPart:
		if err := oneOf(path+".media", p.Media, "image", "document", "audio", "video", "file"); err != nil {
			return err
		}
		n := 0
		for _, s := range []string{p.Data, p.URL, p.FileID, p.Text} {
			if s != "" {
				n++
			}
		}
		if n > 1 { // a log may have none, of a picture that nobody kept
			return fieldErrorf(path, "a media part has one of data, url, file_id and text, got %d", n)
		}
	case ToolCallPart:
		if p.CallID == "" || p.Tool == "" {
			return fieldErrorf(path, "a tool_call needs call_id and tool")
		}
	case ToolResultPart:
		if p.CallID == "" {
			return fieldErrorf(path+".call_id", "a tool_result names the call that it answers")
		}
		if p.Outcome != "" {
			if err := oneOf(path+".outcome", p.Outcome, "success", "failure", "partial"); err != nil {
				return err
			}
		}
		if p.Durability != "" {
			return oneOf(path+".durability", p.Durability, "ephemeral", "anchoring", "replayable", "non_replayable")
		}
	default:
		return oneOf(path+".type", p.Type, "text", "reasoning", "media", "tool_call", "tool_result", "opaque")
	}
	return nil
}
