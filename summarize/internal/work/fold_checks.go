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
	c := state.Check{Kind: s.kind, Command: clip.Brief(s.Text, maxCommand), Dir: dir, Outcome: r.outcome(n, best), Turn: r.by.turn, Sources: r.by.sources}
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
	// It takes the place of an earlier one of the same, and of one that failed and is included in it or tells
	// nothing of now. Of one that was cut nobody knows whether it is the same.
	f.work.Checks = slices.DeleteFunc(f.work.Checks, func(old state.Check) bool {
		mended := c.Outcome == thread.Success && old.Outcome == thread.Failure
		return old.Kind == c.Kind && (old.Dir == c.Dir || old.Dir == "" || c.Dir == "") && (mended && len(old.Since) >= outdatedBy || !strings.HasSuffix(c.Command, "…") && !strings.HasSuffix(old.Command, "…") &&
			(slices.Equal(checkWords(c.Command), checkWords(old.Command)) || mended && includes(c.Command, old.Command)))
	})
	f.work.Checks = append(f.work.Checks, c)
	// Those that go are not counted: the same check may run again.
	f.work.Checks = f.work.Checks[max(0, len(f.work.Checks)-maxChecks):]
}

// outdatedBy is after how many changed files a failed check gives way to any of its kind, in its folder, that passes.
const outdatedBy = 12

// checkWords are the words of a check without those that only change how it reports.
func checkWords(command string) (out []string) {
	for word := range strings.FieldsSeq(command) {
		if name, _, sets := strings.Cut(word, "="); !is("showing", word) && !(sets && len(out) == 0 && is("showing", name)) {
			out = append(out, word)
		}
	}
	return out
}

// includes reports whether a run of all tests of Go or pytest includes one that names some of them.
func includes(all, some string) bool {
	wide, narrow := checkWords(strings.NewReplacer(" ./...", "", " -race", "").Replace(all)), checkWords(some)
	n := len(wide)
	return n > 0 && n <= len(narrow) && slices.Equal(wide, narrow[:n]) && (wide[n-1] == "pytest" || wide[n-1] == "test" && strings.HasSuffix(all, "./...")) &&
		!slices.ContainsFunc(narrow[n:], func(w string) bool { return strings.HasPrefix(w, "..") || w[0] == '-' && w != "-run" && w != "-k" })
}
