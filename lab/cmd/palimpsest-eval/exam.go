package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/lab/budget"
	"github.com/palimpsest-ai/palimpsest/lab/eval/exam"
	"github.com/palimpsest-ai/palimpsest/lab/progress"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// examOptions are the flags of eval for exams.
type examOptions struct {
	write, grade, report bool
	modelWritten         bool
	out                  string
	readings             int
	seed                 uint64
}

func (x *examOptions) addFlags(f *pflag.FlagSet) {
	f.BoolVar(&x.write, "exam", false, "make an exam for readers: prompts of each DIR (history.json.gz, exam.json, own-summary.txt) and questions, in the folder -o OUT")
	f.BoolVar(&x.grade, "exam-grade", false, "put the answers of the readers in OUT side by side, for graders")
	f.BoolVar(&x.report, "exam-report", false, "add up the grades in OUT")
	f.BoolVar(&x.modelWritten, "model-written", false, "with --exam: each policy also with summaries that a model writes, as NAME"+modelSuffix+": its requests are written to OUT/requests, and answered in files there")
	f.StringVarP(&x.out, "output", "o", "", "with --exam: write it into the folder `OUT`")
	f.IntVar(&x.readings, "readings", 1, "with --exam: `N` readers for each prompt")
	f.Uint64Var(&x.seed, "seed", 1, "with --exam: the order of the readers' numbers, by `N`")
}

// check returns an error for flags that do not go together.
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
func (x *examOptions) run(c *cobra.Command, args []string, w *evalOptions, s cli.Streams) error {
	switch {
	case x.grade:
		n, err := exam.Sheets(args[0])
		if err != nil {
			return err
		}
		return writeResult(s.Out, c, map[string]int{"sheets": n}, func(to io.Writer) error {
			_, err := fmt.Fprintf(to, "%s in %s/graders. Give each folder to a grader; then:\n  palimpsest-eval --exam-report %s\n", clip.Count(n, "sheet"), args[0], quoted(args[0]))
			return err
		})
	case x.report:
		r, err := exam.Fold(args[0])
		if err != nil {
			return err
		}
		return writeResult(s.Out, c, r, r.WriteTable)
	}
	if !c.Flags().Changed("counter") {
		w.counterName = examCounter
	}
	counter, err := token.New(w.counterName, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", setup.ErrUsage, err)
	}
	o := &exam.Options{Budgets: w.budgets, Readings: x.readings, Seed: x.seed, Counter: counter, Progress: progress.To(s.Err, "compacting")}
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
			return fmt.Errorf("%w: --contender %s: %s has no own-summary.txt", setup.ErrUsage, exam.OwnSummary, dir)
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
	return writeResult(s.Out, c, k, func(to io.Writer) error { return x.writeNextStep(to, k) })
}

// contenderNames are the names of all contenders, including those whose summaries a model
// writes.
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

// writeNextStep says what was written and what to do next. It names no reader's number, so
// that the output can be passed on.
func (x *examOptions) writeNextStep(to io.Writer, k *exam.Key) error {
	fmt.Fprintf(to, "%s of %s in %s/readers, sizes by %s.\n", clip.Count(len(k.Readers), "prompt"), clip.Count(len(k.Sessions), "session"), x.out, k.Counter)
	for _, m := range k.Missing {
		fmt.Fprintf(to, "not made: %s at %s, %s: %s\n", m.Contender, m.Budget, m.Session, m.Why)
	}
	over := 0
	for _, r := range k.Readers {
		if r.Note != "" && r.Reading == 1 {
			fmt.Fprintf(to, "%s at %s, %s: %s\n", r.Contender, r.Budget, r.Session, r.Note)
		}
		if r.Over && r.Reading == 1 {
			over++
		}
	}
	if over > 0 {
		fmt.Fprintf(to, "over the budget: %s of policies with a size of their own; key.json says which\n", clip.Count(over, "prompt"))
	}
	_, err := fmt.Fprintf(to, "Give each folder to its own reader, who writes answers.json into it. key.json and the\nother files in %s are not for readers. Then:\n  palimpsest-eval --exam-grade %s\n", x.out, quoted(x.out))
	return err
}

// modelSuffix ends the name of a contender whose summaries a model writes.
const modelSuffix = "+model"

// windowMark separates policy and context window in the name of a contender that goes
// through the session step by step.
const windowMark = "@"

// recallSuffix ends the name of a contender whose readers may look up what was removed.
const recallSuffix = "+recall"

// newContender returns the contender of a name: own-summary, or a policy's name or file with
// optional suffixes.
func newContender(name string, counter *token.Counter, asked *exam.Requests) (exam.Contender, error) {
	if name == exam.OwnSummary {
		return exam.Contender{Name: name}, nil
	}
	base, looks := strings.CutSuffix(name, recallSuffix)
	base, modelled := strings.CutSuffix(base, modelSuffix)
	base, size, stepped := strings.Cut(base, windowMark)
	settings, err := setup.Settings(base, nil)
	if err != nil {
		return exam.Contender{}, fmt.Errorf("%w; an exam also knows %s, and each policy as NAME%s, NAME%s or NAME%sWINDOW", err, exam.OwnSummary, modelSuffix, recallSuffix, windowMark)
	}
	if stepped {
		window, _, err := budget.Parse(size)
		switch {
		case err != nil:
			return exam.Contender{}, fmt.Errorf("%w: --contender %s: %w", setup.ErrUsage, name, err)
		case window <= 0 || modelled || looks:
			return exam.Contender{}, fmt.Errorf("%w: --contender %s: want a policy, %s and a context window in tokens, such as auto%s40k", setup.ErrUsage, name, windowMark, windowMark)
		}
		return exam.Contender{Name: name, Sized: true, Make: compactStepByStep(base, counter, window)}, nil
	}
	c := exam.Contender{Name: name, Sized: settings.HasOwnForm(), Make: compactOnce(base, counter, nil, looks)}
	if modelled {
		c.Make, c.Rehearse = compactOnce(base, counter, asked, looks), c.Make
	}
	return c, nil
}

// examTime is the clock of exams, so that the same input gives the same bytes.
func examTime() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func examProfile() render.Profile {
	p := render.For("text")
	p.Reach = render.Command
	return p
}

// compactOnce compacts a session like `compact --to text`, with the model whose answers are
// in files, or with none. It leaves out system prompt and tools: they are the same for all
// contenders. With looks, its readers get a store of the session.
func compactOnce(policy string, counter *token.Counter, asked *exam.Requests, looks bool) exam.Make {
	return func(ctx context.Context, s *exam.Session, budget int) (*exam.Made, error) {
		o := &setup.Options{Summarizer: policyfile.Extractive}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var model *exam.FileModel
		if asked != nil {
			model = asked.Model(cancel)
			o = &setup.Options{Model: model}
		}
		// A new compactor each time: it remembers earlier answers.
		chosen, err := setup.Open(policy, o)
		if err != nil {
			return nil, err
		}
		config := chosen.Config(counter)
		config.Now = examTime
		q := palimpsest.Request{Thread: s.Transcript.Thread, Base: &prompt.Prompt{Model: s.Transcript.Model}, Budget: budget, Profile: examProfile()}
		res, note, err := compact(ctx, config, q)
		if model != nil && model.Failed() != nil {
			return nil, model.Failed()
		}
		if err != nil {
			return nil, plainError{err}
		}
		out := &exam.Made{Prompt: res.Prompt}
		if looks && !res.Plan.Empty() {
			out.Keep = func(ctx context.Context, dir string) error {
				return errors.Join(keep(ctx, filepath.Join(dir, exam.StoreFile), s.Transcript.Thread, res.Plan), writeLookScripts(dir))
			}
		}
		if model != nil {
			out.Note = note
		}
		return out, nil
	}
}

// answerShare is the part of a context window that stays free for the answer.
const answerShare = 0.2

// compactStepByStep goes through a session like an agent, in a context window of that many
// tokens, and returns its last request, after all compactions.
func compactStepByStep(policy string, counter *token.Counter, window int) exam.Make {
	return func(ctx context.Context, s *exam.Session, _ int) (*exam.Made, error) {
		chosen, err := setup.Open(policy, &setup.Options{Summarizer: policyfile.Extractive})
		if err != nil {
			return nil, err
		}
		config := chosen.Config(counter)
		logs := &store.Memory{}
		config.Store, config.Now = store.Tenant{Log: logs, Plans: logs}, examTime
		c, err := palimpsest.New(config)
		if err != nil {
			return nil, err
		}
		session, compactions := c.Session(s.Name), 0
		step := palimpsest.Step{
			Base: &prompt.Prompt{Model: s.Transcript.Model}, Profile: examProfile(),
			Window: window, Output: int(answerShare * float64(window)),
		}
		prepare := func() (*palimpsest.Prepared, error) {
			p, err := session.PrepareStep(ctx, step)
			if err != nil {
				return nil, plainError{err}
			}
			if p.Compacted != nil {
				compactions++
			}
			step.Messages = nil
			return p, nil
		}
		for _, m := range s.Transcript.Thread.Messages() {
			if m.Role != thread.Assistant {
				step.Messages = append(step.Messages, m)
				continue
			}
			if len(step.Messages) > 0 {
				if _, err := prepare(); err != nil {
					return nil, err
				}
			}
			if err := session.FinishStep(ctx, nil, wire.Usage{}, m); err != nil {
				return nil, plainError{err}
			}
		}
		last, err := prepare()
		if err != nil {
			return nil, err
		}
		return &exam.Made{Prompt: last.Prompt, Note: fmt.Sprintf("%s in a window of %d tokens", clip.Count(compactions, "compaction"), window)}, nil
	}
}

// plainError is an error without function names, for the files of an exam.
type plainError struct{ error }

func (p plainError) Error() string { return cli.WithoutCalls(p.error) }

// Unwrap returns the original error.
func (p plainError) Unwrap() error { return p.error }
