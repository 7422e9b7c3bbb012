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
	"time"

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
	html         string
	command      string
}

// measures reports which measures run: those that were named, or recall. A page
// is about recall and cost.
func (w *wanted) measures() (recall, costs bool) {
	named := w.costs || w.valid
	return !named, w.costs || !named && w.html != ""
}

// The measures and the steps of exams, as flags name them.
const (
	ofRecall, ofCost, ofValidity    = "recall", "--cost", "--validity"
	ofExam, ofExamGrade, ofExamFold = "--exam", "--exam-grade", "--exam-report"
)

// goesWith says what a flag is for; one that is not here is for everything.
var goesWith = map[string][]string{
	"budgets":       {ofRecall, ofExam},
	"misses":        {ofRecall},
	"curve":         {ofRecall, ofCost},
	"details":       {ofRecall, ofCost},
	"contender":     {ofRecall, ofCost, ofExam},
	"counter":       {ofRecall, ofCost, ofValidity, ofExam},
	"html":          {ofRecall, ofCost, ofValidity},
	"split":         {ofRecall, ofCost, ofValidity},
	"cost":          {ofRecall, ofCost, ofValidity},
	"validity":      {ofRecall, ofCost, ofValidity},
	"model":         {ofCost},
	"around":        {ofCost},
	"gaps":          {ofCost},
	"tight":         {ofValidity},
	"output":        {ofExam},
	"readings":      {ofExam},
	"seed":          {ofExam},
	"model-written": {ofExam},
}

// checkFlags reports whether an exam is asked for, and what does not go together.
func checkFlags(f *pflag.FlagSet) (exams bool, err error) {
	var asked []string
	for _, of := range []string{ofExam, ofExamGrade, ofExamFold, ofCost, ofValidity} {
		if on, _ := f.GetBool(strings.TrimPrefix(of, "--")); on {
			asked = append(asked, of)
		}
	}
	exams = len(asked) > 0 && strings.HasPrefix(asked[0], ofExam)
	if exams && len(asked) > 1 && strings.HasPrefix(asked[1], ofExam) {
		return exams, errors.New("--exam, --exam-grade and --exam-report come one after the other; name one")
	}
	if exams {
		asked = asked[:1]
	} else if len(asked) == 0 {
		asked = []string{ofRecall}
		if f.Lookup("html").Value.String() != "" {
			asked = append(asked, ofCost)
		}
	}
	f.Visit(func(given *pflag.Flag) {
		of, some := goesWith[given.Name]
		if err == nil && some && !slices.ContainsFunc(of, func(of string) bool { return slices.Contains(asked, of) }) {
			err = fmt.Errorf("--%s does nothing here: it is for %s", given.Name, series(of, "and"))
		}
	})
	return exams, err
}

func (w *wanted) check(model string) error {
	recall, costs := w.measures()
	if !slices.Contains([]eval.Split{eval.All, eval.Dev, eval.Test}, w.split) {
		return fmt.Errorf("--split %s: want dev, test or all", string(w.split))
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
func (m *measured) write(s Streams, c *cobra.Command, w *wanted) error {
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
	var failed error
	err := tell(s.Out, c, m.found(), func(p *printer) { failed = m.words(p.w, w) })
	return errors.Join(err, failed)
}

// words writes tables.
func (m *measured) words(to io.Writer, w *wanted) (err error) {
	if m.note != "" {
		fmt.Fprintln(to, m.note)
	}
	if m.Recall != nil {
		err = m.Recall.WriteTable(to, w.details)
	}
	if m.Recall != nil && w.misses && err == nil {
		err = m.Recall.WriteMisses(to)
	}
	if m.Cost != nil && err == nil {
		err = m.Cost.WriteTable(to, w.details)
	}
	if m.Validity != nil && err == nil {
		err = m.Validity.WriteTable(to)
	}
	return err
}

// found is what --json writes: what a measure has found, or several by name.
func (m *measured) found() any {
	switch *m {
	case measured{Recall: m.Recall, note: m.note}:
		return m.Recall
	case measured{Cost: m.Cost, note: m.note}:
		return m.Cost
	case measured{Validity: m.Validity, note: m.note}:
		return m.Validity
	}
	return m
}

// progress draws a bar with the time left, where the stream is a terminal.
func progress(w io.Writer, what string) eval.Progress {
	if !terminal(w) {
		return nil
	}
	return bar(w, what, time.Now)
}

// bar draws over its own line, and wipes it away at the end.
func bar(w io.Writer, what string, now func() time.Time) eval.Progress {
	start := now()
	return func(done, total int) {
		if done >= total {
			wipe(w)
			return
		}
		const width = 20 // all of it fits into 60 columns
		full := width * done / max(1, total)
		left := now().Sub(start) / time.Duration(max(1, done)) * time.Duration(total-done)
		fmt.Fprintf(w, "\r%s [%s%s] %d of %d, about %s left\x1b[K", what, strings.Repeat("#", full), strings.Repeat(".", width-full), done, total, left.Round(time.Second))
	}
}

// wipe takes a bar away, so that what follows begins a line.
func wipe(w io.Writer) { fmt.Fprint(w, "\r\x1b[K") }
