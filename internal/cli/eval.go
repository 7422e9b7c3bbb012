package cli

import (
	"errors"
	"fmt"
	"github.com/palimpsest-ai/palimpsest/internal/eval/references"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest/internal/eval"
	"github.com/palimpsest-ai/palimpsest/token"
)

// examCounter measures the prompts of exams: the same for every model that reads them.
const examCounter = "chars/4"

// maxSkippedLines is how many of the files that eval cannot read are told of.
const maxSkippedLines = 5

func evalCommand(s Streams) *cobra.Command {
	var w evalOptions
	var x examOptions
	var split, counterName, modelName string
	c := &cobra.Command{
		Use:   "eval DIR|FILE ...",
		Short: "Measure compaction policies on your own transcripts",
		Long: `At many moments of each conversation every policy fits the history into the same
budget. Then the identifiers that the agent really wrote in the calls of its next
20 steps, and could know from the old part of the history alone, are looked for in
what is left: paths, ids, hashes, symbols, numbers and names.

  bound    the identifier stands in the prompt, with what tells what it is
  lookup   bound, or one search in what was taken out brings it
  over     the share of prompts beyond the budget; fail: of those that were not made

With --details also:

  direct   the identifier stands there at all
  strict   with what told what it is where it was first mentioned
  first    bound, or the best hit of that search does
  pointer  bound, or something in the prompt points at what holds it
  adj      bound, with chance taken out
  gap      the share of the way from the sliding window to the oracle
  trail    the files and what last became of them, as F1, precision and recall
  full     how much of the budget was used; worst: the most that a prompt was beyond
           it, as a share of it
  said     bound recall of what the agent says in its answers; end: of all its later calls
  stale    values that changed, of which the prompt shows an old one alone; s.lines: lines
           that files lost, told as if they were there; s.files: files of which it tells
           another state than their last

With --curve, nine budgets from 2k to 32k and from 5% to 40%, and the area under each
contender's curve of recall over them.

With --cost, conversations of 50,000 tokens and more are sent request by request
through every policy instead, and billed by the prices and the prompt cache of a
model (--model), at the times that the record tells (--gaps):

  input    what the prompts cost, over what they cost without compaction
  +fetch   with the lookups and reading again that what was lost takes
  recall   references to what was compacted that stand in the prompt or that one
           lookup brings
  regret   over the best schedule that the same way to compact has

auto is in favor of cost there, with rows for the other two favors.

With --details also:

  +output  with the answers; /bound: input over the lower bound
  comp     compactions of a session; rewr: requests of a hundred that change the
           prefix; kept: the share of a prompt that the next one begins with; again:
           tokens written once more for each token that such requests free
  cached   the share of the input that came from the cache; mean, peak: prompts
  direct   recall in the prompt alone; look, reread: the calls for the rest

With --cost --curve, those that have a size run at several: recall over cost as lines.

With --validity, every prompt is held to the rules of its API.

With --exam, language models of your choice read the prompts, and answer questions
about the session. Each DIR holds history.json.gz (or .json, .jsonl: any transcript
that compact reads), exam.json, a list of {id, type, question, key}, and perhaps
own-summary.txt, what the agent's own model wrote where the history ends. Three steps:

  --exam DIR... -o OUT   a prompt for each session, contender and budget, under numbers
                         that tell nothing: OUT/readers/NN. Each reader gets one folder,
                         follows its INSTRUCTIONS.txt and writes answers.json there
  --exam-grade OUT       the answers side by side, without names: OUT/graders/NN. Each
                         grader gets one folder and writes grades.json there
  --exam-report OUT      the points of each contender, by type and session, and how
                         many answers were false

Contenders are policies by name or file and own-summary, that text with the last
exchange behind it. Budgets are tokens, shares of the history, or own: the size of that
contender. OUT/key.json says who made what; it is for you alone.

A policy as NAME+model has its summaries written by a model of your choice, and
--model-written adds that to each policy. Its requests are put into OUT/requests/NN,
and answered in answer.txt there; the same command, given again, goes on from them.

A policy as NAME@40k goes through the session step by step, as an agent does, in a
window of that many tokens: its prompt is the last request, after all compactions.

The same files give the same figures. Replay is open-loop: this says what is kept,
not what is solved.`,
		Example: `  palimpsest eval ~/.claude/projects
  palimpsest eval session.jsonl --budgets 8k,20% --misses
  palimpsest eval ~/.claude/projects --cost
  palimpsest eval ~/.claude/projects --html report.html
  palimpsest eval --exam exams/* -o out --budget own,16k --contender auto --contender own-summary`,
		Args: nonBlankArgs("want a DIR or FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			exams, err := checkFlags(c.Flags())
			if exams && err == nil {
				err = x.check(args)
			} else if err == nil {
				w.split = references.Split(split)
				w.command = "palimpsest eval " + strings.Join(commandLine(c, args), " ")
				err = w.check(modelName)
			}
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			if exams {
				if !c.Flags().Changed("counter") {
					counterName = examCounter
				}
				return x.run(c, args, &w, counterName, s)
			}
			counter, err := token.New(counterName, nil)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			set, err := references.Load(c.Context(), args, counter, progress(s.Err, "reading"))
			if err != nil {
				return err
			}
			for i, skipped := range set.Skipped {
				if i == maxSkippedLines {
					fmt.Fprintf(s.Err, "palimpsest: skipped: %s more; palimpsest inspect FILE says why\n", plural(len(set.Skipped)-i, "file"))
					break
				}
				fmt.Fprintf(s.Err, "palimpsest: skipped: %s\n", errorText(skipped))
			}
			found, err := w.measure(c.Context(), set, s.Err)
			return errors.Join(err, found.write(s, c, &w))
		},
	}
	c.Flags().StringVar(&split, "split", "all", "measure on `dev`, test or all; policies are tuned on dev and judged on test")
	c.Flags().StringSliceVar(&w.budgets, "budgets", nil, "fit into these `BUDGETS`, such as 8k or 20% (default 8k,16k,20%,10%; with --exam own, else 16k); --budget is the same")
	c.Flags().BoolVar(&w.curve, "curve", false, "many budgets, and the area under the curve; with --cost: many sizes of each contender")
	c.Flags().StringArrayVar(&w.contenders, "contender", nil, "run only the contender `NAME`, and those that scores refer to; with --exam a policy or own-summary; may be given again")
	c.Flags().StringVar(&counterName, "counter", "o200k", "count tokens with `COUNTER`; --exam counts characters / 4")
	c.Flags().BoolVar(&w.costs, "cost", false, "measure what sessions cost")
	c.Flags().BoolVar(&w.valid, "validity", false, "replay every conversation through our policies for every API, and check each prompt by its rules")
	c.Flags().BoolVar(&w.tight, "tight", false, "with --validity: into a sixth of each conversation, instead of a third")
	c.Flags().StringVar(&modelName, "model", "claude-sonnet-4-5", "with --cost: prices, cache and window of the model `NAME`")
	c.Flags().Var((*tokensFlag)(&w.baseTokens), "around", "with --cost: system and tools are this many `TOKENS` where none are recorded")
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
	return c
}
