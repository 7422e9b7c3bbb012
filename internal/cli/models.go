package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/token"
)

func modelsCommand(s Streams) *cobra.Command {
	var t target
	c := &cobra.Command{
		Use:     "models",
		Short:   "List the models that --model knows, with their limits and how they are counted",
		Example: "  palimpsest models\n  palimpsest models --json --models own.json",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			set, err := t.modelTable()
			if err != nil {
				return err
			}
			return writeResult(s.Out, c, set.All(), func(p *printer) {
				p.table([]string{"model", "provider", ">window", ">output", "counted as", ">$/M in / out", "as of"}, mapSlice(set.All(), func(m token.Model) []string {
					price := ""
					if p, ok := m.Price(0); ok {
						price = fmt.Sprintf("%g / %g", p.Input, p.Output)
					}
					return []string{m.Name, m.Provider, numberOrUnknown(m.Window), numberOrUnknown(m.MaxOutput), m.Counter, price, m.Date}
				}))
			})
		},
	}
	c.Flags().StringVar(&t.models, "models", "", "a `FILE` of models that adds to or replaces the built-in table")
	c.Flags().Bool("json", false, "write the table as JSON")
	return c
}

func numberOrUnknown(n int) string {
	if n == 0 {
		return "?"
	}
	return number(n)
}
