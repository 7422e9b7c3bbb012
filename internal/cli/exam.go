package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/budget"
	"github.com/palimpsest-ai/palimpsest/internal/choice"
	"github.com/palimpsest-ai/palimpsest/internal/eval/exam"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/token"
)

// examOptions is what a user of eval asked for about exams.
type examOptions struct {
	write, grade, report bool
	modelWritten         bool
	out                  string
	readings             int
	seed                 uint64
}

func (x *examOptions) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&x.write, "exam", false, "make an exam for readers: prompts of each DIR (history.json.gz, exam.json, own-summary.txt) and questions, in the folder -o OUT")
	f.BoolVar(&x.grade, "exam-grade", false, "put the readers' answers in OUT side by side, for graders")
	f.BoolVar(&x.report, "exam-report", false, "add up the grades in OUT")
	f.BoolVar(&x.modelWritten, "model-written", false, "with --exam: each policy also with summaries that a model writes, as NAME"+modelSuffix+": its requests are written to OUT/requests, and answered in files there")
	f.StringVarP(&x.out, "output", "o", "", "with --exam: write it into the folder `OUT`")
	f.IntVar(&x.readings, "readings", 1, "with --exam: `N` readers for each prompt")
	f.Uint64Var(&x.seed, "seed", 1, "with --exam: the order of the readers' numbers, by `N`")
}

// check reports what does not go together.
func (x *examOptions) check(args []string) error {
	switch {
	case x.write && x.out == "":
		return errors.New("--exam: say where to write it: -o OUT")
	case x.write && (x.readings < 1 || x.readings > 100):
		return fmt.Errorf("--readings %d: want 1 to 100", x.readings)
	case !x.write && len(args) != 1:
		return errors.New("want the folder OUT of one exam")
	}
	return nil
}

// run does one step of an exam.
func (x *examOptions) run(c *cobra.Command, args []string, w *evalOptions, counterName string, s Streams) error {
	switch {
	case x.grade:
		n, err := exam.Sheets(args[0])
		if err != nil {
			return err
		}
		return writeResult(s.Out, c, map[string]int{"sheets": n}, func(p *printer) {
			p.line("%s in %s/graders. Give each folder to a grader; then:\n  palimpsest eval --exam-report %s", plural(n, "sheet"), args[0], shellQuote(args[0]))
		})
	case x.report:
		r, err := exam.Fold(args[0])
		if err != nil {
			return err
		}
		return writeResult(s.Out, c, r, func(p *printer) { _ = r.WriteTable(p.w) }) // Run tells what was not written
	}
	counter, err := token.New(counterName, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	o := &exam.Options{Budgets: w.budgets, Readings: x.readings, Seed: x.seed, Counter: counter, Progress: progress(s.Err, "compacting")}
	asked, err := exam.OpenRequests(filepath.Join(x.out, "requests"))
	if err != nil {
		return err
	}
	for _, name := range x.contenderNames(w.contenders) {
		c, err := newContender(name, counter, asked)
		if err != nil {
			return err
		}
		o.Contenders = append(o.Contenders, c)
	}
	var sessions []*exam.Session
	for _, dir := range args {
		one, err := exam.Open(dir)
		if err != nil {
			return err
		}
		if one.Own == "" && slices.Contains(w.contenders, exam.OwnSummary) {
			return fmt.Errorf("%w: --contender %s: %s has no own-summary.txt", errUsage, exam.OwnSummary, dir)
		}
		sessions = append(sessions, one)
	}
	k, err := exam.Write(c.Context(), x.out, sessions, o)
	if errors.Is(err, exam.ErrWaiting) {
		return asked.Waiting()
	}
	if err != nil {
		return err
	}
	return writeResult(s.Out, c, k, func(p *printer) { x.printNextStep(p, k) })
}

// contenderNames are the names of all contenders, those with a model included.
func (x *examOptions) contenderNames(given []string) []string {
	if len(given) == 0 {
		given = []string{"auto", exam.OwnSummary}
	}
	names := slices.Clone(given)
	if x.modelWritten {
		for _, name := range given {
			if twin := name + modelSuffix; name != exam.OwnSummary && !strings.HasSuffix(name, modelSuffix) && !slices.Contains(names, twin) {
				names = append(names, twin)
			}
		}
	}
	return names
}

// printNextStep prints what was written and what comes next. It names no reader's number: who
// passes this on tells nothing.
func (x *examOptions) printNextStep(p *printer, k *exam.Key) {
	p.line("%s of %s in %s/readers, sizes by %s.", plural(len(k.Readers), "prompt"), plural(len(k.Sessions), "session"), x.out, k.Counter)
	for _, m := range k.Missing {
		p.line("not made: %s at %s, %s: %s", m.Contender, m.Budget, m.Session, m.Why)
	}
	over := 0
	for _, r := range k.Readers {
		if r.Note != "" && r.Reading == 1 {
			p.line("%s at %s, %s: %s", r.Contender, r.Budget, r.Session, r.Note)
		}
		if r.Over && r.Reading == 1 {
			over++
		}
	}
	if over > 0 {
		p.line("over the budget: %s of policies that keep to a size of their own; key.json says which", plural(over, "prompt"))
	}
	p.line("Give each folder to a reader of its own, who writes answers.json into it. key.json\nand what else lies in %s is not for readers. Then:\n  palimpsest eval --exam-grade %s", x.out, shellQuote(x.out))
}

// modelSuffix ends the name of a contender whose summaries a model writes.
const modelSuffix = "+model"

// windowMark stands between a policy and a context window in the name of a contender
// that goes through the session step by step.
const windowMark = "@"

// newContender makes a contender of a policy's name or file, and of one with a model.
func newContender(name string, counter *token.Counter, asked *exam.Requests) (exam.Contender, error) {
	if name == exam.OwnSummary {
		return exam.Contender{Name: name}, nil
	}
	base, modelled := strings.CutSuffix(name, modelSuffix)
	base, size, stepped := strings.Cut(base, windowMark)
	settings, err := choice.Settings(base)
	if err != nil {
		return exam.Contender{}, fmt.Errorf("%w; an exam also knows %s, and each policy as NAME%s or NAME%sWINDOW", err, exam.OwnSummary, modelSuffix, windowMark)
	}
	if stepped {
		window, _, err := budget.Parse(size)
		switch {
		case err != nil:
			return exam.Contender{}, fmt.Errorf("%w: --contender %s: %w", errUsage, name, err)
		case window <= 0 || modelled:
			return exam.Contender{}, fmt.Errorf("%w: --contender %s: want a policy, %s and a context window in tokens, such as auto%s40k", errUsage, name, windowMark, windowMark)
		}
		return exam.Contender{Name: name, Sized: true, Make: stepByStep(base, counter, window)}, nil
	}
	c := exam.Contender{Name: name, Sized: settings.HasOwnForm(), Make: contenderMaker(base, counter, nil)}
	if modelled {
		c.Make, c.Rehearse = contenderMaker(base, counter, asked), c.Make
	}
	return c, nil
}

// contenderMaker compacts as `compact --to text` does, with the model whose answers lie in
// files, or with none. System prompt and tools are left out: they are the same for
// all, and the session did not say them.
func contenderMaker(name string, counter *token.Counter, asked *exam.Requests) exam.Make {
	return func(ctx context.Context, s *exam.Session, budget int) (*exam.Made, error) {
		told := &summaries{By: map[string]int{}}
		o := &choice.Options{Summarizer: policyfile.Extractive}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var model *exam.FileModel
		if asked != nil {
			model = asked.Model(cancel)
			o = &choice.Options{Model: model, OnUsage: told.addUsage}
		}
		// All of it is new each time: it remembers what was said to it.
		chosen, err := choice.Open(name, o)
		if err != nil {
			return nil, err
		}
		config := chosen.Config(counter)
		config.Now = func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) } // the same input gives the same bytes
		r := &resolvedTarget{profile: render.For(textTarget), summaries: told}
		r.profile.Reach = render.Command
		if err := r.setCompactor(chosen, config, told); err != nil {
			return nil, err
		}
		q := palimpsest.Request{Thread: s.Transcript.Thread, Base: &prompt.Prompt{Model: s.Transcript.Model}, Budget: budget, Profile: r.profile}
		res, err := r.compactOnce(ctx, withRecallNote(r.compactor, q, &storeFlag{}))
		if model != nil && model.Failed() != nil {
			return nil, model.Failed()
		}
		if err != nil {
			return nil, plainError{err}
		}
		made := &exam.Made{Prompt: res.Prompt}
		if model != nil {
			made.Note = told.note()
		}
		return made, nil
	}
}

// plainError is an error without the names of the functions it came through: the key and
// the report of an exam tell it to people.
type plainError struct{ error }

func (p plainError) Error() string { return callPrefixes().ReplaceAllString(p.error.Error(), "") }

// Unwrap returns the error as it was.
func (p plainError) Unwrap() error { return p.error }
