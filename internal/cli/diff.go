package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/plan"
)

func diffCommand(s Streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "diff PLAN PLAN",
		Short:   "Show which messages two plans treat differently",
		Example: "  palimpsest diff before.json after.json",
		Args:    exactly(2, "two plans"),
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := readPlan(args[0])
			if err != nil {
				return err
			}
			b, err := readPlan(args[1])
			if err != nil {
				return err
			}
			changes := plan.Diff(a, b)
			if asJSON {
				if changes == nil {
					changes = []plan.Change{}
				}
				return writeJSON(s.Out, changes)
			}
			printDiff(newPrinter(s.Out), a, b, changes)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write the changes as a JSON array")
	return c
}

func printDiff(p *printer, a, b *plan.Plan, changes []plan.Change) {
	if a.ThreadID != b.ThreadID {
		p.line("note: the plans are for different threads, %s and %s", a.ThreadID, b.ThreadID)
	}
	p.table([]string{"", ">messages known", ">tokens before", ">tokens after", "policy"}, [][]string{
		{"first", number(a.ThreadVersion), number(a.OriginalTokens), number(a.CompactedTokens), a.Policy},
		{"second", number(b.ThreadVersion), number(b.OriginalTokens), number(b.CompactedTokens), b.Policy},
	})
	if len(changes) == 0 {
		p.line("the plans show the model the same")
		return
	}
	p.heading(plural(len(changes), "message") + " treated differently")
	var rows [][]string
	for at := 0; at < len(changes); {
		// Neighbours that go from one record to one other are one row.
		end := at + 1
		for end < len(changes) && changes[end].From == changes[at].From && changes[end].To == changes[at].To {
			end++
		}
		rows = append(rows, []string{number(end - at), describe(a, changes[at].From), describe(b, changes[at].To), string(changes[at].ID)})
		at = end
	}
	p.table([]string{">messages", "first", "second", "from message"}, rows)
}

func describe(p *plan.Plan, ref plan.Ref) string {
	if ref.Action == plan.Include {
		return "kept"
	}
	span := p.Record(ref).Covers()
	return fmt.Sprintf("%s, turns %d-%d", ref.Action, span.FirstTurn, span.LastTurn)
}
