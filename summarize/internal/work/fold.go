// Package work reads off a log where the work stands: the branch, commits, files edited since
// the last of them, checks and their outcome, what was refused, what still runs, operations
// asked of systems.
//
// A table (events.txt) says of each command what happened where it ran, what its output tells of it, and what
// nobody knows any more after it. read.go reads what a call, a result or a notice of a harness says; what is
// read of a message depends on no other message, so a caller can keep it. Fold goes through the messages in
// order and notes what happened. What a command may have changed without a word is not worked out: it is
// said to be unknown, until something tells it again. All of it is pure.
package work

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
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
	maxUnknown    = 12
	maxSubject    = 160 // bytes of a subject
)

const (
	// MaxInput bounds what a call asks for, in bytes.
	MaxInput = 220
	maxQuote = 180 // bytes of a line of output, and of what a user said
)

// messageEffort is about what a message takes at least, in units of effort.
const messageEffort = 1 << 10

// Fold returns the state of the work after the messages, given the state before them. It takes only
// what the log proves: a commit counts if git printed it, and a line of output only if nobody but git
// could have written it. All of it ends once the budget or its context does.
func Fold(budget *effort.Budget, previous state.Work, messages []thread.Message, of func(*thread.Message) Message) state.Work {
	f := fold{effort: budget, work: copyWork(previous), calls: map[string]pendingCall{}, operating: map[string]pendingCall{}, flagged: map[string]bool{}}
	f.cwd = f.work.Directory.Text
	for i := range messages {
		if !budget.Live(messageEffort) {
			break
		}
		x := of(&messages[i])
		f.message(&messages[i], &x)
	}
	f.finish()
	return f.work
}

type pendingCall struct {
	call      *Call
	asked     *thread.Message
	beside    bool // it was made in parallel with others
	operation int  // its index in Work.Operations, or -1
}

// proof is the origin of an entry: the turn, and the messages of a call and its result.
type proof struct {
	turn    int
	sources []thread.ID
}

func (by proof) seen(text string) state.Seen {
	return state.Seen{Text: text, Turn: by.turn, Sources: by.sources}
}

type fold struct {
	effort    *effort.Budget
	work      state.Work
	calls     map[string]pendingCall
	operating map[string]pendingCall // those that operate a system
	flagged   map[string]bool        // tools that were seen to flag failures
	home      string                 // where the harness started the shell
	cwd       string                 // where commands without "cd" run; "" if unknown
	turn      int                    // the newest
}

func copyWork(w state.Work) state.Work {
	w.Commits, w.Edited, w.Unknown, w.Checks = slices.Clone(w.Commits), slices.Clone(w.Edited), slices.Clone(w.Unknown), slices.Clone(w.Checks)
	for i := range w.Checks {
		w.Checks[i].Since = slices.Clip(w.Checks[i].Since)
	}
	w.Refused, w.Running, w.Operations = slices.Clone(w.Refused), slices.Clone(w.Running), slices.Clone(w.Operations)
	return w
}

// keepNewest keeps the n newest entries of a list that has more than most, and counts those that go.
func keepNewest[T any](list *[]T, n, most int, left *int) {
	if gone := len(*list) - n; len(*list) > most {
		*left += gone
		*list = (*list)[gone:]
	}
}

func (f *fold) message(m *thread.Message, x *Message) {
	f.turn = max(f.turn, m.Turn)
	f.bound(watched, 2*watched)
	if x.Notice != nil {
		f.applyNotice(m, x.Notice)
	}
	switch {
	case m.StartsTurn():
		f.work.Next = state.Seen{}
	case m.Role == thread.Assistant:
		if x.Said || len(x.Calls) > 0 {
			f.work.Next = state.Seen{}
		}
		if x.Next != "" {
			f.work.Next = proof{m.Turn, []thread.ID{m.ID}}.seen(x.Next)
		}
		for _, c := range x.Calls {
			f.call(m, c, len(x.Calls) > 1)
		}
	}
	if x.Result != nil {
		f.result(m, x.Result)
	}
}

// applyNotice applies what a harness said.
func (f *fold) applyNotice(m *thread.Message, n *Notice) {
	if n.directory != "" {
		f.home, f.cwd = n.directory, n.directory
		f.work.Directory = proof{m.Turn, []thread.ID{m.ID}}.seen(n.directory)
	}
	for _, id := range n.ended {
		f.endRunning(id)
	}
	if n.interrupted {
		f.calls = map[string]pendingCall{} // an interrupted call gets no result
	}
}

func (f *fold) call(m *thread.Message, c *Call, beside bool) {
	p := pendingCall{call: c, asked: m, beside: beside, operation: -1}
	delete(f.operating, c.ID)
	delete(f.calls, c.ID)
	if c.operates {
		p.operation = len(f.work.Operations)
		f.work.Operations = append(f.work.Operations, state.Operation{Tool: c.Name, Input: clip.Brief(c.Input, MaxInput), Turn: m.Turn, Sources: []thread.ID{m.ID}})
		f.operating[c.ID] = p
		return
	}
	f.calls[c.ID] = p
}

func (f *fold) result(m *thread.Message, r *Result) {
	p, ok := f.calls[r.CallID]
	if !ok {
		if p, ok = f.operating[r.CallID]; !ok {
			return
		}
	}
	delete(f.calls, r.CallID)
	delete(f.operating, r.CallID)
	c := p.call
	by := proof{p.asked.Turn, []thread.ID{p.asked.ID, m.ID}}
	if r.DeniedByUser || r.deniedByRule {
		f.addRefusal(p, r, by)
		return
	}
	switch c.Class {
	case toolclass.Other:
		f.operation(p, r, by)
	case toolclass.Edit, toolclass.Write:
		if toolclass.Normal(c.Name) == "createdirectory" {
			break
		}
		did, _ := c.did(r, 0, false)
		for _, op := range did {
			if op.Op == "created" && c.Class == toolclass.Write && !r.fileCreated {
				op.Op = "edited" // it may have existed
			}
			f.addEdit(op, f.base(), by)
		}
	case toolclass.Read:
		did, _ := c.did(r, 0, false)
		for _, op := range did {
			f.know(f.absolute(op.Path, f.base()))
		}
	case toolclass.Shell:
		if !r.Canceled {
			f.removeRefusal(c)
		}
		if f.home == "" && path.IsAbs(r.reset) {
			f.home = r.reset // where the shell was put back to is where the work is
		}
		f.applyShell(p, r, by)
	case toolclass.Agent:
		if r.Started != "" {
			f.addRunning(c, r.Started, by)
		}
	case toolclass.Poll:
		if r.ended || c.stops && r.Outcome != thread.Failure {
			f.endRunning(c.target)
		}
	}
}

// addRefusal notes a call that the user or a rule did not allow.
func (f *fold) addRefusal(p pendingCall, w *Result, by proof) {
	text := refused(p.call)
	switch {
	case w.deniedByRule:
		text += byRule
	case w.userSaid != "":
		text += userSaid + clip.Brief(w.userSaid, maxQuote) + `"`
	default:
		text += byUser
	}
	f.work.Refused = append(f.work.Refused, by.seen(text))
	if p.operation >= 0 {
		o := &f.work.Operations[p.operation]
		o.Outcome, o.Refused, o.Reason, o.Sources = thread.Failure, true, "the user did not allow it", by.sources
		if w.deniedByRule {
			o.Reason = "a permission rule did not allow it"
		}
	}
}

// Who did not allow a call.
const (
	byRule   = " | by a permission rule"
	byUser   = " | by the user"
	userSaid = ` | the user said: "`
)

// refused is how a refusal names its call.
func refused(c *Call) string {
	return strings.TrimSpace(c.Name + " " + clip.Brief(c.Input, maxCommand))
}

// removeRefusal forgets the refusal of a call that ran later. Of one that was cut nobody knows
// whether it is the same.
func (f *fold) removeRefusal(c *Call) {
	call := refused(c)
	if strings.Contains(call, "…") {
		return
	}
	f.work.Refused = slices.DeleteFunc(f.work.Refused, func(s state.Seen) bool {
		by, ok := strings.CutPrefix(s.Text, call)
		return ok && (by == byRule || by == byUser || strings.HasPrefix(by, userSaid))
	})
}

func (f *fold) operation(p pendingCall, r *Result, by proof) {
	if p.operation < 0 {
		return
	}
	o := &f.work.Operations[p.operation]
	o.Sources = by.sources
	o.Outcome, o.Reason = thread.Success, r.answer
	switch {
	case r.Canceled:
		o.Outcome, o.Reason = "", "a call beside it failed"
	case r.Outcome == thread.Failure || r.Refusal != "" || r.Claim != "":
		o.Outcome, o.Reason, o.Refused = thread.Failure, cmp.Or(r.Refusal, r.Claim), r.Refusal != "" && !breaksDown(r.Refusal)
		if o.Reason == "" {
			o.Reason = clip.Brief(r.First, maxQuote)
		}
	case r.Outcome == thread.Partial:
		o.Outcome, o.Reason = thread.Partial, ""
	case p.call.opensPull && r.pullRequest != "":
		f.work.PullRequest = by.seen(r.pullRequest)
	}
}

func (f *fold) addRunning(c *Call, id string, by proof) {
	if id == "" || len(id) > 100 {
		return
	}
	f.endRunning(id)
	text := strings.TrimSpace(c.Name+" "+clip.Brief(c.Input, maxCommand)) + idOpen + id + ")"
	f.work.Running = append(f.work.Running, by.seen(text))
}

const idOpen = " (id "

// endRunning removes what ended from Work.Running.
func (f *fold) endRunning(id string) {
	if id != "" {
		f.work.Running = slices.DeleteFunc(f.work.Running, func(s state.Seen) bool { return strings.HasSuffix(s.Text, idOpen+id+")") })
	}
}

// status is the exit status of a command line; false if it is unknown.
func (f *fold) status(c *Call, r *Result) (int, bool) {
	if r.Outcome == thread.Failure && r.hasCode && r.code != 0 && !r.halted {
		f.flagged[c.Name] = true
	}
	return r.status(c.Name == "Bash" || f.flagged[c.Name]) // Claude Code flags every command that fails
}

func (f *fold) resetDirectory(w *Result, by proof) {
	if path.IsAbs(w.reset) {
		f.home, f.cwd = w.reset, w.reset
		f.work.Directory = by.seen(w.reset)
	}
}

// scratch reports whether a folder is temporary while the work is elsewhere.
func (f *fold) scratch(dir string) bool { return temporary(dir) && !temporary(f.base()) }

func (f *fold) base() string { return cmp.Or(f.home, f.cwd) }

// temporary reports whether a folder lies in one of the system's folders for temporary files.
func temporary(dir string) bool {
	dir, rooted := strings.CutPrefix(strings.TrimPrefix(strings.TrimSuffix(dir, "/")+"/", "/private"), "/")
	return rooted && (strings.HasPrefix(dir, "tmp/") || strings.HasPrefix(dir, "var/tmp/") || strings.HasPrefix(dir, "var/folders/"))
}

// absolute is the whole path of a file named from a folder, as far as that is known.
func (f *fold) absolute(name, dir string) string {
	if path.IsAbs(name) || strings.HasPrefix(name, "~") || dir == shell.Unknown {
		return name
	}
	return path.Join(cmp.Or(dir, f.base()), name)
}

// addEdit notes that a file changed.
func (f *fold) addEdit(op shell.FileOp, dir string, by proof) {
	name := f.absolute(op.Path, dir)
	if f.know(name); op.Op == "read" || op.Path == "" || dir == shell.Unknown && !path.IsAbs(name) {
		return
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
	keepNewest(&f.work.Edited, maxEdited, 2*maxEdited, &f.work.Omitted.Edited)
	f.changed(name)
}

// changed notes of all checks that something was changed after them: a file, or, once, what may have changed.
func (f *fold) changed(what string) {
	for i := range f.work.Checks {
		c := &f.work.Checks[i]
		if len(c.Since) < maxSince && !slices.ContainsFunc(c.Since, func(old string) bool {
			return old == what || strings.HasPrefix(what, perhapsChanged) && strings.HasPrefix(old, perhapsChanged)
		}) {
			c.Since = append(c.Since, what)
		}
	}
}

// perhapsChanged begins what stands for files that a command may have changed.
const perhapsChanged = "what `"

// watched is how many times more entries are kept while messages are still to come: a later one
// may end a process, take a commit back or allow what was refused.
const watched = 4

// bound keeps the lists that each message may go over from growing with the log.
func (f *fold) bound(times, most int) {
	if len(f.work.Refused) > (most-1)*maxRefused {
		// The user has gone on since, and the story tells them.
		f.work.Refused = slices.DeleteFunc(f.work.Refused, func(s state.Seen) bool { return s.Turn > 0 && s.Turn < f.turn-1 })
	}
	keepNewest(&f.work.Commits, times*maxCommits, most*maxCommits, &f.work.Omitted.Commits)
	keepNewest(&f.work.Refused, times*maxRefused, most*maxRefused, &f.work.Omitted.Refused)
	keepNewest(&f.work.Running, times*maxRunning, most*maxRunning, &f.work.Omitted.Running)
}

// finish bounds the lists.
func (f *fold) finish() {
	f.bound(1, 1)
	keepNewest(&f.work.Operations, maxOperations, maxOperations, &f.work.Omitted.Operations)
	keepNewest(&f.work.Edited, maxEdited, maxEdited, &f.work.Omitted.Edited)
	f.work.Unknown = f.work.Unknown[max(0, len(f.work.Unknown)-maxUnknown):]
}
