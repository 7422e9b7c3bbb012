package injected

import (
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
)

// clearingMark is what an agent writes over an old result of a tool to save room.
type clearingMark struct {
	agent   string
	pattern func() *regexp.Regexp // of all of the text
	example string
}

var clearingMarks = []clearingMark{
	{"Claude Code, opencode, Qwen Code, OpenClaw", lazyregexp.New(`^\[Old tool result content cleared\]$`), "[Old tool result content cleared]"},
	{"Hermes", lazyregexp.New(`^\[Old tool output cleared to save context space\]$`), "[Old tool output cleared to save context space]"},
	{"LangChain", lazyregexp.New(`^\[cleared\]$`), "[cleared]"},
	{"Gemini CLI", lazyregexp.New(`(?s)^<tool_output_masked>\n.*</tool_output_masked>$`), "<tool_output_masked>\nok 1\n...\nok 900\n\nOutput too large. Full output available at: run_1.txt\n</tool_output_masked>"},
	{"SWE-agent", lazyregexp.New(`^Old environment output: \(\d+ lines omitted\)( \(\d+ images omitted\))?$`), "Old environment output: (120 lines omitted)"},
	{"OpenHands", lazyregexp.New(`^<MASKED>$`), "<MASKED>"},
}

// IsCleared reports whether a text may be what an agent wrote over a result of a tool. A tool can print the same:
// only who has the result whole knows.
func IsCleared(text string) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc(clearingMarks, func(m clearingMark) bool { return m.pattern().MatchString(text) })
}
