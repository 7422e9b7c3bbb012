package injected

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Denial is what an agent's program says in place of the result of a call that was not allowed.
type Denial struct {
	// ByRule: a permission rule did not allow it. Else the user did not.
	ByRule bool
	// Said is what the user said about it, or "".
	Said string
}

// denials are the forms of such texts. Any tool that passes on text from elsewhere can print them: a
// command, a file, a page, a server's tool, a sub-agent. So a form counts only for tools of the same
// program whose own results, failures too, always begin with words of the program.
var denials = []struct {
	begins, holds string
	tools         map[string]bool // by their exact names, as a server's tool has another one
	byRule        bool
	said          string // the user's words stand behind it; empty if the program has no place for them
}{
	{begins: "The user doesn't want to proceed with this tool use.", tools: claudeTools, said: "the user said:"},
	{begins: "The user doesn't want to take this action right now.", tools: claudeTools, said: "the user said:"},
	{begins: "[Request interrupted by user", tools: claudeTools},
	{begins: "Permission to use ", holds: " has been denied", tools: claudeTools, byRule: true},
	{begins: "Claude requested permissions to ", holds: "haven't granted", tools: claudeTools, byRule: true},
	// opencode
	{begins: "The user rejected permission to use this specific tool call", tools: scan.WordSet("edit write patch multiedit apply_patch todowrite"), said: "feedback: "},
	// Cline, Roo
	{begins: "The user denied this operation", tools: scan.WordSet("write_to_file replace_in_file apply_diff insert_content search_and_replace"), said: "<feedback>\n"},
	// Codex
	{begins: "patch rejected by user", tools: scan.WordSet("apply_patch")},
	{begins: "exec command rejected by user"},
	// Gemini CLI
	{begins: "[Operation Cancelled] Reason: User ", tools: scan.WordSet("replace write_file")},
}

// claudeTools are the tools of Claude Code of which that is so.
var claudeTools = scan.WordSet("Edit MultiEdit Write NotebookEdit TodoWrite EnterPlanMode ExitPlanMode AskUserQuestion")

// maxDenial is how much of a result may be such a text, in bytes.
const maxDenial = 2000

// ReadDenial returns what a result says in place of a call that was not allowed. It is proven by
// thread.ToolResult.Denied or by the tool; without a proof claimed says that the text has such a
// form, and it is the tool's like any other.
func ReadDenial(r *thread.ToolResult) (d Denial, proven, claimed bool) {
	text := strings.TrimLeft(r.Text(), " \t\r\n")
	text = text[:min(len(text), maxDenial)]
	for i := range denials {
		form := &denials[i]
		if !strings.HasPrefix(text, form.begins) || !strings.Contains(text, form.holds) {
			continue
		}
		if !r.Denied && !form.tools[r.Tool] {
			return Denial{}, false, true
		}
		return Denial{ByRule: form.byRule, Said: saidBehind(text, form.said)}, true, false
	}
	return Denial{}, r.Denied, false
}

// ClaimsDenial reports whether a text has the form of one in place of the result of a call that was
// not allowed.
func ClaimsDenial(text string) bool {
	_, _, claimed := ReadDenial(&thread.ToolResult{Content: []thread.Part{thread.Text{Text: text}}})
	return claimed
}

// saidBehind is what the user said, behind the mark and without what the program wrote after it.
func saidBehind(text, mark string) string {
	if mark == "" {
		return ""
	}
	_, said, _ := strings.Cut(text, mark)
	said, _, _ = strings.Cut(said, "</feedback>")
	said, _, _ = strings.Cut(said, "\n\nNote: The user's next message")
	return strings.TrimSpace(said)
}
