package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/eval"
	"github.com/palimpsest-ai/palimpsest/token"
)

func evalCommand(s Streams) *cobra.Command {
	var w wanted
	var split, counterName, modelName string
	c := &cobra.Command{
		Use:   "eval DIR|FILE ...",
		Short: "Measure compaction policies on your own transcripts",
		Long: `At many moments of each conversation every policy fits the history into the same
budget. Then the identifiers that the agent really wrote in the calls of its next
20 steps, and could know from the old part of the history alone, are looked for in
what is left: paths, ids, hashes, symbols, numbers and names.

  bound    the identifier stands in the prompt, with what tells what it is
  direct   it stands there at all
  strict   with what told what it is where it was first mentioned
  lookup   bound, or one search in what was taken out brings it
  first    bound, or the best hit of that search does
  adj      bound, with chance taken out
  gap      the share of the way from the sliding window to the oracle
  trail    the files and what last became of them, as F1
  full     how much of the budget was used; over, fail: prompts beyond it, or not made;
           worst: the most that one was beyond it, as a share of it
  pointer  bound, or something in the prompt points at what holds it
  said     bound recall of what the agent says in its answers; end: of all its later calls
  stale    values that changed, of which the prompt shows an old one alone; s.lines: lines
           that files lost, told as if they were there; s.files: files of which it tells
           another state than their last

With --cost, conversations of 50,000 tokens and more are sent request by request
through every policy instead, and billed by the prices and the prompt cache of a
model (--model), at the times that the record tells:

  input    what the prompts cost, over what they cost without compaction
  +fetch   with the lookups and reading again that what was lost takes, +output: and
           with the answers
  regret   over the best schedule that the same way to compact has
  comp     compactions of a session; rewr: requests of a hundred that change the
           prefix; kept: the share of a prompt that the next one begins with; again:
           tokens written once more for each token that such requests free
  cached   the share of the input that came from the cache; mean, peak: prompts
  recall   references to what was compacted that stand in the prompt (direct) or
           that one lookup brings; look, reread: those calls, for a session

With --drift, facts from the beginning of long conversations, their own and planted
ones, are looked for after each of twenty compactions in a row.

The same files give the same figures. Replay is open-loop: this says what is kept,
not what is solved.`,
		Example: "  palimpsest eval ~/.claude/projects --split dev\n  palimpsest eval session.jsonl --budgets 8k,20% --misses",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%w: want a DIR or FILE", errUsage)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch w.split = eval.Split(split); w.split {
			case eval.All, eval.Dev, eval.Test:
			default:
				return fmt.Errorf("%w: --split %s: want dev, test or all", errUsage, split)
			}
			w.command = "palimpsest eval " + strings.Join(commandLine(c, args), " ")
			if err := w.check(modelName); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			counter, err := token.New(counterName, nil)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			set, err := eval.Load(c.Context(), args, counter, progress(s.Err, "reading"))
			if err != nil {
				return err
			}
			for _, skipped := range set.Skipped {
				fmt.Fprintf(s.Err, "palimpsest: skipped: %s\n", message(skipped))
			}
			found, err := w.measure(c.Context(), set, s.Err)
			return errors.Join(err, found.write(s, &w))
		},
	}
	c.Flags().StringVar(&split, "split", "all", "measure on `dev`, test or all; policies are tuned on dev and judged on test")
	c.Flags().StringSliceVar(&w.budgets, "budgets", nil, "fit into these `BUDGETS`, such as 8k or 20% (default 8k,16k,20%,10%)")
	c.Flags().StringArrayVar(&w.contenders, "contender", nil, "run only the contender `NAME`, and those that scores refer to; may be given again")
	c.Flags().StringVar(&w.peers, "peers", "", "run the contenders of another `PROGRAM` too, such as 'node bench/peers/serve.mjs'")
	c.Flags().StringVar(&counterName, "counter", "o200k", "count tokens with `COUNTER`")
	c.Flags().BoolVar(&w.costs, "cost", false, "measure what sessions cost")
	c.Flags().BoolVar(&w.drift, "drift", false, "compact each long conversation twenty times in a row, and see which facts of its beginning are left")
	c.Flags().BoolVar(&w.valid, "validity", false, "replay every conversation through our policies for every API, and check each prompt by its rules")
	c.Flags().BoolVar(&w.tight, "tight", false, "with --validity: into a sixth of each conversation, instead of a third")
	c.Flags().StringVar(&modelName, "model", "claude-sonnet-4-5", "with --cost: prices, cache and window of the model `NAME`")
	c.Flags().Var((*tokens)(&w.around), "around", "with --cost: system and tools are this many `TOKENS` where none are recorded")
	c.Flags().BoolVar(&w.misses, "misses", false, "show what auto lost, by type, age and origin, with examples")
	c.Flags().BoolVar(&w.asJSON, "json", false, "write one JSON object")
	c.Flags().StringVar(&w.html, "html", "", "write a page with plots and tables to `FILE`: recall, cost and drift, or what was asked for")
	return c
}
