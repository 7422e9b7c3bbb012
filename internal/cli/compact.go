package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/token"
)

// maxRecordRows is how many records compact and render show; plan shows all.
const maxRecordRows = 15

func compactCommand(s Streams) *cobra.Command {
	var conv conversation
	var store storeFlag
	var out, planOut string
	c := &cobra.Command{
		Use:   "compact FILE",
		Short: "Make a transcript fit a budget: the prompt goes to the output, a report to standard error",
		Long: `Compact reads an agent's transcript or a request body and writes the prompt to go
on with, no larger than --budget. FILE is a file, "-" for standard input, or the ID of
a session ("palimpsest sessions"). Its format is detected, and it may be gzipped. The
whole conversation is kept in a store: "palimpsest artifact get" reads what was
removed, and "palimpsest recall" searches it.

With --into, compact writes a new session for an agent, where that agent looks for its
sessions; the original stays as it was. The report says where it is and how to resume
it. Without --budget and --model the conversation then gets a quarter of its model's
window, because the agent adds its own instructions and tools.`,
		Example: "  palimpsest compact session.jsonl --budget 32000 -o prompt.json\n  palimpsest compact session.jsonl --model claude-sonnet-4-5 --to text\n  palimpsest compact 91bfefb2 --into claude-code",
		Args:    exactArgs(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if planOut == "-" && (out == "-" || out == "" && conv.into == "") {
				return fmt.Errorf("%w: prompt and plan cannot both go to standard output; name a file for one of them", errUsage)
			}
			if err := conv.checkOutputs(args[0], &store, out, planOut); err != nil {
				return err
			}
			lazy := &lazyStore{flag: &store}
			conv.answers = lazy
			if err := conv.open(args[0], s); err != nil {
				return err
			}
			res, kept, err := conv.compactAndStore(c.Context(), lazy)
			if err = errors.Join(err, lazy.Close()); err != nil {
				return err
			}
			r := newReport(&conv, res)
			if err := conv.writeResult(r, res, out, planOut, s); err != nil {
				if kept != nil {
					err = fmt.Errorf("%w; the conversation and its plan were stored in %s before", err, store.displayName())
				}
				return err
			}
			if kept != nil {
				r.Store, r.Saved = store.displayName(), kept
			} else if !res.Plan.Empty() {
				r.Notes = append(r.Notes, "what was removed is kept nowhere (--store memory:): only the input has it")
			}
			return r.write(s.Err, c, maxRecordRows)
		},
	}
	conv.addFlags(c)
	conv.addPolicyFlags(c)
	store.addFlags(c)
	c.Flags().StringVar((*string)(&conv.into), "into", "", "write a session that `AGENT` resumes: "+writerNames())
	c.Flags().StringVarP(&out, "output", "o", "", "write the prompt to `OUT` (default: standard output), or the session (default: where its agent looks for it)")
	c.Flags().StringVar(&planOut, "plan-out", "", "write the plan to `PLAN.json`")
	return c
}

// checkOutputs returns an error for outputs that cannot be written: better before the
// conversation and its plan are stored.
func (c *conversation) checkOutputs(path string, store *storeFlag, out, planOut string) error {
	read := append(c.files(path), store.files()...)
	if c.into == "" {
		return checkOutputs(read, out, planOut)
	}
	if err := CheckDistinct(read, out, planOut); err != nil {
		return err
	}
	return cmp.Or(checkNew(out), checkOutputs(nil, planOut)) // the session's folder need not be there
}

// writeResult writes the plan and the prompt, or the session of --into.
func (c *conversation) writeResult(r *report, res *palimpsest.Result, out, planOut string, s Streams) (err error) {
	var body []byte
	if c.into == "" {
		if body, err = c.encode(res.Prompt); err != nil {
			return err
		}
		r.Input.Warnings = c.in.warnings()
	}
	r.Plan = planOut
	if err := writePlan(planOut, res.Plan, s); err != nil {
		return err
	}
	if c.into == "" {
		r.Output = out
		return WriteOutput(out, body, s.Out)
	}
	r.Session, err = c.writeSession(res, out)
	return err
}

func planCommand(s Streams) *cobra.Command {
	var conv conversation
	var planOut string
	c := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show what compact would do: each record, its reason and what it frees",
		Long: `Plan is a dry run: it takes the flags of compact that decide what is removed, lists
every record, largest first, and writes no prompt, no session (--into) and nothing to a
store (--store, --tenant). --output writes the plan itself, to compare ("palimpsest diff")
or to apply ("palimpsest render").`,
		Example: "  palimpsest plan session.jsonl --budget 32000\n  palimpsest plan session.jsonl --budget 32000 -o plan.json",
		Args:    exactArgs(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkOutputs(conv.files(args[0]), planOut); err != nil {
				return err
			}
			if err := conv.open(args[0], s); err != nil {
				return err
			}
			res, err := conv.compact(c.Context(), &storeFlag{})
			if err != nil {
				return err
			}
			if err := writePlan(planOut, res.Plan, s); err != nil {
				return err
			}
			r := newReport(&conv, res)
			r.Plan = planOut
			if planOut == "-" {
				return r.write(s.Err, c, math.MaxInt)
			}
			return r.write(s.Out, c, math.MaxInt)
		},
	}
	conv.addFlags(c)
	conv.addPolicyFlags(c)
	c.Flags().Lookup("json").Usage = "write the report as one JSON object"
	c.Flags().StringVarP(&planOut, "output", "o", "", "write the plan to `PLAN.json`")
	c.Flags().StringVar(&planOut, "plan-out", "", "as --output, by the name that compact has for it: `PLAN.json`")
	return c
}

func renderCommand(s Streams) *cobra.Command {
	var conv conversation
	var store storeFlag
	var out, planPath string
	c := &cobra.Command{
		Use:   "render FILE --plan PLAN.json",
		Short: "Write the prompt of a transcript under an existing plan",
		Long: `Render applies a plan to the transcript it was made for. The same plan gives the
same bytes; messages added since are kept as they are. With --budget, or with
--model, whose window counts, a larger prompt is not written: the exit status is 3 and
its parts are listed. If the store holds what the plan removes, the prompt says how to
read it.`,
		Example: "  palimpsest render session.jsonl --plan plan.json -o prompt.json\n  palimpsest render session.jsonl --plan plan.json --to gemini",
		Args:    exactArgs(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if planPath == "" {
				return fmt.Errorf("%w: say which plan: --plan PLAN.json (compact and plan write one with --plan-out)", errUsage)
			}
			if err := checkOutputs(slices.Concat(conv.files(args[0]), store.files(), []string{planPath}), out); err != nil {
				return err
			}
			p, err := readPlan(planPath)
			if err != nil {
				return err
			}
			conv.policy, conv.summarizer = "auto", policyfile.Extractive // the plan holds what they made
			bounded := conv.budget != 0 || conv.modelName != ""
			if !bounded {
				conv.measureLike(p)
			}
			if err := conv.open(args[0], s); err != nil {
				return err
			}
			if strings.HasPrefix(p.ThreadID, conv.in.Thread.ID()+"-") { // withFreeID renamed it
				if conv.in.Thread, err = withThreadID(conv.in.Thread, p.ThreadID); err != nil {
					return err
				}
			}
			q := conv.request()
			if store.hasRemoved(c.Context(), p) {
				q.Note = store.recallNote()
			} else {
				q.Profile.Reach = render.Nowhere
			}
			res, err := conv.compactor.Render(p, q)
			if err != nil {
				return fmt.Errorf("%s: %w", planPath, err)
			}
			r := newReport(&conv, res)
			if bounded && r.After > r.Budget {
				return r.overBudget(planPath)
			}
			body, err := conv.encode(res.Prompt)
			if err != nil {
				return err
			}
			r.Input.Warnings = conv.in.warnings()
			if err := WriteOutput(out, body, s.Out); err != nil {
				return err
			}
			if !bounded {
				r.Budget = 0
			}
			r.Output = out
			return r.write(s.Err, c, maxRecordRows)
		},
	}
	conv.addFlags(c)
	store.addFlags(c)
	c.Flags().Lookup("store").Usage = "where compact keeps what the plan removes; " + storeUsage
	c.Flags().StringVar(&planPath, "plan", "", "the plan to apply, from `PLAN.json`")
	c.Flags().StringVarP(&out, "output", "o", "", "write the prompt to `OUT` (default: standard output)")
	return c
}

// measureLike takes budget and counter of a plan, so that its figures can be compared. A counter
// that was calibrated by a provider's figures cannot be found by its name.
func (c *conversation) measureLike(p *plan.Plan) {
	c.budget = max(p.CompactedTokens, 1)
	if _, err := token.New(p.Counter, nil); err == nil {
		c.planCounter = p.Counter
	}
}

func writePlan(path string, p *plan.Plan, s Streams) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return WriteOutput(path, append(data, '\n'), s.Out)
}

func readPlan(path string) (*plan.Plan, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := plan.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

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
			if a.ThreadID != b.ThreadID {
				return fmt.Errorf("%w: the plans are for different threads, %s and %s", ErrInvalid, printable(a.ThreadID), printable(b.ThreadID))
			}
			changes := plan.Diff(a, b)
			return writeResult(s.Out, c, append([]plan.Change{}, changes...), func(p *printer) { printDiff(p, a, b, changes) })
		},
	}
	c.Flags().Bool("json", false, "write the changes as a JSON array")
	return c
}

func printDiff(p *printer, a, b *plan.Plan, changes []plan.Change) {
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
