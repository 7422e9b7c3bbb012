package llm

import (
	"context"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/retry"
	"github.com/palimpsest-ai/palimpsest/prompt"
)

// Generator asks a model. Implementations are safe for concurrent use.
type Generator interface {
	// Model returns the name of the model, as cache keys and events use it.
	Model() string
	// Generate sends the prompt to the model and returns its answer. The prompt
	// is not changed; its Model does not count, the generator's own does. A nil
	// o is the zero Options. The error is an *APIError, except where the request
	// could not be made at all. A call whose context ends returns promptly and
	// leaves nothing running.
	Generate(ctx context.Context, p *prompt.Prompt, o *Options) (*Reply, error)
}

// Adjuster is a Generator that asks with options of its own: Adjust returns what
// it makes of o, so that its answers are kept for what it really asks.
type Adjuster interface {
	Adjust(o *Options) *Options
}

// TokenCounter asks a provider how many tokens a request is, by an endpoint of its
// own that generates nothing (A13). Implementations are safe for concurrent use.
type TokenCounter interface {
	// CountTokens returns the tokens of the prompt with its system and tools. The
	// model is the counter's own. The error is an *APIError, except where the
	// request could not be made at all.
	CountTokens(ctx context.Context, p *prompt.Prompt) (int, error)
}

// Options say how to answer. The zero value asks for plain text, with the
// provider's defaults.
type Options struct {
	// Schema asks for a JSON answer of this shape; nil for text.
	Schema *Schema
	// Temperature is sent when it is not nil. Models that think refuse most
	// values.
	Temperature *float64
	// MaxOutput is the largest answer in tokens; 0 takes the prompt's own
	// MaxOutput, or else the provider's default. A model that thinks spends
	// its thinking from it.
	MaxOutput int
	// Timeout bounds the whole call, waits and retries included; 0 stands for
	// DefaultTimeout, a negative value for no bound but the context's.
	Timeout time.Duration
	// Fresh has the model asked even where its answer is known (see Answers).
	// Generators pass over it.
	Fresh bool
	// RetryFailed asks a model again that failed a moment ago, by those who would leave
	// it alone for a while: whoever asks has waited himself. Generators pass over it.
	RetryFailed bool
}

// DefaultTimeout is how long a call may take when nobody said otherwise: the
// default of the providers' own SDKs.
const DefaultTimeout = 10 * time.Minute

// Schema is the shape of a structured answer.
type Schema struct {
	// Name has 1 to 64 of the characters a-z, A-Z, 0-9, _ and -.
	Name string
	// Description tells the model what the answer is for; it may be empty.
	Description string
	// JSON is a JSON schema of type object.
	JSON string
}

// Retry says how often and how long a client asks again after a failure that
// may pass; see its fields for the defaults.
type Retry = retry.Policy
