package work

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// applyCheck notes the run of the check that is command n of a line.
func (f *fold) applyCheck(r *shellRun, n int, dir string) {
	s := &r.steps[n]
	if dir == shell.Unknown {
		dir = s.Dir // below a folder that is unknown
	}
	best := r.verdict(n, true)
	if dir == shell.Unknown || !r.ran(n, best) {
		return
	}
	c := state.Check{Kind: s.check.kind, Command: s.check.command, Dir: dir, Turn: r.by.turn, Sources: r.by.sources}
	c.Outcome = r.outcome(n, best)
	c.Line = r.line(s, c.Outcome, best)
	f.addCheck(c, s.Text)
}

// ran reports whether the check that is command n surely ran.
func (r *shellRun) ran(n int, best *verdictLine) bool {
	end := n // of its pipe
	for r.steps[end].Piped && end < len(r.steps)-1 {
		end++
	}
	s := &r.steps[n]
	return s.Ran || best != nil || s.Sure && (r.steps[end].Proved && r.known && r.code == 0 || r.ranAfter(n))
}

// outcome is how the check that is command n went; empty if nothing tells.
func (r *shellRun) outcome(n int, best *verdictLine) thread.Outcome {
	s, w, k := &r.steps[n], r.output, r.steps[n].check
	fails := r.known && r.code != 0
	told, isTold := r.told(n)
	switch {
	case r.known && r.code == 0 && s.Proved && (!k.lists || w.lines == 0), isTold && told == 0 && !k.lists:
		return thread.Success
	case fails && s.Blamed, isTold && told != 0 && s.Only:
		if notRun(max(told, r.code)) {
			return ""
		}
		return thread.Failure
	case best != nil && !best.good && (!best.weak || w.Outcome == thread.Failure && s.Alone && !w.halted):
		return thread.Failure
	case fails && !s.Piped:
		if s.Sure && r.ranAfter(n) {
			return thread.Success
		}
	case best != nil && best.good && best.whole && !w.halted && s.whole(best, w.lines):
		return thread.Success
	case k.quietIfClean && w.lines == 0 && r.known && s.Piped && !s.Silent && (s.Shown == shell.EndShown || s.Shown == shell.AllShown) && s.Sure:
		return thread.Success
	}
	return ""
}

// told is the status of the list with command n if the line prints it at its end, as with
// `go test >log 2>&1; echo "exit: $?"`.
func (r *shellRun) told(n int) (code int, ok bool) {
	last := len(r.steps) - 1
	s, end := &r.steps[n], &r.steps[last]
	if !s.Sure || s.Piped || n == last || end.Name() != "echo" || end.List != s.List+1 || r.steps[last-1].List != s.List {
		return 0, false
	}
	before, after, ok := strings.Cut(strings.Join(end.Plain()[1:], " "), "$?")
	text, begins := strings.CutPrefix(r.output.lastLine, strings.TrimSpace(before))
	text, ends := strings.CutSuffix(text, strings.TrimSpace(after))
	code, err := strconv.Atoi(strings.TrimSpace(text))
	return code, ok && begins && ends && err == nil
}

// line is what the output says of a check that went so, on one line.
func (r *shellRun) line(s *step, outcome thread.Outcome, best *verdictLine) string {
	w := r.output
	switch {
	case best != nil && (outcome == thread.Failure && !best.good || outcome == thread.Success && best.good && !w.several(best)):
		return best.text
	case !s.Alone:
	case outcome == thread.Failure:
		return clip.Brief(w.Why, maxQuote)
	case outcome == thread.Success && w.lines == 1:
		return w.firstLine
	case outcome == "" && (w.halted || notRun(r.code)):
		return cmp.Or(w.Stopped, w.firstLine, clip.Brief(w.First, maxQuote))
	}
	return ""
}

// addCheck adds a run. It takes the place of an earlier one of the same check, and of one that
// failed and is included in it; whole is its command before it was cut.
func (f *fold) addCheck(c state.Check, whole string) {
	again := false // of a command that was cut
	if cut(c.Command) {
		before, ok := f.whole[c.Command]
		other := slices.ContainsFunc(f.work.Checks, func(old state.Check) bool { return old.Command == c.Command }) && (!ok || before != whole)
		if again = !other; other {
			whole = "" // two that begin alike
		}
		f.whole[c.Command] = whole
	}
	f.work.Checks = slices.DeleteFunc(f.work.Checks, func(old state.Check) bool {
		if old.Kind != c.Kind || old.Dir != c.Dir && old.Dir != "" && c.Dir != "" { // "" may be any folder
			return false
		}
		if cut(c.Command) || cut(old.Command) {
			return again && c.Command == old.Command
		}
		return sameCheck(c.Command, old.Command) || old.Outcome == thread.Failure && c.Outcome == thread.Success && includes(c.Command, old.Command)
	})
	f.work.Checks = append(f.work.Checks, c)
	// Those that go are not counted: the same check may run again.
	f.work.Checks = f.work.Checks[max(0, len(f.work.Checks)-maxChecks):]
}

// cut reports whether only the beginning of a command is kept.
func cut(command string) bool { return strings.HasSuffix(command, "…") }

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
func (c *Call) filters(n, of int) bool { return of < n && c.steps[of].pipe == c.steps[n].pipe }
