package llm

import (
	"context"
	"time"

	"github.com/palimpsest-ai/palimpsest/prompt"
)

// Generator asks a model. Implementations are safe for concurrent use.
type Generator interface {
	// Model returns the name of the model, as cache keys and events use it.
	Model() string
	// Generate sends the prompt to the generator's own model (not the prompt's) and returns
	// its answer. It does not change the prompt. A nil o is the zero Options. The error is
	// an *APIError, unless the request could not be made at all. When the context ends,
	// the call returns promptly and leaves nothing running.
	Generate(ctx context.Context, p *prompt.Prompt, o *Options) (*Reply, error)
}

// Adjuster is a Generator that changes the options: Adjust returns those that it really uses,
// so that answers are cached under the right key.
type Adjuster interface {
	Adjust(o *Options) *Options
}

// TokenCounter asks a provider's counting endpoint how many tokens a request has.
// Implementations are safe for concurrent use.
type TokenCounter interface {
	// CountTokens returns the tokens of the prompt, system and tools included, for the
	// counter's own model. The error is an *APIError, unless the request could not be made
	// at all.
	CountTokens(ctx context.Context, p *prompt.Prompt) (int, error)
}

// Options say how to answer. The zero value asks for plain text, with the
// provider's defaults.
type Options struct {
	// Schema asks for a JSON answer of this shape; nil for text.
	Schema *Schema
	// Temperature is sent if it is not nil. Models that think refuse most values.
	Temperature *float64
	// MaxOutput limits the answer, in tokens; 0 takes the prompt's own MaxOutput, or else
	// the provider's default. Thinking counts too.
	MaxOutput int
	// Timeout bounds the whole call, with waits and retries; 0 stands for DefaultTimeout, a
	// negative value for no bound but the context's.
	Timeout time.Duration
	// Fresh asks the model even if its answer is known (see Answers). Generators ignore it.
	Fresh bool
	// RetryFailed asks a model again although it failed a moment ago, because the caller has
	// waited itself. Generators ignore it.
	RetryFailed bool
}

// DefaultTimeout is the default of Options.Timeout, as in the providers' own SDKs.
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

// Retry says how often and how long a client retries after temporary failures: with exponential
// backoff and full jitter, within bounds of attempts and time. The zero value has the defaults and
// is safe for concurrent use, as is every other whose functions are.
type Retry struct {
	// Attempts is the number of tries, the first included; 0 stands for 4, 1
	// tries once.
	Attempts int
	// Base is the longest wait before the second try; it doubles with every
	// further one. 0 stands for 500 ms.
	Base time.Duration
	// Max is the longest wait that backoff chooses; 0 stands for 20 s. A server may ask
	// for more in Retry-After.
	Max time.Duration
	// Total bounds the time from the first try to the beginning of the last; 0 stands for
	// 2 minutes. Instead of a wait beyond it, or beyond the context's deadline, the
	// failure is returned at once.
	Total time.Duration
	// Sleep waits for d or until ctx is done, and then returns its error; nil
	// waits on a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter picks a wait from 0 to longest; nil picks at random.
	Jitter func(longest time.Duration) time.Duration
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}
