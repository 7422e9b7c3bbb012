package summarize

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// line takes the first line of a kind that fits; each line is used once.
func (r *ran) line(kind gitKind, fits func(*gitLine) bool) *gitLine {
	for i := range r.output.git {
		g := &r.output.git[i]
		if g.kind == kind && !r.taken[i] && (fits == nil || fits(g)) {
			r.taken[i] = true
			return g
		}
	}
	return nil
}

// git takes what one call of git did; done says that it surely succeeded.
func (f *workFold) git(r *ran, s *step, done bool, dir string) {
	a := s.git
	if dir == shell.Unknown && (a.verb == gitCommit || a.verb == gitSwitch) && s.Dir != "" && s.Dir != shell.Unknown {
		dir = "" // a folder below one that nobody knows
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
		g := r.line(switched, func(g *gitLine) bool { return a.name == "" || g.branch == a.name })
		to := ""
		switch {
		case g != nil && (r.owned || a.name == g.branch):
			to = g.branch
		case done && !a.file:
			to = a.name
		}
		if to != "" {
			f.leave(a.fresh)
			seen(to)
		}
	case gitDetach:
		if done {
			f.leave(false)
			if !foreign {
				f.branch, f.w.Branch = "", state.Seen{}
			}
		}
	case gitAsk, gitStar:
		kind := onBranch
		if a.verb == gitStar {
			kind = starred
		}
		if g := r.line(kind, nil); g != nil && r.owned && shows {
			seen(g.branch)
		}
	case gitTell:
		if w := r.output; r.owned && s.Alone && w.lines == 1 && branchName(w.one) && done {
			seen(w.one)
		}
	case gitPull:
		if g := r.line(pullAddress, nil); g != nil && shows && !foreign && (done || s.Alone) {
			f.w.PullRequest = r.by.seen(g.text)
		}
	case gitRebase:
		if done || r.output.lines > 0 {
			f.unsure()
			f.clean() // what was edited in it is in its commits
		}
	case gitPick:
		f.picked(r, done, seen)
	}
	if !done {
		return
	}
	switch a.verb {
	case gitReset:
		f.reset(a)
	case gitStash:
		f.stashed = f.w.Edited
		f.clean()
	case gitPop:
		if f.stashed != nil {
			f.w.Edited, f.stashed = append(f.stashed, f.w.Edited...), nil
		}
	case gitDiscard:
		if a.refs == nil {
			f.clean()
		}
		for _, name := range a.refs {
			if !path.IsAbs(name) && dir != "" {
				name = path.Join(dir, name)
			}
			f.w.Edited = slices.DeleteFunc(f.w.Edited, func(e state.Edit) bool { return e.Path == name })
		}
	}
}

// clean notes that no change is left that no commit holds.
func (f *workFold) clean() { f.w.Edited, f.w.Omitted.Edited = nil, 0 }

// foreign reports whether a folder is surely not that of the work: neither above
// nor below where the shell was started.
func (f *workFold) foreign(dir string) bool {
	base := f.base()
	return dir != "" && base != "" && !within(dir, base) && !within(base, dir)
}

// within reports whether a path is a folder or lies in it.
func within(name, folder string) bool {
	return strings.HasPrefix(name+"/", strings.TrimSuffix(folder, "/")+"/")
}

func (f *workFold) onBranch(name string, by proof) {
	f.branch = name
	if f.w.Branch.Text != name {
		if f.w.Branch.Text != "" {
			f.w.PullRequest = state.Seen{} // it was of the other branch
		}
		f.w.Branch = by.seen(name)
	}
}

// leave notes that another branch is the current one. What was committed is on a
// new one too, and nobody knows whether on any other.
func (f *workFold) leave(fresh bool) {
	for i := range f.w.Commits {
		switch c := &f.w.Commits[i]; {
		case c.Pushed:
		case !fresh && c.Branch == "":
			c.Branch = rewritten
		case fresh && c.Branch == f.branch:
			c.Branch = ""
		}
	}
}

// unsure notes that commits which are not pushed may have been written anew.
func (f *workFold) unsure() {
	for i := range f.w.Commits {
		if c := &f.w.Commits[i]; !c.Pushed {
			c.Branch = rewritten
		}
	}
}

// rewritten is the branch of commits that may be on none any more.
const rewritten = "?"

func (f *workFold) commit(r *ran, a *gitAct, done bool, seen func(branch string)) {
	last := len(f.w.Commits) - 1
	again := a.amend && last >= 0 // the last one
	g := r.line(committed, func(g *gitLine) bool {
		switch {
		case a.subject != "":
			return g.text == a.subject
		case again && strings.HasPrefix(g.text, strings.TrimSuffix(f.w.Commits[last].Subject, "…")):
			return true
		}
		return r.owned
	})
	c := state.Commit{Subject: clip.Brief(a.subject, maxSubject), Turn: r.by.turn, Sources: r.by.sources, Branch: f.branch}
	switch {
	case g != nil:
		c = r.printed(g, seen)
	case !done || a.subject == "" && !again:
		return
	case a.subject == "":
		c.Subject = f.w.Commits[last].Subject
	}
	if again && (f.w.Commits[last].Branch == c.Branch || f.w.Commits[last].Branch == "") && (a.subject != "" || f.w.Commits[last].Subject == c.Subject) {
		f.w.Commits = f.w.Commits[:last]
	}
	f.w.Commits = append(f.w.Commits, c)
	f.clean()
}

// printed is a commit that git printed.
func (r *ran) printed(g *gitLine, seen func(branch string)) state.Commit {
	seen(g.branch)
	return state.Commit{Hash: g.hash, Subject: clip.Brief(g.text, maxSubject), Branch: g.branch, Turn: r.by.turn, Sources: r.by.sources}
}

// picked takes the commits that git made of others and printed.
func (f *workFold) picked(r *ran, done bool, seen func(branch string)) {
	for r.owned {
		g := r.line(committed, nil)
		if g == nil {
			break
		}
		done = true
		f.w.Commits = append(f.w.Commits, r.printed(g, seen))
	}
	if done {
		f.clean()
	}
}

// push marks the commits of a branch that was pushed.
func (f *workFold) push(r *ran, a *gitAct, done, shows bool) {
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
		g = r.line(pushed, func(g *gitLine) bool { return branch == "" || g.branch == branch || g.branch == "HEAD" })
	}
	if !done && (g == nil || !r.owned) {
		return
	}
	if g != nil && g.branch != "HEAD" {
		branch = g.branch
	}
	for i := range f.w.Commits {
		c := &f.w.Commits[i]
		if branch != "" && c.Branch == branch || c.Branch == "" && branch == f.branch {
			c.Pushed = true
		}
	}
}

// reset takes back commits.
func (f *workFold) reset(a *gitAct) {
	if a.amend {
		f.clean() // --hard
	}
	at, n := a.name, -1 // how many go
	tilde, back := strings.CutPrefix(at, "HEAD~")
	switch {
	case at == "HEAD" || at == "@":
		return
	case back && tilde == "":
		n = 1
	case back && isNumber(tilde):
		n, _ = after(tilde, "")
	case strings.Trim(at, "^") == "HEAD":
		n = len(at) - len("HEAD")
	case isHash(at):
		for i, c := range f.w.Commits {
			if c.Hash != "" && (strings.HasPrefix(c.Hash, at) || strings.HasPrefix(at, c.Hash)) {
				n = len(f.w.Commits) - 1 - i
			}
		}
	}
	if n >= 0 {
		f.w.Commits = f.w.Commits[:max(0, len(f.w.Commits)-n)]
		return
	}
	f.w.Commits = slices.DeleteFunc(f.w.Commits, func(c state.Commit) bool { return !c.Pushed })
}

// check notes the run of the check that is command n of a line.
func (f *workFold) check(r *ran, n int, dir string) {
	s, w, k := &r.steps[n], r.output, r.steps[n].check
	switch {
	case dir != shell.Unknown && s.Dir == "":
		if dir = r.base; dir == f.base() {
			dir = ""
		}
	case dir == shell.Unknown && s.Dir == shell.Unknown:
		return // nobody knows what was checked
	case dir == shell.Unknown:
		dir = s.Dir
	}
	c := state.Check{Kind: k.kind, Command: k.command, Turn: r.by.turn, Sources: r.by.sources}
	if dir != "" {
		c.Command += inOpen + dir + ")"
	}
	best := r.verdict(n, true)
	fails := r.known && r.code != 0
	switch {
	case r.known && r.code == 0 && s.Proved && (!k.lists || w.lines == 0):
		c.Outcome = thread.Success
	case fails && s.Blamed:
		if !notRun(r.code) {
			c.Outcome = thread.Failure
		}
	case best != nil && !best.good && (!best.weak || r.facts.outcome == thread.Failure && s.Alone && !w.halted):
		c.Outcome = thread.Failure
	case fails && !s.Piped:
		if s.Sure && r.ranAfter(n) {
			c.Outcome = thread.Success
		}
	case best != nil && best.good && best.sum && s.whole(best, w.lines):
		c.Outcome = thread.Success
	case k.mute && w.lines == 0 && r.known && s.Piped && !s.Silent && (s.Shown == shell.EndShown || s.Shown == shell.AllShown) && s.Sure:
		c.Outcome = thread.Success
	}
	switch {
	case best != nil && (c.Outcome == thread.Failure && !best.good || c.Outcome == thread.Success && best.good && !w.several(best)):
		c.Line = best.text
	case !s.Alone:
	case c.Outcome == thread.Failure:
		line, _ := reason(r.facts)
		c.Line = clip.Brief(line, maxLine)
	case c.Outcome == thread.Success && w.lines == 1:
		c.Line = w.one
	case c.Outcome == "" && (w.halted || notRun(r.code)):
		c.Line = cmp.Or(w.one, clip.Brief(r.facts.first, maxLine))
	}
	f.w.Checks = slices.DeleteFunc(f.w.Checks, func(old state.Check) bool { return old.Command == c.Command && old.Kind == c.Kind })
	f.w.Checks = append(f.w.Checks, c)
	f.w.Checks = f.w.Checks[max(0, len(f.w.Checks)-maxChecks):]
}

const inOpen = " (in "

// notRun reports whether a status says that the command was not run to its end:
// not found, not allowed, stopped.
func notRun(code int) bool { return code == 124 || code == 126 || code == 127 || code > 128 }

// whole reports whether the lines shown hold what would tell of a failure.
func (s *step) whole(v *verdictLine, lines int) bool {
	if s.Most > 0 && lines >= s.Most {
		return false
	}
	return s.Shown <= shell.EndShown || s.Shown == shell.FailsShown && s.check.by&goRunner != 0 && v.by == goRunner
}

// several reports whether a line is one of several of its kind: then it says
// little alone.
func (w *resultWork) several(v *verdictLine) bool {
	n := 0
	for i := range w.verdicts {
		if o := &w.verdicts[i]; o.by == v.by && o.good && o.rank == v.rank {
			n++
		}
	}
	return n > 1
}

// ranAfter reports whether a check behind command n of the same chain was surely run,
// so that all before it succeeded.
func (r *ran) ranAfter(n int) bool {
	for i := n + 1; i < len(r.steps) && r.steps[i].List == r.steps[n].List; i++ {
		if best := r.verdict(i, true); best != nil && best.by&wrapRunner == 0 {
			return true
		}
	}
	return false
}

// verdict is the line of the output that says most about the check that is command n;
// nil where there is none, or, with only, where it may be of another command.
func (r *ran) verdict(n int, only bool) (best *verdictLine) {
	k := r.steps[n].check
	if k == nil {
		return nil
	}
	for i := range r.output.verdicts {
		if v := &r.output.verdicts[i]; v.by&k.by != 0 && (best == nil || better(v, best)) {
			best = v
		}
	}
	for i := range r.steps {
		s := &r.steps[i]
		if best == nil || !only || i == n || s.quiet || r.filters(i, n) || s.check != nil && s.check.by&best.by == 0 {
			continue // its words are its own
		}
		return nil
	}
	return best
}

// toldToFail reports whether the output says that a check of the command line
// failed, whatever its exit status says: that may be of the end of a pipe.
func toldToFail(c *callWork, output *resultWork) bool {
	r := ran{callWork: c, output: output}
	checks, others := 0, false // whether something else prints
	for n := range c.steps {
		s := &c.steps[n]
		if s.check != nil {
			checks++
		}
		shows := s.check != nil || s.quiet
		for of := 0; of < n && !shows; of++ {
			shows = c.steps[of].check != nil && c.filters(n, of)
		}
		others = others || !shows
	}
	for n := range c.steps {
		if v := r.verdict(n, checks < 2 || others); v != nil && !v.good && !v.weak {
			return true
		}
	}
	return false
}

// better reports whether a line says more than one before it: a failure before
// all, then what names something; of failures the first counts, of successes the
// last.
func better(v, than *verdictLine) bool {
	switch {
	case v.weak != than.weak:
		return than.weak
	case v.good != than.good:
		return than.good
	}
	return v.rank > than.rank || v.good && v.rank == than.rank
}

// filters reports whether command n is one of a pipe that shows the output of
// another command.
func (w *callWork) filters(n, of int) bool {
	for of < n && w.steps[of].Piped {
		if of++; of == n {
			return true
		}
	}
	return false
}
