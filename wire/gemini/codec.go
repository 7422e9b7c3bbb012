// Package gemini reads, writes and checks requests of Gemini's generateContent
// (the public API and Vertex AI), and reads its answers.
//
// A content of the request becomes one message, except that each function response in it
// becomes a tool message of its own. Field names are read in both spellings that clients
// send (functionCall, function_call) and written in the first. Prompt.Model stays empty,
// because the URL names the model, and cache points are ignored, because Gemini has no
// cache marks.
package gemini

import (
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Codec reads, writes and checks generateContent requests. The zero value is ready to use
// and safe for concurrent use.
type Codec struct{}

var _ wire.Codec = Codec{}

// API returns wire.Gemini.
func (Codec) API() string { return wire.Gemini }

// Decode reads a request body. The error wraps wire.ErrFormat and names the JSON path of
// what is wrong. Parts of unknown type become opaque parts; unknown fields stay in the
// body that Prompt.Source holds.
func (Codec) Decode(body string) (*prompt.Prompt, error) { return decode(body) }

// Encode writes a request body. A prompt that Decode returned comes back byte for byte.
// Where messages were replaced, every other content keeps its bytes, with one exception: a
// content next to a rewritten one of the same role is merged with it, because Gemini wants
// the roles to alternate; then only its parts keep their bytes. Calls that follow another
// content of the model, because what was between them is gone, are merged too.
//
// The responses to a batch of calls are a content of their own after it, in the order of
// the calls. The user's text after them becomes another content, unless it shared one with
// a response in the request that was read.
//
// A prompt of another API is translated: its reasoning, opaque parts and provider-defined
// tools are left out, names are made to fit, and the first call of each step gets the value
// with which Gemini 3 accepts calls that it has not signed. Encode returns no error.
func (Codec) Encode(p *prompt.Prompt) ([]byte, error) { return encode(p), nil }

// Validate checks a body against the published rules of generateContent. Rules that only
// Vertex AI or older models enforce are reported as advice.
func (Codec) Validate(body []byte) []wire.Problem { return validate(body) }
