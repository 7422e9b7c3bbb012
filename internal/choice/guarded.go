package choice

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

const (
	// rest is for how long a model that failed is not asked again. A plan is made
	// in several tries, and each would wait for the same failure.
	rest = time.Minute
	// answers is how many answers of a model are kept.
	answers = 64
)

// guarded is a model under the settings of a summarizer. The same question is
// asked once, since the tries of one plan ask it again, and a model that cannot
// answer is left alone for a while. Safe for concurrent use.
type guarded struct {
	llm.Generator
	name     string
	settings *policyfile.Summarizer
	used     func(string, llm.Usage)
	now      func() time.Time

	mu      sync.Mutex
	known   map[[32]byte]*llm.Reply
	invalid map[[32]byte]error
	failed  error
	until   time.Time
}

func guard(name string, g llm.Generator, s *policyfile.Summarizer, o *Options) *guarded {
	out := &guarded{Generator: g, name: name, settings: s, used: o.Used, now: o.Now, known: map[[32]byte]*llm.Reply{}, invalid: map[[32]byte]error{}}
	if out.now == nil {
		out.now = time.Now
	}
	return out
}

// Model returns provider and name.
func (g *guarded) Model() string { return g.name }

// Unwrap returns the model itself, which has the name that conversations use.
func (g *guarded) Unwrap() llm.Generator { return g.Generator }

// Generate asks the model; see llm.Generator.
func (g *guarded) Generate(ctx context.Context, p *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	options := g.options(o)
	key := question(p, options)
	g.mu.Lock()
	known, invalid, failed, until := g.known[key], g.invalid[key], g.failed, g.until
	g.mu.Unlock()
	switch {
	case known != nil:
		return known, nil
	case invalid != nil:
		return nil, &restingError{invalid}
	}
	if failed != nil && g.now().Before(until) {
		return nil, &restingError{failed}
	}
	reply, err := g.Generator.Generate(ctx, p, options)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		switch {
		case errors.Is(err, llm.ErrInvalid):
			// Those who ask try it in plainer words then, and are not to wait.
			if len(g.invalid) >= answers {
				clear(g.invalid)
			}
			g.invalid[key] = err
		case errors.Is(err, context.Canceled), llm.IsOverflow(err), errors.Is(err, llm.ErrRefused), errors.Is(err, llm.ErrTruncated):
			// A request that was too large or that the model refuses says nothing
			// of the next one; nor does a caller who has gone.
		default:
			g.failed, g.until = err, g.now().Add(rest)
		}
		return nil, err
	}
	g.failed = nil
	if g.used != nil {
		g.used(g.name, reply.Usage)
	}
	if g.settings.Cache {
		if len(g.known) >= answers {
			clear(g.known)
		}
		g.known[key] = reply
	}
	return reply, nil
}

// options puts the settings over what a prompt asks for.
func (g *guarded) options(o *llm.Options) *llm.Options {
	var out llm.Options
	if o != nil {
		out = *o
	}
	switch t := g.settings.Temperature; t {
	case policyfile.Own:
	case policyfile.None:
		out.Temperature = nil
	default:
		out.Temperature = &t
	}
	if g.settings.MaxOutput > 0 {
		out.MaxOutput = g.settings.MaxOutput
	}
	out.Timeout = g.settings.Timeout
	return &out
}

// question is a hash of what a model is asked.
func question(p *prompt.Prompt, o *llm.Options) [32]byte {
	var b strings.Builder
	field := func(s string) { fmt.Fprintf(&b, "%d:%s", len(s), s) }
	for _, s := range p.System {
		field(s.Text)
	}
	for i := range p.Messages {
		field(string(thread.ChainID("", &p.Messages[i])))
	}
	if o.Schema != nil {
		field(o.Schema.JSON)
	}
	if o.Temperature != nil {
		field(fmt.Sprint("temperature ", *o.Temperature))
	}
	field(fmt.Sprint(o.MaxOutput))
	return sha256.Sum256([]byte(b.String()))
}

// restingError is the failure for which a model is left alone.
type restingError struct{ err error }

// Error says that the model was not asked again.
func (e *restingError) Error() string { return "not asked again after: " + e.err.Error() }

// Unwrap returns the failure.
func (e *restingError) Unwrap() error { return e.err }

// forgetful is a cache that keeps nothing.
type forgetful struct{}

// Get finds nothing.
func (forgetful) Get(context.Context, string) (summary.Summary, bool) {
	return summary.Summary{}, false
}

// Put keeps nothing.
func (forgetful) Put(context.Context, string, summary.Summary) {}

var _ summarize.Cache = forgetful{}

// Resting reports whether a model was not asked because it had failed just
// before.
func Resting(err error) bool {
	var r *restingError
	return errors.As(err, &r)
}
