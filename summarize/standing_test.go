package summarize

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestShortenedMessages: what is left of a shortened message does not repeat the sentences that are
// listed.
func TestShortenedMessages(t *testing.T) {
	const a, b, c = "The first of them stands.", "The second of them is only said.", "The third of them stands."
	for _, tt := range []struct {
		listed []string
		limit  int
		want   string
	}{
		{nil, 1000, a + " " + b + "\n\n" + c},
		{[]string{a}, 1000, "[…] " + b + "\n\n" + c},
		{[]string{a, c}, 1000, "[…] " + b + "\n\n[…]"},
		{[]string{a, b}, 1000, "[…]\n" + c},
		{[]string{b}, 1000, a + " […]\n" + c},
		{[]string{a, b, c}, 1000, ""},
		{[]string{b}, 55, "The first [… 69 characters left out …] stands."}, // as many as of the whole
	} {
		l := laidDown{texts: map[thread.ID][]string{"m1": tt.listed, "m2": {b}}}
		if got := l.shorten(&summary.Item{Text: a + " " + b + "\n\n" + c, Sources: []thread.ID{"m1"}}, tt.limit); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.listed, got, tt.want)
		}
	}
}

// TestSharedRareWords: a sentence that shares two rare words with an earlier one is taken to change it,
// however it is worded; one is not enough.
func TestSharedRareWords(t *testing.T) {
	got := linked(nil, []summary.Item{
		{Text: "Ewa bakes the wedding cake herself.", Turn: 1},
		{Text: "The parcels go to Leeds.", Turn: 2},
		{Text: "The wedding cake comes from Hobbs now.", Turn: 3},
		{Text: "It rained in Leeds.", Turn: 4},
	}, &Input{})
	for i, want := range []int{2, -1, -1, -1} {
		if got.changedBy[i] != want {
			t.Errorf("%q is changed by %d, want %d", got.items[i].Text, got.changedBy[i], want)
		}
	}
}

// TestPasted: what the user copied from a screen is nothing that the user laid down.
func TestPasted(t *testing.T) {
	for text, want := range map[string]bool{
		"> Send it by Friday.":              true,
		"+       // Use the old key first.": true,
		"-       if err != nil {":           true,
		"-   Always write in British.":      false,
		"-\tNever touch the legacy folder.": false,
		"get names(): string[];":            true,
		"├── main.go":                       true,
		"- Use tabs in Go files.":           false,
		"Never call load() twice;":          false,
		"Keep the braces on one line {}.":   false,
		"-1 is the mark of the end.":        false,
	} {
		if pasted(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}

// TestMaterial: of a long message what the user put in and did not write is nothing that the user laid down, and
// what they wrote around it is.
func TestMaterial(t *testing.T) {
	const screen = `$ palisade build --all
== Step 1: check the tree ==
ok  orchard/seeds  0.41s
ok  orchard/beds   1.02s
You have an active session.
{"branch": "main", "files": ["a.go", "b.go"]}
2 files changed, 18 insertions(+)
== Step 2: write the report ==
report: /var/tmp/orchard/report.txt
12:  "always": true,
13:  "never": false,
== Done ==
`
	brief := "Please look at what it printed. From now on always run it with --dry first, and never write to the seeds table.\n\n"
	for name, text := range map[string]string{"before it": brief + screen, "behind it": screen + "\n" + brief} {
		var got []string
		for _, c := range readClauses(nil, text) {
			got = append(got, c.Text)
		}
		if want := []string{"From now on always run it with --dry first, and never write to the seeds table."}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	var all strings.Builder // a brief in a list
	for i := range 20 {
		fmt.Fprintf(&all, "- Never change the table of bed %d without asking me first.\n", i)
	}
	if n := len(readClauses(nil, all.String())); n != 20 {
		t.Errorf("%d of 20 rules in a list are read", n)
	}
}
