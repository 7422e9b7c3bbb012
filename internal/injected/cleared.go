package injected

import (
	"regexp"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
)

// ByClient names the plan, and the strategy, of what a client has cleared by itself.
const ByClient = "cleared"

// clearingMarks are what agents write over old results of tools to save room; a pattern is of all of the text.
var clearingMarks = []struct {
	agent   string
	pattern func() *regexp.Regexp
	example string
}{
	{"Claude Code, opencode, Qwen Code, OpenClaw", lazyregexp.New(`^\[Old tool result content cleared\]$`), "[Old tool result content cleared]"},
	{"Hermes", lazyregexp.New(`^\[Old tool output cleared to save context space\]$`), "[Old tool output cleared to save context space]"},
	{"LangChain", lazyregexp.New(`^\[cleared\]$`), "[cleared]"},
	{"Gemini CLI", lazyregexp.New(`(?s)^<tool_output_masked>\n.*</tool_output_masked>$`), "<tool_output_masked>\nok 1\n...\nok 900\n\nOutput too large. Full output available at: run_1.txt\n</tool_output_masked>"},
	{"SWE-agent", lazyregexp.New(`^Old environment output: \(\d+ lines omitted\)( \(\d+ images omitted\))?$`), "Old environment output: (120 lines omitted)"},
	{"OpenHands", lazyregexp.New(`^<MASKED>$`), "<MASKED>"},
}

// NoResult is written for the results of an agent that keeps none: its calls were not interrupted, but nobody knows
// how they ended.
const NoResult = "[Cursor's transcript keeps no results.]"

// IsCleared reports whether a text may be what an agent wrote over a result of a tool. A tool can print the same:
// only who has the result whole knows.
func IsCleared(text string) bool {
	for _, m := range clearingMarks {
		if m.pattern().MatchString(strings.TrimSpace(text)) {
			return true
		}
	}
	return false
}
