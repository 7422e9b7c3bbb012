package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// maxRecordRows is how many records compact shows; plan shows all.
const maxRecordRows = 15

// conversationJob is one run of a command over one conversation: compact and plan differ only in what
// they do with the result.
type conversationJob struct {
	in     input
	target target
	// into is the agent that is to go on with what is written; empty for a prompt.
	into string
}

func (j *conversationJob) addFlags(c *cobra.Command) {
	j.in.addFlags(c, "work on")
	c.Flags().Bool("json", false, "write the report as one JSON object on standard error")
	j.target.addFlags(c.Flags())
}

// open reads the input and looks the target's names up.
func (j *conversationJob) open(path string, s Streams) (*resolvedTarget, error) {
	if err := j.in.load(path, s.In); err != nil {
		return nil, err
	}
	if err := j.in.selectRun(); err != nil {
		return nil, err
	}
	if j.into != "" {
		if err := j.targetAgent(transcript.Format(j.into)); err != nil {
			return nil, err
		}
	}
	r, err := j.target.resolve(&j.in)
	if err == nil && j.into != "" { // what any of an agent's providers takes
		r.agentAppends = true
		r.profile.FirstUser, r.profile.ObjectArguments, r.profile.SystemFirst = true, true, true
	}
	return r, err
}

func (j *conversationJob) request(r *resolvedTarget) palimpsest.Request {
	return palimpsest.Request{
		Thread: j.in.Thread, Base: j.in.baseRequest(r.api, j.target.model), Budget: r.budget, Profile: r.profile,
	}
}

// requestWithNote is the request with a line that says how what is removed is read, where the
// conversation does not fit as it is.
func (j *conversationJob) requestWithNote(r *resolvedTarget, store *storeFlag) palimpsest.Request {
	return withRecallNote(r.compactor, j.request(r), store)
}

// withRecallNote adds that line to a request.
func withRecallNote(c *palimpsest.Compactor, q palimpsest.Request, store *storeFlag) palimpsest.Request {
	whole, err := c.Render(nil, q)
	if err != nil || whole.After <= q.Budget {
		return q
	}
	base := *cmp.Or(q.Base, &prompt.Prompt{})
	base.System = slices.DeleteFunc(slices.Clone(base.System), func(s prompt.System) bool { return strings.HasPrefix(s.Text, recallNotePrefix) }) // of an earlier compaction
	base.System = append(base.System, prompt.System{Text: recallNotePrefix + store.recallCommands() + "]"})
	q.Base = &base
	return q
}

// recallNotePrefix is how the line begins that tells the reader of a prompt how to read
// what was removed from it.
const recallNotePrefix = "[Parts of this conversation were removed to save room. "

// recallCommands says which commands read what is kept in the store.
func (f *storeFlag) recallCommands() string {
	flags := ""
	if f.name != "" {
		flags += " --store " + shellQuote(f.displayName())
	}
	if f.tenant != "" {
		flags += " --tenant " + shellQuote(f.tenant)
	}
	return "To read one in full, run: palimpsest artifact get ID" + flags + "; to search them: palimpsest recall \"WORDS\"" + flags
}

// shellQuote is a word as a shell reads it.
func shellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// compactAndSave makes the conversation fit and keeps what that takes out, and says where.
// A plan that hides nothing opens no store.
func (j *conversationJob) compactAndSave(ctx context.Context, r *resolvedTarget, late *lazyStore) (*palimpsest.Result, string, error) {
	res, err := r.compact(ctx, j.requestWithNote(r, late.flag))
	if err != nil || res.Plan.Empty() {
		return res, "", err
	}
	k, err := late.open(ctx)
	if err != nil {
		return nil, "", err
	}
	held, err := k.withFreeID(ctx, j.in.Thread)
	if err != nil {
		return nil, "", err
	}
	if held != j.in.Thread { // what is externalized is named by the thread
		j.in.Thread = held
		if res, err = r.compact(ctx, j.requestWithNote(r, late.flag)); err != nil {
			return nil, "", err
		}
	}
	return res, late.flag.displayName(), k.save(ctx, j.in.Thread, res.Plan)
}

func compactCommand(s Streams) *cobra.Command {
	var j conversationJob
	var store storeFlag
	var out, planOut string
	c := &cobra.Command{
		Use:   "compact FILE",
		Short: "Make a transcript fit a budget: the prompt goes to the output, a report to standard error",
		Long: `Compact reads an agent's transcript or a request body ("-" is standard input, the
ID of "palimpsest sessions" its file; the format is detected, gzip too) and writes the
prompt to go on with, no larger than --budget. The whole conversation is kept in a
store, so that what was taken out can be read with "palimpsest artifact get" and
searched with "palimpsest recall".

With --into the agent itself goes on: what is written is a new session of it, where it
looks for its own, and the original stays as it was. The report says where, and the
line that resumes it. Without --budget and --model the conversation then gets a quarter
of the window of its model: the agent's own instructions and tools come on top.`,
		Example: "  palimpsest compact session.jsonl --budget 32000 -o prompt.json\n  palimpsest compact session.jsonl --model claude-sonnet-4-5 --to text\n  palimpsest compact 91bfefb2 --into claude-code",
		Args:    exactArgs(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkDistinct(sessions.Path(args[0]), out, planOut); err != nil && !(j.into != "" && out == "" && planOut == "-") {
				return err
			}
			kept := &lazyStore{flag: &store}
			j.target.answers = kept
			r, err := j.open(args[0], s)
			if err != nil {
				return err
			}
			res, where, err := j.compactAndSave(c.Context(), r, kept)
			if err = errors.Join(err, kept.Close()); err != nil {
				return err
			}
			var body []byte
			if j.into == "" {
				body, err = r.encode(res.Prompt, &j.in)
			}
			if err == nil {
				err = writePlan(planOut, res.Plan, s)
			}
			if err != nil {
				return err
			}
			rep := newReport(&j.in, r, res)
			rep.Store, rep.Plan = where, planOut
			if j.into != "" {
				rep.Session, err = j.writeSession(transcript.Format(j.into), r, res, out)
			} else {
				rep.Output, err = out, writeOutput(out, body, s.Out)
			}
			if err != nil {
				return err
			}
			return rep.write(s.Err, c, maxRecordRows)
		},
	}
	j.addFlags(c)
	j.target.summarizerFlag(c.Flags())
	store.addFlags(c)
	c.Flags().StringVar(&j.into, "into", "", "write a session that `AGENT` resumes: "+writerNames())
	c.Flags().StringVarP(&out, "output", "o", "", "write the prompt to `OUT` (default: standard output), or the session (default: where its agent looks for it)")
	c.Flags().StringVar(&planOut, "plan-out", "", "write the plan to `PLAN.json`")
	return c
}

func planCommand(s Streams) *cobra.Command {
	var j conversationJob
	var planOut string
	c := &cobra.Command{
		Use:   "plan FILE",
		Short: "Show what compact would do: each record, its reason and what it frees",
		Long: `Plan is a dry run: it takes what compact takes and lists every record, largest
first, without writing a prompt. With --plan-out the plan itself is kept, to be
compared ("palimpsest diff") and applied ("palimpsest render").`,
		Example: "  palimpsest plan session.jsonl --budget 32000\n  palimpsest plan session.jsonl --budget 32000 --plan-out plan.json",
		Args:    exactArgs(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkDistinct(sessions.Path(args[0]), "-", planOut); err != nil && planOut != "-" {
				return err
			}
			r, err := j.open(args[0], s)
			if err != nil {
				return err
			}
			res, err := r.compact(c.Context(), j.requestWithNote(r, &storeFlag{}))
			if err != nil {
				return err
			}
			if err := writePlan(planOut, res.Plan, s); err != nil {
				return err
			}
			rep := newReport(&j.in, r, res)
			rep.Plan = planOut
			if planOut == "-" {
				return rep.write(s.Err, c, math.MaxInt)
			}
			return rep.write(s.Out, c, math.MaxInt)
		},
	}
	j.addFlags(c)
	j.target.summarizerFlag(c.Flags())
	c.Flags().Lookup("json").Usage = "write the report as one JSON object"
	c.Flags().StringVar(&planOut, "plan-out", "", "write the plan to `PLAN.json`")
	return c
}

func renderCommand(s Streams) *cobra.Command {
	var j conversationJob
	var store storeFlag
	var out, planPath string
	c := &cobra.Command{
		Use:   "render FILE --plan PLAN.json",
		Short: "Write the prompt of a transcript under a plan that was made before",
		Long: `Render applies a plan to the transcript it was made for. The same plan gives the
same bytes; messages that came after it was made are kept as they are. With
--budget (or --model, whose window counts) a prompt that is larger is not written:
exit status 3, and the parts that it is made of are named. Where compact has kept
what the plan removes, the prompt says how to read it.`,
		Example: "  palimpsest render session.jsonl --plan plan.json -o prompt.json\n  palimpsest render session.jsonl --plan plan.json --to gemini",
		Args:    exactArgs(1, "one FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if planPath == "" {
				return fmt.Errorf("%w: say which plan: --plan PLAN.json (compact and plan write one with --plan-out)", errUsage)
			}
			if err := checkDistinct(sessions.Path(args[0]), out); err != nil {
				return err
			}
			p, err := readPlan(planPath)
			if err != nil {
				return err
			}
			j.target.summarizer = policyfile.Extractive // the plan holds its summaries
			bounded := j.target.budget != 0 || j.target.model != ""
			if !bounded {
				j.target.budget = max(p.CompactedTokens, 1)
				// The plan's figures are what the reader compares with. A counter that
				// was corrected by what a provider reported has no name to find it by.
				if _, err := token.New(p.Counter, nil); err == nil && j.target.counter == "" {
					j.target.counter = p.Counter
				}
			}
			r, err := j.open(args[0], s)
			if err != nil {
				return err
			}
			if strings.HasPrefix(p.ThreadID, j.in.Thread.ID()+"-") { // as withFreeID names it
				if j.in.Thread, err = withThreadID(j.in.Thread, p.ThreadID); err != nil {
					return err
				}
			}
			q := j.request(r)
			if store.holdsRemoved(c.Context(), p) {
				q = j.requestWithNote(r, &store)
			} else {
				q.Profile.Reach = render.Nowhere
			}
			res, err := r.compactor.Render(p, q)
			if err != nil {
				return fmt.Errorf("%s: %w", planPath, err)
			}
			rep := newReport(&j.in, r, res)
			if bounded && rep.After > r.budget {
				return rep.budgetError(planPath)
			}
			body, err := r.encode(res.Prompt, &j.in)
			if err != nil {
				return err
			}
			if err := writeOutput(out, body, s.Out); err != nil {
				return err
			}
			if !bounded {
				rep.Budget = 0 // the plan was made for one, this prompt is not bound
			}
			rep.Output = out
			return rep.write(s.Err, c, maxRecordRows)
		},
	}
	j.addFlags(c)
	store.addFlags(c)
	c.Flags().Lookup("store").Usage = "where compact has kept what was removed, in which case the prompt says how to read it; " + storeUsage
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
	return writeOutput(path, append(data, '\n'), s.Out)
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
