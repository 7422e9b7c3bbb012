package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	table "github.com/palimpsest-ai/palimpsest/internal/standing"
	"github.com/palimpsest-ai/palimpsest/lab/standing"
)

// standsCommand measures how well the table of what stands ranks sentences.
func standsCommand(s cli.Streams) *cobra.Command {
	var hand string
	var asJSON bool
	c := &cobra.Command{
		Use:   "stands FILE.jsonl",
		Short: "Measure how well what a person said is ranked by whether it stands",
		Long: `Stands scores sentences and reports how well the scores rank what stands (rules, bans,
preferences, decisions, and what takes one back) before what does not. A line of the file is

  {"lang": "en", "before": "Tabs or spaces?", "text": "tabs", "stands": true}

where before, what the assistant had said, may be missing. A message counts by its highest
clause; it is long with several clauses, or from 140 characters.`,
		RunE: func(_ *cobra.Command, args []string) error {
			var all []standing.Labelled
			var err error
			switch {
			case len(args) == 1 && hand == "":
				all, err = standing.ReadLines(args[0])
			case len(args) == 0 && hand != "":
				all, err = standing.ReadFolder(hand)
			default:
				err = fmt.Errorf("%w: %w", setup.ErrUsage, errors.New("want one FILE.jsonl, or --hand DIR"))
			}
			if err != nil {
				return err
			}
			report := standing.Measure(standing.Scores(table.Learned(), all))
			if asJSON {
				e := json.NewEncoder(s.Out)
				e.SetIndent("", "  ")
				return e.Encode(report)
			}
			_, err = io.WriteString(s.Out, report.Text())
			return err
		},
	}
	c.Flags().StringVar(&hand, "hand", "", "read the *.txt files of `DIR` instead, in the form of lab/standing/sentences")
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return c
}
