package work

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/state"
)

// aside is what was known before "git stash" put changes aside.
type aside struct {
	edited []state.Edit
	checks []state.Check
	gone   bool // the changes surely went
}

// changesTree reports whether a call of git may change files of the work.
func (a *gitCall) changesTree(branch string) bool {
	switch a.verb {
	case gitStash, gitPop, gitDiscard, gitDetach, gitClean, gitPull, gitRebase, gitMerge, gitMergePull:
		return true
	case gitReset:
		return a.hard
	case gitSwitch:
		return !a.newBranch && (a.name == "" || a.name != branch)
	}
	return false
}

// changedNothing reports whether git said that there was nothing to do.
func (w *Result) changedNothing(a *gitCall) bool {
	switch a.verb {
	case gitPull, gitMerge, gitRebase:
		return strings.HasPrefix(w.lastLine, "Already up") || strings.HasPrefix(w.lastLine, "Current branch ") && strings.HasSuffix(w.lastLine, " is up to date.")
	case gitStash:
		return strings.HasPrefix(w.firstLine, "No local changes to save")
	case gitPop:
		return strings.HasPrefix(w.lastLine, "No stash entries found")
	}
	return false
}

// changeTree applies what a call of git did to the files of the work. Checks that ran before
// say nothing of them.
func (f *fold) changeTree(r *shellRun, s *step, done bool, dir string) {
	a := s.git
	if !a.changesTree(f.branch) || r.output.changedNothing(a) {
		return
	}
	f.forgetPlaces()
	what := "what `" + a.command + "` may have changed"
	if done {
		what = "what `" + a.command + "` changed"
	}
	taken := r.takeLine(filesTaken, func(*gitLine) bool { return a.verb == gitDiscard || a.maybeFile && (s.Alone || r.ownWords) })
	switch {
	case a.verb == gitStash:
		put := &aside{f.work.Edited, copyWork(f.work).Checks, done}
		f.changed(what)
		if f.stashed = put; done {
			f.clearEdits()
		}
		return
	case a.verb == gitPop:
		if f.pop() && done {
			return // all is as it was
		}
	case (a.verb == gitDiscard || taken != nil) && (done || taken != nil):
		if from := a.from; from == "" && taken != nil && taken.text != "the index" {
			a.from = taken.text
		}
		if f.discard(a, dir); len(a.refs) > 0 {
			return // their names are told
		}
	case a.verb == gitReset && done:
		f.clearEdits()
	case a.verb == gitClean: // what may be gone is not told
		f.work.Edited = slices.DeleteFunc(f.work.Edited, func(e state.Edit) bool {
			return e.Operation == "created" && (dir == "" || within(e.Path, dir))
		})
	}
	f.changed(what)
}

// changed notes of all checks that something was changed after them.
func (f *fold) changed(what string) {
	date := func(checks []state.Check) {
		for i := range checks {
			if c := &checks[i]; len(c.Since) < maxSince && !slices.Contains(c.Since, what) {
				c.Since = append(c.Since, what)
			}
		}
	}
	date(f.work.Checks)
	if f.stashed != nil {
		date(f.stashed.checks)
	}
}

// pop puts back what "git stash" put aside. What ran in between ran without it, so that the
// checks before hold again. It reports whether the stash was seen.
func (f *fold) pop() bool {
	s := f.stashed
	if s == nil {
		return false
	}
	f.stashed, f.work.Checks = nil, s.checks
	if s.gone {
		f.work.Edited = append(s.edited, f.work.Edited...)
	}
	return true
}

// discard forgets the edits of files that git put back; all if none is named.
func (f *fold) discard(a *gitCall, dir string) {
	if len(a.refs) == 0 {
		f.clearEdits()
	}
	for _, name := range a.refs {
		if !path.IsAbs(name) && dir != "" {
			name = path.Join(dir, name)
		}
		if a.from == "" || a.from == "HEAD" { // else it has changes of another commit
			f.work.Edited = slices.DeleteFunc(f.work.Edited, func(e state.Edit) bool { return within(e.Path, name) })
		}
		f.changed(name)
	}
}

// staged is what "git add" put into the next commit.
type staged struct {
	all   bool
	names []string
}

func (f *fold) add(a *gitCall, dir string) {
	f.staged.all = f.staged.all || a.all || len(a.refs) == 0
	f.staged.names = append(f.staged.names, inFolder(dir, a.refs)...)
}

// inFolder returns names as they are from a folder.
func inFolder(dir string, names []string) (paths []string) {
	for _, name := range names {
		if !path.IsAbs(name) {
			name = path.Join(dir, name)
		}
		paths = append(paths, name)
	}
	return paths
}

// holds reports whether a file is in the next commit; without any "git add" it may be. Names may
// be relative to a folder that is unknown.
func (s *staged) holds(file string) bool {
	return s.all || len(s.names) == 0 || slices.ContainsFunc(s.names, func(name string) bool {
		return within(file, name) || !path.IsAbs(name) && strings.Contains(file+"/", "/"+name+"/")
	})
}

// takeEdits notes that a commit in a folder took the edits of its repository, or, if that is
// not sure, that it may have. One that names files takes these alone.
func (f *fold) takeEdits(a *gitCall, dir string, sure bool) {
	elsewhere := f.foreign(dir)
	taken := f.staged
	if len(a.refs) > 0 {
		taken, sure = staged{names: inFolder(dir, a.refs)}, sure && a.refs[0] != shell.Unknown
	}
	edited := f.work.Edited
	f.work.Edited = nil
	for _, e := range edited {
		folder, rooted := path.Dir(e.Path), path.IsAbs(e.Path)
		near := rooted && (within(folder, dir) || within(dir, folder))
		own := near || !elsewhere && (dir == "" || !rooted || f.home != "" && within(e.Path, f.home))
		switch {
		case own && sure && (elsewhere && len(a.refs) == 0 || a.all || taken.holds(e.Path)):
			continue
		case own && sure && len(a.refs) > 0: // the commit left it out
		case elsewhere && !near && (!rooted || f.home != "" && within(e.Path, f.home)):
		default:
			e.PerhapsCommitted = true
		}
		f.work.Edited = append(f.work.Edited, e)
	}
	if sure && !elsewhere && len(a.refs) == 0 {
		f.staged, f.work.Omitted.Edited = staged{}, 0
	}
}

// clearEdits notes that no uncommitted change is left.
func (f *fold) clearEdits() { f.work.Edited, f.work.Omitted.Edited = nil, 0 }

// clearEditsBelow notes that no uncommitted change is left in a repository; dir is a folder in
// it, "" where the work is. A file above it may belong to another.
func (f *fold) clearEditsBelow(dir string) {
	if dir == "" || dir == f.base() {
		f.clearEdits()
		return
	}
	f.work.Edited = slices.DeleteFunc(f.work.Edited, func(e state.Edit) bool { return within(e.Path, dir) })
}
