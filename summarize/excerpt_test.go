package summarize

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestWantedLines: the line that a request wants collected from each result is in the excerpt of each.
func TestWantedLines(t *testing.T) {
	report := func(n int) string {
		line := func(k int) string { return fmt.Sprintf("berth_%d took crate_%d from hold_%d\n", k, k*n, k+n) }
		lines := make([]string, 60)
		for k := range lines {
			lines[k] = line(k)
		}
		lines[41] = fmt.Sprintf("The TONNAGE is %d.\n", 20481+n)
		return strings.Join(lines, "")
	}
	k := new(talk).user("Read the reports one by one. Each has a TONNAGE, keep all of them in mind.")
	for n := range 9 {
		k.calls("Read", fmt.Sprintf(`{"file_path":"report%d.txt"}`, n), report(n), thread.Success).says("Now to berth_1, berth_2, berth_3, berth_4, berth_5, berth_6, berth_7, berth_8 and berth_9.")
	}
	x := new(Extractive).Excerpts(t.Context(), k.done(t))
	for n := range 9 {
		if got := x.Shorten(report(n), "", 300, false); !strings.Contains(got, fmt.Sprintf("TONNAGE is %d.", 20481+n)) {
			t.Errorf("report %d:\n%s", n, got)
		}
	}
}

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
