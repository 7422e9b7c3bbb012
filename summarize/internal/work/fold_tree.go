package work

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/state"
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
	call := *s.git // a copy: what was read of a message is kept
	a := &call
	if !a.changesTree(f.branch) || r.output.changedNothing(a) {
		return
	}
	what := "what `" + a.command + "` may have changed"
	if done {
		what = "what `" + a.command + "` changed"
	}
	taken := r.takeLine(filesTaken, func(*gitLine) bool { return a.verb == gitDiscard || a.maybeFile && (s.Alone || r.ownWords) })
	switch {
	case a.verb == gitStash:
		put := &aside{f.work.Edited, copyChecks(f.work.Checks), done}
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
		switch {
		case taken != nil && taken.text == "the index":
			a.maybeRev = false
		case taken != nil && a.maybeRev:
			a.ofCommit(taken.text)
		case taken != nil && a.from == "":
			a.from = taken.text
		}
		if f.discard(a, dir) {
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

// discard forgets the edits of files that git put back, and reports whether the names of all are
// told.
func (f *fold) discard(a *gitCall, dir string) (told bool) {
	if a.unsure || a.maybeRev {
		return false
	}
	for n, name := range inFolder(dir, a.refs) {
		switch own := a.from == "" || a.from == "HEAD"; { // else it has changes of another commit
		case own && name == ".": // where the work is
			f.clearEdits()
		case own:
			f.work.Edited = slices.DeleteFunc(f.work.Edited, func(e state.Edit) bool { return within(e.Path, name) })
		}
		if a.refs[n] != "." {
			f.changed(name)
		}
	}
	return len(a.refs) > 0 && !slices.Contains(a.refs, ".")
}

// staged is what "git add" put into the next commit.
type staged struct {
	all       bool // all changes of files that git knows
	untracked bool // and of new ones
	unsure    bool // perhaps more than that
	names     []string
}

func (f *fold) add(a *gitCall, dir string) {
	s := &f.staged
	s.all, s.untracked = s.all || a.all, s.untracked || a.untracked
	if s.unsure = s.unsure || a.unsure; !a.unsure {
		s.names = append(s.names, inFolder(dir, a.refs)...)
	}
	if len(s.names) > maxNames { // which of them is in it is not known any more
		s.names, s.unsure = nil, true
	}
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

// holds reports whether an edit is in the next commit.
func (s *staged) holds(e *state.Edit) bool {
	in, _ := among(s.names, e.Path)
	return in || s.all && (s.untracked || e.Operation != "created")
}

// none reports whether no "git add" was seen.
func (s *staged) none() bool { return !s.all && !s.unsure && len(s.names) == 0 }

// among reports whether a file is, or lies in, one of the names, and whether it surely is not.
// Names may be relative to a folder that is unknown.
func among(names []string, file string) (in, out bool) {
	out = true
	for _, name := range names {
		rooted := path.IsAbs(name)
		if within(file, name) || !rooted && strings.Contains(file+"/", "/"+name+"/") {
			return true, false
		}
		if rooted && !path.IsAbs(file) || name == "." || strings.HasPrefix(name, "..") {
			out = false // nobody knows where the one is from the other
		}
	}
	return false, out
}

// takes reports whether a commit surely took an edit, and whether it surely left it out. Without
// any "git add" one that names no files is taken to have all. named are the files that it names.
func (f *fold) takes(a *gitCall, named []string, dir string, e *state.Edit) (in, out bool) {
	fresh := e.Operation == "created" // git may not know the file
	switch {
	case a.unsure:
		return false, false
	case len(a.refs) > 0:
		in, out = among(named, e.Path)
		return in && (!fresh || slices.Contains(named, e.Path) || f.staged.holds(e)), out
	case a.all && !fresh:
		return true, false
	}
	return f.staged.holds(e) || !a.all && (f.staged.none() || f.foreign(dir)), false
}

// takeEdits notes that a commit in a folder took the edits of its repository, or, if that is
// not sure, that it may have. One that names files takes these alone.
func (f *fold) takeEdits(a *gitCall, dir string, sure bool) {
	elsewhere := f.foreign(dir)
	edited := f.work.Edited
	f.work.Edited = nil
	named := inFolder(dir, a.refs)
	sure = sure && f.effort.Spend(len(edited)*(len(named)+len(f.staged.names))*comparing)
	for _, e := range edited {
		folder, rooted := path.Dir(e.Path), path.IsAbs(e.Path)
		near := rooted && (within(folder, dir) || within(dir, folder))
		own := near || !elsewhere && (dir == "" || !rooted || f.home != "" && within(e.Path, f.home))
		switch in, out := f.takes(a, named, dir, &e); {
		case own && sure && in:
			continue
		case own && sure && out: // the commit left it out
		case elsewhere && !near && (!rooted || f.home != "" && within(e.Path, f.home)):
		default:
			e.PerhapsCommitted = true
		}
		f.work.Edited = append(f.work.Edited, e)
	}
	if sure && !elsewhere && len(a.refs) == 0 && !a.unsure {
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
