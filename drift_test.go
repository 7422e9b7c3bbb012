package palimpsest_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// rounds is how often a summary is summarized again.
const rounds = 10

// TestSummariesDoNotDrift: ten summarizations, each of which sees only the
// summary before it and what is new. A pinned constraint stands in the last as
// it was said, no value has changed on the way, nothing is there twice, and
// the summary stays within its budget. A21
func TestSummariesDoNotDrift(t *testing.T) {
	counter := o200k(t)
	for _, budget := range []int{600, 1_500, 4_000} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			e := &summarize.Extractive{Counter: counter.Text}
			log := thread.New("drift")
			values := map[string]string{} // what the log says, by key
			var previous *summary.Summary
			for round := 1; round <= rounds; round++ {
				before := log.Len()
				next, err := log.Append(driftRound(round, values)...)
				if err != nil {
					t.Fatal(err)
				}
				log = next
				sum, err := e.Summarize(t.Context(), summarize.Input{Messages: log.Messages()[before:], Previous: previous, Budget: budget})
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				text := sum.Render()
				if n := counter.Text(text); n > budget {
					t.Errorf("round %d: %d tokens, the budget is %d", round, n, budget)
				}
				for _, rule := range driftRules {
					if !strings.Contains(text, rule) {
						t.Errorf("round %d: lost the rule %q", round, rule)
					}
				}
				unchanged(t, round, text, values)
				once(t, round, sum.Summary)
				previous = &sum.Summary
			}
			found := canary.FindAllString(previous.Render(), -1)
			t.Logf("%d of %d values stand after %d rounds", len(found), len(values), rounds)
			if len(found) == 0 {
				t.Error("no value is left")
			}
		})
	}
}

var driftRules = []string{"Never delete production data.", "The budget is $1000 at most", "I prefer Python over Go for scripts."}

// canary is a value under a key that is used once, so that any change shows.
var canary = regexp.MustCompile(`\bcanary_(\d+)=([A-Za-z0-9_.-]+)`)

// driftRound is what happens between two summarizations. The rules are said in
// the first round only.
func driftRound(round int, values map[string]string) []thread.Message {
	value := func(n int) string {
		key := fmt.Sprintf("%d", round*100+n)
		values[key] = fmt.Sprintf("v%d.%d-%x", round, n, (round*7919+n*104729)%65521)
		return "canary_" + key + "=" + values[key]
	}
	var out []thread.Message
	ask := fmt.Sprintf("Go on with part %d of the migration, %s is its ticket.", round, value(0))
	if round == 1 {
		ask = "Please migrate the queue in parts. " + strings.Join(driftRules[:2], " ") + ". " + driftRules[2] + " " + ask
	}
	out = append(out, plain(thread.User, ask))
	for n := 1; n <= 6; n++ {
		id := fmt.Sprintf("call_%d_%d", round, n)
		path := fmt.Sprintf("queue/part%d/file%d.py", round, n)
		call := thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":%q}`, path)}
		result := thread.ToolResult{CallID: id, Tool: "Read", Outcome: thread.Success, Content: []thread.Part{thread.Text{
			Text: fmt.Sprintf("# %s\nlimit = %d\n%s\ndef drain(queue_%d):\n    return queue_%d.pop()\n", path, round*n, value(n), n, n),
		}}}
		if n%3 == 0 {
			call.Name, call.Arguments, result.Tool = "Bash", fmt.Sprintf(`{"command":"pytest queue/part%d -k case%d"}`, round, n), "Bash"
			result.Outcome = thread.Failure
			result.Content = []thread.Part{thread.Text{Text: fmt.Sprintf("FAILED queue/part%d/test.py::case%d - AssertionError: %s\n1 failed, %d passed", round, n, value(n+50), round*n)}}
		}
		out = append(out,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("Looking at file %d of part %d.", n, round)}, call}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{result}})
	}
	return append(out, plain(thread.Assistant, fmt.Sprintf("Part %d is migrated. I decided to keep drain because callers use it; %s.", round, value(90))))
}

// unchanged checks that every value that the text shows is the one of the log.
func unchanged(t *testing.T, round int, text string, values map[string]string) {
	t.Helper()
	for _, m := range canary.FindAllStringSubmatch(text, -1) {
		key, got := m[1], strings.TrimRight(m[2], ".")
		if want, known := values[key]; !known || got != want {
			t.Errorf("round %d: canary_%s is %q, it was said to be %q", round, key, got, want)
		}
	}
}

// once checks that no entry of a section stands there twice.
func once(t *testing.T, round int, s summary.Summary) {
	t.Helper()
	for _, section := range s.Sections() {
		seen := map[string]bool{}
		for _, entry := range section.Entries {
			if seen[entry] {
				t.Errorf("round %d: %s twice: %q", round, section.Heading, entry)
			}
			seen[entry] = true
		}
	}
}
