package cli

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
)

func diffCommand(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:     "diff PLAN PLAN",
		Short:   "Show which messages two plans treat differently",
		Example: "  palimpsest diff before.json after.json",
		Args:    exactArgs(2, "two plans"),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := readPlan(args[0])
			if err != nil {
				return err
			}
			b, err := readPlan(args[1])
			if err != nil {
				return err
			}
			changes := plan.Diff(a, b)
			return writeResult(s.Out, c, append([]plan.Change{}, changes...), func(p *printer) { printDiff(p, a, b, changes) })
		},
	}
	c.Flags().Bool("json", false, "write the changes as a JSON array")
	return c
}

func printDiff(p *printer, a, b *plan.Plan, changes []plan.Change) {
	if a.ThreadID != b.ThreadID {
		p.text("note: the plans are for different threads, %s and %s", a.ThreadID, b.ThreadID)
	}
	p.table([]string{"", ">messages known", ">tokens before", ">tokens after", "policy"}, [][]string{
		{"first", number(a.ThreadVersion), number(a.OriginalTokens), number(a.CompactedTokens), a.Policy},
		{"second", number(b.ThreadVersion), number(b.OriginalTokens), number(b.CompactedTokens), b.Policy},
	})
	if len(changes) == 0 {
		p.line("the plans show the model the same")
		return
	}
	p.heading(plural(len(changes), "message") + " treated differently: what becomes of them")
	p.table([]string{">messages", "by the first", "by the second"}, mapSlice(groupChanges(a, b, changes), func(g *changeGroup) []string {
		to := g.to.String()
		if g.from == g.to {
			to = "the same, in another text"
		}
		return []string{number(g.messages), g.from.String(), to}
	}))
	by := fmt.Sprintf("%s tokens larger than that", number(b.CompactedTokens-a.CompactedTokens))
	if b.CompactedTokens < a.CompactedTokens {
		by = fmt.Sprintf("%s tokens smaller than that", number(a.CompactedTokens-b.CompactedTokens))
	}
	p.text("the request under the second is %s under the first; `palimpsest render FILE --plan PLAN --to text` shows one; --json lists each message", by)
}

// changeGroup counts the messages that change from one action to another.
type changeGroup struct {
	from, to side
	messages int
}

// side is an action of one plan, and the turns it covers.
type side struct {
	action      plan.Action
	first, last int
}

func (s side) String() string {
	if s.action == plan.Include {
		return "kept"
	}
	return s.action.String() + ", " + clip.Turns(s.first, s.last)
}

// widen includes the turns of one more record.
func (s *side) widen(p *plan.Plan, ref plan.Ref) {
	s.action = ref.Action
	if ref.Action == plan.Include {
		return
	}
	span := p.Record(ref).Covers()
	s.first = min(cmp.Or(s.first, span.FirstTurn), span.FirstTurn)
	s.last = max(s.last, span.LastTurn)
}

// groupChanges groups changes by their actions, in order of first appearance.
func groupChanges(a, b *plan.Plan, changes []plan.Change) []*changeGroup {
	var groups []*changeGroup
	for _, c := range changes {
		n := slices.IndexFunc(groups, func(g *changeGroup) bool {
			return g.from.action == c.From.Action && g.to.action == c.To.Action
		})
		if n < 0 {
			n = len(groups)
			groups = append(groups, &changeGroup{from: side{action: c.From.Action}, to: side{action: c.To.Action}})
		}
		groups[n].messages++
		groups[n].from.widen(a, c.From)
		groups[n].to.widen(b, c.To)
	}
	return groups
}
