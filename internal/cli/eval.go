package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/eval"
	"github.com/palimpsest-ai/palimpsest/token"
)

func evalCommand(s Streams) *cobra.Command {
	var o eval.Options
	var split, counterName, modelName, peers string
	var asJSON, misses, costs, valid bool
	var around int
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
  full     how much of the budget was used; over, fail: prompts beyond it, or not made

With --cost, conversations of 50,000 tokens and more are sent request by request
through every policy instead, and billed by the prices and the prompt cache of a
model (--model), at the times that the record tells:

  input    what the prompts cost, over what they cost without compaction
  +fetch   with the lookups and reading again that what was lost takes, +output: and
           with the answers
  regret   over the best schedule that the same way to compact has
  comp     compactions of a session; rewr: requests of a hundred that change the
           prefix; kept: the share of a prompt that the next one begins with
  cached   the share of the input that came from the cache; mean, peak: prompts
  recall   references to what was compacted that stand in the prompt (direct) or
           that one lookup brings; look, reread: those calls, for a session

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
			switch o.Split = eval.Split(split); o.Split {
			case eval.All, eval.Dev, eval.Test:
			default:
				return fmt.Errorf("%w: --split %s: want dev, test or all", errUsage, split)
			}
			if err := o.Check(); err != nil && !costs {
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
			if costs {
				return reportCosts(c, s, set, &eval.CostOptions{Split: o.Split, Around: around, Contenders: o.Contenders}, modelName, asJSON)
			}
			if valid {
				report, err := eval.Validity(c.Context(), set, &eval.CostOptions{Split: o.Split, Progress: progress(s.Err, "checking")})
				return writeReport(s, report, err, asJSON)
			}
			o.Peers = strings.Fields(peers)
			o.Progress = progress(s.Err, "measuring")
			report, err := eval.Run(c.Context(), set, &o)
			if err != nil {
				return err
			}
			if !misses {
				report.Misses = nil
			}
			if asJSON {
				return writeJSON(s.Out, report)
			}
			if err := report.WriteTable(s.Out); err != nil || !misses {
				return err
			}
			return report.WriteMisses(s.Out)
		},
	}
	c.Flags().StringVar(&split, "split", "all", "measure on `dev`, test or all; policies are tuned on dev and judged on test")
	c.Flags().StringSliceVar(&o.Budgets, "budgets", nil, "fit into these `BUDGETS`, such as 8k or 20% (default 8k,16k,20%,10%)")
	c.Flags().StringArrayVar(&o.Contenders, "contender", nil, "run only the contender `NAME`, and those that scores refer to; may be given again")
	c.Flags().StringVar(&peers, "peers", "", "run the contenders of another `PROGRAM` too, such as 'node bench/peers/serve.mjs'")
	c.Flags().StringVar(&counterName, "counter", "o200k", "count tokens with `COUNTER`")
	c.Flags().BoolVar(&costs, "cost", false, "measure what sessions cost")
	c.Flags().BoolVar(&valid, "validity", false, "replay every conversation through our policies for every API, and check each prompt by its rules")
	c.Flags().StringVar(&modelName, "model", "claude-sonnet-4-5", "with --cost: prices, cache and window of the model `NAME`")
	c.Flags().Var((*tokens)(&around), "around", "with --cost: system and tools are this many `TOKENS` where none are recorded")
	c.Flags().BoolVar(&misses, "misses", false, "show what auto lost, by type, age and origin, with examples")
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return c
}

// reportCosts is eval --cost.
func reportCosts(c *cobra.Command, s Streams, set *eval.Set, o *eval.CostOptions, model string, asJSON bool) error {
	m, err := token.Models().Find(model)
	if err != nil {
		return fmt.Errorf("%w: --model: %w", errUsage, err)
	}
	o.Model, o.Progress = &m, progress(s.Err, "billing")
	report, err := eval.Cost(c.Context(), set, o)
	return writeReport(s, report, err, asJSON)
}

// writeReport writes a report as one JSON object or as a table.
func writeReport(s Streams, report interface{ WriteTable(io.Writer) error }, err error, asJSON bool) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return writeJSON(s.Out, report)
	}
	return report.WriteTable(s.Out)
}

// progress draws a bar with the time left, where the stream is a terminal.
func progress(w io.Writer, what string) eval.Progress {
	if !terminal(w) {
		return nil
	}
	start := time.Now()
	return func(done, total int) {
		const width = 30
		full := width * done / max(1, total)
		left := time.Since(start) / time.Duration(max(1, done)) * time.Duration(total-done)
		fmt.Fprintf(w, "\r%s [%s%s] %d of %d, about %s left  ", what, strings.Repeat("#", full), strings.Repeat(".", width-full), done, total, left.Round(time.Second))
		if done == total {
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}
