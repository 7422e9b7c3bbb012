package work

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Result is a tool result, and what it says about the state of the work.
type Result struct {
	CallID  string
	Outcome thread.Outcome
	First   string // the first line that is not empty
	Last    string // the last one
	Why     string // what the output says of why it failed; of commands

	code         int      // the status that the harness wrote, or -1
	lines        int      // of the output itself, without what a harness added
	firstLine    string   // the first of them; also of an edit
	answer       []member // of another tool
	Failing      bool     // some line reports an error
	ended        bool     // what a poll asks for has ended
	DeniedByUser bool     // the user did not allow the call
	deniedByRule bool     // a permission rule did not allow the call
	Canceled     bool     // the agent broke the call off since another of the same answer failed; it may have run in part
	Unread       bool     // it says why a file could not be read, whatever the flag
	fileCreated  bool     // the file is new
	FileExisted  bool     // the file existed before
	halted       bool     // the end of the command was not seen
	*details
}

// details are what few results have; noDetails are those of all others.
type details struct {
	told       []told   // the lines that the table knows
	complaints []string // the lines in which a command says what it could not do
	reset      string   // the folder that the shell was put back to
	Started    string   // the id of what now runs in the background
	userSaid   string   // the user's words about a call that was not allowed
	Claim      string   // the result says that the call was not allowed, and nothing proves it: what it says
	Refusal    string   // why a system refused an operation
	Stopped    string   // the line in which the harness says that it stopped the command; "" if it did not
}

var noDetails = &details{} // nobody writes to it

// How many lines that the table knows, and that complain, are kept.
const (
	maxLines      = 64
	maxComplaints = 16
)

// ReadResult reads a result; text is what it holds, terminal escapes taken out, and output is the text
// without what a harness wrote around it. What it says of a failure is for the caller to note: First, Last,
// Failing, Why. It is not whole where the work ended.
func ReadResult(live *effort.Budget, r *thread.ToolResult, text string) (w Result, output string) {
	w.CallID, w.Outcome, w.code, w.details = r.CallID, r.Outcome, -1, &details{}
	defer func() {
		if reflect.ValueOf(w.details).Elem().IsZero() {
			w.details = noDetails
		}
	}()
	head := strings.TrimSpace(text[:min(len(text), maxHead)])
	if w.readDenial(r, head); w.Unanswered() || w.Claim != "" {
		return w, text
	}
	class := toolclass.ClassOf(r.Tool)
	switch class {
	case toolclass.Shell, toolclass.Edit, toolclass.Write, toolclass.Other:
		var h shell.Harness
		h, output = shell.ReadHarness(text)
		w.code, w.Started, w.halted, w.ended, w.Stopped = h.Code, h.Started, h.Halted, h.Ended, clip.Brief(h.Stopped, maxQuote)
		if output != "" || !w.halted {
			text, head = output, strings.TrimSpace(output[:min(len(output), maxHead)])
		}
	}
	switch {
	case class == toolclass.Shell || class == toolclass.Other && r.Tool == "":
		w.readOutput(live, output)
	case class == toolclass.Edit || class == toolclass.Write:
		w.readEdited(output)
	case class == toolclass.Agent && strings.HasPrefix(head, "Async agent launched successfully"):
		_, id, _ := strings.Cut(head, "agentId: ")
		w.Started = scan.FirstWord(id)
	case class == toolclass.Poll:
		state, _ := enclosed(head, "<status>", "</status>")
		w.ended = is("ended", strings.TrimSpace(state))
	}
	switch class {
	case toolclass.Edit, toolclass.Write, toolclass.Read: // an editor may also show a file
		w.Unread = saysUnread(head, text)
	case toolclass.Other:
		if w.Refusal = refusal(head, text); w.Refusal == "" {
			w.answer = membersOf(text)
		}
	}
	return w, text
}

// Unanswered reports whether the call was not allowed or was broken off: its result tells nothing
// of what it asked for.
func (w *Result) Unanswered() bool { return w.DeniedByUser || w.deniedByRule || w.Canceled }

// Exit is the exit status that the harness wrote, -1 if it wrote none.
func (w *Result) Exit() int { return w.code }

// saysUnread reports whether a result, of a few lines, says why a file could not be read; not all harnesses
// flag it as failed.
func saysUnread(head, text string) bool {
	return len(text) < maxHead && strings.Count(text, "\n") < 4 && (strings.HasPrefix(head, "ERROR:\n") || begins("unread", head)) // the first is of OpenHands
}

func (w *Result) readDenial(r *thread.ToolResult, head string) {
	byRule, claimed := injected.ReadDenial(r)
	w.DeniedByUser, w.deniedByRule = r.Denied && !byRule, r.Denied && byRule
	if r.Denied && len(r.Said) > 0 {
		w.userSaid = r.Said[0].Text
	}
	if claimed { // perhaps it ran, and perhaps it did not
		w.Claim = Claim(r)
	}
	w.Canceled = r.Outcome == thread.Failure && begins("canceled", head)
	w.halted = claimed || w.Canceled
}

// Claim tells the text of a result which says without a proof that the call was not allowed.
func Claim(r *thread.ToolResult) string {
	return `the result says: "` + clip.Brief(strings.Join(strings.Fields(r.Text()), " "), maxClaim) + `"`
}

const (
	// maxHead is how much of a result is read as the words of a harness, in bytes.
	maxHead  = 2000
	maxClaim = 400
)

// ResetNote begins the line that Claude Code appends to an output when its shell is put back
// to the project's directory.
const ResetNote = "Shell cwd was reset to "

// lineEffort is about what a byte of a line takes, in units of effort.
const lineEffort = 32

// readOutput reads the output of a command.
func (w *Result) readOutput(live *effort.Budget, s string) {
	begunLast := "" // the task of a runner
	for _, p := range scan.Lines(s) {
		line := s[p.From:p.To]
		if !live.Live(lineEffort * (1 + len(line))) {
			return
		}
		if line == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(line, ResetNote); ok {
			w.reset = rest
			continue
		}
		if w.lines++; w.lines == 1 {
			w.firstLine = clip.Brief(line, maxQuote)
		}
		if len(w.complaints) < maxComplaints && complains(line) {
			w.complaints = append(w.complaints, clip.Brief(line, maxQuote))
		}
		if deep := p.From > 0 && s[p.From-1] != '\n'; !deep || line[0] != '-' { // a test in a test
			named, rest := "", line
			if found := ofTask().FindStringSubmatch(line); found != nil {
				named, rest = found[1], found[2]
			}
			read().tell(rest, func(x told) {
				x.text, x.task, x.apart = line, cmp.Or(named, begunLast), named != ""
				if x.event == begun {
					begunLast = cmp.Or(named, begunLast)
				}
				if own := x.event == begun || x.event == finished; own == x.apart || !own && x.rank > 0 {
					w.keep(x)
				}
			})
		}
	}
}

// ofTask is a line before which a runner writes the task that it is of.
var ofTask = lazyregexp.New(`^\[([a-z][\w:.-]*)\] (.+)$`)

// keep keeps what a line says. Of those in which a check says the same, the first failure and the last success stay.
func (w *Result) keep(x told) {
	if x.rank > 0 {
		x.text = clip.Brief(x.text, maxQuote)
		at := slices.IndexFunc(w.told, func(old told) bool { return old.printed == x.printed && old.task == x.task })
		switch {
		case at >= 0 && x.event == failed:
			return
		case at >= 0:
			w.told, x.several = slices.Delete(w.told, at, at+1), true
		}
	}
	if len(w.told) < maxLines {
		w.told = append(w.told, x)
	}
}

// readEdited reads the result of a tool that edits.
func (w *Result) readEdited(s string) {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	w.firstLine = clip.Brief(first, maxQuote)
	first = strings.ToLower(first)
	w.fileCreated = strings.Contains(first, "created successfully at") || strings.HasPrefix(first, "file created") || strings.Contains(first, "created and wrote to new file")
	w.FileExisted = strings.Contains(first, "has been updated") || strings.Contains(first, "overwritten")
}

// Edited reports whether a call that was to edit files did: by the flag or the exit status, else
// by the first line of the output. The status of a shell may be that of a later command.
func (w *Result) Edited() bool {
	first := strings.ToLower(w.firstLine)
	switch {
	case strings.HasPrefix(first, "success. updated the following files"): // Codex, of a patch
		return true
	case w.Outcome == thread.Failure || w.Outcome == thread.Partial || w.code > 0 || w.halted || w.DeniedByUser || w.deniedByRule:
		return false
	case !has("not edited", first):
		return true
	}
	return !strings.HasPrefix(first, "error") && !has("surely not edited", first) && (has("edited", first) || begins("editing", first))
}

// enclosed is the text between two marks.
func enclosed(s, from, to string) (string, bool) {
	_, rest, ok := strings.Cut(s, from)
	inside, _, closed := strings.Cut(rest, to)
	return inside, ok && closed
}
