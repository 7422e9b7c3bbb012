package work

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// verdict is the line of the output that says most about the check that is command n; nil if there is
// none, or if another command may have printed it. With any, one of several checks of a kind may have: that
// one of them failed is sure.
func (r *shellRun) verdict(n int, any bool) (best *told) {
	s := &r.steps[n]
	if !s.isCheck() {
		return nil
	}
	for i := range r.output.told {
		x := &r.output.told[i]
		if x.rank != '0' && x.by&s.reports != 0 && (best == nil || x.saysMore(best)) {
			best = x
		}
	}
	if best == nil || !r.onlyOf(n, best, any && best.event == "failed") {
		return nil
	}
	return best
}

// saysMore reports whether a line says more than an earlier one: a failure says more than a success, then
// the rank decides; of equal failures the first counts, of successes the last.
func (x *told) saysMore(than *told) bool {
	if failed := x.event == "failed"; failed != (than.event == "failed") {
		return failed
	}
	return x.rank > than.rank || x.rank == than.rank && x.event != "failed"
}

// onlyOf reports whether no command but command n can have printed a line; with any, other checks can.
func (r *shellRun) onlyOf(n int, x *told, any bool) bool {
	for i := range r.steps {
		o := &r.steps[i]
		filter := i > n && o.pipe == r.steps[n].pipe
		if i != n && !o.quiet && !filter && !(o.isCheck() && (any || o.reports&x.by == 0)) {
			return false
		}
	}
	return true
}

// saidNothing reports whether a command printed nothing, which of some says that all is well.
func (r *shellRun) saidNothing(s *step) bool {
	return s.reports&read().nothing != 0 && s.command.reports != read().any && r.output.lines == 0 && r.known && r.code == 0 && s.Ran != shell.RanPerhaps && !s.Silent && s.Shown <= shell.BeginShown
}

// outcome is how the check that is command n went; empty if nothing tells. The status is looked at first.
func (r *shellRun) outcome(n int, best *told) thread.Outcome {
	s, w := &r.steps[n], r.output
	lists := strings.HasSuffix(s.event, "by output")
	fails := r.known && r.code != 0
	switch {
	case r.known && r.code == 0 && s.Proved && !lists, r.saidNothing(s):
		return thread.Success
	case fails && s.Blamed:
		if notRun(r.code) {
			return ""
		}
		return thread.Failure
	case best != nil && best.event == "failed", w.Outcome == thread.Failure && !r.known && s.Alone && !w.halted && w.lines > 0:
		return thread.Failure
	case fails && !s.Piped:
	case best != nil && best.event == "passed" && !w.halted && s.Shown <= shell.EndShown:
		return thread.Success
	}
	return ""
}

// notRun reports whether a status says that a command did not run to its end: not found, not
// allowed, timed out, killed.
func notRun(code int) bool { return code == 124 || code == 126 || code == 127 || code > 128 }

// check notes the run of the check that is command n of a line, if it surely ran.
func (f *fold) check(r *shellRun, n int, dir string) {
	s, w := &r.steps[n], r.output
	best := r.verdict(n, false)
	if dir == shell.Unknown || w.halted && w.lines == 0 || s.Ran != shell.RanSurely && best == nil && !(s.Reached && r.known && r.code == 0) {
		return
	}
	c := state.Check{Kind: s.kind, Command: clip.Brief(s.Text, maxCommand), Dir: dir, Outcome: r.outcome(n, best), Turn: r.by.turn, Sources: r.by.sources}
	switch {
	case best != nil && (c.Outcome == thread.Failure) == (best.event == "failed") && c.Outcome != "" && !w.several(best):
		c.Line = best.text
	case !s.Alone:
	case c.Outcome == thread.Failure:
		c.Line = clip.Brief(w.Why, maxQuote)
	case c.Outcome == thread.Success && w.lines == 1:
		c.Line = w.firstLine
	case c.Outcome == "" && (w.halted || notRun(r.code)):
		c.Line = cmp.Or(w.Stopped, w.firstLine, clip.Brief(w.First, maxQuote))
	}
	// It takes the place of an earlier one of the same, and of one that failed and is included in it. Of one that
	// was cut nobody knows whether it is the same.
	f.work.Checks = slices.DeleteFunc(f.work.Checks, func(old state.Check) bool {
		return old.Kind == c.Kind && (old.Dir == c.Dir || old.Dir == "" || c.Dir == "") && !strings.HasSuffix(c.Command, "…") && !strings.HasSuffix(old.Command, "…") &&
			(slices.Equal(checkWords(c.Command), checkWords(old.Command)) || c.Outcome == thread.Success && old.Outcome == thread.Failure && includes(c.Command, old.Command))
	})
	f.work.Checks = append(f.work.Checks, c)
	// Those that go are not counted: the same check may run again.
	f.work.Checks = f.work.Checks[max(0, len(f.work.Checks)-maxChecks):]
}

// several reports whether a success is one of several of its kind: alone it says little.
func (w *Result) several(x *told) bool {
	n := 0
	for i := range w.told {
		if o := &w.told[i]; o.printed == x.printed {
			n++
		}
	}
	return n > 1 && x.event != "failed"
}

// showing are variables and options that change how a check reports, not what it checks.
var showing = scan.WordSet("CI NO_COLOR FORCE_COLOR CLICOLOR TERM COLUMNS PYTHONUNBUFFERED RUST_BACKTRACE -v -count=1")

// checkWords are the words of a check without those that only change how it reports.
func checkWords(command string) (out []string) {
	for word := range strings.FieldsSeq(command) {
		if name, _, sets := strings.Cut(word, "="); !showing[word] && !(sets && len(out) == 0 && showing[name]) {
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
