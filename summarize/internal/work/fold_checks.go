package work

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// check notes the run of the check that is command n of a line, if it surely ran.
func (f *fold) check(r *run, n int, dir string) {
	s, w := &r.steps[n], r.output
	best := r.verdict(n)
	if dir == shell.Unknown || w.halted && w.lines == 0 || s.Ran != shell.RanSurely && best == nil && !(s.Reached && r.status == 0) {
		return
	}
	c := state.Check{Kind: s.kind, Command: clip.Brief(s.Text, maxCheck), Dir: dir, Outcome: r.outcome(n, best), Turn: r.by.turn, Sources: r.by.sources}
	switch {
	case best != nil && (c.Outcome == thread.Failure) == (best.event == failed) && c.Outcome != "" && !best.several:
		c.Line = best.text
	case c.Outcome == "" && !w.halted && !r.notRun() && r.endsWith(n):
		if c.Line = clip.Brief(w.Last, maxQuote); best != nil {
			c.Line = best.text
		}
	case !s.Alone:
	case c.Outcome == thread.Failure:
		c.Line = clip.Brief(w.Why, maxQuote)
	case c.Outcome == thread.Success && w.lines == 1:
		c.Line = w.firstLine
	case c.Outcome == "" && (w.halted || r.notRun()):
		c.Line = cmp.Or(w.Stopped, w.firstLine, clip.Brief(w.First, maxQuote))
	}
	f.work.Checks = current(f.work.Checks, &c)
	for i := range w.told { // what the task of a runner ran passed as well
		if x := &w.told[i]; x.event == begun && c.Outcome == thread.Success && s.asksFor(x) {
			ran := c
			ran.Command = x.subject
			f.work.Checks = current(f.work.Checks, &ran)
		}
	}
	f.work.Checks = append(f.work.Checks, c)
	// Those that go are not counted: the same check may run again.
	f.work.Checks = f.work.Checks[max(0, len(f.work.Checks)-maxChecks):]
}

// maxCheck bounds the command of a check, in bytes: two that were cut alike pass for the same.
const maxCheck = 1000

// outdatedBy is after how many changed files a failed check gives way to any of its kind, in its folder, that passes.
const outdatedBy = 12

// current leaves out the last run of the same check, and one of which another that passed says more: it includes that, or
// does so by its name, as "test:ci", and something was changed since, or very much was, or that did not tell how it went.
func current(checks []state.Check, c *state.Check) []state.Check {
	all := is("whole", c.Command[strings.LastIndexAny(c.Command, " :")+1:])
	return slices.DeleteFunc(checks, func(old state.Check) bool {
		alike, since, unknown := old.Kind == c.Kind, len(old.Since), old.Dir == "" || c.Dir == ""
		if alike && (unknown || old.Dir == c.Dir) && slices.Equal(checkWords(c.Command), checkWords(old.Command)) {
			return true
		}
		return c.Outcome == thread.Success && old.Outcome != thread.Success && (unknown || within(old.Dir, c.Dir)) &&
			(all && (since > 0 || old.Outcome == "") && (alike || c.Kind == "check" && old.Kind != "test") || alike && (since >= outdatedBy || since > 0 && old.Outcome == "" || includes(c.Command, old.Command)))
	})
}

// checkWords are the words of a check without those that only change how it reports.
func checkWords(command string) (out []string) {
	for word := range strings.FieldsSeq(command) {
		if name, _, sets := strings.Cut(word, "="); !is("showing", word) && !(sets && len(out) == 0 && is("showing", name)) {
			out = append(out, word)
		}
	}
	return out
}

// includes reports whether a run of all tests or files includes one that names some of them.
func includes(all, some string) bool {
	wide, narrow := checkWords(strings.NewReplacer(" ./...", "", " -race", "").Replace(all)), checkWords(some)
	_, kind, args := read().what(wide)
	return is("checks", kind) && (wide[0] != "go" || strings.HasSuffix(all, "./...")) && !slices.ContainsFunc(args, func(w string) bool { return !is("whole", w) }) &&
		len(wide) <= len(narrow) && slices.Equal(wide, narrow[:len(wide)]) && !slices.ContainsFunc(narrow[len(wide):], func(w string) bool {
		w, _, _ = strings.Cut(w, "=")
		return strings.HasPrefix(w, "..") || w[0] == '-' && !is("naming", w)
	})
}
