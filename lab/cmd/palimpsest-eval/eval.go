package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/lab/eval"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/lab/progress"
	"github.com/palimpsest-ai/palimpsest/token"
)

// examCounter measures the prompts of exams, the same for every reader.
const examCounter = "chars/4"

// maxSkippedLines limits the warnings about files that eval cannot read.
const maxSkippedLines = 5

func evalCommand(s cli.Streams) *cobra.Command {
	var w evalOptions
	var x examOptions
	var version bool
	c := &cobra.Command{
		Use:   "palimpsest-eval DIR|FILE ...",
		Short: "Measure compaction policies on your own transcripts",
		Long:  evalHelp,
		Args:  cobra.ArbitraryArgs,
		Example: `  palimpsest-eval ~/.claude/projects
  palimpsest-eval session.jsonl --budgets 8k,20% --misses
  palimpsest-eval ~/.claude/projects --cost
  palimpsest-eval ~/.claude/projects --html report.html
  palimpsest-eval --exam exams/* -o out --budget own,16k --contender auto --contender own-summary`,
		RunE: func(c *cobra.Command, args []string) error {
			if version {
				_, err := fmt.Fprintf(s.Out, "palimpsest-eval %s\n", cli.Version())
				return err
			}
			exams, err := checkFlags(c.Flags())
			switch {
			case err != nil:
			case strings.TrimSpace(strings.Join(args, "")) == "":
				err = errors.New("want a DIR or FILE")
			case exams:
				err = x.check(args)
			default:
				w.command = "palimpsest-eval " + strings.Join(commandLine(c, args), " ")
				err = cmp.Or(w.check(), cli.CheckDistinct(args, w.html))
			}
			if err != nil {
				return fmt.Errorf("%w: %w", setup.ErrUsage, err)
			}
			if exams {
				return x.run(c, args, &w, s)
			}
			return w.run(c, args, s)
		},
	}
	c.Flags().BoolVarP(&version, "version", "v", false, "print the version")
	c.Flags().StringVar((*string)(&w.split), "split", "all", "measure on `dev`, test or all; policies are tuned on dev and judged on test")
	c.Flags().StringSliceVar(&w.budgets, "budgets", nil, "fit into these `BUDGETS`, such as 8k or 20% (default 8k,16k,20%,10%; with --exam own, else 16k); --budget is the same")
	c.Flags().BoolVar(&w.curve, "curve", false, "many budgets, and the area under the curve; with --cost: many sizes of each contender")
	c.Flags().StringArrayVar(&w.contenders, "contender", nil, "run only the contender `NAME`, and those that scores refer to; with --exam a policy or own-summary; may be given again")
	c.Flags().StringVar(&w.counterName, "counter", "o200k", "count tokens with `COUNTER`; --exam counts characters / 4")
	c.Flags().BoolVar(&w.costs, "cost", false, "measure what sessions cost")
	c.Flags().BoolVar(&w.valid, "validity", false, "replay every conversation through our policies for every API, and check each prompt by its rules")
	c.Flags().BoolVar(&w.tight, "tight", false, "with --validity: into a sixth of each conversation, instead of a third")
	c.Flags().StringVar(&w.modelName, "model", "claude-sonnet-4-5", "with --cost: prices, cache and window of the model `NAME`")
	c.Flags().StringVar(&w.around, "around", "", "with --cost: system and tools are this many `TOKENS` where none are recorded")
	c.Flags().StringVar(&w.gaps, "gaps", eval.RecordedGaps, "with --cost: times between requests as `recorded`, fixed (20 s) or lognormal")
	c.Flags().BoolVar(&w.details, "details", false, "show all that was measured")
	c.Flags().BoolVar(&w.misses, "misses", false, "show what auto lost, by type, age and origin, with examples")
	c.Flags().Bool("json", false, "write one JSON object")
	c.Flags().StringVar(&w.html, "html", "", "write a page with plots and tables to `FILE`: recall and cost, or what was asked for")
	x.addFlags(c.Flags())
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "budget" { // as the other commands call it
			name = "budgets"
		}
		return pflag.NormalizedName(name)
	})
	c.AddCommand(standsCommand(s), searchCommand(s), lookCommand(s))
	return c
}

// run measures on the conversations of files and folders.
func (w *evalOptions) run(c *cobra.Command, args []string, s cli.Streams) error {
	counter, err := token.New(w.counterName, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", setup.ErrUsage, err)
	}
	set, err := references.Load(c.Context(), args, counter, progress.To(s.Err, "reading"))
	if err != nil {
		return err
	}
	for i, skipped := range set.Skipped {
		if i == maxSkippedLines {
			fmt.Fprintf(s.Err, "palimpsest-eval: skipped: %s more; palimpsest inspect FILE says why\n", clip.Count(len(set.Skipped)-i, "file"))
			break
		}
		fmt.Fprintf(s.Err, "palimpsest-eval: skipped: %s\n", cli.ErrorText(skipped))
	}
	found, err := w.measure(c.Context(), set, s.Err)
	return errors.Join(err, found.write(s, c, w))
}

const evalHelp = `At many points of each conversation every policy fits the history into the same
budget. Eval then takes the identifiers that the agent really wrote in the calls of its
next 20 steps and could only know from the old part of the history: paths, ids, hashes,
symbols, numbers and names. It looks for them in what is left.

  bound    the identifier is in the prompt, with the words that say what it is
  lookup   bound, or one search in what was removed finds it
  over     the share of prompts over the budget; fail: of prompts that were not made

With --details also:

  direct   the identifier is in the prompt at all
  strict   with the words that said what it is where it was first mentioned
  first    bound, or the best hit of that search has it
  pointer  bound, or something in the prompt points to what has it
  adj      bound, adjusted for chance
  gap      the share of the way from the sliding window to the oracle
  trail    the files and their last state, as F1, precision and recall
  full     how much of the budget was used; worst: the most that a prompt exceeded it,
           as a share
  said     bound recall of what the agent says in its answers; end: of all its later calls
  stale    changed values of which the prompt shows only an old one; s.lines: deleted
           lines of files that it shows as present; s.files: files that it shows in
           another state than their last

With --curve, nine budgets from 2k to 32k and from 5% to 40%, and the area under each
contender's curve of recall over them.

With --cost, conversations of 50,000 tokens and more are sent request by request
through every policy instead, at the recorded times (--gaps), and billed by the prices
and the prompt cache of a model (--model):

  input    what the prompts cost, relative to no compaction
  +fetch   with the lookups and repeated reads that the loss causes
  recall   references to compacted content that are in the prompt or that one lookup
           finds
  regret   relative to the best schedule for the same way to compact

auto favors cost there, with rows for the other two favors.

With --details also:

  +output  with the answers; /bound: input relative to the lower bound
  comp     compactions per session; rewr: requests in a hundred that change the
           prefix; kept: the share of a prompt that begins the next one; again: tokens
           written again for each token that such requests free
  cached   the share of the input that came from the cache; mean, peak: prompts
  direct   recall in the prompt alone; look, reread: the calls for the rest

With --cost --curve, contenders with a size run at several, as lines of recall over cost.

With --validity, every prompt is checked by the rules of its API.

With --exam, language models of your choice read the prompts and answer questions
about the session. Each DIR holds history.json.gz (or .json, .jsonl: any transcript
that compact reads), exam.json, a list of {id, type, question, key}, and perhaps
own-summary.txt, which the agent's own model wrote at the end of the history. Three steps:

  --exam DIR... -o OUT   write a prompt for each session, contender and budget, under
                         random numbers: OUT/readers/NN. Each reader gets one folder,
                         follows its INSTRUCTIONS.txt and writes answers.json there
  --exam-grade OUT       put the answers side by side, without names: OUT/graders/NN.
                         Each grader gets one folder and writes grades.json there
  --exam-report OUT      add up the points of each contender, by type and session, and
                         its false answers

Contenders are policies, by name or file, and own-summary: that text followed by the
last exchange. Budgets are tokens, shares of the history, or own: the size of
own-summary. OUT/key.json says who made what; it is for you alone.

NAME+model is a policy whose summaries a model of your choice writes; --model-written
adds one for each policy. Its requests are written to OUT/requests/NN and answered in
answer.txt there; run the same command again to go on.

NAME+recall is a policy whose readers may look up what was removed, a few times, as an
agent can: OUT/readers/NN then holds session.db, and the scripts look and read, which
answer as the tools recall and read_artifact do and note each use in lookups.txt.

NAME@40k is a policy that goes through the session step by step, like an agent, in a
window of that many tokens: its prompt is the last request, after all compactions.

The same files give the same figures. The replay is open-loop: it shows what is kept,
not what an agent would solve.`
