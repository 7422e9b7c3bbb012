package work

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/state"
)

// takeLine returns the first unused line of a kind that fits, and marks it as used.
func (r *shellRun) takeLine(kind gitKind, fits func(*gitLine) bool) *gitLine {
	for i := range r.output.git {
		g := &r.output.git[i]
		if g.kind == kind && !r.taken[i] && (fits == nil || fits(g)) {
			r.taken[i] = true
			return g
		}
	}
	return nil
}

// applyGit applies what one call of git did; done says that it surely succeeded.
func (f *fold) applyGit(r *shellRun, s *step, done bool, dir string) {
	a := s.git
	if dir == shell.Unknown && (a.verb == gitCommit || a.verb == gitSwitch) && s.Dir != "" && s.Dir != shell.Unknown {
		dir = "" // a folder below an unknown one
	}
	if dir == shell.Unknown || f.scratch(dir) {
		return
	}
	foreign := f.foreign(dir)
	seen := func(name string) {
		if name != "" && !foreign && name != "HEAD" {
			f.onBranch(name, r.by)
		}
	}
	shows := s.Shown != shell.NotShown
	switch a.verb {
	case gitCommit:
		f.commit(r, a, done, seen)
	case gitPush:
		f.push(r, a, done, shows)
	case gitSwitch:
		g := r.takeLine(switched, func(g *gitLine) bool { return a.name == "" || g.branch == a.name })
		to := ""
		switch {
		case g != nil && (r.ownWords || a.name == g.branch):
			to = g.branch
		case done && !a.maybeFile:
			to = a.name
		}
		if to != "" {
			f.leaveBranch(a.newBranch)
			seen(to)
		}
	case gitDetach:
		if done {
			f.leaveBranch(false)
			if !foreign {
				f.branch, f.work.Branch = "", state.Seen{}
			}
		}
	case gitStatus, gitListBranches:
		kind := onBranch
		if a.verb == gitListBranches {
			kind = starred
		}
		if g := r.takeLine(kind, nil); g != nil && r.ownWords && shows {
			seen(g.branch)
		}
		if a.verb == gitStatus && r.ownWords && shows && done && r.output.lastLine == cleanTree && !foreign {
			f.clearEditsBelow(dir)
		}
	case gitLog:
		if r.output.lines > 0 && s.Alone && s.Shown == shell.AllShown && done && !foreign && logLine().MatchString(r.output.firstLine) {
			f.newest(r.output.firstLine, r.by)
		}
	case gitShowBranch:
		if w := r.output; r.ownWords && s.Alone && w.lines == 1 && branchName(w.firstLine) && done {
			seen(w.firstLine)
		}
	case gitPullRequest:
		if g := r.takeLine(pullAddress, nil); g != nil && shows && !foreign && (done || s.Alone) {
			f.work.PullRequest = r.by.seen(g.text)
		}
	case gitRebase:
		if done || r.output.lines > 0 {
			f.doubtUnpushed()
			f.work.Newest = state.Seen{}
			f.clearEdits() // edits made during it are in its commits
		}
	case gitMerge:
		f.picked(r, done, seen)
	}
	if !done {
		return
	}
	switch a.verb {
	case gitReset:
		f.reset(a)
	case gitStash:
		f.stashed = f.work.Edited
		f.clearEdits()
	case gitPop:
		if f.stashed != nil {
			f.work.Edited, f.stashed = append(f.stashed, f.work.Edited...), nil
		}
	case gitDiscard:
		if a.refs == nil {
			f.clearEdits()
		}
		for _, name := range a.refs {
			if !path.IsAbs(name) && dir != "" {
				name = path.Join(dir, name)
			}
			f.work.Edited = slices.DeleteFunc(f.work.Edited, func(e state.Edit) bool { return e.Path == name })
		}
	}
}

// cleanTree is the last line of "git status" without changes.
const cleanTree = "nothing to commit, working tree clean"

// clearEditsBelow notes that no uncommitted change is left in a repository; dir is a folder in
// it, "" where the work is. A file above it may belong to another.
func (f *fold) clearEditsBelow(dir string) {
	if dir == "" || dir == f.base() {
		f.clearEdits()
		return
	}
	f.work.Edited = slices.DeleteFunc(f.work.Edited, func(e state.Edit) bool { return within(e.Path, dir) })
}

// newest notes the first line of "git log --oneline", unless that commit is listed.
func (f *fold) newest(line string, by proof) {
	hash, subject, _ := strings.Cut(line, " ")
	f.work.Newest = state.Seen{}
	for _, c := range f.work.Commits {
		if c.Hash != "" && (strings.HasPrefix(c.Hash, hash) || strings.HasPrefix(hash, c.Hash)) || c.Hash == "" && strings.HasSuffix(subject, strings.TrimSuffix(c.Subject, "…")) {
			return
		}
	}
	f.work.Newest = by.seen(line)
}

// clearEdits notes that no uncommitted change is left.
func (f *fold) clearEdits() { f.work.Edited, f.work.Omitted.Edited = nil, 0 }

// foreign reports whether a folder is surely not that of the work: neither above nor below the
// folder in which the shell was started.
func (f *fold) foreign(dir string) bool {
	base := f.base()
	return dir != "" && base != "" && !within(dir, base) && !within(base, dir)
}

// within reports whether a path is a folder or lies in it.
func within(name, folder string) bool {
	return strings.HasPrefix(name+"/", strings.TrimSuffix(folder, "/")+"/")
}

func (f *fold) onBranch(name string, by proof) {
	f.branch = name
	if f.work.Branch.Text != name {
		if f.work.Branch.Text != "" {
			f.work.PullRequest = state.Seen{} // it belongs to the other branch
		}
		f.work.Branch = by.seen(name)
	}
}

// leaveBranch notes that another branch is current. A fresh branch has the commits of the old
// one too; whether any other has them is unknown.
func (f *fold) leaveBranch(fresh bool) {
	if !fresh {
		f.work.Newest = state.Seen{}
	}
	for i := range f.work.Commits {
		switch c := &f.work.Commits[i]; {
		case c.Pushed:
		case !fresh && c.Branch == "":
			c.Branch = unknownBranch
		case fresh && c.Branch == f.branch:
			c.Branch = ""
		}
	}
}

// doubtUnpushed notes that unpushed commits may have been rewritten.
func (f *fold) doubtUnpushed() {
	for i := range f.work.Commits {
		if c := &f.work.Commits[i]; !c.Pushed {
			c.Branch = unknownBranch
		}
	}
}

// unknownBranch is the branch of commits that may be gone.
const unknownBranch = "?"

func (f *fold) commit(r *shellRun, a *gitCall, done bool, seen func(branch string)) {
	last := len(f.work.Commits) - 1
	again := a.amend && last >= 0
	g := r.takeLine(committed, func(g *gitLine) bool {
		switch {
		case a.subject != "":
			return g.text == a.subject
		case again && strings.HasPrefix(g.text, strings.TrimSuffix(f.work.Commits[last].Subject, "…")):
			return true
		}
		return r.ownWords
	})
	c := state.Commit{Subject: clip.Brief(a.subject, maxSubject), Turn: r.by.turn, Sources: r.by.sources, Branch: f.branch}
	switch {
	case g != nil:
		c = r.printed(g, seen)
	case !done || a.subject == "" && !again:
		return
	case a.subject == "":
		c.Subject = f.work.Commits[last].Subject
	}
	if again && (f.work.Commits[last].Branch == c.Branch || f.work.Commits[last].Branch == "") && (a.subject != "" || f.work.Commits[last].Subject == c.Subject) {
		f.work.Commits = f.work.Commits[:last]
	}
	f.work.Commits, f.work.Newest = append(f.work.Commits, c), state.Seen{}
	f.clearEdits()
}

// printed returns a commit that git printed.
func (r *shellRun) printed(g *gitLine, seen func(branch string)) state.Commit {
	seen(g.branch)
	return state.Commit{Hash: g.hash, Subject: clip.Brief(g.text, maxSubject), Branch: g.branch, Turn: r.by.turn, Sources: r.by.sources}
}

// picked adds the commits that git printed when it merged or picked others.
func (f *fold) picked(r *shellRun, done bool, seen func(branch string)) {
	for r.ownWords {
		g := r.takeLine(committed, nil)
		if g == nil {
			break
		}
		done = true
		f.work.Commits = append(f.work.Commits, r.printed(g, seen))
	}
	if done {
		f.work.Newest = state.Seen{}
		f.clearEdits()
	}
}

// push marks the commits of a pushed branch.
func (f *fold) push(r *shellRun, a *gitCall, done, shows bool) {
	if len(a.refs) > 1 || slices.ContainsFunc(r.output.git, func(g gitLine) bool { return g.kind == notPushed }) {
		return
	}
	branch := f.branch
	if len(a.refs) == 1 {
		switch from, _, _ := strings.Cut(strings.TrimPrefix(a.refs[0], "+"), ":"); {
		case from == "":
			return
		case strings.ContainsAny(from, "$`"):
			branch = ""
		case from != "HEAD" && from != "@":
			branch = from
		}
	}
	var g *gitLine
	if shows {
		g = r.takeLine(pushed, func(g *gitLine) bool { return branch == "" || g.branch == branch || g.branch == "HEAD" })
	}
	if !done && (g == nil || !r.ownWords) {
		return
	}
	if g != nil && g.branch != "HEAD" {
		branch = g.branch
	}
	for i := range f.work.Commits {
		c := &f.work.Commits[i]
		if branch != "" && c.Branch == branch || c.Branch == "" && branch == f.branch {
			c.Pushed = true
		}
	}
}

// reset removes the commits that a git reset took back.
func (f *fold) reset(a *gitCall) {
	if a.name != "HEAD" {
		f.work.Newest = state.Seen{}
	}
	if a.hard {
		f.clearEdits()
	}
	at, n := a.name, -1 // n commits go
	tilde, back := strings.CutPrefix(at, "HEAD~")
	switch {
	case at == "HEAD" || at == "@":
		return
	case back && tilde == "":
		n = 1
	case back && scan.IsNumber(tilde):
		n, _ = scan.NumberAfter(tilde, "")
	case strings.Trim(at, "^") == "HEAD":
		n = len(at) - len("HEAD")
	case isHash(at):
		for i, c := range f.work.Commits {
			if c.Hash != "" && (strings.HasPrefix(c.Hash, at) || strings.HasPrefix(at, c.Hash)) {
				n = len(f.work.Commits) - 1 - i
			}
		}
	}
	if n >= 0 {
		f.work.Commits = f.work.Commits[:max(0, len(f.work.Commits)-n)]
		return
	}
	f.work.Commits = slices.DeleteFunc(f.work.Commits, func(c state.Commit) bool { return !c.Pushed })
}
