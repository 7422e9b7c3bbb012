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
	"github.com/palimpsest-ai/palimpsest/eval/estimators"
	"github.com/palimpsest-ai/palimpsest/eval/htmlreport"
	"github.com/palimpsest-ai/palimpsest/eval/locomo"
	"github.com/palimpsest-ai/palimpsest/token"
)

// wanted is what a user of eval asked for.
type wanted struct {
	costs, drift, valid bool // instead of recall
	estimators, locomo  bool // the same
	tight, curve        bool
	details             bool
	gaps                string
	split               eval.Split
	budgets             []string
	contenders          []string
	peers               string
	model               token.Model
	around              int
	misses              bool
	asJSON              bool
	html                string
	command             string
}

// measures reports which measures run: those that were named, or recall. A page
// is about recall, cost and drift.
func (w *wanted) measures() (recall, costs, drift bool) {
	named := w.costs || w.drift || w.valid || w.estimators || w.locomo
	page := !named && w.html != ""
	return !named, w.costs || page, w.drift || page
}

func (w *wanted) check(given func(flag string) bool, model string) error {
	recall, costs, drift := w.measures()
	if (w.estimators || w.locomo) && w.html != "" {
		return errors.New("--html: a page has recall, cost, drift and validity; --estimators and --locomo write a table or --json")
	}
	for _, f := range []struct {
		name, of string
		is       bool
	}{
		{"budgets", "recall and --locomo", recall || w.locomo},
		{"peers", "recall", recall},
		{"misses", "recall", recall},
		{"curve", "recall and --cost", recall || costs},
		{"details", "recall and --cost", recall || costs},
		{"contender", "recall, --cost and --drift", recall || costs || drift},
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
	return &eval.Options{Split: w.split, Budgets: w.budgets, Curve: w.curve, Contenders: w.contenders, Peers: strings.Fields(w.peers)}
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
	Drift    *eval.DriftReport    `json:"drift,omitempty"`
	Validity *eval.ValidityReport `json:"validity,omitempty"`
	// Estimators and LoCoMo are asked for by themselves, and on no page.
	Estimators *estimators.Report `json:"estimators,omitempty"`
	LoCoMo     *locomo.Report     `json:"locomo,omitempty"`
	note       string
}

// measure runs what is wanted. What was done before the user broke it off is
// there beside the error.
func (w *wanted) measure(ctx context.Context, set *eval.Set, stderr io.Writer) (measured, error) {
	var m measured
	var err error
	recall, costs, drift := w.measures()
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
		m.without("Cost", err)
	}
	if drift {
		o := &eval.DriftOptions{Split: w.split, Contenders: w.contenders, Progress: progress(stderr, "compacting")}
		m.Drift, err = eval.Drift(ctx, set, o)
		if err != nil && (w.drift || ctx.Err() != nil) {
			return m.broken(stderr, m.Drift != nil, err)
		}
		m.without("Drift", err)
	}
	if w.valid {
		o := &eval.ValidityOptions{Split: w.split, Tight: w.tight, Progress: progress(stderr, "checking")}
		if m.Validity, err = eval.Validity(ctx, set, o); err != nil {
			return m.broken(stderr, m.Validity != nil, err)
		}
	}
	if w.estimators {
		o := &estimators.Options{Split: w.split, Progress: progress(stderr, "counting")}
		if m.Estimators, err = estimators.Measure(ctx, set, o); err != nil {
			return m.broken(stderr, false, err)
		}
	}
	return m, nil
}

// without notes what a page has not, and why.
func (m *measured) without(what string, err error) {
	if err != nil {
		m.note = strings.TrimSpace(fmt.Sprintf("%s %s was not measured: %s.", m.note, what, message(err)))
	}
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
		case m.Drift != nil:
			left = m.Drift.Left
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
		err := htmlreport.Write(&page, &htmlreport.Data{Command: w.command, Note: m.note, Recall: m.Recall, Cost: m.Cost, Drift: m.Drift, Validity: m.Validity})
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
	if m.Drift != nil {
		if err := m.Drift.WriteTable(s.Out); err != nil {
			return err
		}
	}
	if m.Validity != nil {
		if err := m.Validity.WriteTable(s.Out); err != nil {
			return err
		}
	}
	if m.Estimators != nil {
		if err := m.Estimators.WriteTable(s.Out); err != nil {
			return err
		}
	}
	if m.LoCoMo != nil {
		return m.LoCoMo.WriteTable(s.Out)
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
	case measured{Drift: m.Drift, note: m.note}:
		return writeJSON(w, m.Drift)
	case measured{Validity: m.Validity, note: m.note}:
		return writeJSON(w, m.Validity)
	case measured{Estimators: m.Estimators, note: m.note}:
		return writeJSON(w, m.Estimators)
	case measured{LoCoMo: m.LoCoMo, note: m.note}:
		return writeJSON(w, m.LoCoMo)
	}
	return writeJSON(w, m)
}
