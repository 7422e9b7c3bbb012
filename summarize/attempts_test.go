package summarize

import (
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestAttemptText: a failed attempt quotes what the assistant said and changed next, unless the
// story tells it in full.
func TestAttemptText(t *testing.T) {
	a := &attempt{
		why: "Bash go test => FAIL", said: "The index is off by one.", again: 3, works: true,
		mends: []repair{{file: "src/parse.go", hunk: hunk{minus: []string{"n := 1"}, plus: []string{"n := 0"}}, from: "m7"}},
	}
	for _, tt := range []struct {
		told    map[string]bool
		changes []summary.Item
		want    string
	}{
		{nil, nil, " | then the assistant: The index is off by one. | edited next: src/parse.go n := 1 → n := 0 | it succeeded later, in turn 3"},
		{map[string]bool{"The index is off by one.": true}, nil, " | edited next: src/parse.go n := 1 → n := 0 | it succeeded later, in turn 3"},
		{nil, []summary.Item{{Text: "src/parse.go:\n- n := 1\n+ n := 0", Sources: []thread.ID{"m7"}}}, " | then the assistant: The index is off by one. | edited next: src/parse.go | it succeeded later, in turn 3"},
		// Another edit of the file, and an entry that does not show the line.
		{nil, []summary.Item{{Text: "src/parse.go:\n+ n := 0", Sources: []thread.ID{"m9"}}, {Text: "edited src/parse.go", Sources: []thread.ID{"m7"}}}, " | then the assistant: The index is off by one. | edited next: src/parse.go n := 1 → n := 0 | it succeeded later, in turn 3"},
	} {
		got := a.text(tt.told, tt.changes)
		if got != a.why+tt.want {
			t.Errorf("%v, %v: %q", tt.told, tt.changes, got)
		}
		if whyFailed(got) != a.why {
			t.Errorf("it failed because of %q", whyFailed(got))
		}
	}
}

// TestAttemptCarriedOn: an attempt of the summary that is replaced is not told again in other
// words when its messages come up once more.
func TestAttemptCarriedOn(t *testing.T) {
	k := (&talk{}).user("Fix it.").calls("Bash", args{"command": "go test ./..."}, "FAIL: TestParse", thread.Failure)
	k.says("The cause is an index without a check in parse.go.")
	in := Input{Messages: k.done(t)}
	previous := summary.Summary{FailedAttempts: []summary.Item{{Text: "Bash go test ./... => FAIL: TestParse | then the assistant: The cause is an index without a check in parse.go."}}}
	in.Previous = &previous
	if s := summarizeNow(t, in); len(s.FailedAttempts) != 1 {
		t.Errorf("failures: %q", texts(s.FailedAttempts))
	}
}

// TestJoinHunks: hunks of a file stand under its name once, unless the story tells something
// between them.
func TestJoinHunks(t *testing.T) {
	s := summary.Summary{
		Span:        thread.Span{MessageIDs: []thread.ID{"a", "b", "c", "d", "e"}},
		Conclusions: []summary.Item{{Text: "That was wrong.", Turn: 1, Sources: []thread.ID{"d"}}},
		Changes: []summary.Item{
			{Text: "edited x.go: func F()", Turn: 1, Sources: []thread.ID{"a"}},
			{Text: "x.go:\n+ one", Turn: 1, Sources: []thread.ID{"a"}},
			{Text: "x.go:\n- one\n+ two", Turn: 1, Sources: []thread.ID{"b"}},
			{Text: "y.go:\n+ three", Turn: 1, Sources: []thread.ID{"b"}},
			{Text: "y.go:\n+ four", Turn: 1, Sources: []thread.ID{"c"}},
			{Text: "y.go:\n+ five", Turn: 1, Sources: []thread.ID{"d"}}, // after words
			{Text: "y.go:\n+ six", Turn: 2, Sources: []thread.ID{"e"}},
		},
	}
	before := texts(s.Changes)
	got := joinHunks(s)
	want := []string{"edited x.go: func F()", "x.go:\n+ one\n…\n- one\n+ two", "y.go:\n+ three\n…\n+ four", "y.go:\n+ five", "y.go:\n+ six"}
	if !slices.Equal(texts(got), want) {
		t.Errorf("%q", texts(got))
	}
	if joined := joinHunks(summary.Summary{Changes: []summary.Item{{Text: "x:\n+ a"}, {Text: "x:\n+ b"}}}); len(joined) != 1 {
		t.Errorf("of unknown messages: %q", texts(joined))
	}
	if !slices.Equal(got[1].Sources, []thread.ID{"a", "b"}) || !slices.Equal(texts(s.Changes), before) || len(s.Changes[1].Sources) != 1 {
		t.Errorf("%v, from %q", got[1].Sources, strings.Join(texts(s.Changes), "|"))
	}
}
