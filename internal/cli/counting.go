package cli

import (
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// counterNames are the values of --counter, as help texts show them.
const counterNames = "o200k, cl100k, claude, gemini, chars/4, …"

// counting says who chose a counter: a model, or what the caller wrote.
type counting struct {
	Model string `json:"counted_for,omitempty"`
	// Because says where the model's name comes from, or the counter's.
	Because string `json:"counted_because"`
}

// count finds the counter of a request: what --counter or the policy names, else
// that of the model to which the request goes. That is --model's, else the one that
// the file names, else, where the request is written for another API than the
// file's, the one that stands in it.
func (t *target) count(in *input, policy string) (*token.Counter, counting, error) {
	switch {
	case t.counter != "":
		return counterNamed(t.counter, "--counter")
	case policy != "" && policy != "auto":
		return counterNamed(policy, t.policy+": counter")
	case t.model != "":
		m, err := t.find()
		if err != nil {
			return nil, counting{}, err
		}
		c, err := token.ForModel(m)
		return c, counting{m.Name, "--model"}, err
	}
	set, err := t.table()
	if err != nil {
		return nil, counting{}, err
	}
	api := t.to
	if api == "" || api == asText {
		api = in.api()
	}
	name, because := in.Model, "the file names it"
	switch {
	case in.Model != "" && api == in.api():
	case defaultModels[api] != "":
		name, because = defaultModels[api], "it stands in the request"
	case api == wire.Gemini:
		name, because = "gemini", "the request is for its API"
	}
	return counterOf(set, name, because)
}

func counterNamed(name, flag string) (*token.Counter, counting, error) {
	c, err := token.New(name, nil)
	if err != nil {
		return nil, counting{}, fmt.Errorf("%w: %s: %w", errUsage, flag, err)
	}
	return c, counting{Because: flag}, nil
}

// counterOf is the counter of a model. One that is not in the table is counted as
// its family's newest; of another maker, as OpenAI's.
func counterOf(set token.ModelSet, model, because string) (*token.Counter, counting, error) {
	if m, err := set.Find(model); err == nil {
		c, err := token.ForModel(m)
		return c, counting{model, because}, err
	}
	name := "o200k"
	switch lower := strings.ToLower(model); {
	case strings.Contains(lower, "claude"):
		name = "claude-4.7"
	case strings.Contains(lower, "gemini"):
		name = "gemini"
	}
	c, err := token.New(name, nil)
	return c, counting{model, because}, err
}

// String tells it behind the counter's name.
func (c counting) String() string {
	if c.Model == "" {
		return ""
	}
	return fmt.Sprintf(", as %s (%s)", c.Model, c.Because)
}
