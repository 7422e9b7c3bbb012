package work

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
)

// shellRun is a command line that was run, and its output.
type shellRun struct {
	*Call
	output *Result
	code   int
	known  bool // whether code is known
	did    []shell.FileOp
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
	did, _ := c.did(r, code, known)
	if c.massEdit != "" {
		f.changed("what `" + c.massEdit + "` may have changed")
	}
	if c.target != "" {
		if r.ended {
			f.endRunning(c.target)
		}
		return
	}
	if len(c.steps) > 0 && !c.background && r.Started == "" { // else the end was not seen
		run := &shellRun{Call: c, output: r, code: code, known: known, base: f.cwd, by: by}
		run.did = did
		if c.workdir != "" {
			if run.base = resolve(f.home, c.workdir); run.base == shell.Unknown {
				run.base = ""
			}
		}
		if lost := strings.Contains(r.firstLine, "cd:") && (!known || code != 0); !lost {
			f.applySteps(run)
			f.setDirectory(run, p.beside)
		}
	}
	f.resetDirectory(r, by)
}

// applySteps applies what each command of a line did.
func (f *fold) applySteps(r *shellRun) {
	for n := range r.steps {
		s := &r.steps[n]
		dir := resolve(r.base, s.Dir)
		if s.git != nil {
			f.applyGit(r, s, s.Proved && r.known && r.code == 0, resolve(dir, s.git.dir))
		}
		for _, op := range r.did {
			if op.By == s.Command && s.Name() != "touch" && op.Note != shell.Restored && (dir != shell.Unknown || path.IsAbs(op.Path)) {
				if op.Op == "created" && !strings.HasPrefix(op.Note, "moved from ") {
					op.Op = "edited" // it may have existed
				}
				f.addEdit(op, r.base, r.by)
			}
		}
		if s.check != nil && !(r.output.halted && r.output.lines == 0) {
			f.applyCheck(r, n, dir)
		}
	}
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
	to := last.To
	if last.Apart { // the shell itself stays where the list began
		first := len(r.steps) - 1
		for first > 0 && r.steps[first-1].Apart {
			first--
		}
		last, to = &r.steps[first], ""
	}
	dir := resolve(r.base, last.Dir)
	if to != "" {
		if r.known && r.code == 0 {
			dir = resolve(r.base, to)
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
	return slices.ContainsFunc(r.Files, func(op shell.FileOp) bool {
		return op.Op == "deleted" && within(dir, resolve(r.base, op.Path))
	})
}
