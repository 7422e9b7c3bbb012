package thread

import (
	"strconv"
	"strings"
)

// Part is a piece of a message: Text, Reasoning, Media, ToolCall, ToolResult or Opaque. The
// set is closed; switch on the type.
type Part interface {
	// From returns where the part was read from; zero if it was made here.
	From() Source
	part()
}

// Source is where a part was read from. It is not part of a message's identity.
type Source struct {
	// API names the codec that read the part, such as "anthropic".
	API string
	// Raw is the exact JSON of the provider's block or item. An encoder of the same API
	// sends it unchanged.
	Raw string
	// Cache is the time to live of the caller's prompt-cache mark on the block ("5m", "1h"),
	// or empty.
	Cache string
	// Beside says that the part is a member beside the content of a message, which is kept to be
	// written again, or that it was not read when the first conversations were stored. It does not
	// count for the message's id.
	Beside bool
}

// From returns the source. Every part promotes it.
func (s Source) From() Source { return s }

func (Source) part() {}

// Text is text of a person or a model.
type Text struct {
	Text string
	Source
}

// Reasoning is a model's thinking. It cannot be edited: providers check the signature, and
// some bind it to everything before it.
type Reasoning struct {
	// Text is the readable part, or a summary of it; it may be empty.
	Text string
	// Signature is the provider's signature, or the encrypted content itself.
	Signature string
	Source
}

// MediaType is the type of a media part. It selects the formula for its tokens.
type MediaType string

// The types of media.
const (
	Image    MediaType = "image"
	Document MediaType = "document"
	Audio    MediaType = "audio"
	Video    MediaType = "video"
	File     MediaType = "file"
)

// Media is an image, a document or another file, inline or by reference. Exactly one of Data,
// URL, FileID and Text is set.
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
	// ID pairs the call with its result. For a provider without ids the codec makes one with
	// LocalID.
	ID   string
	Name string
	// Arguments is JSON as the model wrote it, or free text for custom tools.
	Arguments string
	// Type is the provider's type of a call that is not a plain function: "custom",
	// "local_shell", "computer", "function_call" (legacy), …
	Type string
	// Signature is the provider's signature of the call (Gemini), or empty.
	Signature string
	// Parent is the id of the hosted call whose program made this one and reads its result; empty
	// for a call of the model. It is not part of a message's identity.
	Parent string
	Source
}

// Opaque is a vendor block without a portable meaning (server tools, search results,
// compaction blocks, anything unknown). It is kept as bytes, and sent only to the API that it
// came from.
type Opaque struct {
	// Kind is the provider's type name.
	Kind string
	// Text is its readable part, for search and summaries; it may be empty.
	Text string
	// What follows is read off the block, and no part of a message's identity.
	//
	// Call is the id by which a hosted call and its result name each other: a call that does not run
	// at the client but at the provider, of a server tool or of a program that may call tools itself.
	// Empty if the block is no such call or result, or holds both.
	Call string
	// Answers is true for the result, and false for the call.
	Answers bool
	// Tool is the name of the tool, where the block has it.
	Tool string
	// Parent is the id of the hosted call whose program made this one, or empty.
	Parent string
	// Instruction says that the block holds for all that follows: instructions, tools, settings, or
	// an earlier part of the conversation that only the provider can read.
	Instruction bool
	Source
}

// localPrefix marks ids that a codec made for a provider without ids. Every API accepts its
// characters in an id.
const localPrefix = "local_"

// LocalID returns the id of the n-th call of a conversation whose provider has no call ids.
func LocalID(n int) string { return localPrefix + strconv.Itoa(n) }

// IsLocalID reports whether an id was made by LocalID, so that an encoder of an
// API without ids leaves it out.
func IsLocalID(id string) bool { return strings.HasPrefix(id, localPrefix) }
