package summarize

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// requestedLines are requests for one line of each of many files, and the form of that line.
var requestedLines = []struct{ request, line string }{
	{"Read the reports r01 to r30 in order and note the TOTAL of each; you will need all of them.", "TOTAL: %d.50 EUR"},
	{"Read the notes one by one. Each has one line with a MARKER value; keep all of them in mind.", "The value for this note is MARKER-%d-x7."},
	{"Collect all error codes of the logs, please.", "the gateway gave error code E%d-44"},
	{"Lies alle Berichte. In jedem steht eine Kundennummer; merke dir jede davon.", "Die Kundennummer lautet K%d-B."},
}

// TestRequestedLines: what the person asked to be collected from every file stands in the summary, before
// names of files and calls.
func TestRequestedLines(t *testing.T) {
	words := strings.Fields("lake river stone cloud tower garden window harbor lantern meadow silver copper")
	for _, c := range requestedLines {
		for _, tool := range []string{"Bash", "Read"} {
			r, k, want := rand.New(rand.NewPCG(1, 2)), (&talk{}).user(c.request), []string(nil)
			for i := range 30 {
				lines := make([]string, 40)
				for n := range lines {
					lines[n] = fmt.Sprintf("%s %s %s took %d ms at /srv/%s/%s-%d.log", words[r.IntN(12)], words[r.IntN(12)], words[r.IntN(12)], r.IntN(900), words[r.IntN(12)], words[r.IntN(12)], r.IntN(900))
				}
				value := fmt.Sprintf(c.line, 1000+r.IntN(9000))
				lines[5+r.IntN(30)] = value
				want = append(want, value)
				path := fmt.Sprintf("in/f%02d.txt", i)
				k.calls(tool, map[string]any{"command": "cat " + path, "file_path": path}, strings.Join(lines, "\n"), thread.Success)
			}
			rendered := summarizeNow(t, Input{Messages: k.done(t), Budget: 1900}).Render()
			kept := 0
			for _, value := range want {
				if strings.Contains(rendered, value) {
					kept++
				}
			}
			if kept < len(want) {
				t.Errorf("%s, %q: %d of %d values:\n%s", tool, c.request, kept, len(want), rendered)
			}
		}
	}
}
