package work

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Call is a tool call, and what it says about the state of the work.
type Call struct {
	ID, Name string
	Class    toolclass.Class
	Input    string         // what was asked for, short, on one line
	Files    []shell.FileOp // what it does to files if it succeeds; see Did

	steps      []step
	pagers     int    // how many of the last commands only show a part of the output: head, tail
	workdir    string // the folder that the tool was told to run in
	target     string // the process or agent that a poll asks for
	told       bool   // a status of 0 says that every command succeeded
	background bool
	stops      bool // the poll ends it
	operates   bool // the call changes something in a system
	opensPull  bool // a tool that opens a pull request
}

// step is one command of a command line.
type step struct {
	*shell.Command
	*command        // nil if nothing is known of it
	kind     string // of a check
	reports  kinds
	args     []string
	quiet    bool // it cannot print lines that others wrote
	pipe     int  // the first command of its pipe
}

// isCheck reports whether a command builds, tests, lints or formats.
func (s *step) isCheck() bool { return checkKinds[s.kind] }

// maxCommand bounds the command of a check, in bytes.
const maxCommand = 120

// stoppers are tools that end a process or an agent.
var stoppers = scan.WordSet("killshell killbash taskstop jobkill closeagent")

// Read reads what a call of which the name, class and input are known says about the work.
// line are the commands of its command line.
func (c *Call) Read(args gjson.Result, line []shell.Command) {
	name := toolclass.Normal(c.Name)
	switch c.Class {
	case toolclass.Shell:
		if name == "writestdin" && args.IsObject() {
			c.target = rawjson.FirstText(args, "session_id")
			break
		}
		c.workdir = rawjson.FirstText(args, "workdir", "cwd", "working_directory", "dir_path")
		c.background = args.Get("run_in_background").Bool() || args.Get("is_background").Bool()
		if shellSpeech[name] {
			c.readSteps(line)
		} else {
			c.Files = nil // ">" of Python is none of a shell
		}
	case toolclass.Agent:
		c.background = args.Get("run_in_background").Bool()
	case toolclass.Poll:
		c.target = rawjson.FirstText(args, "bash_id", "shell_id", "task_id", "agent_id", "session_id", "id")
		c.stops = stoppers[name]
	case toolclass.Other:
		c.operates = changes(c.Name)
		c.opensPull = strings.HasPrefix(name, "createpullrequest")
	}
}

// readSteps reads a command line. Without a command of interest there are no steps.
func (c *Call) readSteps(line []shell.Command) {
	says := slices.ContainsFunc(c.Files, func(op shell.FileOp) bool { return op.Op != "read" })
	steps := make([]step, len(line))
	c.told = len(line) > 0
	for n := range line {
		s := &steps[n]
		s.Command = &line[n]
		if s.Unread() {
			s.command = read().unread
		} else {
			s.command, s.kind, s.args = read().what(s.Plain())
		}
		if s.command != nil {
			if s.reports = s.command.reports; s.reports == read().any && read().prints[s.kind] != 0 {
				s.reports = read().prints[s.kind]
			}
		}
		s.quiet = printsOwnWords(s)
		if s.pipe = n; n > 0 && line[n-1].Piped {
			s.pipe = steps[n-1].pipe
		}
		c.told = c.told && s.Proved
		says = says || s.command != nil || s.Dir != "" || s.To != "" || s.Name() == "pwd"
	}
	for n := len(line) - 1; n > 0 && line[n-1].Piped && (line[n].Name() == "head" || line[n].Name() == "tail"); n-- {
		c.pagers++
	}
	if says {
		c.steps = steps
	}
}

// quietCommands print nothing, or only words of the agent.
var quietCommands = scan.WordSet("cd pushd popd export set true : sleep mkdir rm mv cp touch chmod pwd gofmt test [ [[")

// printsOwnWords reports whether a command cannot print lines that others wrote. Those of git that the table has
// print words of git alone.
func printsOwnWords(s *step) bool {
	switch name := s.Name(); {
	case len(s.Words) == 0 || s.Shown == shell.NotShown:
		return true
	case name == "echo" || name == "printf":
		return !slices.ContainsFunc(s.Words, func(w shell.Word) bool { return w.Open })
	case name == "tail" || name == "head" || name == "tee": // of a pipe
		return !slices.ContainsFunc(s.Words[1:], func(w shell.Word) bool {
			return !strings.HasPrefix(w.Text, "-") && strings.Trim(w.Text, "0123456789") != ""
		})
	case name == "git":
		return s.command != nil || len(s.Words) > 1 && gitOwnWords[s.Words[1].Text]
	default:
		return quietCommands[name]
	}
}

// gitOwnWords are further subcommands of git that print no contents and no messages.
var gitOwnWords = scan.WordSet("fetch remote tag rm mv rev-parse")

// shellSpeech are the tools of class Shell whose input is a command line of a shell.
var shellSpeech = scan.WordSet("bash shell localshell shellcommand execcommand containerexec unifiedexec exec runshellcommand executecommand executebash " +
	"cmdrun terminal runinterminal runcommand writestdin")

// Result is a tool result, and what it says about the state of the work.
type Result struct {
	CallID  string
	Outcome thread.Outcome
	First   string // the first line that is not empty
	Why     string // what the output says of why it failed; of commands

	code         int    // the status that the harness wrote
	lines        int    // of the output itself, without what a harness added
	firstLine    string // the first of them; also of an edit
	lastLine     string // the last
	answer       string // of another tool, short
	hasCode      bool
	Failing      bool // some line reports an error
	ended        bool // what a poll asks for has ended
	DeniedByUser bool // the user did not allow the call
	deniedByRule bool // a permission rule did not allow the call
	Canceled     bool // the agent broke the call off since another of the same answer failed; it may have run in part
	Unread       bool // it says why a file could not be read, whatever the flag
	fileCreated  bool // the file is new
	FileExisted  bool // the file existed before
	halted       bool // the end of the command was not seen
	*details
}

// details are what few results have; noDetails are those of all others.
type details struct {
	told        []told // the lines that the table knows
	complaints  []complaint
	reset       string // the folder that the shell was put back to
	Started     string // the id of what now runs in the background
	userSaid    string // the user's words about a call that was not allowed
	Claim       string // the result says that the call was not allowed, and nothing proves it: what it says
	Refusal     string // why a system refused an operation
	Stopped     string // the line in which the harness says that it stopped the command; "" if it did not
	pullRequest string // the address of a new pull request
}

var noDetails = &details{} // nobody writes to it

// How many lines that the table knows, and that complain, are kept.
const (
	maxLines      = 64
	maxComplaints = 16
)

// ReadResult reads a result; text is what it holds, terminal escapes taken out. What
// the text says of a failure is for the caller to note: First, Failing, Why. It is not whole where
// the work ended.
func ReadResult(live *effort.Budget, r *thread.ToolResult, text string) (w Result) {
	w.CallID, w.Outcome, w.details = r.CallID, r.Outcome, &details{}
	defer func() {
		if reflect.ValueOf(w.details).Elem().IsZero() {
			w.details = noDetails
		}
	}()
	class := toolclass.ClassOf(r.Tool)
	head := strings.TrimSpace(text[:min(len(text), maxHead)])
	w.readDenial(r, head)
	if w.Unanswered() || w.Claim != "" {
		return w
	}
	switch class {
	case toolclass.Shell:
		w.readOutput(live, text)
	case toolclass.Edit, toolclass.Write:
		w.readEdited(text)
		w.Unread = saysUnread(head, text) // of an editor that can also show a file
	case toolclass.Read:
		w.Unread = saysUnread(head, text)
	case toolclass.Agent:
		w.readStarted(head)
	case toolclass.Poll:
		w.readEnded(head)
	case toolclass.Other:
		if r.Tool == "" {
			w.readOutput(live, text)
		} else {
			w.stripHarness(text)
		}
		w.Refusal = refusal(head, text)
		if w.Refusal == "" {
			w.answer = shortAnswer(text)
		}
		read().tell(gjson.Get(head, "html_url").Str, func(x told) {
			if x.event == "opened" && rawjson.Valid(text) {
				w.pullRequest = x.url
			}
		})
	}
	return w
}

// Unanswered reports whether the call was not allowed or was broken off: its result tells nothing
// of what it asked for.
func (w *Result) Unanswered() bool { return w.DeniedByUser || w.deniedByRule || w.Canceled }

// notRead begin the results, of a few lines, of tools that could not read a file; not all harnesses
// flag them as failed.
var notRead = []string{"error: ", "error reading ", "file not found", "file does not exist", "no such file", "enoent", "failed to read", "could not read", "cannot read", "path does not exist", "<tool_use_error>"}

// saysUnread reports whether a result says why a file could not be read.
func saysUnread(head, text string) bool {
	return len(text) < maxHead && strings.Count(text, "\n") < 4 &&
		(strings.HasPrefix(head, "ERROR:\n") || slices.ContainsFunc(notRead, func(mark string) bool { return scan.HasPrefixFold(head, mark) })) // the first is of OpenHands
}

// cancellations are how Claude Code says that it broke a call off since another one of the same
// answer failed.
var cancellations = []string{"<tool_use_error>Sibling tool call errored", "Sibling tool call errored", "<tool_use_error>Cancelled: parallel tool call "}

func (w *Result) readDenial(r *thread.ToolResult, head string) {
	byRule, claimed := injected.ReadDenial(r)
	w.DeniedByUser, w.deniedByRule, w.userSaid = r.Denied && !byRule, r.Denied && byRule, ""
	if r.Denied && len(r.Said) > 0 {
		w.userSaid = r.Said[0].Text
	}
	w.Canceled = r.Outcome == thread.Failure && slices.ContainsFunc(cancellations, func(mark string) bool { return strings.HasPrefix(head, mark) })
	if claimed { // perhaps it ran, and perhaps it did not
		w.Claim, w.halted = Claim(r), true
	}
	w.halted = w.halted || w.Canceled
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
	s = w.stripHarness(s)
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
		w.lastLine = line
		if by := complains(line); by != "" && len(w.complaints) < maxComplaints {
			w.complaints = append(w.complaints, complaint{by, clip.Brief(line, maxQuote)})
		}
		if deep := p.From > 0 && s[p.From-1] != '\n'; !deep || line[0] != '-' { // a test in a test
			read().tell(line, w.keep)
		}
	}
	w.lastLine = clip.Brief(w.lastLine, maxQuote)
}

// keep keeps what a line says, of many the failures before the successes and the newest of these.
func (w *Result) keep(x told) {
	if len(w.told) == maxLines {
		at := slices.IndexFunc(w.told, func(old told) bool { return old.event == "passed" || old.event == "part" })
		if at < 0 {
			return
		}
		w.told = slices.Delete(w.told, at, at+1)
	}
	if x.rank != '0' {
		x.text = clip.Brief(x.text, maxQuote)
	}
	w.told = append(w.told, x)
}

// stripHarness reads and removes what the harness wrote around the output.
func (w *Result) stripHarness(s string) string {
	h, s := shell.ReadHarness(s)
	w.code, w.hasCode, w.Started, w.halted, w.ended, w.Stopped = h.Code, h.HasCode, h.Started, h.Halted, h.Ended, clip.Brief(h.Stopped, maxQuote)
	return s
}

// editedWords are words in the first line of the result of a successful edit, and editedStarts
// begin it.
var (
	editedWords  = []string{"successfully", "has been updated", "has been edited", "success.", "wrote "}
	editedStarts = []string{"applied ", "created ", "edited ", "replaced ", "updated "}
)

// notEditedWords are words in the first line of the result of a failed edit.
var notEditedWords = []string{
	"error", "failed", "could not", "cannot", "can't", "unable", "invalid", "no replacement", "not found", "no match", "did not match", "does not exist", "no such",
	"not made", "not applied", "no changes", "denied", "rejected", "not been read", " since ", "not unique", "multiple occurrences", "must ",
	"no edits", "aborted", "cancelled", "found 0 ", "replaced 0 ", "applied 0 ", "no occurrences", "introduced new syntax error", "unchanged", "unsuccessful",
}

// readEdited reads the result of a tool that edits.
func (w *Result) readEdited(s string) {
	first, _, _ := strings.Cut(strings.TrimSpace(w.stripHarness(s)), "\n")
	w.firstLine = clip.Brief(first, maxQuote)
	first = strings.ToLower(first)
	says := func(mark string) bool { return strings.Contains(first, mark) }
	w.fileCreated = says("created successfully at") || strings.HasPrefix(first, "file created") || says("created and wrote to new file")
	w.FileExisted = says("has been updated") || says("overwritten")
}

// Edited reports whether a call that was to edit files did: by the flag or the exit status, else
// by the first line of the output. The status of a shell may be that of a later command.
func (w *Result) Edited() bool {
	first := strings.ToLower(w.firstLine)
	begins := func(mark string) bool { return strings.HasPrefix(first, mark) }
	switch {
	case begins("success. updated the following files"): // Codex, of a patch
		return true
	case w.Outcome == thread.Failure || w.Outcome == thread.Partial || w.hasCode && w.code != 0 || w.halted || w.DeniedByUser || w.deniedByRule:
		return false
	}
	says := func(mark string) bool { return strings.Contains(first, mark) }
	words := withoutNames(first)
	if !slices.ContainsFunc(notEditedWords, func(mark string) bool { return strings.Contains(words, mark) }) {
		return true
	}
	return !begins("error") && !says(" since ") && !says("unsuccessful") && slices.ContainsFunc(editedWords, says) ||
		!says(" 0 ") && slices.ContainsFunc(editedStarts, begins)
}

// withoutNames takes paths and what is quoted out of a line: "errors.go" is no error.
func withoutNames(line string) string {
	words := strings.Fields(line)
	return " " + strings.Join(slices.DeleteFunc(words, func(w string) bool {
		return strings.ContainsAny(strings.TrimRight(w, ".,:;!"), "./\\`'\"") && !strings.HasSuffix(w, "n't")
	}), " ") + " "
}

func (w *Result) readStarted(head string) {
	if _, id, ok := strings.Cut(head, "agentId: "); ok && strings.HasPrefix(head, "Async agent launched successfully") {
		w.Started = scan.FirstWord(id)
	}
}

// ends are statuses of a background process that has ended.
var ends = scan.WordSet("completed failed killed stopped error cancelled")

func (w *Result) readEnded(head string) {
	state, _ := enclosed(head, "<status>", "</status>")
	w.ended = ends[strings.TrimSpace(state)]
}

// enclosed is the text between two marks.
func enclosed(s, from, to string) (string, bool) {
	_, rest, ok := strings.Cut(s, from)
	inside, _, closed := strings.Cut(rest, to)
	return inside, ok && closed
}

// Message is a message, as far as the state of the work is concerned.
type Message struct {
	*Notice
	Said   bool   // the assistant says something
	Next   string // what it says it will do next, where no call follows
	Calls  []*Call
	Result *Result
}

// Notice is what a harness says in a message about the state of the work.
type Notice struct {
	directory   string
	interrupted bool
	ended       []string // ids of background processes
}

// ReadNotice reads an environment block, a notice of an ended process, or a mark of an
// interruption.
func ReadNotice(m *thread.Message) *Notice {
	if m.Role != thread.System && (m.Role != thread.User || m.Kind == thread.Recap) {
		return nil
	}
	w := &Notice{}
	for _, p := range m.Parts {
		t, ok := p.(thread.Text)
		if !ok {
			continue
		}
		s := strings.TrimSpace(t.Text)
		switch {
		case m.Role == thread.System:
			w.environment(s)
		case m.IsAdded():
			dir, ok := enclosed(s, "<cwd>", "</cwd>")
			if ok && strings.HasPrefix(s, "<environment_context>") && strings.HasPrefix(dir, "/") && !strings.Contains(dir, "\n") {
				w.directory = dir
			}
			w.interrupted = w.interrupted || strings.HasPrefix(s, "[Request interrupted by user")
		}
		for m.Role == thread.User && len(w.ended) < 16 {
			id, ok := enclosed(s, "<task-id>", "</task-id>")
			if !ok {
				break
			}
			if len(id) < 100 {
				w.ended = append(w.ended, id)
			}
			_, s, _ = strings.Cut(s, "</task-id>")
		}
	}
	if w.directory == "" && !w.interrupted && len(w.ended) == 0 {
		return nil
	}
	return w
}

// environment reads the folder from the <env> block of a system prompt.
func (w *Notice) environment(s string) {
	block, _ := enclosed(s, "\n<env>", "</env>")
	for line := range strings.Lines(block) {
		what, dir, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if (what == "Working directory" || what == "Primary working directory") && strings.HasPrefix(dir, "/") {
			w.directory = dir
		}
	}
}
