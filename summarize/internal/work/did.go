package work

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Did returns what a call did to files, as far as its result proves it, and what else it may have
// done: what stood in these files before may no longer stand there.
func (c *Call) Did(r *Result) (did, perhaps []shell.FileOp) {
	code, known := r.status(c.Name == "Bash")
	return c.did(r, code, known)
}

// did is Did, given the exit status.
func (c *Call) did(r *Result, code int, known bool) (did, perhaps []shell.FileOp) {
	switch {
	case r.DeniedByUser || r.deniedByRule:
	case r.Canceled || r.Outcome == thread.Partial && c.Class != toolclass.Shell:
		return nil, c.Files
	case c.Class == toolclass.Shell:
		for _, op := range c.Files {
			if c.came(op.By, op.Path, r, code, known) {
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
func (c *Call) came(by *shell.Command, file string, r *Result, code int, known bool) bool {
	switch {
	case by.Ran == shell.RanPerhaps || c.background || r.Started != "":
		return false
	case by.Proved && known && code == 0:
		return true
	case by.Silent && by.Name() != "rm" || r.halted && !c.stoppedBehind(by, r) || r.complainsOf(by.Name(), file):
		return false
	}
	return by.Ran == shell.RanSurely || by.Ran == shell.RanIfShown && r.Outcome == thread.Success && !r.Failing && !r.halted && !(known && code != 0)
}

// stoppedBehind reports whether a line was stopped in a command behind this one: it is not the last,
// and there is output besides the line that says so.
func (c *Call) stoppedBehind(by *shell.Command, r *Result) bool {
	return r.Stopped != "" && r.lines > 1 && len(c.steps) > 0 && c.steps[len(c.steps)-1].Command != by
}

// Same is the same for calls that do the same: the tool and what was asked for, without a pipe to
// head or tail at the end. It is empty where the input was cut.
func (c *Call) Same() string {
	input := c.Input
	if input == "" || strings.Contains(input, "…") {
		return ""
	}
	for range c.pagers {
		if at := strings.LastIndexByte(input, '|'); at >= 0 {
			input = input[:at]
		}
	}
	return c.Name + "\x00" + strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(input), "2>&1"))
}

// Checks reports whether the command line builds, tests, lints or formats.
func (c *Call) Checks() bool {
	return slices.ContainsFunc(c.steps, func(s step) bool { return s.isCheck() })
}

// ToldToFail reports whether the output says that a check of the command line failed. The exit
// status may be that of the end of a pipe.
func ToldToFail(c *Call, output *Result) bool {
	r := shellRun{Call: c, output: output}
	for n := range c.steps {
		if x := r.verdict(n, true); x != nil && x.event == "failed" {
			return true
		}
	}
	return false
}

// Succeeded reports whether the result proves that all of a command line succeeded: by its status,
// or by what its checks say. flags says that the harness flags every command that fails.
func (c *Call) Succeeded(r *Result, flags bool) bool {
	code, known := r.status(flags || c.Name == "Bash")
	if r.halted || r.Outcome != thread.Success || known && code != 0 || ToldToFail(c, r) {
		return false
	}
	run := &shellRun{Call: c, output: r, code: code, known: known}
	for n := range c.steps {
		s := &c.steps[n]
		filter := slices.ContainsFunc(c.steps[s.pipe:n], func(s step) bool { return s.isCheck() })
		if !(known && s.Proved || s.quiet || s.Name() == "cd" || filter || s.isCheck() && run.outcome(n, run.verdict(n, true)) == thread.Success) {
			return false
		}
	}
	return len(c.steps) > 0 || known && c.told
}

// Exit is the exit status that the harness wrote, -1 if it wrote none.
func (r *Result) Exit() int {
	if !r.hasCode {
		return -1
	}
	return r.code
}

// status is the exit status of a command line; false if it is unknown. flags says that the
// harness flags every command that fails.
func (r *Result) status(flags bool) (int, bool) {
	switch {
	case r.halted || r.Outcome == thread.Partial:
		return 0, false
	case r.hasCode:
		return r.code, true
	case r.Outcome == thread.Failure:
		return 0, false
	}
	return 0, flags
}

// complaint is a line in which a shell or a command says what it could not do.
type complaint struct{ by, text string }

var (
	shells = scan.WordSet("bash sh zsh dash ksh (eval)")
	// complainers are commands that change files, and shells, which open files for them.
	complainers = scan.WordSet("bash sh zsh dash ksh (eval) sed gsed cat head tail nl less bat tee cp mv rm rmdir unlink touch error fatal")
)

// complains returns the command of which a line is a complaint, "" if it is none: "sed: can't
// read x", "/bin/bash: line 1: x: Permission denied", "fatal: pathspec 'x' did not match".
func complains(line string) string {
	by, _, ok := strings.Cut(line, ":")
	if !ok || len(by) > 40 {
		return ""
	}
	if by = path.Base(strings.TrimPrefix(by, "-")); complainers[by] {
		return by
	}
	return ""
}

// complainsOf reports whether the output says that a command could not do what it was to do to
// a file.
func (r *Result) complainsOf(command, file string) bool {
	return slices.ContainsFunc(r.complaints, func(c complaint) bool {
		return c.by == command || command == "git" && (c.by == "error" || c.by == "fatal") ||
			shells[c.by] && (strings.Contains(c.text, path.Base(file)) || strings.Contains(c.text, ": "+command+":"))
	})
}
