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
	Path string
	// Rule is the short name of the rule, such as "tool-pairing".
	Rule string
	// Message says what is wrong and how to fix it.
	Message string
	// Advice means that the provider accepts it, but it is likely a mistake, such as a
	// request that ends with the model's own turn.
	Advice bool
}

// Error makes a problem usable as an error.
func (p Problem) Error() string {
	return fmt.Sprintf("%s: %s (%s)", p.Path, p.Message, p.Rule)
}
