// Package prompt is what a model is asked: system, tools and messages, and
// where the caller's own request stands behind them. The renderer makes
// prompts, codecs read and write them. Values only; safe for concurrent
// reading.
package prompt

import "github.com/palimpsest-ai/palimpsest/thread"

// Prompt is one request to a model, in portable form. The zero value is an
// empty prompt.
type Prompt struct {
	Model    string
	System   []System
	Tools    []Tool
	Messages []thread.Message

	// MaxOutput is the largest answer asked for, in tokens; 0 leaves it to the
	// provider.
	MaxOutput int
	// CachePoints are the places where a provider should end a cached prefix,
	// beside the marks that the caller's own blocks carry. Where it takes fewer, the
	// first ones count.
	CachePoints []CachePoint
	// Source is the request this prompt was read from; nil when it was made
	// here. An encoder of the same API changes only what differs from it.
	Source *Source
}

// System is one block of instructions.
type System struct {
	Text string
	// Role is how the provider was given it: "system", "developer", or
	// "instructions" for a field of its own.
	Role string
	thread.Source
}

// Tool is a tool that the model may call.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON schema of the arguments; empty for tools that the
	// provider defines.
	Schema string
	thread.Source
}

// CachePoint asks for a cache mark at the end of a message.
type CachePoint struct {
	// After is the index of the message in Messages; -1 stands for the end of
	// system and tools.
	After int
	// TTL is "" for the provider's default, or "5m", "1h".
	TTL string
}

// Source is the provider request behind a prompt.
type Source struct {
	// API names the codec that read it.
	API string
	// Body is the exact request body.
	Body string
	// System, Tools and Elements count what the body held: instruction blocks,
	// tools, and elements of the message array that became Messages.
	System, Tools, Elements int
}
