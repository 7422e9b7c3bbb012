package work

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/state"
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
	if dir == shell.Unknown && a.verb == gitAdd && !s.undone(r) {
		f.staged.unsure = true
	}
	if dir == shell.Unknown || f.scratch(dir) || s.undone(r) && !a.stopsHalfway() {
		return
	}
	foreign := f.foreign(dir)
	if foreign && !a.isOfCommits() {
		return
	}
	if !foreign {
		f.changeTree(r, s, done, dir)
	}
	seen := func(name string) {
		if name != "" && name != "HEAD" && !foreign {
			f.onBranch(name, r.by)
		}
	}
	shows := s.Shown != shell.NotShown
	switch a.verb {
	case gitAdd:
		f.add(a, dir)
	case gitCommit:
		f.commit(r, s, done, dir, seen)
	case gitPush:
		f.push(r, a, done, shows, dir)
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
			f.leaveBranch(a.newBranch, dir)
			seen(to)
		}
	case gitDetach:
		if done {
			f.leaveBranch(false, dir)
			f.branch, f.work.Branch = "", state.Seen{}
		}
	case gitMergePull: // unless it failed: what cannot be proved is not said
		f.leaveBranch(false, dir)
		f.branch, f.work.Branch = "", state.Seen{}
	case gitRename:
		f.renameBranch(r, a, done)
	case gitStatus, gitListBranches:
		kind := onBranch
		if a.verb == gitListBranches {
			kind = starred
		}
		if g := r.takeLine(kind, nil); g != nil && r.ownWords && shows {
			seen(g.branch)
		}
		if a.verb == gitStatus && r.ownWords && shows && done && r.output.lastLine == cleanTree {
			f.clearEditsBelow(dir)
		}
	case gitLog:
		if r.output.lines > 0 && s.Alone && s.Shown == shell.AllShown && done && logLine().MatchString(r.output.firstLine) {
			f.newest(r.output.firstLine, r.by)
		}
	case gitShowBranch:
		if w := r.output; r.ownWords && s.Alone && w.lines == 1 && branchName(w.firstLine) && done {
			seen(w.firstLine)
		}
	case gitPullRequest:
		if g := r.takeLine(pullAddress, nil); g != nil && shows && (done || s.Alone) {
			f.work.PullRequest = r.by.seen(g.text)
		}
	case gitRebase:
		if done || r.output.lines > 0 {
			f.doubtUnpushed(dir)
			if !foreign {
				f.work.Newest = state.Seen{}
				f.clearEdits() // edits made during it are in its commits
			}
		}
	case gitMerge:
		f.picked(r, done, dir, seen)
	case gitReset:
		if done {
			f.reset(a, dir)
		}
	}
}

// undone reports whether a command failed or did not run.
func (s *step) undone(r *shellRun) bool { return s.Undone && r.known && r.code != 0 }

// stopsHalfway reports whether a call that fails may have changed something before.
func (a *gitCall) stopsHalfway() bool {
	switch a.verb {
	case gitCommit, gitPush, gitPull, gitMerge, gitRebase, gitPop, gitPullRequest:
		return true
	}
	return false
}

// isOfCommits reports whether a call tells of commits: in another repository, or another work
// tree, nothing else is told.
func (a *gitCall) isOfCommits() bool {
	switch a.verb {
	case gitCommit, gitPush, gitRebase, gitMerge, gitReset:
		return true
	}
	return false
}

// cleanTree is the last line of "git status" without changes.
const cleanTree = "nothing to commit, working tree clean"

// newest notes the first line of "git log --oneline", unless that commit is listed.
func (f *fold) newest(line string, by proof) {
	hash, subject, _ := strings.Cut(line, " ")
	f.work.Newest = state.Seen{}
	for _, c := range f.work.Commits {
		if sameHash(c.Hash, hash) || c.Hash == "" && strings.HasSuffix(subject, strings.TrimSuffix(c.Subject, "…")) {
			return
		}
	}
	f.work.Newest = by.seen(line)
}

// foreign reports whether a folder is surely not that of the work: neither above nor below the
// folder in which the shell was started.
func (f *fold) foreign(dir string) bool {
	base := f.base()
	return dir != "" && base != "" && !within(dir, base) && !within(base, dir)
}

// within reports whether a path is a folder or lies in it.
func within(name, folder string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(folder, "/"))
	return ok && (rest == "" || rest[0] == '/')
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

// inRepo reports whether a commit was made in the repository of a folder, as far as is known.
func inRepo(c *state.Commit, dir string) bool {
	return c.Dir == "" || dir == "" || within(c.Dir, dir) || within(dir, c.Dir)
}

// leaveBranch notes that another branch is current. A fresh branch has the commits of the old
// one too; whether any other has them is unknown.
func (f *fold) leaveBranch(fresh bool, dir string) {
	if !fresh {
		f.work.Newest = state.Seen{}
	}
	for i := range f.work.Commits {
		switch c := &f.work.Commits[i]; {
		case c.Pushed || !inRepo(c, dir):
		case !fresh && c.Branch == "":
			c.Branch = unknownBranch
		case fresh && c.Branch == f.branch:
			c.Branch = ""
		}
	}
}

// renameBranch notes that a branch, mostly the current one, has another name.
func (f *fold) renameBranch(r *shellRun, a *gitCall, done bool) {
	old := f.branch
	if len(a.refs) > 0 {
		old = a.refs[0]
	}
	current := old == f.branch
	switch {
	case !done && current:
		f.branch, f.work.Branch = "", state.Seen{}
	case done && current:
		pull := f.work.PullRequest
		f.onBranch(a.name, r.by)
		f.work.PullRequest = pull
	}
	for i := range f.work.Commits {
		if c := &f.work.Commits[i]; done && old != "" && c.Branch == old {
			c.Branch = a.name
		}
	}
}

// doubtUnpushed notes that unpushed commits may have been rewritten.
func (f *fold) doubtUnpushed(dir string) {
	for i := range f.work.Commits {
		if c := &f.work.Commits[i]; !c.Pushed && inRepo(c, dir) {
			c.Branch = unknownBranch
		}
	}
}

// unknownBranch is the branch of commits that may be gone.
const unknownBranch = "?"

// lastCommit is the index of the newest commit in the repository of a folder; -1 for none.
func (f *fold) lastCommit(dir string) int {
	for i := len(f.work.Commits) - 1; i >= 0; i-- {
		if inRepo(&f.work.Commits[i], dir) {
			return i
		}
	}
	return -1
}

func (f *fold) commit(r *shellRun, s *step, done bool, dir string, seen func(branch string)) {
	a, last := s.git, f.lastCommit(dir)
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
	c := state.Commit{Subject: clip.Brief(a.subject, maxSubject), Turn: r.by.turn, Sources: r.by.sources, Dir: dir}
	if !f.foreign(dir) {
		c.Branch = f.branch
	}
	switch proved := done || f.showsCommit(r, a, &c); {
	case g != nil:
		c = r.printed(g, dir, seen)
	case !proved:
		if !s.undone(r) && !r.output.committedNothing() {
			f.takeEdits(a, dir, false)
		}
		return
	case a.subject == "" && !again: // it has no name to be told by
		f.takeEdits(a, dir, true)
		return
	case a.subject == "":
		c.Subject = f.work.Commits[last].Subject
	}
	if again && (f.work.Commits[last].Branch == c.Branch || f.work.Commits[last].Branch == "") && (a.subject != "" || f.work.Commits[last].Subject == c.Subject) {
		f.work.Commits = slices.Delete(f.work.Commits, last, last+1)
	}
	f.work.Commits = append(f.work.Commits, c)
	if !f.foreign(dir) {
		f.work.Newest = state.Seen{}
	}
	f.takeEdits(a, dir, true)
}

// applyUnsure applies the commits of a line with loops, conditions or subshells: those that git
// printed, or that there may be one. What it may have added is not known.
func (f *fold) applyUnsure(c *Call, r *Result, by proof) {
	f.staged.unsure = f.staged.unsure || c.mayAdd
	if !c.mayCommit || f.scratch(f.cwd) {
		return
	}
	run, sure := &shellRun{Call: c, output: r, by: by}, false
	for c.ownWords {
		g := run.takeLine(committed, nil)
		if g == nil {
			break
		}
		sure = true
		f.work.Commits, f.work.Newest = append(f.work.Commits, run.printed(g, f.cwd, func(name string) { f.onBranch(name, by) })), state.Seen{}
	}
	f.takeEdits(&gitCall{all: true}, f.cwd, sure && !c.commitsPart)
}

// committedNothing reports whether "git commit" said that it made no commit.
func (w *Result) committedNothing() bool {
	return strings.HasPrefix(w.lastLine, "nothing to commit") || strings.HasPrefix(w.lastLine, "no changes added to commit") || strings.HasPrefix(w.lastLine, "nothing added to commit")
}

// showsCommit reports whether the output shows a commit that git did not announce: by how many
// files it changed, or at the top of a log behind it, which tells its hash.
func (f *fold) showsCommit(r *shellRun, a *gitCall, c *state.Commit) bool {
	commits, logs := 0, false // calls that say how many files changed
	for n := range r.steps {
		if g := r.steps[n].git; g != nil {
			logs = g.verb == gitLog
			if g.verb == gitCommit || g.verb == gitMerge || g.verb == gitPull || g.verb == gitRebase {
				commits++
			}
		}
	}
	if commits == 1 && r.ownWords && r.takeLine(filesChanged, nil) != nil {
		return true
	}
	for _, line := range [...]string{r.output.firstLine, r.output.lastLine} {
		hash, subject, _ := strings.Cut(line, " ")
		if !logs || a.subject == "" || strings.TrimSuffix(clip.Brief(a.subject, maxSubject), "…") != strings.TrimSuffix(clip.Brief(undecorated(subject), maxSubject), "…") || !logLine().MatchString(line) {
			continue
		}
		if !slices.ContainsFunc(f.work.Commits, func(old state.Commit) bool { return sameHash(old.Hash, hash) }) {
			c.Hash = hash
			return true
		}
	}
	return false
}

// undecorated is the subject in a line of "git log" without the names of branches before it.
func undecorated(subject string) string {
	if names, rest, ok := strings.Cut(subject, ") "); ok && strings.HasPrefix(names, "(") {
		return rest
	}
	return subject
}

// sameHash reports whether one hash begins the other.
func sameHash(a, b string) bool {
	return a != "" && b != "" && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

// printed returns a commit that git printed.
func (r *shellRun) printed(g *gitLine, dir string, seen func(branch string)) state.Commit {
	seen(g.branch)
	return state.Commit{Hash: g.hash, Subject: clip.Brief(g.text, maxSubject), Branch: g.branch, Dir: dir, Turn: r.by.turn, Sources: r.by.sources}
}

// picked adds the commits that git printed when it merged or picked others.
func (f *fold) picked(r *shellRun, done bool, dir string, seen func(branch string)) {
	for r.ownWords {
		g := r.takeLine(committed, nil)
		if g == nil {
			break
		}
		done = true
		f.work.Commits = append(f.work.Commits, r.printed(g, dir, seen))
	}
	if done && !f.foreign(dir) {
		f.work.Newest = state.Seen{}
		f.clearEdits()
	}
}

// push marks the commits of a pushed branch.
func (f *fold) push(r *shellRun, a *gitCall, done, shows bool, dir string) {
	if len(a.refs) > 1 || slices.ContainsFunc(r.output.git, func(g gitLine) bool { return g.kind == notPushed }) {
		return
	}
	current := f.branch
	if f.foreign(dir) {
		current = ""
	}
	branch := current
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
	// Where folders do not tell, a tip that is none of the commits is of another repository.
	ours := g == nil || g.hash == "" || slices.ContainsFunc(f.work.Commits, func(c state.Commit) bool { return c.Hash == "" || sameHash(c.Hash, g.hash) })
	for i := range f.work.Commits {
		c := &f.work.Commits[i]
		if inRepo(c, dir) && (ours || (c.Dir == "") == (dir == "")) && (branch != "" && c.Branch == branch || c.Branch == "" && branch == current) {
			c.Pushed = true
		}
	}
}

// reset removes the commits that a git reset took back.
func (f *fold) reset(a *gitCall, dir string) {
	if a.name != "HEAD" && !f.foreign(dir) {
		f.work.Newest = state.Seen{}
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
		if i := slices.IndexFunc(f.work.Commits, func(c state.Commit) bool { return sameHash(c.Hash, at) }); i >= 0 {
			n = 0
			for k := range f.work.Commits[i+1:] {
				if inRepo(&f.work.Commits[i+1+k], dir) {
					n++
				}
			}
		}
	}
	for ; n > 0; n-- {
		if i := f.lastCommit(dir); i >= 0 {
			f.work.Commits = slices.Delete(f.work.Commits, i, i+1)
		}
	}
	if n < 0 {
		f.work.Commits = slices.DeleteFunc(f.work.Commits, func(c state.Commit) bool { return !c.Pushed && inRepo(&c, dir) })
	}
}
