package work

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// shell notes what a command line did.
func (f *fold) shell(p pendingCall, r *Result, by proof) {
	c := p.Call
	if c.target != "" {
		if r.ended {
			f.endRunning(c.target)
		}
		return
	}
	if r.Outcome == thread.Failure && r.code > 0 && !r.halted {
		f.flagged[c.Name] = true
	}
	if f.home == "" && path.IsAbs(r.reset) {
		f.home = r.reset // where the shell was put back to is where the work is
	}
	run := c.run(r, f.flagged[c.Name])
	run.base, run.by = f.cwd, by
	if c.workdir != "" {
		run.base = resolve(f.home, c.workdir)
	}
	lost := run.status != 0 && strings.Contains(r.firstLine, "cd:")
	if c.says && len(c.steps) > 0 && !c.background && r.Started == "" && !lost { // else the end was not seen
		for n := range c.steps {
			f.command(run, n)
		}
		f.setDirectory(run, p.beside)
	}
	if path.IsAbs(r.reset) {
		f.home, f.cwd, f.work.Directory = r.reset, r.reset, by.seen(r.reset)
	}
}

// command notes what command n of a line did.
func (f *fold) command(r *run, n int) {
	s := &r.steps[n]
	dir := resolve(r.base, s.Dir)
	writes := false
	for _, op := range r.Files {
		if op.By != s.Command || op.Note == shell.Restored {
			continue
		}
		writes = true
		if s.Name() == "touch" || !r.came(op) {
			continue
		}
		if op.Op == "created" && !strings.HasPrefix(op.Note, "moved from ") {
			op.Op = "edited" // it may have existed
		}
		f.addEdit(op, r.base, r.by)
	}
	if s.isCheck() {
		f.check(r, n, dir)
	}
	undone := s.Undone && r.status > 0
	if f.scratch(dir) || undone && s.event != "commit" && !slices.Contains(s.unknown, "anyway") {
		return
	}
	said := r.said(n)
	if slices.ContainsFunc(said, func(x told) bool { return x.event == "nothing" || x.event == "same branch" }) {
		undone = true
	} else if !f.foreign(dir) {
		f.forget(r, s, said, dir, writes)
	}
	if s.event == "commit" {
		f.commit(r, n, said, dir, undone)
	}
	for _, x := range said {
		switch x.event {
		case "hook":
			if script := x.text[strings.LastIndexByte(x.text, ' ')+1:]; r.taken > 0 {
				f.work.Checks = current(f.work.Checks, &state.Check{Kind: read().scripts[script], Command: script, Dir: dir, Outcome: thread.Success})
			}
		case "branch", "same branch":
			f.onBranch(x.branch, dir, r.by)
		case "pushed":
			f.push(&x, said, dir)
		case "opened":
			f.work.PullRequest = r.by.seen(x.url)
		case "clean":
			f.clean(dir)
		}
	}
	switch only := r.output.firstLine; {
	case !s.Alone || r.status != 0:
	case s.reports&read().names["short"] != 0 && r.saidNothing(s):
		f.clean(dir)
	case s.reports&read().names["name"] != 0 && r.output.lines == 1 && !strings.Contains(only, " "):
		f.onBranch(only, dir, r.by)
	}
}

// What nobody knows, as in state.Unknown.
const (
	theTree   = "tree"
	theBranch = "branch"
)

// forget notes what nobody knows after a command; writes says that it names files that it writes.
func (f *fold) forget(r *run, s *step, said []told, dir string, writes bool) {
	command := clip.Brief(s.Text, maxCommand)
	may := perhapsChanged + command + "` may have changed"
	forget := func(what string) {
		if !slices.ContainsFunc(f.work.Unknown, func(u state.Unknown) bool { return u.What == what }) {
			f.work.Unknown = append(f.work.Unknown, state.Unknown{What: what, By: command, Turn: r.by.turn, Sources: r.by.sources})
		}
	}
	unknown := s.unknown
	if slices.ContainsFunc(said, func(x told) bool { return x.event == "files" }) {
		unknown = []string{"files"} // a name that was that of a file
	}
	for _, what := range unknown {
		switch {
		case what == "commit" || what == "commits":
			f.doubt(r.by.seen(command), dir, what == "commit")
		case what == "checks" || what == "unnamed" && !writes:
			f.changed(may)
		case what == theBranch:
			if f.work.Branch.Text != "" {
				forget(theBranch)
			}
			f.work.Branch, f.work.PullRequest = state.Seen{}, state.Seen{}
		case what == theTree:
			forget(theTree)
			f.changed(may)
		case what == "files":
			named := s.names()
			if len(named) == 0 {
				forget(theTree)
			}
			for _, name := range named {
				name = f.absolute(name, dir)
				forget(name)
				f.work.Edited = slices.DeleteFunc(f.work.Edited, func(e state.Edit) bool { return within(e.Path, name) })
			}
			f.changed(may)
		}
	}
}

// maxNames is how many files a call of git may name: each is compared with all that were edited.
const maxNames = 64

// names are the files that a command of git names.
func (s *step) names() (all []string) {
	for _, w := range s.args[:min(len(s.args), maxNames)] {
		if name := shell.Path(w); name != "." && strings.ContainsAny(name, "./") {
			all = append(all, name)
		}
	}
	return all
}

// clean notes that no uncommitted change is left in a repository; dir is a folder in it.
func (f *fold) clean(dir string) {
	if f.foreign(dir) {
		return
	}
	all := dir == "" || dir == f.base()
	f.work.Edited = slices.DeleteFunc(f.work.Edited, func(e state.Edit) bool { return all || within(e.Path, dir) })
	if all {
		f.work.Omitted.Edited = 0
		f.work.Unknown = slices.DeleteFunc(f.work.Unknown, func(u state.Unknown) bool { return u.What != theBranch })
	}
}

func (f *fold) onBranch(name, dir string, by proof) {
	if f.foreign(dir) || name == "HEAD" {
		return
	}
	f.know(theBranch)
	if f.work.Branch.Text != name {
		if f.work.Branch.Text != "" {
			f.work.PullRequest = state.Seen{} // it belongs to the other branch
		}
		f.work.Branch = by.seen(name)
	}
}

// commit adds the commits that git printed: of several in a line one for each command that commits, and all that are
// left for the last of them. What was edited before one that names no files is not edited since the last commit;
// before any other it is perhaps committed.
func (f *fold) commit(r *run, n int, said []told, dir string, nothing bool) {
	s, foreign := &r.steps[n], f.foreign(dir)
	if dir == shell.Unknown {
		dir = ""
	}
	said = slices.DeleteFunc(slices.Clone(said), func(x told) bool { return x.event != "committed" })
	said = said[min(len(said), r.taken):]
	if len(said) > 1 && slices.ContainsFunc(r.steps[n+1:], func(s step) bool { return s.event == "commit" }) {
		said = said[:1]
	}
	for _, x := range said {
		subject, end := clip.Brief(x.subject, maxSubject), len(f.work.Commits)-1
		if end >= 0 && slices.Contains(s.unknown, "commit") { // it amends: what has its subject was the tip
			if old := &f.work.Commits[end]; !old.Pushed && old.Subject == subject && old.Branch == x.branch && near(old.Dir, dir) {
				f.work.Commits = f.work.Commits[:end]
			}
		}
		f.work.Commits = append(f.work.Commits, state.Commit{Hash: x.hash, Subject: subject, Branch: x.branch, Dir: dir, Turn: r.by.turn, Sources: r.by.sources})
		f.onBranch(x.branch, dir, r.by)
	}
	r.taken += len(said)
	if len(said) == 0 && nothing {
		return
	}
	if len(said) == 1 && len(s.args) == 0 { // what it left out is not known
		f.work.Edited = slices.DeleteFunc(f.work.Edited, func(e state.Edit) bool { return dir == "" || within(e.Path, dir) })
		if !foreign {
			f.work.Omitted.Edited = 0
			f.know(theTree)
		}
	}
	for i := range f.work.Edited {
		e := &f.work.Edited[i]
		e.PerhapsCommitted = e.PerhapsCommitted || !foreign || within(e.Path, dir)
	}
}

// doubt notes that commits that were not pushed, or only the last, pushed or not, may have been taken back or made anew.
func (f *fold) doubt(by state.Seen, dir string, last bool) {
	for i := len(f.work.Commits) - 1; i >= 0; i-- {
		c := &f.work.Commits[i]
		if !near(c.Dir, dir) || c.Pushed && !last {
			continue
		}
		if c.Perhaps.Text == "" {
			c.Perhaps = by
		}
		if last {
			return
		}
	}
}

// push marks the commits of which git printed that they were pushed: those of the branch, up to the one that is its
// tip, if that is known. A tip that is none of the commits is of another repository, or of what others did. The tip
// that a forced push replaced is forgotten.
func (f *fold) push(x *told, said []told, dir string) {
	if slices.ContainsFunc(said, func(x told) bool { return x.event == "rejected" }) {
		return
	}
	if old, _, forced := strings.Cut(strings.TrimPrefix(x.text, "+ "), "..."); forced {
		f.work.Commits = slices.DeleteFunc(f.work.Commits, func(c state.Commit) bool {
			return c.Hash != "" && c.Branch == x.branch && (strings.HasPrefix(c.Hash, old) || strings.HasPrefix(old, c.Hash))
		})
	}
	tip := func(c state.Commit) bool {
		return x.hash == "" || strings.HasPrefix(c.Hash, x.hash) || strings.HasPrefix(x.hash, c.Hash)
	}
	ours := slices.ContainsFunc(f.work.Commits, tip)
	for i := range f.work.Commits {
		c := &f.work.Commits[i]
		c.Pushed = c.Pushed || ours && c.Branch == x.branch && c.Perhaps.Text == "" && near(c.Dir, dir) || x.hash != "" && tip(*c)
	}
}
