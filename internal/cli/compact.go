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
it.`,
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
			conv.answers, conv.in.store = lazy, &store
			if err := conv.open(c.Context(), args[0], s); err != nil {
				return err
			}
			res, kept, err := conv.compactAndStore(c.Context(), lazy)
			if err = errors.Join(err, lazy.Close()); err != nil {
				return err
			}
			r := newReport(&conv, res)
			if err := r.findLost(c.Context(), conv.in.Thread, res); err != nil {
				return err
			}
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
			if err := conv.open(c.Context(), args[0], s); err != nil {
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
			if err := r.findLost(c.Context(), conv.in.Thread, res); err != nil {
				return err
			}
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
			conv.in.store = &store
			bounded := conv.budget != 0 || conv.modelName != ""
			if !bounded { // the plan's own, so that its figures can be compared
				conv.budget = max(p.CompactedTokens, 1)
				if _, err := token.New(p.Counter, nil); err == nil { // one that a provider's figures calibrated has no name
					conv.planCounter = p.Counter
				}
			}
			if err := conv.open(c.Context(), args[0], s); err != nil {
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
