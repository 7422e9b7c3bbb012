package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest/eval"
	"github.com/palimpsest-ai/palimpsest/eval/htmlreport"
	"github.com/palimpsest-ai/palimpsest/token"
)

// wanted is what a user of eval asked for.
type wanted struct {
	costs, valid bool // instead of recall
	tight, curve bool
	details      bool
	gaps         string
	split        eval.Split
	budgets      []string
	contenders   []string
	model        token.Model
	around       int
	misses       bool
	asJSON       bool
	html         string
	command      string
}

// measures reports which measures run: those that were named, or recall. A page
// is about recall and cost.
func (w *wanted) measures() (recall, costs bool) {
	named := w.costs || w.valid
	return !named, w.costs || !named && w.html != ""
}

func (w *wanted) check(given func(flag string) bool, model string) error {
	recall, costs := w.measures()
	for _, f := range []struct {
		name, of string
		is       bool
	}{
		{"budgets", "recall", recall},
		{"misses", "recall", recall},
		{"curve", "recall and --cost", recall || costs},
		{"details", "recall and --cost", recall || costs},
		{"contender", "recall and --cost", recall || costs},
		{"model", "--cost", costs},
		{"around", "--cost", costs},
		{"gaps", "--cost", costs},
		{"tight", "--validity", w.valid},
	} {
		if given(f.name) && !f.is {
			return fmt.Errorf("--%s does nothing here: it is for %s", f.name, f.of)
		}
	}
	if w.html != "" && w.html != "-" {
		// Not after an hour of measuring.
		if info, err := os.Stat(filepath.Dir(w.html)); err != nil || !info.IsDir() {
			return fmt.Errorf("--html %s: there is no folder %s", w.html, filepath.Dir(w.html))
		}
	}
	if w.curve && recall && len(w.budgets) > 0 {
		return errors.New("--curve has budgets of its own; leave --budgets or --curve out")
	}
	if recall && costs && len(w.contenders) > 0 {
		return errors.New("--contender: a page of all measures has all of them; name a measure such as --cost")
	}
	if recall {
		if err := w.recall().Check(); err != nil {
			return err
		}
	}
	if costs {
		if err := w.costOptions().Check(); err != nil {
			return err
		}
	}
	var err error
	if w.model, err = token.Models().Find(model); err != nil && costs {
		return fmt.Errorf("--model: %w", err)
	}
	return nil
}

func (w *wanted) recall() *eval.Options {
	return &eval.Options{Split: w.split, Budgets: w.budgets, Curve: w.curve, Contenders: w.contenders}
}

// costOptions are those of cost. A page has lines of recall over cost.
func (w *wanted) costOptions() *eval.CostOptions {
	return &eval.CostOptions{Split: w.split, Model: &w.model, Around: w.around, Gaps: w.gaps, Curve: w.curve || w.html != "", Contenders: w.contenders}
}

// commandLine is the flags and arguments of a command as a user would type them.
func commandLine(c *cobra.Command, args []string) []string {
	words := slices.Clone(args)
	c.Flags().Visit(func(f *pflag.Flag) {
		word := "--" + f.Name
		if f.Value.Type() != "bool" {
			word += " " + strings.Trim(f.Value.String(), "[]")
		}
		words = append(words, word)
	})
	for i, word := range words {
		if strings.ContainsAny(word, "\t\n\"'`$\\*?;&|<>()") {
			words[i] = strconv.Quote(word)
		}
	}
	return words
}

// measured is what a run of eval found.
type measured struct {
	Recall   *eval.Report         `json:"recall,omitempty"`
	Cost     *eval.CostReport     `json:"cost,omitempty"`
	Validity *eval.ValidityReport `json:"validity,omitempty"`
	note     string
}

// measure runs what is wanted. What was done before the user broke it off is
// there beside the error.
func (w *wanted) measure(ctx context.Context, set *eval.Set, stderr io.Writer) (measured, error) {
	var m measured
	var err error
	recall, costs := w.measures()
	if recall {
		o := w.recall()
		o.Progress = progress(stderr, "measuring")
		if m.Recall, err = eval.Run(ctx, set, o); err != nil {
			return m.broken(stderr, m.Recall != nil, err)
		}
	}
	if costs {
		o := w.costOptions()
		o.Progress = progress(stderr, "billing")
		m.Cost, err = eval.Cost(ctx, set, o)
		if err != nil && (w.costs || ctx.Err() != nil) {
			return m.broken(stderr, m.Cost != nil, err)
		}
		if err != nil { // a page does without it
			m.note = fmt.Sprintf("Cost was not measured: %s.", message(err))
		}
	}
	if w.valid {
		o := &eval.ValidityOptions{Split: w.split, Tight: w.tight, Progress: progress(stderr, "checking")}
		if m.Validity, err = eval.Validity(ctx, set, o); err != nil {
			return m.broken(stderr, m.Validity != nil, err)
		}
	}
	return m, nil
}

// broken is what was measured before the error. Where there is something, the
// output says that it is not all.
func (m measured) broken(stderr io.Writer, some bool, err error) (measured, error) {
	if terminal(stderr) {
		wipe(stderr)
	}
	if some {
		left := 0
		switch {
		case m.Validity != nil:
			left = m.Validity.Left
		case m.Cost != nil:
			left = m.Cost.Left
		case m.Recall != nil:
			left = m.Recall.Left
		}
		m.note = strings.TrimSpace(m.note + fmt.Sprintf(" Broken off: %s not measured; the figures are about the others alone.", plural(left, "conversation")))
	}
	return m, err
}

// write writes what was measured, also when it is not all.
func (m *measured) write(s Streams, w *wanted) error {
	if *m == (measured{note: m.note}) {
		return nil
	}
	if w.html != "" {
		var page bytes.Buffer
		err := htmlreport.Write(&page, &htmlreport.Data{Command: w.command, Note: m.note, Recall: m.Recall, Cost: m.Cost, Validity: m.Validity})
		if err != nil {
			return err
		}
		if err := write(w.html, page.Bytes(), s.Out); err != nil || w.html == "-" {
			return err
		}
	}
	if m.Recall != nil && !w.misses {
		m.Recall.Misses = nil
	}
	if w.asJSON {
		return m.json(s.Out)
	}
	if m.note != "" {
		fmt.Fprintln(s.Out, m.note)
	}
	if m.Recall != nil {
		if err := m.Recall.WriteTable(s.Out, w.details); err != nil {
			return err
		}
		if w.misses {
			if err := m.Recall.WriteMisses(s.Out); err != nil {
				return err
			}
		}
	}
	if m.Cost != nil {
		if err := m.Cost.WriteTable(s.Out, w.details); err != nil {
			return err
		}
	}
	if m.Validity != nil {
		return m.Validity.WriteTable(s.Out)
	}
	return nil
}

// json writes one object: that of the measure, or of several by name.
func (m *measured) json(w io.Writer) error {
	switch *m {
	case measured{Recall: m.Recall, note: m.note}:
		return writeJSON(w, m.Recall)
	case measured{Cost: m.Cost, note: m.note}:
		return writeJSON(w, m.Cost)
	case measured{Validity: m.Validity, note: m.note}:
		return writeJSON(w, m.Validity)
	}
	return writeJSON(w, m)
}
