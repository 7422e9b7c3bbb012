// Package setup turns what a user says (the name of a policy or a file, a chain
// of summarizers, keys in the environment) into the policy, ladder, summarizer
// and tools of a palimpsest.Config. The command, the proxy and the daemon all
// choose here.
package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/yamlfile"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// ErrUsage is wrapped by errors about what the user said: an unknown policy, a chain that
// cannot be read, a missing key.
var ErrUsage = errors.New("usage")

// Options are for Open; the zero value is the default.
type Options struct {
	// Summarizer is a chain (see policyfile.Settings.SetChain) that replaces the policy's own;
	// empty keeps that.
	Summarizer string
	// Model is asked instead of the models that the chains name; nil asks those.
	Model llm.Generator
	// AllowAgent lets a chain name the agent's own model ("agent"). The caller must have
	// an agent's requests then.
	AllowAgent bool
	// Favor is one of policy.Favors and replaces the policy's own; empty keeps that. Only
	// the policies auto and notes have one.
	Favor string
	// Getenv reads the environment; nil is os.Getenv.
	Getenv func(string) string
	// HTTP and Retry are for the clients of models.
	HTTP  *http.Client
	Retry llm.Retry
	// OnUsage is called after each answer of a model; it may be nil.
	OnUsage func(model string, u wire.Usage)
	// Now is the clock for the pause after a model failed; nil is time.Now.
	Now func() time.Time
}

// Policy is a policy with the models that write its summaries.
type Policy struct {
	Settings *policyfile.Settings

	options *Options
	models  []*guardedModel
	judges  []*guardedModel // say which of the user's sentences stand
}

// Open finds a policy, by name (see policyfile.ByName) or as a file, and makes
// the clients of its models. It sends no request yet. An error wraps ErrUsage or
// policyfile.ErrInvalid, or is that of reading the file.
func Open(name string, o *Options) (*Policy, error) {
	o = cmp.Or(o, &Options{})
	s, err := Settings(name, nil)
	if err != nil {
		return nil, err
	}
	if o.Summarizer != "" {
		if err := s.SetChain(o.Summarizer); err != nil {
			return nil, fmt.Errorf("%w: --summarizer %w", ErrUsage, err)
		}
	}
	switch {
	case o.Favor == "":
	case !slices.Contains(policy.Favors(), o.Favor):
		return nil, fmt.Errorf("%w: favor %q: want one of %s", ErrUsage, o.Favor, strings.Join(policy.Favors(), ", "))
	case !s.HasFavors():
		return nil, fmt.Errorf("%w: favor %s: the policy %s has its own marks; only auto and notes have favors", ErrUsage, o.Favor, s.Name())
	case !s.GoesByPrices():
		return nil, fmt.Errorf("%w: favor %s: the policy %s has a part of its ladder switched off; only the whole one has favors (set trigger.hard and trigger.target)", ErrUsage, o.Favor, name)
	default:
		s.Auto.Favor = policy.Favor(o.Favor)
	}
	if o.Model != nil {
		s.Summarizer.Use = []string{o.Model.Model()}
	}
	judges, err := s.Summarizer.Judges(name)
	if err != nil {
		return nil, err
	}
	p := &Policy{Settings: s, options: o}
	if o.Model != nil {
		p.models = []*guardedModel{guard(o.Model.Model(), o.Model, &s.Summarizer, o)}
	} else if p.models, err = p.open(s.Summarizer.Use); err != nil && o.Summarizer == "" {
		err = fmt.Errorf("%s: %w", name, err) // the file names the model
	}
	if err != nil {
		return nil, err
	}
	if p.judges = p.models; !slices.Equal(judges, s.Summarizer.Use) {
		if p.judges, err = p.open(judges); err != nil {
			return nil, fmt.Errorf("%s: summarizer.rules: %w", name, err)
		}
	}
	return p, nil
}

// Settings finds a policy by name or as a file. A name is a path if it looks like a file or
// names one that exists. A nil open is os.Open.
func Settings(name string, open func(string) (io.ReadCloser, error)) (*policyfile.Settings, error) {
	s, err := policyfile.ByName(name)
	if err == nil {
		return s, nil
	}
	if info, statErr := os.Stat(name); !policyfile.LooksLikeFile(name) && (name == "" || statErr != nil || info.IsDir()) {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	data, err := readPolicyFile(name, open)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: there is no policy file %s; names of policies are %s", ErrUsage, name, strings.Join(policyfile.Names(), ", "))
	case err != nil:
		if info, statErr := os.Stat(name); statErr == nil && info.IsDir() {
			return nil, fmt.Errorf("%w: %s is a folder: want a policy file, or one of %s", ErrUsage, name, strings.Join(policyfile.Names(), ", "))
		}
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	s, err = policyfile.Read(name, data)
	if err == nil && s.HasFavors() && !s.GoesByPrices() {
		err = checkPriceless(name, s)
	}
	return s, err
}

// checkPriceless refuses what would do nothing where prices do not count.
func checkPriceless(name string, s *policyfile.Settings) error {
	field := ""
	switch {
	case s.Auto.Favor == policy.FavorCost:
		field = "trigger.favor: cost"
	case s.Auto.Working != 0:
		field = "trigger.working"
	default:
		return nil
	}
	return &policyfile.Problem{File: name, Message: field + " goes by prices, which count only for the whole ladder: switch on what ladder.enable_… switches off, or set trigger.hard and trigger.target instead"}
}

// readPolicyFile reads no more of a file than is needed to see that it is too large.
func readPolicyFile(name string, open func(string) (io.ReadCloser, error)) ([]byte, error) {
	if open == nil {
		open = func(name string) (io.ReadCloser, error) { return os.Open(name) }
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, yamlfile.MaxBytes+1))
}

// UsesAgentModel reports whether the agent's own model is among those that write summaries.
func (p *Policy) UsesAgentModel() bool {
	return slices.ContainsFunc(slices.Concat(p.models, p.judges), func(m *guardedModel) bool { return m.name == llm.AgentName })
}

// Config sets policy, summarizer and tools of a Compactor that counts with
// counter. The caller sets the rest.
func (p *Policy) Config(counter *token.Counter) palimpsest.Config {
	config := palimpsest.Config{
		Counter: counter, Tools: p.Settings.Registry(), Policy: p.Settings.Policy(nil),
	}
	use, code := p.Settings.Summarizer, &summarize.Extractive{Counter: counter.Text, StandingShare: p.Settings.Summarizer.Standing}
	switch {
	case len(p.models) == 0 && use.Standing > 0:
		config.Summarizer = code
	case len(p.models) == 0:
	case p.Settings.HasOwnForm():
		config.Policy = p.Settings.Policy(&chain{models: p.models})
	default:
		generators := make([]llm.Generator, len(p.models))
		for i, g := range p.models {
			generators[i] = g
		}
		config.Summarizer = model.New(&model.Options{
			Extractive: code,
			MaxOutput:  use.MaxOutput, Characters: use.ChunkCharacters, Timeout: use.Timeout,
			Trusted: use.Trust == policy.TrustModel,
		}, generators...)
	}
	if len(p.judges) > 0 {
		config.Summarizer = &model.Judged{Generator: &chain{models: p.judges}, Inner: config.Summarizer, Extractive: code, Timeout: use.Timeout}
	}
	return config
}

// Counter is the counter of that name; empty or "auto" is the policy's own. It is
// nil if the policy leaves that to the model.
func (p *Policy) Counter(name string) (*token.Counter, error) {
	const automatic = "auto"
	if name == "" || name == automatic {
		name = p.Settings.Counter
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

// Recall says how agents get back what plans removed: by tools, and without asking if the
// policy says so. The error is about the policy's embedder and wraps ErrUsage.
func (p *Policy) Recall() (*palimpsest.Recall, error) {
	r := &palimpsest.Recall{Rehydrate: p.Settings.Rehydration}
	if p.Settings.Retrieval.Enabled {
		r.Inject = p.Settings.Retrieval.Tokens
	}
	var err error
	if use := p.Settings.Retrieval.Vectors; use != "none" {
		r.Embedder, err = Embedder(use, p.options)
	}
	return r, err
}
