// Package work reads off a log where the work stands: the branch, commits, files edited since
// the last of them, checks and their outcome, what was refused, what still runs, operations
// asked of systems.
//
// A table (events.txt) says of each command what happened where it ran, what its output tells of it, and what
// nobody knows any more after it. What is read of a call (Call), a result (Result) or a notice of a harness
// (Notice) depends on no other message, so a caller can keep it. A run is a call with its result, and says what
// both prove. Fold goes through the messages in order and notes what happened. What a command may have changed
// without a word is not worked out: it is said to be unknown, until something tells it again. All of it is pure.
package work

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
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
)

const (
	// MaxInput bounds what a call asks for, in bytes.
	MaxInput   = 220
	maxQuote   = 180 // bytes of a line of output, and of what a user said
	maxSubject = 160 // bytes of a subject
	maxID      = 100 // bytes of the id of a process
)

// messageEffort is about what a message takes at least, in units of effort.
const messageEffort = 1 << 10

// Fold returns the state of the work after the messages, given the state before them. It takes only
// what the log proves: a commit counts if git printed it, and a line of output only if nobody but git
// could have written it. All of it ends once the budget or its context does.
func Fold(budget *effort.Budget, previous state.Work, messages []thread.Message, of func(*thread.Message) Message) state.Work {
	f := fold{work: copyWork(previous), calls: map[string]pendingCall{}, flagged: map[string]bool{}}
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
	*Call
	asked     *thread.Message
	beside    bool // it was made in parallel with others
	operation int  // its index in Work.Operations, or -1
	after     int  // how many interruptions were before it
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
	work        state.Work
	calls       map[string]pendingCall
	flagged     map[string]bool // tools that were seen to flag failures
	home        string          // where the harness started the shell
	cwd         string          // where commands without "cd" run; "" if unknown
	turn        int             // the newest
	interrupted int             // how often calls were interrupted
}

func copyWork(w state.Work) state.Work {
	w.Commits, w.Edited, w.Unknown, w.Checks = slices.Clone(w.Commits), slices.Clone(w.Edited), slices.Clone(w.Unknown), slices.Clone(w.Checks)
	for i := range w.Checks {
		w.Checks[i].Since = slices.Clip(w.Checks[i].Since)
	}
	w.Refused, w.Running, w.Operations = slices.Clone(w.Refused), slices.Clone(w.Running), slices.Clone(w.Operations)
	return w
}

func (f *fold) message(m *thread.Message, x *Message) {
	f.turn = max(f.turn, m.Turn)
	f.bound(watched, 2*watched)
	if x.Notice != nil {
		f.notice(m, x.Notice)
	}
	if m.StartsTurn() || m.Role == thread.Assistant && (x.Said || len(x.Calls) > 0) {
		f.work.Next = state.Seen{}
	}
	if x.Next != "" {
		f.work.Next = proof{m.Turn, []thread.ID{m.ID}}.seen(x.Next)
	}
	for _, c := range x.Calls {
		p := pendingCall{c, m, len(x.Calls) > 1, -1, f.interrupted}
		if c.operates {
			p.operation = len(f.work.Operations)
			f.work.Operations = append(f.work.Operations, state.Operation{Tool: c.Name, Input: clip.Brief(c.Input, MaxInput), Turn: m.Turn, Sources: []thread.ID{m.ID}})
		}
		f.calls[c.ID] = p
	}
	if x.Result == nil {
		return
	}
	p, ok := f.calls[x.Result.CallID]
	delete(f.calls, x.Result.CallID)
	if ok && (p.after == f.interrupted || p.operation >= 0) { // a call that was interrupted gets no result
		f.result(p, x.Result, proof{p.asked.Turn, []thread.ID{p.asked.ID, m.ID}})
	}
}

// notice notes what a harness said.
func (f *fold) notice(m *thread.Message, n *Notice) {
	if n.directory != "" {
		f.home, f.cwd = n.directory, n.directory
		f.work.Directory = proof{m.Turn, []thread.ID{m.ID}}.seen(n.directory)
	}
	for _, id := range n.ended {
		f.endRunning(id)
	}
	if n.interrupted {
		f.interrupted++
	}
}

func (f *fold) result(p pendingCall, r *Result, by proof) {
	if r.DeniedByUser || r.deniedByRule {
		f.refused(p, r, by)
		return
	}
	if len(f.work.Refused) > 0 && !r.Canceled && r.Claim == "" {
		f.allowed(p.Call)
	}
	if r.Started != "" && (p.Class == toolclass.Shell || p.Class == toolclass.Agent) {
		f.addRunning(p.Call, r.Started, by)
	}
	switch p.Class {
	case toolclass.Other:
		f.operation(p, r, by)
	case toolclass.Edit, toolclass.Write, toolclass.Read:
		did, _ := p.Did(r)
		for _, op := range did {
			if op.Op == "created" && p.Class == toolclass.Write && !r.fileCreated {
				op.Op = "edited" // it may have existed
			}
			if toolclass.Normal(p.Name) != "createdirectory" {
				f.addEdit(op, f.base(), by)
			}
		}
	case toolclass.Shell:
		f.shell(p, r, by)
	case toolclass.Poll:
		if r.ended || p.stops && r.Outcome != thread.Failure {
			f.endRunning(p.target)
		}
	}
}

// Who did not allow a call.
const (
	byRule   = " | by a permission rule"
	byUser   = " | by the user"
	userSaid = ` | the user said: "`
)

// refused notes a call that the user or a rule did not allow.
func (f *fold) refused(p pendingCall, r *Result, by proof) {
	who, reason := byUser, "the user did not allow it"
	switch {
	case r.deniedByRule:
		who, reason = byRule, "a permission rule did not allow it"
	case r.userSaid != "":
		who = userSaid + clip.Brief(r.userSaid, maxQuote) + `"`
	}
	f.work.Refused = append(f.work.Refused, by.seen(p.brief(MaxInput)+who))
	if p.operation >= 0 {
		o := &f.work.Operations[p.operation]
		o.Outcome, o.Refused, o.Reason, o.Sources = thread.Failure, true, reason, by.sources
	}
}

// brief names a call, with so many bytes of what it asks for.
func (c *Call) brief(most int) string {
	return strings.TrimSpace(c.Name + " " + clip.Brief(c.Input, most))
}

// allowed forgets the refusal of a call that ran later, or of a change of a file that was changed later. Of one that
// was cut nobody knows whether it is the same.
func (f *fold) allowed(c *Call) {
	call, changes := c.brief(MaxInput), []toolclass.Class{toolclass.Edit, toolclass.Write}
	f.work.Refused = slices.DeleteFunc(f.work.Refused, func(s state.Seen) bool {
		name, _, _ := strings.Cut(s.Text, " ")
		by, same := strings.CutPrefix(s.Text[len(name):], call[len(c.Name):])
		return same && !strings.HasSuffix(call, "…") && (by == byRule || by == byUser || strings.HasPrefix(by, userSaid)) &&
			(name == c.Name || slices.Contains(changes, c.Class) && slices.Contains(changes, toolclass.ClassOf(name)))
	})
}

func (f *fold) operation(p pendingCall, r *Result, by proof) {
	if p.operation < 0 || r.First == injected.NoResult {
		return
	}
	o := &f.work.Operations[p.operation]
	o.Sources = by.sources
	o.Outcome, o.Reason = thread.Success, p.shortAnswer(r.answer)
	switch {
	case r.Canceled:
		o.Outcome, o.Reason = "", "a call beside it failed"
	case r.Outcome == thread.Failure || r.Refusal != "" || r.Claim != "":
		o.Outcome, o.Reason = thread.Failure, cmp.Or(r.Refusal, r.Claim, clip.Brief(r.First, maxQuote))
		o.Refused = r.Refusal != "" && !has("breaking", strings.ToLower(r.Refusal))
	case r.Outcome == thread.Partial:
		o.Outcome, o.Reason = thread.Partial, ""
	}
}

func (f *fold) addRunning(c *Call, id string, by proof) {
	if len(id) <= maxID {
		f.endRunning(id)
		f.work.Running = append(f.work.Running, by.seen(c.brief(maxCommand)+idOpen+id+")"))
	}
}

const idOpen = " (id "

// endRunning removes what ended from Work.Running.
func (f *fold) endRunning(id string) {
	f.work.Running = slices.DeleteFunc(f.work.Running, func(s state.Seen) bool { return id != "" && strings.HasSuffix(s.Text, idOpen+id+")") })
}

// addEdit notes what happened to a file.
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

// know notes that something is known again: a file, the branch, or which files differ. A command may have named
// the file below a folder that is not known.
func (f *fold) know(what string) {
	f.work.Unknown = slices.DeleteFunc(f.work.Unknown, func(u state.Unknown) bool {
		return u.What == what || strings.Contains(u.What, "/") && strings.HasSuffix(what, "/"+u.What)
	})
}

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

// keepNewest keeps the n newest entries of a list that has more than most, and counts those that go.
func keepNewest[T any](list *[]T, n, most int, left *int) {
	if gone := len(*list) - n; len(*list) > most {
		*left += gone
		*list = (*list)[gone:]
	}
}

// finish bounds the lists.
func (f *fold) finish() {
	f.bound(1, 1)
	keepNewest(&f.work.Operations, maxOperations, maxOperations, &f.work.Omitted.Operations)
	keepNewest(&f.work.Edited, maxEdited, maxEdited, &f.work.Omitted.Edited)
	f.work.Unknown = f.work.Unknown[max(0, len(f.work.Unknown)-maxUnknown):]
}
