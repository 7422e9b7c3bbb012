package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func modelsCommand(s Streams) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:     "models",
		Short:   "List the models that --model knows, with their limits and how they are counted",
		Example: "  palimpsest models\n  palimpsest models --json --models own.json",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			set, err := readModels(file)
			if err != nil {
				return err
			}
			return writeResult(s.Out, c, set.All(), func(p *printer) {
				p.table([]string{"model", "provider", ">window", ">output", "counted as", ">$/M in/out", "as of"}, mapSlice(set.All(), func(m token.Model) []string {
					price := ""
					if p, ok := m.Price(0); ok {
						price = fmt.Sprintf("%g/%g", p.Input, p.Output)
					}
					return []string{m.Name, m.Provider, numberOr(m.Window, "?"), numberOr(m.MaxOutput, "?"), m.Counter, price, m.Date[:min(len(m.Date), len("2026-11"))]}
				}))
			})
		},
	}
	c.Flags().StringVar(&file, "models", "", modelsUsage)
	c.Flags().Bool("json", false, "write the table as JSON")
	return c
}

const modelsUsage = "a `FILE` of models that adds to or replaces the built-in table"

// readModels returns the built-in table of models, with those of a file if one is named.
func readModels(file string) (token.ModelSet, error) {
	set := token.Models()
	if file == "" {
		return set, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return set, fmt.Errorf("--models: %w", err)
	}
	own, err := token.ParseModels(data)
	if err != nil {
		return set, fmt.Errorf("%w: --models %s: %w", errUsage, file, err)
	}
	return set.With(own)
}

// findModel finds a model by its name. Of one that only its family is known of, assumed says
// whose figures are taken.
func findModel(models token.ModelSet, name string) (m token.Model, assumed string, err error) {
	if m, err = models.Find(name); err == nil {
		return m, "", nil
	}
	if m, err = models.Like(name); err != nil {
		return m, "", fmt.Errorf("%w: --model: %w (`palimpsest models` lists them, --models FILE adds others)", errUsage, err)
	}
	return m, fmt.Sprintf("the table of models does not know %s; its window and prices are %s (--models FILE adds models)", printable(shorten(name, 60)), m.Source), nil
}

// defaultModels are the models of a request when neither the input nor the user names one
// that the API has. Gemini takes the model in the URL.
var defaultModels = map[string]string{
	wire.Anthropic: "claude-sonnet-4-5",
	wire.Chat:      "gpt-5.1",
	wire.Responses: "gpt-5.1",
}

// counterNames are the values of --counter, as help texts show them.
const counterNames = "o200k, cl100k, claude, gemini, chars/4, …"

// counterReason says why a counter was chosen.
type counterReason struct {
	Model   string `json:"counted_for,omitempty"`
	Because string `json:"counted_because"` // where the name of the model comes from; without one, what names the counter
}

// String is the reason as it follows the counter's name.
func (c counterReason) String() string {
	if c.Model == "" {
		return ", which " + c.Because + " names"
	}
	return fmt.Sprintf(", as %s (%s)", shorten(c.Model, 60), printable(c.Because))
}

// counterText names a counter in reports, with how far off an estimate may be.
func counterText(name string, exact bool, band float64) string {
	if exact {
		return name
	}
	return fmt.Sprintf("%s (estimate, ± %.0f %%)", name, 100*band)
}

// chooseCounter returns the counter that --counter or the policy names, else the counter of
// the model that will read the request: --model, else the model named in the file, else the
// default model of the API.
func (c *conversation) chooseCounter(models token.ModelSet, ofPolicy string) (*token.Counter, counterReason, error) {
	switch {
	case c.counterName != "":
		return namedCounter(c.counterName, "--counter")
	case c.planCounter != "":
		return namedCounter(c.planCounter, "the plan")
	case ofPolicy != "" && ofPolicy != "auto":
		return namedCounter(ofPolicy, c.policy)
	case c.modelName != "":
		counter, err := token.ForModel(c.model)
		return counter, counterReason{c.model.Name, "--model"}, err
	}
	api := c.to
	if api == "" || api == textTarget {
		api = c.in.api()
	}
	name, because := c.in.Model, "the file names it"
	switch {
	case c.in.Model != "" && api == c.in.api():
	case defaultModels[api] != "":
		name, because = defaultModels[api], c.defaultReason(api)
	case api == wire.Gemini:
		name, because = "gemini", c.defaultReason(api)
	}
	return modelCounter(models, name, because)
}

func (c *conversation) defaultReason(api string) string {
	if c.in.Model == "" {
		return "the default for " + api + ", nothing names a model"
	}
	return "the default for " + api + ", the file names " + c.in.Model
}

func namedCounter(name, flag string) (*token.Counter, counterReason, error) {
	c, err := token.New(name, nil)
	if err != nil {
		return nil, counterReason{}, fmt.Errorf("%w: %s: %w", errUsage, flag, err)
	}
	return c, counterReason{Because: flag}, nil
}

// modelCounter is the counter of a model. An unknown model is counted like the newest of its
// family, or like OpenAI's, which is an estimate then.
func modelCounter(models token.ModelSet, model, because string) (*token.Counter, counterReason, error) {
	reason := counterReason{model, because}
	if m, err := models.Find(model); err == nil {
		c, err := token.ForModel(m)
		return c, reason, err
	}
	name := "o200k"
	switch lower := strings.ToLower(model); {
	case strings.Contains(lower, "claude"):
		name = "claude-4.7"
	case strings.Contains(lower, "gemini"):
		name = "gemini"
	}
	if model != name {
		reason.Because += ", the table of models does not"
	}
	c, err := token.ForModel(token.Model{Name: model, Counter: name, Estimated: true})
	return c, reason, err
}

// tokensFlag is the value of a flag that takes a number of tokens.
type tokensFlag int

// Set reads what config.ParseTokens reads, above 0.
func (n *tokensFlag) Set(text string) error {
	v, err := config.ParseTokens(text)
	if err != nil || v < 1 {
		return errors.New("want a number of tokens above 0, such as 32000, 32k or 1m")
	}
	*n = tokensFlag(v)
	return nil
}

// String returns the number; empty when none was given.
func (n *tokensFlag) String() string {
	if *n == 0 {
		return ""
	}
	return strconv.Itoa(int(*n))
}

// Type names the value in help texts.
func (n *tokensFlag) Type() string { return "TOKENS" }
