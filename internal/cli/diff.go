package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/describe"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func diffCommand(s Streams) *cobra.Command {
	var in input
	c := &cobra.Command{
		Use:   "diff PLAN PLAN [FILE]",
		Short: "Show which messages two plans treat differently, and what their summaries tell",
		Long: `Diff compares two plans of one conversation: the messages that they treat differently, with
what becomes of them, and the lines that only the summary of one has. The texts of the messages are
those of FILE or, without it, of the session or stored conversation that the plans are for, if it is
on this machine.`,
		Example: "  palimpsest diff before.json after.json",
		Args:    argCount(2, 3, "two plans, and perhaps the FILE that they are for"),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := readPlan(args[0])
			if err != nil {
				return err
			}
			b, err := readPlan(args[1])
			if err != nil {
				return err
			}
			if a.ThreadID != b.ThreadID {
				return fmt.Errorf("%w: the plans are for different threads, %s and %s", ErrInvalid, printable(a.ThreadID), printable(b.ThreadID))
			}
			var log *thread.Thread
			if err = in.open(c.Context(), append(args, a.ThreadID)[2], Streams{In: s.In}); err == nil {
				log = in.Thread
				in.printWarnings(newPrinter(s.Err))
			} else if len(args) > 2 {
				return err
			}
			changes := changeRows(log, plan.Diff(a, b))
			return writeResult(s.Out, c, changes, func(p *printer) { printDiff(p, a, b, changes) })
		},
	}
	in.addFlags(c, "look at")
	c.Flags().Bool("json", false, "write the changes as a JSON array")
	return c
}

// changeRow is a change with its message, as far as that is known.
type changeRow struct {
	plan.Change
	Turn int    `json:"turn,omitempty"`
	Who  string `json:"who,omitempty"`
	What string `json:"what,omitempty"`
}

// changeRows are changes with their messages in a log; nil knows none.
func changeRows(log *thread.Thread, changes []plan.Change) []changeRow {
	log = cmp.Or(log, thread.New(""))
	pairs := thread.Pair(log)
	rows := []changeRow{}
	for _, c := range changes {
		row := changeRow{Change: c}
		if i, ok := log.Index(c.ID); ok {
			m := log.At(i)
			row.Turn, row.Who, row.What = m.Turn, describe.Speaker(m), shorten(describe.MessageAt(log, pairs, i), 200)
		}
		rows = append(rows, row)
	}
	return rows
}

// maxShownChanges limits the messages that are shown of each kind of change, and the lines of each summary.
const maxShownChanges = 5

func printDiff(p *printer, a, b *plan.Plan, changes []changeRow) {
	p.table([]string{"", ">messages known", ">tokens before", ">tokens after", "policy"}, [][]string{
		{"first", number(a.ThreadVersion), number(a.OriginalTokens), number(a.CompactedTokens), a.Policy},
		{"second", number(b.ThreadVersion), number(b.OriginalTokens), number(b.CompactedTokens), b.Policy},
	})
	if len(changes) == 0 {
		p.line("the plans show the model the same")
		return
	}
	p.heading(plural(len(changes), "message") + " treated differently: what becomes of them")
	groups := groupChanges(a, b, changes)
	p.table([]string{">messages", "by the first", "by the second"}, mapSlice(groups, func(g *changeGroup) []string {
		return []string{number(len(g.messages)), g.from.String(), g.becomes()}
	}))
	for _, g := range groups {
		if g.messages[0].Turn == 0 || g.from.action == g.to.action {
			continue
		}
		p.sectionUpTo(g.from.String()+" → "+g.becomes(), []string{">turn", "who", "what"}, mapSlice(g.messages, func(m changeRow) []string {
			return []string{strconv.Itoa(m.Turn), m.Who, m.What}
		}), maxShownChanges, "more message")
	}
	first, second := summaryLines(a), summaryLines(b)
	p.onlyIn("only the summary of the first tells", first, second)
	p.onlyIn("only the summary of the second tells", second, first)
	by := fmt.Sprintf("%s tokens larger than that", number(b.CompactedTokens-a.CompactedTokens))
	if b.CompactedTokens < a.CompactedTokens {
		by = fmt.Sprintf("%s tokens smaller than that", number(a.CompactedTokens-b.CompactedTokens))
	}
	p.line("")
	p.text("the request under the second is %s under the first; `palimpsest render FILE --plan PLAN --to text` shows one; --json lists each message", by)
}

func summaryLines(made *plan.Plan) (lines []string) {
	for _, s := range made.Summarizations {
		for line := range strings.SplitSeq(s.Summary.Render(), "\n") {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// onlyIn quotes the lines of one list that another has not, the first few.
func (p *printer) onlyIn(heading string, lines, other []string) {
	have := map[string]bool{}
	for _, line := range other {
		have[line] = true
	}
	only := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return have[line] })
	if len(only) == 0 {
		return
	}
	p.heading(fmt.Sprintf("%s (%s of %s)", heading, plural(len(only), "line"), number(len(lines))))
	for _, line := range firstN(only, maxShownChanges) {
		p.line("    %s", shorten(line, p.width()-4))
	}
	if more := len(only) - maxShownChanges; more > 0 {
		p.line("and %s", plural(more, "more line"))
	}
}

// becomes says what the second plan does with the messages.
func (g *changeGroup) becomes() string {
	if g.from == g.to {
		return "the same, in another text"
	}
	return g.to.String()
}

// changeGroup are the messages that change from one action to another.
type changeGroup struct {
	from, to side
	messages []changeRow
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
func groupChanges(a, b *plan.Plan, changes []changeRow) []*changeGroup {
	var groups []*changeGroup
	for _, c := range changes {
		n := slices.IndexFunc(groups, func(g *changeGroup) bool {
			return g.from.action == c.From.Action && g.to.action == c.To.Action
		})
		if n < 0 {
			n = len(groups)
			groups = append(groups, &changeGroup{from: side{action: c.From.Action}, to: side{action: c.To.Action}})
		}
		groups[n].messages = append(groups[n].messages, c)
		groups[n].from.widen(a, c.From)
		groups[n].to.widen(b, c.To)
	}
	return groups
}
