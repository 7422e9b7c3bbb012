package summarize

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestNoise: what is said or printed as filler is not told while there is something else:
// exclamations, old progress reports, closing tags, listings of installed packages.
func TestNoise(t *testing.T) {
	k := (&talk{}).user("Read the forty notes, one at a time, and keep their values in mind.")
	for n := 1; n <= 9; n++ {
		k.says(fmt.Sprintf("Step %d of 9: reading the next note.", n))
		k.calls("Read", args{"file_path": fmt.Sprintf("/r/note_%d.md", n)}, fmt.Sprintf("value NEEDLE-%d-QUOKKA", n), thread.Success)
	}
	k.says("Perfect! All notes are read and the values agree with the list in docs/values.md.")
	k.calls("Glob", args{"pattern": "**/*.tsx"}, "/r/src/Menu.tsx\n/r/node_modules/left-pad/Pad.tsx", thread.Success)
	k.calls("Read", args{"file_path": "/r/src/Menu.tsx"}, "<SidebarMenu label={menuLabel}>\n  <MenuItem onClick={openMenuItem} className=\"md:h-8 md:p-0\" />\n</SidebarMenu>", thread.Success)
	k.calls("Edit", args{"file_path": "/r/src/User.tsx", "old_string": "// initials", "new_string": "export function initialsOf(userName: string) {\n  return userName.slice(0, 2);\n}"}, "ok", thread.Success)
	text := summarizeNow(t, Input{Messages: k.done(t)}).Render()
	for _, want := range []string{"Step 9 of 9", "NEEDLE-3-QUOKKA", "docs/values.md", "/r/src/Menu.tsx", "menuLabel", "initialsOf"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, noise := range []string{"</SidebarMenu>", "left-pad"} {
		if strings.Contains(text, noise) {
			t.Errorf("%q is told", noise)
		}
	}
	short := summarizeNow(t, Input{Messages: k.done(t), Budget: 330}).Render()
	if n := strings.Count(short, "reading the next note"); n > 1 || !strings.Contains(short, "NEEDLE-") {
		t.Errorf("%d progress reports stand in %s", n, short)
	}
}

// TestOpenInProse: a line of a report that tells of what is open, and may be done long since, is
// told as the assistant's words and not as an open item.
func TestOpenInProse(t *testing.T) {
	k := (&talk{}).user("Show the pending components in order.")
	k.says("I still need to flush the pending components before the callback is called.")
	s := summarizeNow(t, Input{Messages: k.done(t)})
	if len(s.OpenItems) != 0 || !strings.Contains(s.Render(), "I still need to flush") {
		t.Errorf("open items %+v in %s", s.OpenItems, s.Render())
	}
}

// TestPastedLog: a sentence inside a pasted line of a log is no rule of the user's.
func TestPastedLog(t *testing.T) {
	k := (&talk{}).user("Then look at this:\n\n{\"type\":\"message\",\"errorMessage\":\"400: each tool_use block must have a tool_result block in the next message.\"}\n\nNever drop a result.")
	s := summarizeNow(t, Input{Messages: k.done(t)})
	if got := strings.Join(texts(s.Standing()), "|"); strings.Contains(got, "errorMessage") || !strings.Contains(got, "Never drop") {
		t.Errorf("rules: %q", got)
	}
}
