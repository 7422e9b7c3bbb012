// Package gemini reads, writes and checks requests of Gemini's generateContent
// (the public API and Vertex AI), and reads its answers.
//
// A content of the request becomes one message, except that every function
// response in it becomes a tool message of its own. Field names are read in
// both spellings that clients send (functionCall, function_call) and written in
// the first. The model is named in the URL and not in the body, so that
// Prompt.Model stays empty; Gemini has no cache marks, so that cache points
// are ignored.
package gemini

import (
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Codec reads, writes and checks generateContent requests. The zero value is
// ready, and safe for concurrent use.
type Codec struct{}

var _ wire.Codec = Codec{}

// API returns wire.Gemini.
func (Codec) API() string { return wire.Gemini }

// Decode reads a request body. The error wraps wire.ErrFormat and names the
// JSON path at which the body stops being a generateContent request. Blocks of
// unknown type are kept as opaque parts, fields of unknown name in the body
// that Prompt.Source holds.
func (Codec) Decode(body []byte) (*prompt.Prompt, error) { return decode(string(body)) }

// Encode writes a request body. What Decode returned comes back byte for byte.
// Where messages were replaced, every other content keeps its bytes, with one
// exception: a content that stands beside a rewritten one of the same role is
// merged with it, because Gemini wants the roles to alternate; then its parts
// keep their bytes. The same holds for calls that come to stand directly after
// another content of the model, because what stood between was left out.
//
// The answers to a batch of calls stand alone in the content after it, in the
// order of the calls; a user's words that follow become a content of their own,
// unless they shared a content with an answer in the request that was read.
//
// A prompt of another API is translated: reasoning, opaque parts and tools that
// the other provider defines are left out, names are made to fit, and the first
// call of every step gets the value with which Gemini 3 accepts calls that it has
// not signed. Encode returns no error.
func (Codec) Encode(p *prompt.Prompt) ([]byte, error) { return encode(p), nil }

// Validate checks a body against the published rules of generateContent. Rules
// that only Vertex AI or only older models enforce are given as advice.
func (Codec) Validate(body []byte) []wire.Problem { return validate(body) }
