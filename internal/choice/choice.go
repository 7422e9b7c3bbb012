// Package choice turns what a user says (the name of a policy or a file, a chain
// of summarizers, keys in the environment) into the policy, ladder, summarizer
// and tools of a palimpsest.Config. The command, the proxy and the daemon all
// choose here.
package choice

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/anthropic"
	"github.com/palimpsest-ai/palimpsest/llm/gemini"
	"github.com/palimpsest-ai/palimpsest/llm/openai"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/token"
)

// ErrUsage is wrapped by errors of the caller's own words: a name that is no
// policy, a chain that cannot be read, a key that is missing.
var ErrUsage = errors.New("usage")

// Options are for Open; the zero value is the default.
type Options struct {
	// Summarizer is a chain as policyfile.ParseChain reads it, in place of the
	// policy's own; empty for that.
	Summarizer string
	// Model is asked in place of all chains; nil for the models that they name.
	Model llm.Generator
	// Agent says that requests of agents will be there, so that a chain may name the
	// agent's own model ("agent").
	Agent bool
	// Favor is one of policy.Favors, in place of the policy's own; empty for that.
	// Only the policy auto has one.
	Favor string
	// Getenv reads the environment; nil is os.Getenv.
	Getenv func(string) string
	// HTTP and Retry are for the clients of models.
	HTTP  *http.Client
	Retry llm.Retry
	// Used is told each answer of a model, for its usage; nil for nobody.
	Used func(model string, u llm.Usage)
	// Now is the clock by which a model that failed is left alone for a while;
	// nil is time.Now.
	Now func() time.Time
}

// Choice is a policy with the models that write its summaries.
type Choice struct {
	Settings *policyfile.Settings

	models []*guarded
}

// Open finds a policy, by name (see policyfile.ByName) or as a file, and makes
// the clients of its models; no model is asked yet. An error wraps ErrUsage,
// policyfile.ErrInvalid, or is that of reading the file.
func Open(name string, o *Options) (*Choice, error) {
	if o == nil {
		o = &Options{}
	}
	s, err := Settings(name)
	if err != nil {
		return nil, err
	}
	if o.Summarizer != "" {
		if s.Summarizer.Use, err = policyfile.ParseChain(o.Summarizer); err != nil {
			return nil, fmt.Errorf("%w: --summarizer %w", ErrUsage, err)
		}
	}
	switch {
	case o.Favor == "":
	case !slices.Contains(policy.Favors(), o.Favor):
		return nil, fmt.Errorf("%w: favor %q: want one of %s", ErrUsage, o.Favor, strings.Join(policy.Favors(), ", "))
	case s.Base != "auto":
		return nil, fmt.Errorf("%w: favor %s: the policy %s keeps to its own marks; favors are for auto", ErrUsage, o.Favor, s.Name())
	default:
		s.Auto.Favor = policy.Favor(o.Favor)
	}
	c := &Choice{Settings: s}
	if o.Model != nil {
		s.Summarizer.Use = []string{o.Model.Model()}
		c.models = []*guarded{guard(o.Model.Model(), o.Model, &s.Summarizer, o)}
		return c, nil
	}
	for _, use := range s.Summarizer.Use {
		if use == llm.AgentName && o.Agent {
			c.models = append(c.models, guard(use, llm.Agent{}, &s.Summarizer, o))
			continue
		}
		g, err := client(use, o)
		if err != nil {
			return nil, err
		}
		c.models = append(c.models, guard(use, g, &s.Summarizer, o))
	}
	return c, nil
}

// Settings finds a policy by name or as a file. What looks like a path is one: it
// has a separator, or ends in .yaml, .yml or .json, or is there.
func Settings(name string) (*policyfile.Settings, error) {
	s, err := policyfile.ByName(name)
	if err == nil {
		return s, nil
	}
	looks := strings.ContainsRune(name, filepath.Separator) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
	if info, statErr := os.Stat(name); !looks && (name == "" || statErr != nil || info.IsDir()) {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	data, err := read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no policy file %s; names of policies are %s", ErrUsage, name, strings.Join(policyfile.Names(), ", "))
	case err != nil:
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	return policyfile.Read(name, data)
}

// read reads a file, but not much more than a policy may have.
func read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, policyfile.MaxBytes+1))
}

// provider is where a kind of model is found in the environment.
type provider struct {
	keys      []string // any of them will do
	address   string
	configure func(name string, o *Options, base, key, token string) (llm.Generator, error) // nil: it writes no summaries
	embed     func(name string, o *Options, base, key string) (recall.Embedder, error)      // nil: it has no vectors
	count     func(name string, o *Options, base, key, token string) (llm.TokenCounter, error)
}

var providers = map[string]provider{
	"anthropic": {
		keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, address: "ANTHROPIC_BASE_URL",
		configure: func(name string, o *Options, base, key, token string) (llm.Generator, error) {
			return anthropic.New(anthropic.Config{Model: name, BaseURL: base, Key: key, AuthToken: token, HTTP: o.HTTP, Retry: o.Retry})
		},
		count: func(name string, o *Options, base, key, token string) (llm.TokenCounter, error) {
			return anthropic.New(anthropic.Config{Model: name, BaseURL: base, Key: key, AuthToken: token, HTTP: o.HTTP, Retry: o.Retry})
		},
	},
	"openai": {
		keys: []string{"OPENAI_API_KEY"}, address: "OPENAI_BASE_URL",
		configure: func(name string, o *Options, base, key, _ string) (llm.Generator, error) {
			return openai.New(openai.Config{Model: name, BaseURL: base, Key: key, HTTP: o.HTTP, Retry: o.Retry})
		},
		embed: func(name string, o *Options, base, key string) (recall.Embedder, error) {
			return openai.NewEmbedder(openai.Config{Model: name, BaseURL: base, Key: key, HTTP: o.HTTP, Retry: o.Retry})
		},
	},
	"gemini": {
		keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, address: "GOOGLE_GEMINI_BASE_URL",
		count: func(name string, o *Options, base, key, token string) (llm.TokenCounter, error) {
			if key == "" {
				key = token // the older name of the key
			}
			return gemini.New(gemini.Config{Model: name, BaseURL: base, Key: key, HTTP: o.HTTP, Retry: o.Retry})
		},
	},
}

// found reads where a provider is from the environment; it is false where nothing says
// so. Servers at an address of one's own need no key; the providers' do.
func (p provider) found(o *Options) (base string, keys [2]string, ok bool) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	for i, key := range p.keys {
		keys[i] = strings.TrimSpace(getenv(key))
		ok = ok || keys[i] != ""
	}
	base = strings.TrimSpace(getenv(p.address))
	return base, keys, ok || base != ""
}

// wanting says what to set where a provider is not found.
func (p provider) wanting() string {
	return fmt.Sprintf("set %s (or %s, for a server that needs no key)", strings.Join(p.keys, " or "), p.address)
}

// client makes the client of one model.
func client(use string, o *Options) (llm.Generator, error) {
	if use == llm.AgentName {
		return nil, fmt.Errorf("%w: summarizer agent: no agent asks here whose model could be used; \"palimpsest run\" and \"palimpsest serve\" have one", ErrUsage)
	}
	kind, name, _ := strings.Cut(use, ":")
	p, ok := providers[kind]
	if !ok || p.configure == nil {
		return nil, fmt.Errorf("%w: summarizer %s: unknown provider %q", ErrUsage, use, kind)
	}
	base, values, ok := p.found(o)
	if !ok {
		return nil, fmt.Errorf("%w: summarizer %s: %s", ErrUsage, use, p.wanting())
	}
	g, err := p.configure(name, o, base, values[0], values[1])
	if err != nil {
		return nil, fmt.Errorf("%w: summarizer %s: %w", ErrUsage, use, err)
	}
	return g, nil
}

// Config is what the choice says for a Compactor that counts with counter: its
// policy, ladder, name, summarizer and tools. Everything else is the caller's.
func (c *Choice) Config(counter *token.Counter) palimpsest.Config {
	config := palimpsest.Config{
		Counter: counter, Ladder: c.Settings.Rungs(), Name: c.Settings.Name(), Tools: c.Settings.Registry(), Policy: c.Settings.Policy(nil),
	}
	if len(c.models) == 0 {
		return config
	}
	if c.Settings.HasOwnForm() {
		chain := &chain{models: c.models}
		config.Policy = rescue(c.Settings.Policy(chain), c.Settings.Policy(nil), chain.Model())
		return config
	}
	generators := make([]llm.Generator, len(c.models))
	for i, g := range c.models {
		generators[i] = g
	}
	use := c.Settings.Summarizer
	config.Summarizer = model.New(&model.Options{
		Extractive: &summarize.Extractive{Counter: counter.Text},
		MaxOutput:  use.MaxOutput, Characters: use.ChunkCharacters, Timeout: use.Timeout,
		Trusted: use.Trust == policy.TrustModel,
	}, generators...)
	return config
}

// Own reports whether the policy keeps to its own rules and formats rather than
// fill a budget.
func (c *Choice) Own() bool { return c.Settings.HasOwnForm() }

// Counter is the counter of that name; empty or "auto" is the policy's own. It is
// nil where that is left to the model.
func (c *Choice) Counter(name string) (*token.Counter, error) {
	const automatic = "auto"
	if name == "" || name == automatic {
		name = c.Settings.Counter
	}
	if name == automatic {
		return nil, nil
	}
	counter, err := token.New(name, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: counter: %w", ErrUsage, err)
	}
	return counter, nil
}

// Recall is how agents get back what plans removed: by tools, and by themselves
// as the policy says. The error, which wraps ErrUsage, is that of its vectors.
func (c *Choice) Recall(o *Options) (*palimpsest.Recall, error) {
	r := &palimpsest.Recall{Rehydrate: c.Settings.Rehydration}
	if c.Settings.Retrieval.Enabled {
		r.Inject = c.Settings.Retrieval.Tokens
	}
	var err error
	if use := c.Settings.Retrieval.Vectors; use != "none" {
		r.Embedder, err = Embedder(use, o)
	}
	return r, err
}
