// Package wire translates between prompts and the providers' formats. Each sub-package
// has, for one provider, a lossless codec of requests, a reader of answers, and a strict
// validator. The codecs know prompts and threads but not plans or rendering. The
// validators follow the providers' rules and share nothing with the codecs.
package wire

import (
	"errors"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// The APIs. thread.Source.API and the command line use these names.
const (
	Anthropic = "anthropic" // POST /v1/messages
	Chat      = "openai"    // POST /v1/chat/completions
	Responses = "responses" // POST /v1/responses
	Gemini    = "gemini"    // POST …:generateContent
)

// APIOf returns the API that a request path belongs to, or "". The path may have a query,
// and a gateway's own segments in front.
func APIOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	switch {
	case strings.HasSuffix(path, "/messages"), strings.HasSuffix(path, "/messages/count_tokens"):
		return Anthropic
	case strings.HasSuffix(path, "/chat/completions"):
		return Chat
	case strings.HasSuffix(path, "/responses"):
		return Responses
	case strings.HasSuffix(path, "enerateContent"):
		return Gemini
	}
	return ""
}

// Codec reads and writes one provider's request bodies. Implementations are
// stateless values and safe for concurrent use.
type Codec interface {
	// API returns the name of the API, one of the constants above.
	API() string
	// Decode reads a request body. Content that it does not understand becomes opaque
	// parts. The error wraps ErrFormat.
	Decode(body string) (*prompt.Prompt, error)
	// Encode writes a request body. A prompt that Decode returned gives the same bytes
	// back; where messages were replaced, all others keep their bytes. A prompt from
	// another API is translated.
	Encode(p *prompt.Prompt) ([]byte, error)
	// Validate checks a body against the provider's published rules. It returns the
	// problems in document order; nil means that the body is valid.
	Validate(body []byte) []Problem
}

// ErrFormat is wrapped by the errors of Decode: the body is not a request of
// the API.
var ErrFormat = errors.New("not a request of this API")

// Problem is one broken rule of a provider.
type Problem struct {
	// Path is a JSON path such as messages[3].content[0].
	Path string `json:"path,omitempty"`
	// Rule is the short name of the rule, such as "tool-pairing".
	Rule string `json:"rule"`
	// Message says what is wrong and how to fix it.
	Message string `json:"message"`
	// Advice means that the provider accepts it, but it is likely a mistake, such as a
	// request that ends with the model's own turn.
	Advice bool `json:"advice,omitempty"`
}

// Error makes a problem usable as an error.
func (p Problem) Error() string {
	return fmt.Sprintf("%s: %s (%s)", p.Path, p.Message, p.Rule)
}

// Answer is a model's answer, whole or as far as a stream has brought it.
type Answer struct {
	// ID is the provider's id of the answer. Model is the model that gave it, which may
	// be a version of the one asked. Both may be empty.
	ID, Model string
	// Message is the answer with role assistant. Its frame is the element that later
	// requests send for it. It has no frame if it is empty, or if the arguments of a
	// call broke off.
	Message thread.Message
	// Stop is why the model stopped; empty while a stream goes on. Reason is the
	// provider's own word for it.
	Stop   Stop
	Reason string
	// Usage is what the provider counted.
	Usage Usage
}

// Stop is why a model stopped.
type Stop string

// The reasons to stop, to which every provider's own reasons are mapped.
const (
	StopEnd     Stop = "end"            // the answer is complete
	StopLength  Stop = "length"         // the limit on the output cut it off
	StopTool    Stop = "tool"           // it waits for the results of its calls
	StopRefusal Stop = "refusal"        // the model will not answer
	StopFilter  Stop = "content-filter" // the provider took the answer away
	StopContext Stop = "context"        // the context window was full
	StopOther   Stop = "other"          // a pause, or a reason unknown here
)

// Usage is what a provider counted, in tokens.
type Usage struct {
	// Input is the whole prompt, including the parts that were read from the cache or
	// written to it, however the provider counts them.
	Input int
	// CacheRead and CacheWrite are the parts of Input that came from the prompt cache
	// and that were written to it.
	CacheRead, CacheWrite int
	// Output is the whole answer, including reasoning.
	Output int
	// Reasoning is the part of Output that was thinking, if the provider reports it.
	Reasoning int
	// Known is false when the provider sent no usage, or only zeros, as some servers
	// do. Then the numbers mean nothing.
	Known bool
	// Mixed means that Input is not the size of the prompt that was sent: the
	// provider's own tools called the model several times, or its own compaction
	// removed something.
	Mixed bool
}

// Answers reads the answers of one API. The codecs implement it.
type Answers interface {
	// DecodeAnswer reads an answer in one piece. The error wraps ErrAnswer.
	DecodeAnswer(body []byte) (Answer, error)
	// NewStream returns the reader of one streamed answer.
	NewStream() Stream
}

// Stream collects one answer from the events of a stream. It is not safe for concurrent
// use.
type Stream interface {
	// Event takes the data of the next event: JSON, or the word that ends the stream.
	// Events of unknown types change nothing. The error wraps ErrAnswer and means that
	// the event does not fit those before it.
	Event(data string) (Progress, error)
	// Answer returns the answer so far. The error wraps ErrAnswer: nothing of an answer
	// came, or it cannot be read.
	Answer() (Answer, error)
}

// Progress is the state of a stream after an event.
type Progress struct {
	// Stop is why the model stopped; empty before it did. Stream.Answer knows better,
	// because it also looks at the content.
	Stop Stop
	// Usage is what the provider has counted so far.
	Usage Usage
	// Done means that the answer ends here. Not every API says so.
	Done bool
}

// ErrAnswer is wrapped by the errors of Answers and Stream.
var ErrAnswer = errors.New("not an answer of this API")
