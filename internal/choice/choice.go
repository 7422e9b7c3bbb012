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
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
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
	// AllowAgent says that requests of agents will be there, so that a chain may name the
	// agent's own model ("agent").
	AllowAgent bool
	// Favor is one of policy.Favors, in place of the policy's own; empty for that.
	// Only the policy auto has one.
	Favor string
	// Getenv reads the environment; nil is os.Getenv.
	Getenv func(string) string
	// HTTP and Retry are for the clients of models.
	HTTP  *http.Client
	Retry llm.Retry
	// OnUsage is told each answer of a model, for its usage; nil for nobody.
	OnUsage func(model string, u llm.Usage)
	// Now is the clock by which a model that failed is left alone for a while;
	// nil is time.Now.
	Now func() time.Time
}

// Choice is a policy with the models that write its summaries.
type Choice struct {
	Settings *policyfile.Settings

	models []*guardedModel
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
		c.models = []*guardedModel{guard(o.Model.Model(), o.Model, &s.Summarizer, o)}
		return c, nil
	}
	for _, use := range s.Summarizer.Use {
		if use == llm.AgentName && o.AllowAgent {
			c.models = append(c.models, guard(use, llm.Agent{}, &s.Summarizer, o))
			continue
		}
		g, err := newClient(use, o)
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
	data, err := readPolicyFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no policy file %s; names of policies are %s", ErrUsage, name, strings.Join(policyfile.Names(), ", "))
	case err != nil:
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	return policyfile.Read(name, data)
}

// readPolicyFile reads a file, but not much more of it than a policy may have.
func readPolicyFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, policyfile.MaxBytes+1))
}

// UsesAgentModel reports whether the agent's own model is among those that write summaries.
func (c *Choice) UsesAgentModel() bool {
	return slices.Contains(c.Settings.Summarizer.Use, llm.AgentName)
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
		config.Policy = withFallback(c.Settings.Policy(chain), c.Settings.Policy(nil), chain.Model())
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

// HasOwnRules reports whether the policy keeps to its own rules and formats rather than
// fill a budget.
func (c *Choice) HasOwnRules() bool { return c.Settings.HasOwnForm() }

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
