package thread

import (
	"strconv"
	"strings"
)

// Part is one piece of a message: Text, Reasoning, Media, ToolCall, ToolResult
// or Opaque. The set is closed; switch on the type.
type Part interface {
	// From says where the part came from; zero when it was made here.
	From() Source
	part()
}

// Source is where a part came from. It takes no part in a message's identity.
type Source struct {
	// API names the codec that read the part, such as "anthropic".
	API string
	// Raw is the exact JSON of the provider's block or item. An encoder of the
	// same API sends it on as it is.
	Raw string
	// Cache is the time to live of a prompt-cache mark that the caller set on
	// the block ("5m", "1h"), or empty.
	Cache string
}

// From returns the source itself; it is promoted to every part.
func (s Source) From() Source { return s }

func (Source) part() {}

// Text is text that a person or a model said.
type Text struct {
	Text string
	Source
}

// Reasoning is a model's thinking. It cannot be edited: a provider checks the
// signature, and some bind it to everything that stood before it.
type Reasoning struct {
	// Text is the readable part, or a summary of it; it may be empty.
	Text string
	// Signature is the provider's seal, or the encrypted content itself.
	Signature string
	Source
}

// MediaType is the class of a media part; it selects the size formula.
type MediaType string

// The classes of media.
const (
	Image    MediaType = "image"
	Document MediaType = "document"
	Audio    MediaType = "audio"
	Video    MediaType = "video"
	File     MediaType = "file"
)

// Media is an image, a document or another file, inline or by reference.
// Exactly one of Data, URL, FileID and Text says what it holds.
type Media struct {
	Type   MediaType
	MIME   string
	Name   string // file name or title, where the provider carries one
	Detail string // the provider's fidelity setting, such as "low"
	Data   string // base64
	URL    string
	FileID string
	Text   string // the content of a plain-text document
	Source
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	// ID pairs the call with its result. Where a provider has none, the codec
	// makes one with LocalID.
	ID   string
	Name string
	// Arguments is JSON as the model wrote it, or free text for custom tools.
	Arguments string
	// Type is the provider's type of call when it is not a plain function:
	// "custom", "local_shell", "computer", "function_call" (legacy), …
	Type string
	// Signature is a provider's seal on the call (Gemini), or empty.
	Signature string
	Source
}

// Opaque is a vendor block that has no portable meaning (server tools, search
// results, compaction blocks, anything unknown). It is kept as bytes, always
// inside its message, and is sent only to the API that it came from.
type Opaque struct {
	// Kind is the provider's type name.
	Kind string
	// Text is what a person could read in it, for search and for texts made
	// from the log; it may be empty.
	Text string
	Source
}

// localPrefix marks ids that a codec made up for a provider that has none. It
// uses only characters that every API accepts in an id.
const localPrefix = "local_"

// LocalID makes the id of the n-th call of a conversation whose provider gives
// calls no ids. It stays the same while the conversation grows.
func LocalID(n int) string { return localPrefix + strconv.Itoa(n) }

// IsLocalID reports whether an id was made by LocalID, so that an encoder of an
// API without ids leaves it out.
func IsLocalID(id string) bool { return strings.HasPrefix(id, localPrefix) }
