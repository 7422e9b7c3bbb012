package injected

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// denial is a form of what an agent's program says in place of the result of a call that was not allowed.
type denial struct {
	agent, begins, holds string
	tools                map[string]bool // by their exact names, as a server's tool has another one
	byRule               bool            // a permission rule did not allow it; else the user did not
	said                 string          // the user's words stand behind it; empty if the program has no place for them
	// answers are the user's where the program tells there what was asked and answered; nil where all behind said is the user's.
	answers func(call gjson.Result, result string) []thread.Said
}

// denials are the forms of such texts. Any tool that passes on text from elsewhere can print them: a
// command, a file, a page, a server's tool, a sub-agent. So a form counts only for tools of the same
// agent whose own results, failures too, always begin with words of its program.
var denials = []denial{
	{agent: "claude-code", begins: "The user doesn't want to proceed", holds: "\nThe user wants to clarify these questions.\n", tools: claudeTools, answers: listedAnswers},
	{agent: "claude-code", begins: "The user doesn't want to proceed", holds: "\nThe user has indicated they have provided enough answers for the plan interview.\n", tools: claudeTools, answers: listedAnswers},
	{agent: "claude-code", begins: "The user doesn't want to proceed with this tool use.", tools: claudeTools, said: "the user said:"},
	{agent: "claude-code", begins: "The user doesn't want to take this action right now.", tools: claudeTools, said: "the user said:"},
	{agent: "claude-code", begins: "[Request interrupted by user", tools: claudeTools},
	{agent: "claude-code", begins: "Permission to use ", holds: " has been denied", tools: claudeTools, byRule: true},
	{agent: "claude-code", begins: "Claude requested permissions to ", holds: "haven't granted", tools: claudeTools, byRule: true},
	{agent: "opencode", begins: "The user rejected permission to use this specific tool call", tools: scan.WordSet("edit write patch multiedit apply_patch todowrite"), said: "feedback: "},
	// Cline, Roo
	{agent: "cline", begins: "The user denied this operation", tools: scan.WordSet("write_to_file replace_in_file apply_diff insert_content search_and_replace"), said: "<feedback>\n"},
	{agent: "codex", begins: "patch rejected by user", tools: scan.WordSet("apply_patch")},
	{agent: "codex", begins: "exec command rejected by user"},
	{agent: "gemini-cli", begins: "[Operation Cancelled] Reason: User ", tools: scan.WordSet("replace write_file")},
}

// claudeTools are the tools of Claude Code of which that is so.
var claudeTools = scan.WordSet("Edit MultiEdit Write NotebookEdit TodoWrite EnterPlanMode ExitPlanMode AskUserQuestion")

// maxDenial is how much of a result may be such a text, in bytes.
const maxDenial = 2000

// ReadDenial reports what a result says in place of a call that was not allowed: that a rule did not
// allow it; and without the proof of thread.ToolResult.Denied that its text claims to be such words, which
// are then the tool's like any others.
func ReadDenial(r *thread.ToolResult) (byRule, claimed bool) {
	form := denialIn(r.Text())
	return form != nil && form.byRule, form != nil && !r.Denied
}

// ClaimsDenial reports whether a text has the form of one in place of the result of a call that was
// not allowed.
func ClaimsDenial(text string) bool { return denialIn(text) != nil }

// denialIn finds the form of a text, nil if it has none.
func denialIn(text string) *denial {
	text = denialHead(text)
	for i := range denials {
		if form := &denials[i]; strings.HasPrefix(text, form.begins) && strings.Contains(text, form.holds) {
			return form
		}
	}
	return nil
}

// denialHead is what of a text is read.
func denialHead(text string) string {
	text = strings.TrimLeft(text, " \t\r\n")
	return text[:min(len(text), maxDenial)]
}

// saidBehind is what the user said, behind the mark and without what the program wrote after it.
func saidBehind(text, mark string) []thread.Said {
	head := denialHead(text)
	before, words, ok := strings.Cut(head, mark)
	if mark == "" || !ok {
		return nil
	}
	words, _, _ = strings.Cut(words, "</feedback>")
	words, _, _ = strings.Cut(words, "\n\nNote: The user's next message")
	from := len(text) - len(strings.TrimLeft(text, " \t\r\n")) + len(before) + len(mark)
	return said("", text, from, from+len(words))
}
