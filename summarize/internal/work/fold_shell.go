package work

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/state"
)

// shellRun is a command line that was run, and its output.
type shellRun struct {
	*Call
	output *Result
	code   int
	known  bool // whether code is known
	base   string
	by     proof
	taken  int // lines of commits that were taken
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
	run := &shellRun{Call: c, output: r, code: code, known: known, base: f.cwd, by: by}
	if c.workdir != "" {
		if run.base = resolve(f.home, c.workdir); run.base == shell.Unknown {
			run.base = ""
		}
	}
	lost := strings.Contains(r.firstLine, "cd:") && (!known || code != 0)
	if len(c.steps) > 0 && !c.background && r.Started == "" && !lost { // else the end was not seen
		for n := range c.steps {
			f.apply(run, n)
		}
		f.setDirectory(run, p.beside)
	}
	f.resetDirectory(r, by)
}

// apply applies what command n of a line did.
func (f *fold) apply(r *shellRun, n int) {
	s := &r.steps[n]
	dir := resolve(r.base, s.Dir)
	writes := false
	for _, op := range r.Files {
		if op.By != s.Command || op.Note == shell.Restored {
			continue
		}
		writes = true
		if s.Name() == "touch" || !r.came(op.By, op.Path, r.output, r.code, r.known) {
			continue
		}
		if op.Op == "created" && !strings.HasPrefix(op.Note, "moved from ") {
			op.Op = "edited" // it may have existed
		}
		f.addEdit(op, r.base, r.by)
	}
	if s.command == nil {
		return
	}
	if s.isCheck() {
		f.check(r, n, dir)
	}
	if s.Name() == "git" {
		dir = resolve(dir, s.option("-C"))
	}
	undone := s.Undone && r.known && r.code != 0
	if f.scratch(dir) || undone && !slices.Contains(s.unknown, "anyway") && s.event != "commit" {
		return
	}
	said := r.said(n)
	if slices.ContainsFunc(said, func(x told) bool { return x.event == "nothing" || x.event == "same branch" }) {
		said, undone = slices.DeleteFunc(said, func(x told) bool { return x.event == "nothing" }), true
	} else {
		f.forget(s, said, dir, writes, r.by)
	}
	switch s.event {
	case "commit":
		f.commit(r, n, said, dir, undone)
		return
	}
	for _, x := range said {
		switch x.event {
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
	if s.reports&read().names["short"] != 0 && s.Alone && r.saidNothing(s) {
		f.clean(dir)
	}
}

// said returns the lines in which git says what command n did. Where another command may have printed them,
// only the commits count of which the subject stands in the command.
func (r *shellRun) said(n int) (all []told) {
	s := &r.steps[n]
	for i := range r.output.told {
		switch x := &r.output.told[i]; {
		case x.rank != '0' || x.by&s.reports == 0 || s.Shown == shell.NotShown:
		case r.onlyOf(n, x, false), x.subject != "" && (strings.Contains(s.Text, x.subject) || strings.Contains(s.Document.Text, x.subject)):
			all = append(all, *x)
		}
	}
	if only, line := read().only, r.output.firstLine; s.reports&only.by != 0 && s.Alone && r.output.lines == 1 && r.known && r.code == 0 && only.form().MatchString(line) {
		all = append(all, told{printed: only, branch: line})
	}
	return all
}

// option is the value of an option of a command; "" if it has none.
func (s *step) option(name string) string {
	if at := slices.IndexFunc(s.Words, func(w shell.Word) bool { return w.Text == name }); at >= 0 && at < 3 && at+1 < len(s.Words) {
		if dir := shell.Path(s.Words[at+1].Text); dir != "" {
			return dir
		}
		return shell.Unknown
	}
	return ""
}

// What nobody knows, as in state.Unknown.
const (
	theTree   = "tree"
	theBranch = "branch"
)

// forget notes what nobody knows after a command; writes says that it names files that it writes.
func (f *fold) forget(s *step, said []told, dir string, writes bool, by proof) {
	if f.foreign(dir) {
		return
	}
	command := clip.Brief(s.Text, maxCommand)
	may := perhapsChanged + command + "` may have changed"
	forget := func(what string) {
		if !slices.ContainsFunc(f.work.Unknown, func(u state.Unknown) bool { return u.What == what }) {
			f.work.Unknown = append(f.work.Unknown, state.Unknown{What: what, By: command, Turn: by.turn, Sources: by.sources})
		}
	}
	unknown := s.unknown
	if slices.ContainsFunc(said, func(x told) bool { return x.event == "files" }) {
		unknown = []string{"files"} // a name that was that of a file
	}
	for _, what := range unknown {
		switch what {
		case "unnamed":
			if writes {
				continue
			}
			if slices.ContainsFunc(s.args, namesFile) { // the others are as they were
				f.changed(may)
				continue
			}
			what = theTree
		case "commit", "commits":
			f.doubt(command, dir, what == "commit", by)
			continue
		}
		switch what {
		case theBranch:
			if f.work.Branch.Text != "" {
				forget(theBranch)
			}
			f.work.Branch, f.work.PullRequest = state.Seen{}, state.Seen{}
		case theTree:
			forget(theTree)
			f.changed(may)
		case "checks":
			f.changed(may)
		case "files":
			named := false
			for _, w := range s.args[:min(len(s.args), maxNames)] {
				if name := shell.Path(w); name != "" && strings.ContainsAny(name, "./") && !namesCommit(name) && name != "." {
					name, named = f.absolute(name, dir), true
					forget(name)
					f.work.Edited = slices.DeleteFunc(f.work.Edited, func(e state.Edit) bool { return within(e.Path, name) })
				}
			}
			if !named {
				forget(theTree)
			}
			f.changed(may)
		}
	}
}

// namesFile reports whether an argument is the name of one file.
func namesFile(arg string) bool {
	return !strings.HasPrefix(arg, "-") && !strings.ContainsAny(arg, "*?$") && strings.Trim(path.Ext(arg), ".") != ""
}

// know notes that something is known again: a file, the branch, or which files differ.
func (f *fold) know(what string) {
	f.work.Unknown = slices.DeleteFunc(f.work.Unknown, func(u state.Unknown) bool { return u.What == what })
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

// foreign reports whether a folder is surely not that of the work: neither above nor below the
// folder in which the shell was started.
func (f *fold) foreign(dir string) bool {
	base := f.base()
	return dir != "" && dir != shell.Unknown && base != "" && !within(dir, base) && !within(base, dir)
}

// within reports whether a path is a folder or lies in it.
func within(name, folder string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(folder, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// maxNames is how many files a call of git may name: each is compared with all that were edited.
const maxNames = 64

// commit adds the commits that git printed: of several in a line one for each command that commits, and all that are
// left for the last of them. What was edited before one that names no files is not edited since the last commit;
// before any other it is perhaps committed.
func (f *fold) commit(r *shellRun, n int, said []told, dir string, nothing bool) {
	s, foreign := &r.steps[n], f.foreign(dir)
	if dir == shell.Unknown {
		dir = ""
	}
	said = slices.DeleteFunc(said, func(x told) bool { return x.event != "committed" })
	said = said[min(len(said), r.taken):]
	if len(said) > 1 && slices.ContainsFunc(r.steps[n+1:], func(s step) bool { return s.command != nil && s.event == "commit" }) {
		said = said[:1]
	}
	for _, x := range said {
		f.work.Commits = append(f.work.Commits, state.Commit{Hash: x.hash, Subject: clip.Brief(x.subject, maxSubject), Branch: x.branch, Dir: dir, Turn: r.by.turn, Sources: r.by.sources})
		f.onBranch(x.branch, dir, r.by)
	}
	r.taken += len(said)
	if len(said) == 0 && nothing {
		return
	}
	if len(said) > 0 && len(s.args) == 0 && s.Ran != shell.RanPerhaps { // what it left out is not known
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

// doubt notes that commits that were not pushed, or only the last, may have been taken back or made anew.
func (f *fold) doubt(command, dir string, last bool, by proof) {
	for i := len(f.work.Commits) - 1; i >= 0; i-- {
		if c := &f.work.Commits[i]; !c.Pushed && c.Perhaps.Text == "" && (c.Dir == "" || dir == "" || within(c.Dir, dir) || within(dir, c.Dir)) {
			if c.Perhaps = by.seen(command); last {
				return
			}
		}
	}
}

// push marks the commits of which git printed that they were pushed: those of the branch, up to the one that is its
// tip, if that is known. A tip that is none of the commits may be of another repository.
func (f *fold) push(x *told, said []told, dir string) {
	if slices.ContainsFunc(said, func(x told) bool { return x.event == "rejected" }) {
		return
	}
	tip := func(c state.Commit) bool {
		return x.hash != "" && (strings.HasPrefix(c.Hash, x.hash) || strings.HasPrefix(x.hash, c.Hash))
	}
	ours := x.hash == "" || slices.ContainsFunc(f.work.Commits, tip)
	for i := range f.work.Commits {
		c := &f.work.Commits[i]
		near := c.Dir == "" || dir == "" || within(c.Dir, dir) || within(dir, c.Dir)
		if tip(*c) || c.Branch == x.branch && c.Perhaps.Text == "" && near && (ours || (c.Dir == "") == (dir == "")) {
			c.Pushed = true
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
	dir := resolve(r.base, last.End)
	if last.To != "" && !(r.known && r.code == 0) {
		dir = shell.Unknown
	}
	if r.output.lines > 0 && last.Name() == "pwd" && path.IsAbs(r.output.lastLine) && !strings.Contains(r.output.lastLine, " ") && last.Alone {
		dir = r.output.lastLine
	}
	keeps := r.Name == "Bash" // Claude Code's shell keeps its directory
	away := keeps && last.End != ""
	gone := func(op shell.FileOp) bool { return op.Op == "deleted" && within(dir, f.absolute(op.Path, r.base)) }
	switch {
	case slices.ContainsFunc(r.Files, gone):
		f.cwd, f.work.Directory = "", state.Seen{}
		return
	case away && (beside || dir == shell.Unknown || dir == ""):
		f.cwd = "" // which of the parallel calls was the last is unknown
		return
	case dir == shell.Unknown || dir == "":
		return
	}
	if f.work.Directory.Text != dir {
		f.work.Directory = r.by.seen(dir)
	}
	if keeps {
		f.cwd = dir
	}
}
