package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/eval/exam"
	"github.com/palimpsest-ai/palimpsest/internal/choice"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/token"
)

// examining is what a user of eval asked for about exams.
type examining struct {
	write, grade, report bool
	modelled             bool
	out                  string
	readings             int
	seed                 uint64
}

func (x *examining) flags(f *pflag.FlagSet) {
	f.BoolVar(&x.write, "exam", false, "make an exam for readers: prompts of each DIR (history.json.gz, exam.json, own-summary.txt) and questions, in the folder -o OUT")
	f.BoolVar(&x.grade, "exam-grade", false, "put the readers' answers in OUT side by side, for graders")
	f.BoolVar(&x.report, "exam-report", false, "add up the grades in OUT")
	f.BoolVar(&x.modelled, "model-written", false, "with --exam: each policy also with summaries that a model writes, as NAME"+withModel+": its requests are written to OUT/requests, and answered in files there")
	f.StringVarP(&x.out, "output", "o", "", "with --exam: write it into the folder `OUT`")
	f.IntVar(&x.readings, "readings", 1, "with --exam: `N` readers for each prompt")
	f.Uint64Var(&x.seed, "seed", 1, "with --exam: the order of the readers' numbers, by `N`")
}

// is reports whether an exam was asked for.
func (x *examining) is() bool { return x.write || x.grade || x.report }

// check reports what does not go together.
func (x *examining) check(f *pflag.FlagSet, args []string) error {
	may := []string{"json"}
	what := ""
	switch {
	case x.write && !x.grade && !x.report:
		may = append(may, "exam", "output", "readings", "seed", "model-written", "budgets", "contender", "counter")
		what = "--exam"
		if x.out == "" {
			return errors.New("--exam: say where to write it: -o OUT")
		}
		if x.readings < 1 || x.readings > 100 {
			return fmt.Errorf("--readings %d: want 1 to 100", x.readings)
		}
	case x.grade && !x.write && !x.report:
		may, what = append(may, "exam-grade"), "--exam-grade"
	case x.report && !x.write && !x.grade:
		may, what = append(may, "exam-report"), "--exam-report"
	case x.is():
		return errors.New("--exam, --exam-grade and --exam-report come one after the other; name one")
	default:
		for _, name := range []string{"output", "readings", "seed", "model-written"} {
			if f.Changed(name) {
				return fmt.Errorf("--%s does nothing here: it is for --exam", name)
			}
		}
		return nil
	}
	if !x.write && len(args) != 1 {
		return fmt.Errorf("%s: want the folder OUT of one exam", what)
	}
	var err error
	f.Visit(func(given *pflag.Flag) {
		if err == nil && !slices.Contains(may, given.Name) {
			err = fmt.Errorf("--%s does nothing here: %s takes --%s", given.Name, what, strings.Join(may, ", --"))
		}
	})
	return err
}

// run does one step of an exam.
func (x *examining) run(ctx context.Context, args []string, w *wanted, counterName string, s Streams) error {
	switch {
	case x.grade:
		n, err := exam.Sheets(args[0])
		if err != nil {
			return err
		}
		if w.asJSON {
			return writeJSON(s.Out, map[string]int{"sheets": n})
		}
		fmt.Fprintf(s.Out, "%s in %s/graders. Give each folder to a grader; then:\n  palimpsest eval --exam-report %s\n", plural(n, "sheet"), args[0], quotedWord(args[0]))
		return nil
	case x.report:
		r, err := exam.Fold(args[0])
		if err != nil {
			return err
		}
		if w.asJSON {
			return writeJSON(s.Out, r)
		}
		return r.WriteTable(s.Out)
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
	for _, name := range x.names(w.contenders) {
		c, err := examinee(name, counter, asked)
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
	k, err := exam.Write(ctx, x.out, sessions, o)
	if errors.Is(err, exam.ErrWaiting) {
		return asked.Waiting()
	}
	if err != nil {
		return err
	}
	if w.asJSON {
		return writeJSON(s.Out, k)
	}
	return x.tell(s.Out, k)
}

// names are the contenders.
func (x *examining) names(given []string) []string {
	if len(given) == 0 {
		given = []string{"auto", exam.OwnSummary}
	}
	names := slices.Clone(given)
	if x.modelled {
		for _, name := range given {
			if twin := name + withModel; name != exam.OwnSummary && !strings.HasSuffix(name, withModel) && !slices.Contains(names, twin) {
				names = append(names, twin)
			}
		}
	}
	return names
}

// tell says what was written and what comes next. It names no reader's number: who
// passes this on tells nothing.
func (x *examining) tell(w io.Writer, k *exam.Key) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s in %s/readers, sizes by %s.\n", plural(len(k.Readers), "prompt"), plural(len(k.Sessions), "session"), x.out, k.Counter)
	for _, m := range k.Missing {
		fmt.Fprintf(&b, "not made: %s at %s, %s: %s\n", m.Contender, m.Budget, m.Session, m.Why)
	}
	over := 0
	for _, r := range k.Readers {
		if r.Note != "" && r.Reading == 1 {
			fmt.Fprintf(&b, "%s at %s, %s: %s\n", r.Contender, r.Budget, r.Session, r.Note)
		}
		if r.Over && r.Reading == 1 {
			over++
		}
	}
	if over > 0 {
		fmt.Fprintf(&b, "over the budget: %s of policies that keep to a size of their own; key.json says which\n", plural(over, "prompt"))
	}
	fmt.Fprintf(&b, "Give each folder to a reader of its own, who writes answers.json into it. key.json\nand what else lies in %s is not for readers. Then:\n  palimpsest eval --exam-grade %s\n", x.out, quotedWord(x.out))
	_, err := io.WriteString(w, b.String())
	return err
}

// withModel ends the name of a contender whose summaries a model writes.
const withModel = "+model"

// examinee makes a contender of a policy's name or file, and of one with a model.
func examinee(name string, counter *token.Counter, asked *exam.Requests) (exam.Contender, error) {
	if name == exam.OwnSummary {
		return exam.Contender{Name: name}, nil
	}
	base, modelled := strings.CutSuffix(name, withModel)
	settings, err := choice.Settings(base)
	if err != nil {
		return exam.Contender{}, fmt.Errorf("%w; an exam also knows %s, and each policy as NAME%s", err, exam.OwnSummary, withModel)
	}
	c := exam.Contender{Name: name, Sized: settings.Own(), Make: maker(base, counter, nil)}
	if modelled {
		c.Make, c.Rehearse = maker(base, counter, asked), c.Make
	}
	return c, nil
}

// maker compacts as `compact --to text` does, with the model whose answers lie in
// files, or with none. System prompt and tools are left out: they are the same for
// all, and the session did not say them.
func maker(name string, counter *token.Counter, asked *exam.Requests) exam.Make {
	return func(ctx context.Context, s *exam.Session, budget int) (*exam.Made, error) {
		told := &summaries{By: map[string]int{}}
		o := &choice.Options{Summarizer: policyfile.Extractive}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var model *exam.FileModel
		if asked != nil {
			model = asked.Model(cancel)
			o = &choice.Options{Model: model, Used: told.used}
		}
		// All of it is new each time: it remembers what was said to it.
		chosen, err := choice.Open(name, o)
		if err != nil {
			return nil, err
		}
		config := chosen.Config(counter)
		config.Now = func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) } // the same input gives the same bytes
		r := &resolved{profile: render.For(asText), summaries: told}
		r.profile.Reach = render.Command
		if chosen.Own() {
			r.own = config.Policy
			config.Policy = heard{config.Policy, told}
		}
		if r.compactor, err = palimpsest.New(config); err != nil {
			return nil, err
		}
		q := palimpsest.Request{Thread: s.Transcript.Thread, Base: &prompt.Prompt{Model: s.Transcript.Model}, Budget: budget, Profile: r.profile}
		res, err := r.shorter(ctx, reachable(r.compactor, q, &storeFlag{}))
		if model != nil && model.Failed() != nil {
			return nil, model.Failed()
		}
		if err != nil {
			return nil, plain{err}
		}
		made := &exam.Made{Prompt: res.Prompt}
		if model != nil {
			made.Note = told.note()
		}
		return made, nil
	}
}

// plain is an error without the names of the functions it came through: the key and
// the report of an exam tell it to people.
type plain struct{ error }

func (p plain) Error() string { return through.ReplaceAllString(p.error.Error(), "") }

// Unwrap returns the error as it was.
func (p plain) Unwrap() error { return p.error }
