package shell

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Harness is what a harness says of a command, around its output.
type Harness struct {
	Code    int // the exit status, -1 if it is not said
	HasCode bool
	Started string // the id of what now runs in the background
	Ended   bool   // the process whose output was asked for has ended
	Halted  bool   // the end of the command was not seen
	Stopped string // the line that says that the command was stopped; "" if it was not
}

// The lines in which a harness tells the exit status: above the output (Claude Code, mini-swe-agent), below it
// (pi, VS Code, OpenHands; small harnesses with nothing more on the line; Gemini CLI), or in a head (Codex).
var (
	firstStatus  = lazyregexp.New(`^(?:Exit code |<returncode>)\s*(-?[0-9]+)`)
	lastStatus   = lazyregexp.New(`^(?:(?:Command exited with code |\[The command completed with exit code |\[Command finished with exit code )\s*(-?[0-9]+)|exit code ([0-9]+)$)`)
	geminiStatus = lazyregexp.New(`^Exit Code:\s*(-?[0-9]+)`)
	codexStatus  = lazyregexp.New(`(?:^Exit code: |Process exited with code )\s*(-?[0-9]+)`)
	codexHead    = lazyregexp.New(`^(?:Exit code: |Chunk ID: |Wall time: )`)
	runsOn       = lazyregexp.New(`Process running with session ID ([^\n]*)`)
)

// background begins the first line of a result that says that a command goes on in the background; named is how
// it names the process.
var (
	background = lazyregexp.New(`^Command (?:running in background with ID: |was manually backgrounded|did not complete within)`)
	named      = lazyregexp.New(`(?:background task | with ID: )([^\s]*)`)
)

// stopped is a line in which a harness says that it stopped a command: the first of a result or the last.
var stopped = lazyregexp.New(`(?i)^(?:command timed out after |command aborted|\[request interrupted by user|command was (?:aborted|cancelled|automatically cancelled)|` +
	`\(command timed out|\[the command timed out|bash tool terminated command after exceeding timeout|user aborted the command)`)

// ReadHarness reads what the harness wrote around the output of a command, and returns the output
// without it. Only the exact forms count: a program may print anything.
func ReadHarness(s string) (h Harness, output string) {
	h.Code = -1
	trimmed := strings.TrimSpace(s)
	first, rest, _ := strings.Cut(trimmed, "\n")
	switch {
	case h.status(firstStatus().FindStringSubmatch(first)):
		s = rest
	case codexHead().MatchString(first):
		head, body, ok := strings.Cut(s, "Output:\n")
		if !ok || len(head) > 600 {
			break
		}
		h.Ended = h.status(codexStatus().FindStringSubmatch(strings.TrimSpace(head)))
		if m := runsOn().FindStringSubmatch(head); m != nil {
			h.Started, h.Halted = strings.TrimSpace(m[1]), true
		}
		s = body
	case strings.HasPrefix(first, `{"output":`) && rawjson.Valid(trimmed): // earlier versions of Codex
		if code := gjson.Get(trimmed, "metadata.exit_code"); code.Type == gjson.Number {
			h.Code, h.HasCode, s = int(code.Int()), true, gjson.Get(trimmed, "output").Str
		}
	case background().MatchString(first):
		if m := named().FindStringSubmatch(first); m != nil {
			h.Started = strings.TrimRight(m[1], ".,")
		}
		h.Halted = true
		return h, ""
	case strings.HasPrefix(first, "<tool_use_error>"):
		h.Halted = true
		return h, ""
	}
	trimmed = strings.TrimSpace(s)
	unframed := strings.TrimSpace(strings.TrimSuffix(trimmed, "</bash_metadata>")) // opencode
	begin, _, _ := strings.Cut(unframed, "\n")
	for _, line := range [...]string{begin, lastLine(unframed)} {
		if stopped().MatchString(line) {
			h.Halted, h.Stopped = true, line
		}
	}
	last := lastLine(trimmed)
	if h.status(lastStatus().FindStringSubmatch(last)) || strings.HasPrefix(first, "Command: ") && h.status(geminiStatus().FindStringSubmatch(last)) {
		s = strings.TrimSuffix(trimmed, last)
	}
	if said := strings.TrimSpace(s); said == "(no output)" || said == "(Bash completed with no output)" {
		return h, "" // pi, Claude Code
	}
	return h, s
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// status takes the exit status of a line in which it was found, and reports whether there is one. One below 0 is 255.
func (h *Harness) status(found []string) bool {
	if found == nil {
		return false
	}
	n, _ := strconv.Atoi(scan.FirstWord(strings.Join(found[1:], " ")))
	if h.Code, h.HasCode = n, true; n < 0 {
		h.Code = 255
	}
	return true
}
