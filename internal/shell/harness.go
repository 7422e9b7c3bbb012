package shell

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Harness is what a harness says of a command, around its output.
type Harness struct {
	Code    int // the exit status, -1 if it is not said
	HasCode bool
	Started string // the id of what now runs in the background
	Ended   bool   // the process that was asked for has ended
	Halted  bool   // the end of the command was not seen
	Stopped string // the line that says that the command was stopped; "" if it was not
}

// firstStatus and lastStatus begin the line in which a harness tells the exit status, above
// the output (Claude Code, mini-swe-agent) or below it (pi, VS Code, OpenHands).
var (
	firstStatus = []string{"Exit code ", "<returncode>"}
	lastStatus  = []string{"Command exited with code ", "[The command completed with exit code ", "[Command finished with exit code "}
)

// StatusLine reports whether a line says nothing but an exit status, in the words of a harness or of
// a program that ran another.
func StatusLine(line string) bool {
	return begins(line, firstStatus...) || begins(line, lastStatus...) || begins(line, "Exit code: ", "Process exited with code ", "exit status ")
}

// ReadHarness reads what the harness wrote around the output of a command, and returns the output
// without it. Only the exact forms count: a program may print anything.
func ReadHarness(s string) (h Harness, output string) {
	h.Code = -1
	trimmed := strings.TrimSpace(s)
	first, rest, _ := strings.Cut(trimmed, "\n")
	switch {
	case h.status(first, firstStatus...):
		s = rest
	case h.status(first, "Exit code: "), begins(first, "Chunk ID: ", "Wall time: "): // Codex
		head, body, ok := strings.Cut(s, "Output:\n")
		if !ok || len(head) > 600 {
			break
		}
		if _, code, ok := strings.Cut(head, "Process exited with code "); ok {
			h.status(code, "")
		}
		if _, id, ok := strings.Cut(head, "Process running with session ID "); ok {
			id, _, _ = strings.Cut(id, "\n")
			h.Started, h.Halted = strings.TrimSpace(id), true
		}
		h.Ended = h.HasCode
		s = body
	case begins(first, `{"output":`) && rawjson.Valid(trimmed): // Codex before
		if code := gjson.Get(trimmed, "metadata.exit_code"); code.Type == gjson.Number {
			h.status(code.Raw, "")
			s = gjson.Get(trimmed, "output").Str
		}
	case begins(first, "Command running in background with ID: ", "Command was manually backgrounded", "Command did not complete within"):
		for _, mark := range [...]string{"background task ", " with ID: "} {
			if _, rest, ok := strings.Cut(first, mark); ok {
				h.Started = strings.TrimRight(scan.FirstWord(rest), ".,")
			}
		}
		h.Halted = true
		return h, ""
	case begins(first, "<tool_use_error>"):
		h.Halted = true
		return h, ""
	}
	h.readStopped(s)
	trimmed = strings.TrimSpace(s)
	at := strings.LastIndexByte(trimmed, '\n') + 1
	if last := trimmed[at:]; h.status(last, lastStatus...) || begins(first, "Command: ") && h.status(last, "Exit Code: ") { // the latter is Gemini CLI
		s = trimmed[:at]
	}
	if said := strings.TrimSpace(s); said == "(no output)" || said == "(Bash completed with no output)" {
		return h, "" // pi, Claude Code
	}
	return h, s
}

func begins(line string, marks ...string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(line, mark) })
}

// status reads the exit status behind one of the marks.
func (h *Harness) status(line string, marks ...string) bool {
	for _, mark := range marks {
		text, ok := strings.CutPrefix(line, mark)
		text, negative := strings.CutPrefix(strings.TrimSpace(text), "-")
		if n, is := scan.NumberAfter(text, ""); ok && is {
			if h.Code, h.HasCode = n, true; negative {
				h.Code = 255
			}
			return true
		}
	}
	return false
}

// stops begin the line in which a harness says that it stopped a command, in lower case: the first
// of a result or the last.
var stops = []string{
	"command timed out after ", "command aborted", "[request interrupted by user", "command was aborted", "command was cancelled", "command was automatically cancelled",
	"(command timed out", "[the command timed out", "bash tool terminated command after exceeding timeout", "user aborted the command",
}

// readStopped reads whether the command was stopped.
func (h *Harness) readStopped(s string) {
	s = strings.TrimSpace(s)
	s = strings.TrimSpace(strings.TrimSuffix(s, "</bash_metadata>")) // opencode
	first, _, _ := strings.Cut(s, "\n")
	for _, line := range [...]string{first, s[strings.LastIndexByte(s, '\n')+1:]} {
		for _, mark := range stops {
			if scan.HasPrefixFold(line, mark) {
				h.Halted, h.Stopped = true, line
			}
		}
	}
}
