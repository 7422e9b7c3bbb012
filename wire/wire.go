// Package wire is the border to the providers' formats: lossless codecs of
// requests, readers of answers, and strict validators, one sub-package per
// provider. The codecs know prompts and threads and nothing of plans or rendering;
// the validators are written from the providers' rules and know nothing of the
// codecs.
package wire

import (
	"errors"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/prompt"
)

// The APIs. The names stand in thread.Source.API and on the command line.
const (
	Anthropic = "anthropic" // POST /v1/messages
	Chat      = "openai"    // POST /v1/chat/completions
	Responses = "responses" // POST /v1/responses
	Gemini    = "gemini"    // POST …:generateContent
)

// APIOf tells the API from the path that a request is sent to, with or without a query;
// empty for the paths of no API. Gateways put their own segments in front.
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
	// Decode reads a request body. Whatever it does not understand inside a
	// message is kept as opaque parts. The error wraps ErrFormat.
	Decode(body []byte) (*prompt.Prompt, error)
	// Encode writes a request body. A prompt as Decode returned it gives back
	// the same bytes; where messages were replaced, every untouched message
	// keeps its bytes. A prompt from another API is translated.
	Encode(p *prompt.Prompt) ([]byte, error)
	// Validate checks a body against the provider's published rules and
	// returns what it would refuse, in document order; nil when it is valid.
	Validate(body []byte) []Problem
}

// ErrFormat is wrapped by the errors of Decode: the body is not a request of
// the API.
var ErrFormat = errors.New("not a request of this API")

// Problem is one broken rule of a provider.
type Problem struct {
	// Path is where, as a JSON path such as messages[3].content[0].
	Path string
	// Rule is the short name of the rule, such as "tool-pairing".
	Rule string
	// Message says what is wrong and what to do.
	Message string
	// Advice marks what the provider accepts although it is likely a mistake,
	// such as a request that ends with the model's own turn.
	Advice bool
}

// Error makes a problem usable as an error.
func (p Problem) Error() string {
	return fmt.Sprintf("%s: %s (%s)", p.Path, p.Message, p.Rule)
}
