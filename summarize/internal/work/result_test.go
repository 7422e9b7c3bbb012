package work

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestNoProcess: a harness's notice of a process in the background that names none
// is read like any other output.
func TestNoProcess(t *testing.T) {
	for _, text := range []string{"Command running in background with ID: \nmore", "Command was manually backgrounded as background task \nmore"} {
		r := thread.ToolResult{CallID: "c", Tool: "Bash", Content: []thread.Part{thread.Text{Text: text}}}
		if w, _ := ReadResult(nil, &r, text); w.Started != "" || !w.halted {
			t.Errorf("%q: %+v", text, w)
		}
	}
}

// TestUnreadFile: a harness that flags nothing may say in words that a file was not read.
func TestUnreadFile(t *testing.T) {
	c := Call{Name: "read", Class: toolclass.Read, Files: []shell.FileOp{{Path: "a.go", Op: "read"}}}
	for text, want := range map[string]int{
		"ENOENT: no such file or directory, open 'a.go'":                        0,
		"Error: File not found: a.go":                                           0,
		"ERROR:\nInvalid `path` parameter: a.go. The path a.go does not exist.": 0,
		"ERROR: The path a.go does not exist":                                   0,
		"package a":                                                             1,
		"error:\n  code: 7":                                                     1, // a document
		"error: one\nb\nc\nd\ne\nf":                                             1, // a log
	} {
		// An editor with a command "view" has the class Edit.
		for _, tool := range []string{"read", "str_replace_editor"} {
			r := thread.ToolResult{Tool: tool, Outcome: thread.Success}
			w, _ := ReadResult(nil, &r, text)
			if did, _ := c.Did(&w); len(did) != want {
				t.Errorf("%s %q: %v", tool, text, did)
			}
		}
	}
}
