// Command lab runs the research that Palimpsest was made with and that users of
// their own sessions do not need: README.md says what each measure is and what it
// found.
//
//	cd lab
//	go run . drift ../../shared/transcripts --split dev
//	go run . estimators ../../shared/transcripts
//	go run . peers ../../shared/transcripts --split test
//	go run . locomo locomo10.json
//	go run . learn ../../shared/transcripts > ../summarize/salience_table.go
//	go run . standing standing/sentences -o ../internal/standing/table.bin
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/lab/drift"
	"github.com/palimpsest-ai/palimpsest/lab/estimators"
	"github.com/palimpsest-ai/palimpsest/lab/eval"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/lab/learn"
	"github.com/palimpsest-ai/palimpsest/lab/locomo"
	"github.com/palimpsest-ai/palimpsest/lab/peers"
	"github.com/palimpsest-ai/palimpsest/lab/progress"
	"github.com/palimpsest-ai/palimpsest/lab/standing"
	"github.com/palimpsest-ai/palimpsest/token"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		stop()
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "lab",
		Short:         "Research on compaction, over recorded conversations",
		SilenceUsage:  true,
		SilenceErrors: false,
	}
	root.AddCommand(driftCommand(), estimatorsCommand(), peersCommand(), locomoCommand(), learnCommand(), standingCommand())
	return root
}

// measuring is what all measures take.
type measuring struct {
	split, counter string
	asJSON         bool
}

func (m *measuring) flags(c *cobra.Command) *cobra.Command {
	c.Args = cobra.MinimumNArgs(1)
	c.Flags().StringVar(&m.split, "split", "all", "measure on `dev`, test or all")
	c.Flags().StringVar(&m.counter, "counter", "o200k", "count tokens with `COUNTER`")
	c.Flags().BoolVar(&m.asJSON, "json", false, "write one JSON object")
	return c
}

// load reads conversations; what could not be read is told.
func (m *measuring) load(c *cobra.Command, paths []string) (*references.Set, error) {
	switch references.Split(m.split) {
	case references.All, references.Dev, references.Test:
	default:
		return nil, fmt.Errorf("--split %s: want dev, test or all", m.split)
	}
	counter, err := token.New(m.counter, nil)
	if err != nil {
		return nil, err
	}
	set, err := references.Load(c.Context(), paths, counter, progress.To(c.ErrOrStderr(), "reading"))
	if err != nil {
		return nil, err
	}
	for _, skipped := range set.Skipped {
		fmt.Fprintln(c.ErrOrStderr(), "skipped:", skipped)
	}
	return set, nil
}

// write writes a report as a table or as JSON.
func (m *measuring) write(c *cobra.Command, report any, table func(io.Writer) error) error {
	if !m.asJSON {
		return table(c.OutOrStdout())
	}
	e := json.NewEncoder(c.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(report)
}

func driftCommand() *cobra.Command {
	var m measuring
	var contenders []string
	c := m.flags(&cobra.Command{
		Use:   "drift DIR|FILE ...",
		Short: "What is left of facts after twenty compactions in a row",
		RunE: func(c *cobra.Command, args []string) error {
			set, err := m.load(c, args)
			if err != nil {
				return err
			}
			r, err := drift.Measure(c.Context(), set, &drift.Options{Split: references.Split(m.split), Contenders: contenders, Progress: progress.To(c.ErrOrStderr(), "measuring")})
			if r == nil {
				return err
			}
			if werr := m.write(c, r, r.WriteTable); werr != nil {
				return werr
			}
			return err
		},
	})
	c.Flags().StringArrayVar(&contenders, "contender", nil, "run only the policy `NAME`; may be given again")
	return c
}

func estimatorsCommand() *cobra.Command {
	var m measuring
	return m.flags(&cobra.Command{
		Use:   "estimators DIR|FILE ...",
		Short: "Estimates of token counts against the exact ones, by class of content",
		RunE: func(c *cobra.Command, args []string) error {
			set, err := m.load(c, args)
			if err != nil {
				return err
			}
			r, err := estimators.Measure(c.Context(), set, &estimators.Options{Split: references.Split(m.split), Progress: progress.To(c.ErrOrStderr(), "measuring")})
			if err != nil {
				return err
			}
			return m.write(c, r, r.WriteTable)
		},
	})
}

func peersCommand() *cobra.Command {
	var m measuring
	var program string
	var budgets, contenders []string
	var curve, details bool
	c := m.flags(&cobra.Command{
		Use:   "peers DIR|FILE ...",
		Short: "Recall of other libraries, by their own code, beside ours",
		RunE: func(c *cobra.Command, args []string) error {
			o := &eval.Options{Split: references.Split(m.split), Budgets: budgets, Curve: curve, Contenders: contenders, Progress: progress.To(c.ErrOrStderr(), "measuring")}
			if err := o.Check(); err != nil {
				return err
			}
			set, err := m.load(c, args)
			if err != nil {
				return err
			}
			p, err := peers.Start(c.Context(), strings.Fields(program), set.Counter)
			if err != nil {
				return err
			}
			o.Others = p.Contenders()
			r, err := eval.Run(c.Context(), set, o)
			if stopped := p.Stop(); err == nil {
				err = stopped
			}
			if r == nil {
				return err
			}
			r.Misses = nil
			if werr := m.write(c, r, func(w io.Writer) error { return r.WriteTable(w, details) }); werr != nil {
				return werr
			}
			return err
		},
	})
	c.Flags().StringVar(&program, "program", "node peers/serve.mjs", "the `PROGRAM` that has the other contenders")
	c.Flags().StringSliceVar(&budgets, "budgets", nil, "fit into these `BUDGETS`, such as 8k or 20% (default 8k,16k,20%,10%)")
	c.Flags().StringArrayVar(&contenders, "contender", nil, "of ours run only `NAME`, and those that scores refer to; may be given again")
	c.Flags().BoolVar(&curve, "curve", false, "many budgets, and the area under the curve")
	c.Flags().BoolVar(&details, "details", false, "show all that was measured")
	return c
}

func locomoCommand() *cobra.Command {
	var counterName string
	var m measuring
	var budgets []string
	c := &cobra.Command{
		Use:   "locomo FILE ...",
		Short: "What is left of the turns that the answers of LoCoMo's questions stand in",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			counter, err := token.New(counterName, nil)
			if err != nil {
				return err
			}
			r, err := locomo.Measure(c.Context(), args, &locomo.Options{Counter: counter, Budgets: budgets, Progress: progress.To(c.ErrOrStderr(), "measuring")})
			if err != nil {
				return err
			}
			return m.write(c, r, r.WriteTable)
		},
	}
	c.Flags().StringVar(&counterName, "counter", "o200k", "count tokens with `COUNTER`")
	c.Flags().StringSliceVar(&budgets, "budgets", nil, "fit into these `BUDGETS`, such as 8k or 20% (default 40%,20%,10%)")
	c.Flags().BoolVar(&m.asJSON, "json", false, "write one JSON object")
	return c
}

func learnCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "learn DIR|FILE ...",
		Short: "Learn the table of chances of package summarize, on the dev split, and write it as Go",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			set, err := references.Load(c.Context(), args, nil, progress.To(c.ErrOrStderr(), "reading"))
			if err != nil {
				return err
			}
			odds, err := learn.Learn(c.Context(), set, references.Dev)
			if err != nil {
				return err
			}
			source, err := odds.Source()
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), source)
			return err
		},
	}
}

func standingCommand() *cobra.Command {
	var out string
	var folds bool
	c := &cobra.Command{
		Use:   "standing DIR",
		Short: "Learn the table of what stands from labelled sentences, or measure it hand by hand",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			all, err := standing.ReadFolder(args[0])
			if err != nil {
				return err
			}
			pairs, err := standing.ReadPairs(filepath.Join(args[0], "../pairs"))
			if err != nil {
				return err
			}
			if folds {
				sentences, joined := standing.Folds(all)
				_, err = fmt.Fprintf(c.OutOrStdout(), "%s\nmessages of four sentences, of which at most one stands\n\n%s\n%s\n%s", standing.Measure(sentences).Text(), standing.Measure(joined).Text(), standing.Thresholds(sentences), standing.MeasureChanges(all, pairs))
				return err
			}
			if out == "" {
				return errors.New("say where to write the table (-o FILE), or --folds")
			}
			return os.WriteFile(out, []byte(standing.Train(all, pairs)), 0o644)
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "write the table to `FILE`")
	c.Flags().BoolVar(&folds, "folds", false, "measure instead: each hand by a table learned from the others")
	return c
}
