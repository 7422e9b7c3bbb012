package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func modelsCommand(s Streams) *cobra.Command {
	var t target
	var asJSON bool
	c := &cobra.Command{
		Use:     "models",
		Short:   "List the models that --model knows, with their limits and how they are counted",
		Example: "  palimpsest models\n  palimpsest models --json --models own.json",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			set, err := t.table()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(s.Out, set.All())
			}
			var rows [][]string
			for _, m := range set.All() {
				price := ""
				if p, ok := m.Price(0); ok {
					price = fmt.Sprintf("%g / %g", p.Input, p.Output)
				}
				rows = append(rows, []string{m.Name, m.Provider, known(m.Window), known(m.MaxOutput), m.Counter, price, m.Date})
			}
			newPrinter(s.Out).table([]string{"model", "provider", ">window", ">output", "counted as", ">$/M in / out", "as of"}, rows)
			return nil
		},
	}
	c.Flags().StringVar(&t.models, "models", "", "a `FILE` of models that adds to or replaces the built-in table")
	c.Flags().BoolVar(&asJSON, "json", false, "write the table as JSON")
	return c
}

func known(n int) string {
	if n == 0 {
		return "?"
	}
	return number(n)
}
