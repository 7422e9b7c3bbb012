package summarize

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestExcerpts: of a long output the lines stay that hold what the agent works
// with, verbatim and in their order; gaps are marked, what is missing is counted, and
// the room is kept.
func TestExcerpts(t *testing.T) {
	var file strings.Builder
	for n := range 120 {
		fmt.Fprintf(&file, "%4d\tfunc helperNumber%d(value int) int { return otherThing%d(value) }\n", 2*n+1, n, n)
		if n == 70 {
			file.WriteString(" 142\tfunc parseHeader(b []byte) (headerFields, error) {\n 143\t\treturn headerFields{}, errShortHeader\n")
		}
	}
	k := new(talk).user("Fix parseHeader.").
		calls("Grep", `{"pattern":"parseHeader"}`, "src/parse.go:142: func parseHeader(b []byte) (headerFields, error) {\n", thread.Success).
		says("parseHeader returns errShortHeader too early.").
		calls("Read", `{"file_path":"src/parse.go"}`, file.String(), thread.Success)
	x := new(Extractive).Excerpts(t.Context(), k.done(t))
	short := x.Shorten(file.String(), "", 900, false)
	if len(short) > 900 {
		t.Errorf("%d bytes", len(short))
	}
	for _, want := range []string{
		"func helperNumber0(", "\n" + gap, "func parseHeader(b []byte) (headerFields, error) {\nreturn headerFields{}, errShortHeader", "characters left out",
	} {
		if !strings.Contains(short, want) {
			t.Errorf("%q is missing in\n%s", want, short)
		}
	}
	if beside := x.Shorten(file.String(), "parseHeader headerFields errShortHeader", 900, false); strings.Contains(beside, "func parseHeader") {
		t.Errorf("what stands beside the output is said again:\n%s", beside)
	}
	if got := x.Shorten("all of it", "", 900, false); got != "all of it" {
		t.Errorf("what fits became %q", got)
	}
	for _, text := range []string{strings.Repeat("x", 5000), strings.Repeat("\n", 5000), strings.Repeat("日本語", 900)} {
		if got := x.Shorten(text, "", 300, false); len(got) > 300 || len(got) > 0 && strings.ToValidUTF8(got, "?") != got {
			t.Errorf("%.20q became %d bytes: %.80q", text, len(got), got)
		}
	}
}
