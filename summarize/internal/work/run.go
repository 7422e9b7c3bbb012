package work

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// run is a call and its result, and what both together prove.
type run struct {
	*Call
	output *Result
	status int // of the command line; -1 if it is not known
	base   string
	by     proof
	taken  int // lines of commits that were taken
}

// run joins a call to its result. flags says that its harness flags every command that fails, as Claude Code does.
func (c *Call) run(r *Result, flags bool) *run {
	status := r.code
	switch {
	case r.halted || r.Outcome == thread.Partial:
		status = -1
	case status < 0 && r.Outcome != thread.Failure && (flags || c.Name == "Bash"):
		status = 0
	}
	return &run{Call: c, output: r, status: status}
}

// Did returns what a call did to files, as far as its result proves it, and what else it may have
// done: what stood in these files before may no longer stand there.
func (c *Call) Did(r *Result) (did, perhaps []shell.FileOp) {
	switch {
	case r.DeniedByUser || r.deniedByRule:
	case r.Canceled || r.Outcome == thread.Partial && c.Class != toolclass.Shell:
		return nil, c.Files
	case c.Class == toolclass.Shell:
		ran := c.run(r, false)
		for _, op := range c.Files {
			if ran.came(op) {
				did = append(did, op)
			} else {
				perhaps = append(perhaps, op)
			}
		}
	case c.Class == toolclass.Edit || c.Class == toolclass.Write:
		if r.Edited() {
			return c.Files, nil
		}
	case r.Outcome != thread.Failure && !r.Unread:
		return c.Files, nil
	}
	return did, perhaps
}

// came reports whether what a command of the line does to a file surely came to pass. What surely ran did
// it unless the output has a complaint of it, even if a later command failed. What "rm" was to
// delete without a word is not there.
func (r *run) came(op shell.FileOp) bool {
	by, w := op.By, r.output
	switch {
	case r.background || w.Started != "":
		return false
	case by.Proved && r.status == 0:
		return true
	case by.Silent && by.Name() != "rm" || w.complainsOf(by.Name(), op.Path):
		return false
	case w.halted: // it was stopped behind this command, if it is not the last, and there is output besides the line that says so
		return by.Ran == shell.RanSurely && w.Stopped != "" && w.lines > 1 && len(r.steps) > 0 && r.steps[len(r.steps)-1].Command != by
	}
	return by.Ran == shell.RanSurely || by.Ran == shell.RanIfShown && w.Outcome == thread.Success && !w.Failing && r.status <= 0
}

// Checks reports whether the command line builds, tests, lints or formats.
func (c *Call) Checks() bool { return slices.ContainsFunc(c.steps, step.isCheck) }

// ToldToFail reports whether the output says that a check of the command line failed. The exit
// status may be that of the end of a pipe. Which of several checks it was does not matter.
func ToldToFail(c *Call, output *Result) bool {
	r := run{Call: c, output: output}
	for n := range c.steps {
		s := &c.steps[n]
		if s.isCheck() && slices.ContainsFunc(output.told, func(x told) bool { return x.event == failed && x.by&s.reports != 0 }) && r.onlyOf(n, 0) {
			return true
		}
	}
	return false
}

// Succeeded reports whether the result proves that all of a command line succeeded: by its status,
// or by what its checks say. flags says that the harness flags every command that fails.
func (c *Call) Succeeded(output *Result, flags bool) bool {
	r := c.run(output, flags)
	if output.halted || output.Outcome != thread.Success || r.status > 0 || ToldToFail(c, output) {
		return false
	}
	for n := range c.steps {
		s := &c.steps[n]
		filter := slices.ContainsFunc(c.steps[s.pipe:n], step.isCheck)
		if !(r.status == 0 && s.Proved || c.says && (s.quiet || filter || s.isCheck() && r.outcome(n, r.verdict(n)) == thread.Success)) {
			return false
		}
	}
	return len(c.steps) > 0 || c.proved && r.status == 0
}

// verdict is the line of the output that says most about the check that is command n, of equal failures the first and
// of successes the last; nil if there is none, or if another command may have printed it.
func (r *run) verdict(n int) (best *told) {
	s := &r.steps[n]
	for i := range r.output.told {
		x := &r.output.told[i]
		if x.rank > 0 && x.by&s.reports != 0 && (best == nil || x.rank > best.rank || x.rank == best.rank && x.event != failed) {
			best = x
		}
	}
	if !s.isCheck() || best == nil || !r.onlyOf(n, best.by) {
		return nil
	}
	return best
}

// onlyOf reports whether no command but command n can have printed a line of these kinds, or of none: then other
// checks may.
func (r *run) onlyOf(n int, by kinds) bool {
	for i := range r.steps {
		o := &r.steps[i]
		filter := i > n && o.pipe == r.steps[n].pipe
		if i != n && !o.quiet && !filter && !(o.isCheck() && o.reports&by == 0) {
			return false
		}
	}
	return true
}

// said returns the lines in which git says what command n did. Where another command may have printed them,
// only the commits count of which the subject stands in the command.
func (r *run) said(n int) (all []told) {
	s := &r.steps[n]
	for i := range r.output.told {
		switch x := &r.output.told[i]; {
		case x.rank > 0 || x.by&s.reports == 0 || s.Shown == shell.NotShown:
		case r.onlyOf(n, x.by), x.subject != "" && (strings.Contains(s.Text, x.subject) || strings.Contains(s.Document.Text, x.subject)):
			all = append(all, *x)
		}
	}
	return all
}

// saidNothing reports whether a command printed nothing, which of some says that all is well.
func (r *run) saidNothing(s *step) bool {
	return s.reports&read().nothing != 0 && s.command.reports != read().any && r.output.lines == 0 && r.status == 0 && (s.Ran == shell.RanSurely || s.Reached) && !s.Silent && s.Shown <= shell.BeginShown
}

// outcome is how the check that is command n went; empty if nothing tells. The status is looked at first.
func (r *run) outcome(n int, best *told) thread.Outcome {
	s, w := &r.steps[n], r.output
	switch {
	case r.status == 0 && s.Proved && s.event != listing, r.saidNothing(s):
		return thread.Success
	case r.status > 0 && s.Blamed:
		if r.notRun() {
			return ""
		}
		return thread.Failure
	case best != nil && best.event == failed, w.Outcome == thread.Failure && r.status < 0 && s.Alone && !w.halted && w.lines > 0:
		return thread.Failure
	case w.halted || r.shown(n) > shell.EndShown || r.status > 0 && !s.Piped:
	case best != nil && best.event == passed && !best.apart, r.taskPassed(n):
		return thread.Success
	}
	return ""
}

// taskPassed reports whether the output ends with that of command n, which asks a runner for a task, and says of this
// that it passed, and of nothing that it failed.
func (r *run) taskPassed(n int) bool {
	s, all := &r.steps[n], r.output.told
	return r.endsWith(n) && !slices.ContainsFunc(all, func(x told) bool { return x.event == failed }) && slices.ContainsFunc(all, func(x told) bool {
		return (x.event == passed || x.event == finished) && x.by&s.reports != 0 && s.asksFor(&x)
	})
}

// asksFor reports whether a command asks a runner for the task that a line is of.
func (s *step) asksFor(x *told) bool { return x.task != "" && slices.Contains(s.Plain(), x.task) }

// endsWith reports whether the last line of the output is surely of command n.
func (r *run) endsWith(n int) bool {
	for i := range r.steps {
		o := &r.steps[i]
		if i > n && o.pipe != r.steps[n].pipe || i < n && !o.quiet && (r.status != 0 || !o.Proved) {
			return false
		}
	}
	return r.shown(n) <= shell.EndShown
}

// shown is what a reader sees of the output of command n. What is shorter than what "head" lets through is whole.
func (r *run) shown(n int) shell.Shown {
	if s := &r.steps[n]; s.Shown != shell.BeginShown || n+1 == len(r.steps) || r.steps[n+1].Name() != "head" {
		return s.Shown
	}
	words := r.steps[n+1].Words
	if most, err := strconv.Atoi(strings.TrimLeft(words[len(words)-1].Text, "-n")); err == nil && r.output.lines < most {
		return shell.EndShown
	}
	return shell.BeginShown
}

// notRun reports whether the status says that a command did not run to its end: not found, not
// allowed, timed out, killed.
func (r *run) notRun() bool {
	return r.status == 124 || r.status == 126 || r.status == 127 || r.status > 128
}

// complains reports whether in a line a shell or a command says what it could not do: "sed: can't
// read x", "/bin/bash: line 1: x: Permission denied", "fatal: pathspec 'x' did not match".
func complains(line string) bool {
	by, _, ok := strings.Cut(line, ":")
	return ok && len(by) <= 40 && is("complaining", path.Base(strings.TrimPrefix(by, "-")))
}

// complainsOf reports whether the output says that a command could not do what it was to do to
// a file.
func (r *Result) complainsOf(command, file string) bool {
	return slices.ContainsFunc(r.complaints, func(line string) bool {
		return strings.Contains(" "+line, " "+command+":") || strings.Contains(line, path.Base(file)) ||
			command == "git" && (strings.HasPrefix(line, "error:") || strings.HasPrefix(line, "fatal:"))
	})
}
