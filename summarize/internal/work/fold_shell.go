package work

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// shellRun is a command line that was run, and its output.
type shellRun struct {
	*Call
	output *Result
	code   int
	known  bool   // whether code is known
	base   string // the folder in which it began
	by     proof
	taken  [maxGitLines]bool // lines of git that were used
}

// applyShell applies what a command line did.
func (f *fold) applyShell(p pendingCall, r *Result, by proof) {
	c := p.call
	if r.Started != "" {
		f.addRunning(c, r.Started, by)
	}
	code, known := f.status(c, r)
	if c.target != "" {
		if r.ended {
			f.endRunning(c.target)
		}
		return
	}
	if len(c.steps) > 0 && !c.background && r.Started == "" { // else the end was not seen
		run := &shellRun{Call: c, output: r, code: code, known: known, base: f.cwd, by: by}
		if c.workdir != "" {
			if run.base = resolve(f.home, c.workdir); run.base == shell.Unknown {
				run.base = ""
			}
		}
		if lost := strings.Contains(r.firstLine, "cd:") && (!known || code != 0); !lost {
			f.applySteps(run)
			f.setDirectory(run, len(p.asked.Calls()) > 1)
		}
	}
	f.resetDirectory(r, by)
}

// applySteps applies what each command of a line did.
func (f *fold) applySteps(r *shellRun) {
	for n := range r.steps {
		s := &r.steps[n]
		done := s.Proved && r.known && r.code == 0
		dir := resolve(r.base, s.Dir)
		if s.git != nil {
			f.applyGit(r, s, done, resolve(dir, s.git.dir))
		}
		if done || r.looksSuccessful(s) {
			for _, op := range s.edits {
				f.addEdit(op, dir, r.by)
			}
		}
		if s.check != nil && !(r.output.halted && r.output.lines == 0) {
			f.applyCheck(r, n, dir)
		}
	}
}

// looksSuccessful reports whether the output shows no failure, and would show one.
func (r *shellRun) looksSuccessful(s *step) bool {
	return !s.Silent && s.Sure && r.output.Outcome != thread.Failure && !r.output.Failing && !r.output.halted && !(r.known && r.code != 0)
}

// resolve joins a folder to a base; shell.Unknown or "" if the result is unknown.
func resolve(base, dir string) string {
	switch {
	case dir == "":
		return base
	case path.IsAbs(dir):
		return path.Clean(dir)
	case dir == shell.Unknown || base == "" || base == shell.Unknown:
		return shell.Unknown
	}
	return path.Join(base, dir)
}

// setDirectory notes where the commands ran; beside says that other calls were made in
// parallel.
func (f *fold) setDirectory(r *shellRun, beside bool) {
	last := &r.steps[len(r.steps)-1]
	dir := resolve(r.base, last.Dir)
	to := last.ChangesTo()
	if to != "" {
		if r.known && r.code == 0 {
			dir = resolve(dir, to)
		} else {
			dir = shell.Unknown
		}
	}
	if r.pwd && path.IsAbs(r.output.lastLine) && !strings.Contains(r.output.lastLine, " ") && r.ownWords {
		dir = r.output.lastLine
	}
	keeps := r.Name == "Bash" // Claude Code's shell keeps its directory
	away := keeps && (last.Dir != "" || to != "")
	switch {
	case away && beside:
		f.cwd = "" // which of the parallel calls was the last is unknown
		return
	case dir == shell.Unknown || dir == "":
		if away {
			f.cwd = ""
		}
		return
	}
	if r.deletes(dir) {
		f.cwd = ""
		return
	}
	if f.work.Directory.Text != dir {
		f.work.Directory = r.by.seen(dir)
	}
	if keeps || r.workdir == "" && f.home == "" && last.Dir == "" && r.pwd {
		f.cwd = dir
	}
}

// deletes reports whether a command line deletes a folder, or one above it.
func (r *shellRun) deletes(dir string) bool {
	return slices.ContainsFunc(r.steps, func(s step) bool {
		return slices.ContainsFunc(s.edits, func(op shell.FileOp) bool {
			return op.Op == "deleted" && within(dir, resolve(resolve(r.base, s.Dir), op.Path))
		})
	})
}
