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
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// How many entries of each kind are kept, the newest.
const (
	maxCommits    = 20
	maxEdited     = 120
	maxChecks     = 6
	maxSince      = 60
	maxRefused    = 6
	maxRunning    = 8
	maxOperations = 40
	maxSubject    = 160 // bytes of a subject
)

const (
	maxInput = 220 // bytes of what was asked for
	maxQuote  = 180 // bytes of a line of output, and of what a user said
)

// foldWork returns the state of the work after the messages, given the state before them. It
// takes only what the log proves: a commit counts if git printed it or its chain of
// commands succeeded, and a line of output only if nobody but git could have written it.
func foldWork(previous state.Work, messages []thread.Message, of func(*thread.Message) *workMessage) state.Work {
	f := workFold{work: copyWork(previous), calls: map[string]pendingCall{}, flagged: map[string]bool{}}
	f.cwd = f.work.Directory.Text
	f.branch = f.work.Branch.Text
	for i := range messages {
		f.message(&messages[i], of(&messages[i]))
	}
	f.finish()
	return f.work
}

type pendingCall struct {
	call      *workCall
	asked     *thread.Message
	operation int // its index in Work.Operations, or -1
}

// proof is the origin of an entry: the turn, and the messages of a call and its result.
type proof struct {
	turn    int
	sources []thread.ID
}

func (by proof) seen(text string) state.Seen {
	return state.Seen{Text: text, Turn: by.turn, Sources: by.sources}
}

type workFold struct {
	work    state.Work
	calls   map[string]pendingCall
	flagged map[string]bool // tools that were seen to flag failures
	home    string          // where the harness started the shell
	cwd     string          // where commands without "cd" run; "" if unknown
	branch  string
	stashed []state.Edit
}

func copyWork(w state.Work) state.Work {
	w.Commits, w.Edited, w.Checks = slices.Clone(w.Commits), slices.Clone(w.Edited), slices.Clone(w.Checks)
	for i := range w.Checks {
		w.Checks[i].Since = slices.Clip(w.Checks[i].Since)
	}
	w.Refused, w.Running, w.Operations = slices.Clone(w.Refused), slices.Clone(w.Running), slices.Clone(w.Operations)
	return w
}

// keepNewest keeps the n newest entries of a list and counts those that go.
func keepNewest[T any](list *[]T, n int, left *int) {
	if gone := len(*list) - n; gone > 0 {
		*left += gone
		*list = (*list)[gone:]
	}
}

func (f *workFold) message(m *thread.Message, x *workMessage) {
	f.applyNotice(m, &x.notice)
	switch {
	case m.StartsTurn():
		f.work.Next = state.Seen{}
	case m.Role == thread.Assistant:
		if x.said || len(x.calls) > 0 {
			f.work.Next = state.Seen{}
		}
		if x.next != "" {
			f.work.Next = proof{m.Turn, []thread.ID{m.ID}}.seen(x.next)
		}
		for _, c := range x.calls {
			f.call(m, c)
		}
	}
	if x.result != nil {
		f.result(m, x.result)
	}
}

// applyNotice applies what a harness said.
func (f *workFold) applyNotice(m *thread.Message, n *notice) {
	if n.directory != "" {
		f.home, f.cwd = n.directory, n.directory
		f.work.Directory = proof{m.Turn, []thread.ID{m.ID}}.seen(n.directory)
	}
	for _, id := range n.ended {
		f.endRunning(id)
	}
	if n.interrupted {
		for id, c := range f.calls {
			// An interrupted call gets no result.
			if c.asked != nil && c.operation < 0 {
				delete(f.calls, id)
			}
		}
	}
}

func (f *workFold) call(m *thread.Message, c *workCall) {
	p := pendingCall{call: c, asked: m, operation: -1}
	if c.operates {
		p.operation = len(f.work.Operations)
		f.work.Operations = append(f.work.Operations, state.Operation{Tool: c.name, Input: clip.Brief(c.input, maxInput), Turn: m.Turn, Sources: []thread.ID{m.ID}})
	}
	f.calls[c.id] = p
}

func (f *workFold) result(m *thread.Message, r *workResult) {
	p, ok := f.calls[r.callID]
	if !ok {
		return
	}
	delete(f.calls, r.callID)
	c := p.call
	by := proof{p.asked.Turn, []thread.ID{p.asked.ID, m.ID}}
	if r.deniedByUser || r.deniedByRule {
		f.addRefusal(p, r, by)
		return
	}
	switch c.class {
	case toolpolicy.Other:
		f.operation(p, r, by)
	case toolpolicy.Edit, toolpolicy.Write:
		if r.outcome == thread.Failure || r.outcome == thread.Partial || r.notEdited || toolpolicy.Normal(c.name) == "createdirectory" {
			break
		}
		for _, op := range c.files {
			if op.Op == "created" && c.class == toolpolicy.Write && !r.fileCreated {
				op.Op = "edited" // it may have existed
			}
			f.addEdit(op, f.base(), by)
		}
	case toolpolicy.Shell:
		f.removeRefusal(c)
		f.applyShell(p, r, by)
	case toolpolicy.Agent:
		if r.started != "" {
			f.addRunning(c, r.started, by)
		}
	case toolpolicy.Poll:
		if r.ended || c.stops && r.outcome != thread.Failure {
			f.endRunning(c.target)
		}
	}
}

// addRefusal notes a call that the user or a rule did not allow.
func (f *workFold) addRefusal(p pendingCall, w *workResult, by proof) {
	text := strings.TrimSpace(p.call.name + " " + clip.Brief(p.call.input, maxCommand))
	switch {
	case w.deniedByRule:
		text += " | by a permission rule"
	case w.userSaid != "":
		text += ` | the user said: "` + clip.Brief(w.userSaid, maxQuote) + `"`
	default:
		text += " | by the user"
	}
	f.work.Refused = append(f.work.Refused, by.seen(text))
	if p.operation >= 0 {
		o := &f.work.Operations[p.operation]
		o.Outcome, o.Reason, o.Sources = thread.Failure, "the user did not allow it", by.sources
		if w.deniedByRule {
			o.Reason = "a permission rule did not allow it"
		}
	}
}

// removeRefusal forgets the refusal of a call that ran later.
func (f *workFold) removeRefusal(c *workCall) {
	if len(f.work.Refused) == 0 {
		return
	}
	text := strings.TrimSpace(c.name+" "+clip.Brief(c.input, maxCommand)) + " | "
	f.work.Refused = slices.DeleteFunc(f.work.Refused, func(s state.Seen) bool { return strings.HasPrefix(s.Text, text) })
}

func (f *workFold) operation(p pendingCall, r *workResult, by proof) {
	if p.operation < 0 {
		return
	}
	o := &f.work.Operations[p.operation]
	o.Sources = by.sources
	o.Outcome, o.Reason = thread.Success, r.answer
	switch {
	case r.outcome == thread.Failure || r.refusal != "":
		o.Outcome, o.Reason = thread.Failure, r.refusal
		if o.Reason == "" {
			o.Reason = clip.Brief(r.first, maxQuote)
		}
	case r.outcome == thread.Partial:
		o.Outcome, o.Reason = thread.Partial, ""
	case p.call.opensPull && r.pullRequest != "":
		f.work.PullRequest = by.seen(r.pullRequest)
	}
}

func (f *workFold) addRunning(c *workCall, id string, by proof) {
	if id == "" || len(id) > 100 {
		return
	}
	f.endRunning(id)
	text := strings.TrimSpace(c.name+" "+clip.Brief(c.input, maxCommand)) + idOpen + id + ")"
	f.work.Running = append(f.work.Running, by.seen(text))
}

const idOpen = " (id "

// endRunning removes what ended from Work.Running.
func (f *workFold) endRunning(id string) {
	if id != "" {
		f.work.Running = slices.DeleteFunc(f.work.Running, func(s state.Seen) bool { return strings.HasSuffix(s.Text, idOpen+id+")") })
	}
}

// status is the exit status of a command line; false if it is unknown.
func (f *workFold) status(c *workCall, r *workResult) (int, bool) {
	switch {
	case r.halted || r.outcome == thread.Partial:
		return 0, false
	case r.hasCode:
		if r.outcome == thread.Failure && r.code != 0 {
			f.flagged[c.name] = true
		}
		return r.code, true
	case r.outcome == thread.Failure:
		return 0, false
	}
	// Claude Code flags every command that fails, and so do tools that did it before.
	return 0, c.name == "Bash" || f.flagged[c.name]
}

func (f *workFold) resetDirectory(w *workResult, by proof) {
	if path.IsAbs(w.reset) {
		f.home, f.cwd = w.reset, w.reset
		f.work.Directory = by.seen(w.reset)
	}
}

// scratch reports whether a folder is temporary while the work is elsewhere.
func (f *workFold) scratch(dir string) bool { return temporary(dir) && !temporary(f.base()) }

func (f *workFold) base() string { return cmp.Or(f.home, f.cwd) }

// temporary reports whether a folder lies in one of the system's folders for temporary files.
func temporary(dir string) bool {
	dir, rooted := strings.CutPrefix(strings.TrimPrefix(strings.TrimSuffix(dir, "/")+"/", "/private"), "/")
	return rooted && (strings.HasPrefix(dir, "tmp/") || strings.HasPrefix(dir, "var/tmp/") || strings.HasPrefix(dir, "var/folders/"))
}

// addEdit notes that a file changed.
func (f *workFold) addEdit(op shell.FileOp, dir string, by proof) {
	if op.Op == "read" || op.Path == "" {
		return
	}
	name := op.Path
	if !path.IsAbs(name) && !strings.HasPrefix(name, "~") {
		switch {
		case dir == shell.Unknown:
			return
		case dir != "":
			name = path.Join(dir, name)
		case f.base() != "":
			name = path.Join(f.base(), name)
		}
	}
	if op.Op == "deleted" && within(f.work.Directory.Text, name) {
		f.work.Directory = state.Seen{}
	}
	if f.scratch(name) || strings.HasPrefix(name, "/dev/") || strings.Contains(name, "/.claude/plans/") {
		return
	}
	e := state.Edit{Path: name, Operation: op.Op, Turn: by.turn, Sources: by.sources}
	if at := slices.IndexFunc(f.work.Edited, func(e state.Edit) bool { return e.Path == name }); at >= 0 {
		switch old := f.work.Edited[at].Operation; {
		case old == "created" && e.Operation == "deleted":
			e.Path = "" // created and deleted again
		case old == "created" || old == "edited" && e.Operation == "created":
			e.Operation = old
		}
		f.work.Edited = slices.Delete(f.work.Edited, at, at+1)
	}
	if e.Path != "" {
		f.work.Edited = append(f.work.Edited, e)
	}
	if len(f.work.Edited) > 2*maxEdited {
		keepNewest(&f.work.Edited, maxEdited, &f.work.Omitted.Edited)
	}
	for i := range f.work.Checks {
		c := &f.work.Checks[i]
		if len(c.Since) < maxSince && !slices.Contains(c.Since, name) {
			c.Since = append(c.Since, name)
		}
	}
}

// finish bounds the lists.
func (f *workFold) finish() {
	keepNewest(&f.work.Commits, maxCommits, &f.work.Omitted.Commits)
	keepNewest(&f.work.Operations, maxOperations, &f.work.Omitted.Operations)
	keepNewest(&f.work.Edited, maxEdited, &f.work.Omitted.Edited)
	keepNewest(&f.work.Refused, maxRefused, &f.work.Omitted.Refused)
	keepNewest(&f.work.Running, maxRunning, &f.work.Omitted.Running)
}
