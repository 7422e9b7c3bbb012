package summarize

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// outputOf is the output of a command line, of which each line is used once.
type outputOf struct {
	work   *callWork
	result *resultWork
	taken  [maxGitLines]bool
}

// line takes the first line of a kind that fits.
func (o *outputOf) line(kind gitKind, fits func(*gitLine) bool) *gitLine {
	for i := range o.result.git {
		g := &o.result.git[i]
		if g.kind == kind && !o.taken[i] && (fits == nil || fits(g)) {
			o.taken[i] = true
			return g
		}
	}
	return nil
}

// git takes what one call of git did.
func (f *workFold) git(a *gitAct, s *step, out *outputOf, done bool, dir string, by proof) {
	if dir == unknownDir && (a.verb == "commit" || a.verb == "switch") && s.dir != "" && s.dir != unknownDir {
		dir = "" // a folder below one that nobody knows
	}
	if dir == unknownDir || f.scratch(dir) {
		return
	}
	foreign := f.foreign(dir)
	seen := func(name string) {
		if name != "" && !foreign && name != "HEAD" {
			f.onBranch(name, by)
		}
	}
	shows := s.shown != notShown
	switch a.verb {
	case "commit":
		f.commit(a, out, done, foreign, by)
	case "push":
		f.push(a, out, done, shows)
	case "switch":
		g := out.line(switched, func(g *gitLine) bool { return a.name == "" || g.branch == a.name })
		switch {
		case g != nil && (out.work.owned || a.name == g.branch):
			f.leave(a.fresh)
			seen(g.branch)
		case done && a.name != "" && !a.silent:
			f.leave(a.fresh)
			seen(a.name)
		case done && a.silent && a.name != "" && !strings.ContainsAny(a.name, "."):
			// A branch or a file: nobody knows.
		}
	case "detach":
		if done {
			f.leave(false)
			if !foreign {
				f.branch, f.w.Branch = "", state.Seen{}
			}
		}
	case "status":
		if g := out.line(onBranch, nil); g != nil && out.work.owned && shows {
			seen(g.branch)
		}
	case "show":
		if w := out.result; out.work.owned && s.alone && w.lines == 1 && branchName(w.one) && done {
			seen(w.one)
		}
	case "star":
		if g := out.line(starred, nil); g != nil && out.work.owned && shows {
			seen(g.branch)
		}
	case "pr":
		if g := out.line(pullAddress, nil); g != nil && shows && !foreign && (done || s.alone) {
			f.w.PullRequest = by.seen(g.text)
		}
	case "reset":
		if done {
			f.reset(a)
		}
	case "rebase":
		if done || out.result.lines > 0 {
			f.unsure()
			f.clean() // what was edited in it is in its commits
		}
	case "pick":
		f.picked(out, done, foreign, by)
	case "stash":
		if done {
			f.stashed = f.w.Edited
			f.clean()
		}
	case "pop":
		if done && f.stashed != nil {
			f.w.Edited, f.stashed = append(f.stashed, f.w.Edited...), nil
		}
	case "discard":
		if !done {
			break
		}
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

func within(dir, of string) bool {
	return dir == of || strings.HasPrefix(dir, strings.TrimSuffix(of, "/")+"/")
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

func (f *workFold) commit(a *gitAct, out *outputOf, done, foreign bool, by proof) {
	last := len(f.w.Commits) - 1
	subject := a.subject
	g := out.line(committed, func(g *gitLine) bool {
		switch {
		case subject != "":
			return g.text == subject
		case a.amend && last >= 0 && strings.HasPrefix(g.text, strings.TrimSuffix(f.w.Commits[last].Subject, "…")):
			return true
		}
		return out.work.owned
	})
	if g == nil && (!done || subject == "" && !(a.amend && last >= 0)) {
		return
	}
	c := state.Commit{Subject: clip.Brief(subject, maxSubject), Turn: by.turn, Sources: by.sources, Branch: f.branch}
	if g != nil {
		c.Hash, c.Branch = g.hash, g.branch
		c.Subject = clip.Brief(g.text, maxSubject)
		if !foreign && g.branch != "HEAD" {
			f.onBranch(g.branch, by)
		}
	} else if subject == "" {
		c.Subject = f.w.Commits[last].Subject
	}
	if a.amend && last >= 0 && (f.w.Commits[last].Branch == c.Branch || f.w.Commits[last].Branch == "") && (a.subject != "" || f.w.Commits[last].Subject == c.Subject) {
		f.w.Commits = f.w.Commits[:last]
	}
	f.w.Commits = append(f.w.Commits, c)
	f.clean()
}

// picked takes the commits that git made of others and printed.
func (f *workFold) picked(out *outputOf, done, foreign bool, by proof) {
	for out.work.owned {
		g := out.line(committed, nil)
		if g == nil {
			break
		}
		done = true
		f.w.Commits = append(f.w.Commits, state.Commit{Hash: g.hash, Subject: clip.Brief(g.text, maxSubject), Branch: g.branch, Turn: by.turn, Sources: by.sources})
		if !foreign && g.branch != "HEAD" {
			f.onBranch(g.branch, by)
		}
	}
	if done {
		f.clean()
	}
}

// push marks the commits of a branch that was pushed.
func (f *workFold) push(a *gitAct, out *outputOf, done, shows bool) {
	for i := range out.result.git {
		if out.result.git[i].kind == notPushed {
			return
		}
	}
	branch := f.branch
	if len(a.refs) > 1 {
		return
	}
	if len(a.refs) == 1 {
		from, _, _ := strings.Cut(strings.TrimPrefix(a.refs[0], "+"), ":")
		switch {
		case from == "HEAD" || from == "@":
		case strings.ContainsAny(from, "$`"):
			branch = ""
		case from == "":
			return
		default:
			branch = from
		}
	}
	var g *gitLine
	if shows {
		g = out.line(pushed, func(g *gitLine) bool { return branch == "" || g.branch == branch || g.branch == "HEAD" })
	}
	switch {
	case g != nil && (out.work.owned || done):
		if g.branch != "HEAD" {
			branch = g.branch
		}
	case done:
	default:
		return
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
	n := -1
	switch at := a.name; {
	case at == "HEAD" || at == "@":
		return
	case strings.HasPrefix(at, "HEAD~"):
		n = 1
		if s := at[len("HEAD~"):]; s != "" {
			var err error
			if n, err = strconv.Atoi(s); err != nil || n < 0 {
				n = -1
			}
		}
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

// check notes the run of a check.
func (f *workFold) check(k *checkAct, s *step, out *outputOf, r *resultFacts, code int, known bool, dir, base string, by proof) {
	w := out.result
	command := k.command
	if s.dir != "" && dir != unknownDir {
		command += inOpen + dir + ")"
	} else if dir == unknownDir && s.dir != unknownDir {
		command += inOpen + s.dir + ")"
	} else if dir == unknownDir {
		return // nobody knows what was checked
	} else if base != "" && base != f.base() {
		command += inOpen + base + ")"
	}
	c := state.Check{Kind: k.kind, Command: command, Turn: by.turn, Sources: by.sources}
	best, only := verdictFor(k, out)
	switch {
	case known && code == 0 && s.proved && !k.lists:
		c.Outcome = thread.Success
	case known && code == 0 && s.proved && k.lists && w.lines == 0:
		c.Outcome = thread.Success
	case known && code != 0 && s.blamed && !notRun(code):
		c.Outcome = thread.Failure
	case known && code != 0 && s.blamed:
	case best != nil && only && !best.good && (!best.weak || r.outcome == thread.Failure && s.alone && !w.halted):
		c.Outcome = thread.Failure
	case known && code != 0 && !s.into && s.sure && ranAfter(k, out):
		c.Outcome = thread.Success
	case known && code != 0 && !s.into:
	case best != nil && only && best.good && best.sum && whole(s, k, best, w):
		c.Outcome = thread.Success
	case k.mute && w.lines == 0 && known && s.into && !s.silent && (s.shown == endShown || s.shown == allShown) && s.sure && len(w.git) == 0:
		c.Outcome = thread.Success
	}
	switch {
	case best != nil && only && c.Outcome == thread.Failure && !best.good, best != nil && only && c.Outcome == thread.Success && best.good && !several(best, w):
		c.Line = best.text
	case c.Outcome == thread.Failure && s.alone:
		line, _ := reason(r)
		c.Line = clip.Brief(line, maxLine)
	case c.Outcome == thread.Success && s.alone && w.lines == 1:
		c.Line = w.one
	case c.Outcome == "" && (w.halted || notRun(code)) && s.alone:
		if c.Line = w.one; c.Line == "" {
			c.Line = clip.Brief(r.first, maxLine)
		}
	}
	key := func(c state.Check) bool { return c.Command == command && c.Kind == k.kind }
	f.w.Checks = slices.DeleteFunc(f.w.Checks, key)
	f.w.Checks = append(f.w.Checks, c)
	f.w.Checks = f.w.Checks[max(0, len(f.w.Checks)-maxChecks):]
}

const inOpen = " (in "

// notRun reports whether a status says that the command was not run to its end:
// not found, not allowed, stopped.
func notRun(code int) bool { return code == 124 || code == 126 || code == 127 || code > 128 }

// whole reports whether the lines shown hold what would tell of a failure.
func whole(s *step, k *checkAct, v *verdictLine, w *resultWork) bool {
	if s.most > 0 && w.lines >= s.most {
		return false
	}
	switch s.shown {
	case allShown, endShown:
		return true
	case failsShown:
		return k.by&goRunner != 0 && v.by == goRunner
	}
	return false
}

// several reports whether a line is one of several of its kind: then it says
// little alone.
func several(v *verdictLine, w *resultWork) bool {
	n := 0
	for i := range w.verdicts {
		if o := &w.verdicts[i]; o.by == v.by && o.good && o.rank == v.rank {
			n++
		}
	}
	return n > 1
}

// ranAfter reports whether a later check of the same chain was surely run, so that
// all before it succeeded.
func ranAfter(k *checkAct, out *outputOf) bool {
	for i := range out.work.checks {
		o := &out.work.checks[i]
		if o.step <= k.step || out.work.steps[o.step].list != out.work.steps[k.step].list {
			continue
		}
		if best, only := verdictFor(o, out); best != nil && only && best.by&wrapRunner == 0 {
			return true
		}
	}
	return false
}

// verdictFor is the line of the output that says most about a check, and whether
// it can be of no other command of the line.
func verdictFor(k *checkAct, out *outputOf) (best *verdictLine, only bool) {
	if k.by == 0 {
		return nil, false
	}
	for i := range out.result.verdicts {
		v := &out.result.verdicts[i]
		if v.by&k.by == 0 {
			continue
		}
		if best == nil || better(v, best) {
			best = v
		}
	}
	if best == nil {
		return nil, false
	}
	for n := range out.work.steps {
		s := &out.work.steps[n]
		if n == k.step || quietStep(s) || filters(out.work, n, k.step) {
			continue
		}
		other := runner(0)
		for i := range out.work.checks {
			if o := &out.work.checks[i]; o.step == n {
				other = o.by
				if o.by == 0 {
					other = 1 << 31 // its words are its own
				}
			}
		}
		if other == 0 || other&best.by != 0 && other != 1<<31 {
			return best, false
		}
	}
	return best, true
}

// toldToFail reports whether the output says that a check of the command line
// failed, whatever its exit status says: that may be of the end of a pipe.
func toldToFail(c *callWork, r *resultWork) bool {
	if c == nil {
		return false
	}
	out := outputOf{work: c, result: r}
	for i := range c.checks {
		if v, only := verdictFor(&c.checks[i], &out); v != nil && !v.good && !v.weak && (only || len(c.checks) > 1 && c.checksOnly()) {
			return true
		}
	}
	return false
}

// checksOnly reports whether nothing but checks prints.
func (w *callWork) checksOnly() bool {
	for n := range w.steps {
		if !quietStep(&w.steps[n]) && !slices.ContainsFunc(w.checks, func(k checkAct) bool { return k.step == n || filters(w, n, k.step) }) {
			return false
		}
	}
	return true
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
func filters(w *callWork, n, of int) bool {
	if n <= of {
		return false
	}
	for i := of; i < n; i++ {
		if !w.steps[i].into {
			return false
		}
	}
	return true
}
