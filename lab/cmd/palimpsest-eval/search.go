package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/lab/locomo"
)

// searchCommand measures how well the search finds what questions are about.
func searchCommand(s cli.Streams) *cobra.Command {
	var some string
	var asJSON bool
	c := &cobra.Command{
		Use:   "search FILE.json",
		Short: "Measure how well the search finds what questions are about",
		Long: `Search asks the search of package recall the questions of a file in the form of LoCoMo
(locomo10.json: conversations of numbered and dated sessions, and questions with the turns
that they are about, those without an answer included). A conversation is one thread, a
turn one message. Reported is how often the first hit, or one of the first five, is in a
session that the question is about, and how often it is that turn itself.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			first, last, err := parseRange(some)
			if err != nil {
				return fmt.Errorf("%w: --conversations %s: want a number or a range such as 1-5", setup.ErrUsage, some)
			}
			r, err := locomo.Search(c.Context(), args[0], first, last)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(s.Out)
				e.SetIndent("", "  ")
				return e.Encode(r)
			}
			return r.WriteTable(s.Out)
		},
	}
	c.Flags().StringVar(&some, "conversations", "", "only these conversations, as a `RANGE` such as 1-5")
	c.Flags().BoolVar(&asJSON, "json", false, "write one JSON object")
	return c
}

// parseRange reads "3" or "1-5"; empty is everything.
func parseRange(text string) (first, last int, err error) {
	if text == "" {
		return 1, 0, nil
	}
	from, to, is := strings.Cut(text, "-")
	if !is {
		to = from
	}
	if first, err = strconv.Atoi(from); err == nil {
		last, err = strconv.Atoi(to)
	}
	if err == nil && last == 0 {
		err = strconv.ErrRange
	}
	return first, last, err
}
