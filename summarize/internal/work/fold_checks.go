package work

import (
	"cmp"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// applyCheck notes the run of the check that is command n of a line, with its outcome.
func (f *fold) applyCheck(r *shellRun, n int, dir string) {
	s, w, k := &r.steps[n], r.output, r.steps[n].check
	switch {
	case dir != shell.Unknown && s.Dir == "":
		if dir = r.base; dir == f.base() {
			dir = ""
		}
	case dir == shell.Unknown && s.Dir == shell.Unknown:
		return // what was checked is unknown
	case dir == shell.Unknown:
		dir = s.Dir
	}
	c := state.Check{Kind: k.kind, Command: k.command, Turn: r.by.turn, Sources: r.by.sources}
	if dir != "" {
		c.Command += inOpen + dir + ")"
	}
	best := r.verdict(n, true)
	fails := r.known && r.code != 0
	switch {
	case r.known && r.code == 0 && s.Proved && (!k.lists || w.lines == 0):
		c.Outcome = thread.Success
	case fails && s.Blamed:
		if !notRun(r.code) {
			c.Outcome = thread.Failure
		}
	case best != nil && !best.good && (!best.weak || r.output.Outcome == thread.Failure && s.Alone && !w.halted):
		c.Outcome = thread.Failure
	case fails && !s.Piped:
		if s.Sure && r.ranAfter(n) {
			c.Outcome = thread.Success
		}
	case best != nil && best.good && best.whole && !w.halted && s.whole(best, w.lines):
		c.Outcome = thread.Success
	case k.quietIfClean && w.lines == 0 && r.known && s.Piped && !s.Silent && (s.Shown == shell.EndShown || s.Shown == shell.AllShown) && s.Sure:
		c.Outcome = thread.Success
	}
	switch {
	case best != nil && (c.Outcome == thread.Failure && !best.good || c.Outcome == thread.Success && best.good && !w.several(best)):
		c.Line = best.text
	case !s.Alone:
	case c.Outcome == thread.Failure:
		c.Line = clip.Brief(w.Why, maxQuote)
	case c.Outcome == thread.Success && w.lines == 1:
		c.Line = w.firstLine
	case c.Outcome == "" && (w.halted || notRun(r.code)):
		c.Line = cmp.Or(w.Stopped, w.firstLine, clip.Brief(w.First, maxQuote))
	}
	f.work.Checks = slices.DeleteFunc(f.work.Checks, func(old state.Check) bool { return old.Command == c.Command && old.Kind == c.Kind })
	f.work.Checks = append(f.work.Checks, c)
	f.work.Checks = f.work.Checks[max(0, len(f.work.Checks)-maxChecks):]
}

const inOpen = " (in "

// notRun reports whether a status says that a command did not run to its end: not found, not
// allowed, timed out, killed.
func notRun(code int) bool { return code == 124 || code == 126 || code == 127 || code > 128 }

// whole reports whether the lines shown would include a failure.
func (s *step) whole(v *verdictLine, lines int) bool {
	if s.Most > 0 && lines >= s.Most {
		return false
	}
	return s.Shown <= shell.EndShown || s.Shown == shell.FailsShown && s.check.runner&goRunner != 0 && v.by == goRunner
}

// several reports whether a line is one of several of its kind: alone it says little.
func (w *Result) several(v *verdictLine) bool {
	n := 0
	for i := range w.verdicts {
		if o := &w.verdicts[i]; o.by == v.by && o.good && o.rank == v.rank && o.task == v.task {
			n++
		}
	}
	return n > 1
}

// ranAfter reports whether a later check of the same chain surely ran, so that command n
// succeeded.
func (r *shellRun) ranAfter(n int) bool {
	for i := n + 1; i < len(r.steps) && r.steps[i].List == r.steps[n].List; i++ {
		if best := r.verdict(i, true); best != nil && best.by&wrapRunner == 0 {
			return true
		}
	}
	return false
}

// verdict is the line of the output that says most about the check that is command n; nil if
// there is none. With only, it is also nil if another command may have written it.
func (r *shellRun) verdict(n int, only bool) (best *verdictLine) {
	k := r.steps[n].check
	if k == nil {
		return nil
	}
	var own *verdictLine // names what the check runs
	for i := range r.output.verdicts {
		v := &r.output.verdicts[i]
		if !k.mayWrite(v) {
			continue
		}
		if v.task != "" {
			own = v
		}
		if best == nil || better(v, best) {
			best = v
		}
	}
	for i := range r.steps {
		s := &r.steps[i]
		if best == nil || !only || i == n || s.quiet || r.filters(i, n) || s.check != nil && !s.check.mayWrite(best) {
			continue // it did not write the line
		}
		if best.good {
			return own
		}
		return nil
	}
	return best
}

// mayWrite reports whether a verdict may be of the check.
func (k *check) mayWrite(v *verdictLine) bool {
	return k.runner&v.by != 0 && (v.task == "" || v.task == k.task)
}

// ToldToFail reports whether the output says that a check of the command line failed. The exit
// status may be that of the end of a pipe.
func ToldToFail(c *Call, output *Result) bool {
	r := shellRun{Call: c, output: output}
	checks, others := 0, false // others: a command that is no check prints
	for n := range c.steps {
		s := &c.steps[n]
		if s.check != nil {
			checks++
		}
		others = others || s.check == nil && !s.quiet && !c.filtersCheck(n)
	}
	for n := range c.steps {
		if v := r.verdict(n, checks < 2 || others); v != nil && !v.good && !v.weak {
			return true
		}
	}
	return false
}

// better reports whether a line says more than an earlier one: a failure says more than a
// success, then the rank decides; of equal failures the first counts, of successes the last.
func better(v, than *verdictLine) bool {
	switch {
	case v.weak != than.weak:
		return than.weak
	case v.good != than.good:
		return than.good
	}
	return v.rank > than.rank || v.good && v.rank == than.rank
}

// Checks reports whether the command line builds, tests, lints or formats.
func (c *Call) Checks() bool {
	return slices.ContainsFunc(c.steps, func(s step) bool { return s.check != nil })
}

// filters reports whether command n is behind another command in a pipe.
func (c *Call) filters(n, of int) bool {
	for of < n && c.steps[of].Piped {
		if of++; of == n {
			return true
		}
	}
	return false
}
