package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/lab/eval"
	"github.com/palimpsest-ai/palimpsest/lab/eval/htmlreport"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/lab/progress"
	"github.com/palimpsest-ai/palimpsest/token"
)

// evalOptions are the flags of eval, but for exams.
type evalOptions struct {
	costs, valid bool // instead of recall
	tight, curve bool
	details      bool
	gaps         string
	split        references.Split
	counterName  string
	modelName    string
	budgets      []string
	contenders   []string
	model        token.Model // of modelName
	around       string
	baseTokens   int // of around
	misses       bool
	html         string
	command      string
}

// selectedMeasures reports which measures run: those that are named, else recall. A page
// has recall and cost.
func (w *evalOptions) selectedMeasures() (recall, costs bool) {
	named := w.costs || w.valid
	return !named, w.costs || !named && w.html != ""
}

// The measures and the steps of exams, as flags name them.
const (
	recallMeasure, costMeasure, validityMeasure = "recall", "--cost", "--validity"
	examStep, examGradeStep, examReportStep     = "--exam", "--exam-grade", "--exam-report"
)

// flagUses says which measures a flag is for; a flag that is missing here is for all.
var flagUses = map[string][]string{
	"budgets":       {recallMeasure, examStep},
	"misses":        {recallMeasure},
	"curve":         {recallMeasure, costMeasure},
	"details":       {recallMeasure, costMeasure},
	"contender":     {recallMeasure, costMeasure, examStep},
	"counter":       {recallMeasure, costMeasure, validityMeasure, examStep},
	"html":          {recallMeasure, costMeasure, validityMeasure},
	"split":         {recallMeasure, costMeasure, validityMeasure},
	"cost":          {recallMeasure, costMeasure, validityMeasure},
	"validity":      {recallMeasure, costMeasure, validityMeasure},
	"model":         {costMeasure},
	"around":        {costMeasure},
	"gaps":          {costMeasure},
	"tight":         {validityMeasure},
	"output":        {examStep},
	"readings":      {examStep},
	"seed":          {examStep},
	"model-written": {examStep},
}

// checkFlags reports whether the command is about an exam. The error names flags that do not
// go together.
func checkFlags(f *pflag.FlagSet) (exams bool, err error) {
	var asked []string
	for _, of := range []string{examStep, examGradeStep, examReportStep, costMeasure, validityMeasure} {
		if on, _ := f.GetBool(strings.TrimPrefix(of, "--")); on {
			asked = append(asked, of)
		}
	}
	exams = len(asked) > 0 && strings.HasPrefix(asked[0], examStep)
	if exams && len(asked) > 1 && strings.HasPrefix(asked[1], examStep) {
		return exams, errors.New("--exam, --exam-grade and --exam-report are separate steps; name one")
	}
	if exams {
		asked = asked[:1]
	} else if len(asked) == 0 {
		asked = []string{recallMeasure}
		if f.Lookup("html").Value.String() != "" {
			asked = append(asked, costMeasure)
		}
	}
	f.Visit(func(given *pflag.Flag) {
		of, some := flagUses[given.Name]
		if err == nil && some && !slices.ContainsFunc(of, func(of string) bool { return slices.Contains(asked, of) }) {
			err = fmt.Errorf("--%s has no effect here: it is for %s", given.Name, strings.Join(of, ", "))
		}
	})
	return exams, err
}

func (w *evalOptions) check() error {
	recall, costs := w.selectedMeasures()
	if !slices.Contains([]references.Split{references.All, references.Dev, references.Test}, w.split) {
		return fmt.Errorf("--split %s: want dev, test or all", string(w.split))
	}
	if w.html != "" && w.html != "-" {
		// Better now than after an hour of measuring.
		if info, err := os.Stat(filepath.Dir(w.html)); err != nil || !info.IsDir() {
			return fmt.Errorf("--html %s: there is no folder %s", w.html, filepath.Dir(w.html))
		}
	}
	if w.curve && recall && len(w.budgets) > 0 {
		return errors.New("--curve has its own budgets; leave --budgets or --curve out")
	}
	if recall && costs && len(w.contenders) > 0 {
		return errors.New("--contender: a page of all measures has all of them; name a measure such as --cost")
	}
	if recall {
		if err := w.recallOptions().Check(); err != nil {
			return err
		}
	}
	if w.around != "" {
		var err error
		if w.baseTokens, err = config.ParseTokens(w.around); err != nil || w.baseTokens < 1 {
			return fmt.Errorf("--around %s: want a number of tokens above 0, such as 16000 or 16k", w.around)
		}
	}
	if costs {
		if err := w.costOptions().Check(); err != nil {
			return err
		}
	}
	var err error
	if w.model, err = token.Models().Find(w.modelName); err != nil && costs {
		return fmt.Errorf("--model: %w", err)
	}
	return nil
}

func (w *evalOptions) recallOptions() *eval.Options {
	return &eval.Options{Split: w.split, Budgets: w.budgets, Curve: w.curve, Contenders: w.contenders}
}

// costOptions include the curve for a page.
func (w *evalOptions) costOptions() *eval.CostOptions {
	return &eval.CostOptions{Split: w.split, Model: &w.model, Around: w.baseTokens, Gaps: w.gaps, Curve: w.curve || w.html != "", Contenders: w.contenders}
}

// commandLine returns the arguments and flags of a command as a user would type them.
func commandLine(c *cobra.Command, args []string) []string {
	var words []string
	for _, arg := range args {
		words = append(words, quoted(arg))
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		words = append(words, "--"+f.Name)
		if f.Value.Type() != "bool" {
			words = append(words, quoted(strings.Trim(f.Value.String(), "[]")))
		}
	})
	return words
}

// quoted quotes a word for a shell if it needs it.
func quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'`$\\*?;&|<>()") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// evalResult holds the reports of one run of eval.
type evalResult struct {
	Recall   *eval.Report         `json:"recall,omitempty"`
	Cost     *eval.CostReport     `json:"cost,omitempty"`
	Validity *eval.ValidityReport `json:"validity,omitempty"`
	note     string
}

// measure runs the selected measures. On an error it returns what was measured so far.
func (w *evalOptions) measure(ctx context.Context, set *references.Set, stderr io.Writer) (m evalResult, err error) {
	defer func() {
		if err != nil {
			m.noteInterruption(stderr)
		}
	}()
	recall, costs := w.selectedMeasures()
	if recall {
		o := w.recallOptions()
		o.Progress = progress.To(stderr, "measuring")
		if m.Recall, err = eval.Run(ctx, set, o); err != nil {
			return m, err
		}
	}
	if costs {
		o := w.costOptions()
		o.Progress = progress.To(stderr, "billing")
		m.Cost, err = eval.Cost(ctx, set, o)
		if err != nil && (w.costs || ctx.Err() != nil) {
			return m, err
		}
		if err != nil { // a page does without it
			m.note = fmt.Sprintf("Cost was not measured: %s.", cli.ErrorText(err))
		}
	}
	if w.valid {
		o := &eval.ValidityOptions{Split: w.split, Tight: w.tight, Progress: progress.To(stderr, "checking")}
		if m.Validity, err = eval.Validity(ctx, set, o); err != nil {
			return m, err
		}
	}
	return m, nil
}

// noteInterruption says how much is missing from the last measure.
func (m *evalResult) noteInterruption(stderr io.Writer) {
	progress.Clear(stderr)
	missing := 0
	switch {
	case m.Validity != nil:
		missing = m.Validity.Left
	case m.Cost != nil:
		missing = m.Cost.Left
	case m.Recall != nil:
		missing = m.Recall.Left
	}
	if missing > 0 {
		m.note = strings.TrimSpace(m.note + fmt.Sprintf(" Interrupted: %s not measured; the figures are about the others alone.", clip.Count(missing, "conversation")))
	}
}

// write writes what was measured, even if it is incomplete.
func (m *evalResult) write(s cli.Streams, c *cobra.Command, w *evalOptions) error {
	if m.Recall == nil && m.Cost == nil && m.Validity == nil {
		return nil
	}
	if w.html != "" {
		var page bytes.Buffer
		err := htmlreport.Write(&page, &htmlreport.Data{Command: w.command, Note: m.note, Recall: m.Recall, Cost: m.Cost, Validity: m.Validity})
		if err != nil {
			return err
		}
		if err := cli.WriteOutput(w.html, page.Bytes(), s.Out); err != nil || w.html == "-" {
			return err
		}
	}
	if m.Recall != nil && !w.misses {
		m.Recall.Misses = nil
	}
	return writeResult(s.Out, c, m.jsonValue(), func(to io.Writer) error { return m.writeTables(to, w) })
}

// writeResult writes what was found: as one JSON value with --json, else in words.
func writeResult(to io.Writer, c *cobra.Command, found any, words func(io.Writer) error) error {
	if asJSON, _ := c.Flags().GetBool("json"); asJSON {
		return json.NewEncoder(to).Encode(found)
	}
	return words(to)
}

func (m *evalResult) writeTables(to io.Writer, w *evalOptions) (err error) {
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

// jsonValue is the report of a single measure, or several reports by name.
func (m *evalResult) jsonValue() any {
	switch {
	case m.Cost == nil && m.Validity == nil:
		return m.Recall
	case m.Recall == nil && m.Validity == nil:
		return m.Cost
	case m.Recall == nil && m.Cost == nil:
		return m.Validity
	}
	return m
}
