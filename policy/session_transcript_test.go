package policy

import (
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func message(role thread.Role, parts ...thread.Part) thread.Message {
	return thread.Message{Role: role, Parts: parts}
}

func said(role thread.Role, text string) thread.Message {
	return message(role, thread.Text{Text: text})
}

func result(text string) thread.ToolResult {
	return thread.ToolResult{CallID: "c", Tool: "Read", Content: []thread.Part{thread.Text{Text: text}}}
}

// TestEstimate holds the figures of the estimator. B1
func TestEstimate(t *testing.T) {
	for _, test := range []struct {
		name string
		m    thread.Message
		want int
	}{
		{"nothing but a role", message(thread.User), 2},
		{"rounded up", said(thread.User, "12345"), 2 + 2},
		{"even", said(thread.User, "12345678"), 2 + 2},
		{"each part by itself", message(thread.User, thread.Text{Text: "12345"}, thread.Text{Text: "1"}), 2 + 2 + 1},
		{"a pair counts two", said(thread.User, "😀😀a"), 2 + 2},
		{"one unit, three bytes", said(thread.User, "漢漢漢漢"), 2 + 1},
		// "Read" is 4, {"a":1} is 7 characters.
		{"name and arguments", message(thread.Assistant, thread.ToolCall{Name: "Read", Arguments: `{ "a": 1 }`}), 2 + 1 + 2},
		{"arguments that are no JSON", message(thread.Assistant, thread.ToolCall{Name: "Read", Arguments: `patch`}), 2 + 1 + 2},
		// "ok\n" in quotes is 6 characters.
		{"result as a JSON string", message(thread.Tool, result("ok\n")), 2 + 2},
		{"result as data", message(thread.Tool, thread.ToolResult{Structured: `{"n": 12}`}), 2 + 2},
		{"reasoning and media are not seen", message(thread.Assistant, thread.Reasoning{Text: "hm"}, thread.Media{Data: "AAAA"}), 2},
	} {
		if got := estimateMessage(&test.m); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
	system := []prompt.System{{Text: "123"}, {Text: "4567"}}
	s := &Situation{Base: &prompt.Prompt{System: system}}
	if got := s.estimateTokens([]entry{{Message: said(thread.User, "1")}}); got != 2+2+3 {
		t.Errorf("with system: %d", got)
	}
}

// TestThreshold holds the formula, the table and what comes before it. B2, B3
func TestThreshold(t *testing.T) {
	for _, test := range []struct {
		name  string
		p     Session
		model string
		s     *Situation
		want  int // limit
		mark  int
	}{
		{"fallback", Session{}, "nobody-knows-it", &Situation{}, 128_000, 93_600},
		{"row of the seed", Session{}, "claude-3-haiku-20240307", &Situation{}, 200_000, 151_200},
		{"row of the seed, reserves larger than it", Session{}, "gpt-4", &Situation{}, 8_192, -2_247},
		{"row of today's table", Session{}, "claude-sonnet-4-5", &Situation{}, 200_000, 151_200},
		{"window of the step", Session{}, "gpt-4o", &Situation{Window: 64_000, Output: 9}, 64_000, 42_400},
		{"own setting", Session{ContextLimit: 20_000}, "gpt-4o", &Situation{Window: 64_000}, 20_000, 7_200},
		{"own constants", Session{ContextLimit: 1_000, SystemReserve: 1, OutputReserve: 2, SafetyBuffer: 4, ThresholdPercent: 0.5}, "", &Situation{}, 1_000, 496},
		{"budget", Session{}, "", &Situation{Budget: 20_000}, 24_000, 10_400},
	} {
		test.s.Base = &prompt.Prompt{Model: test.model}
		limit := test.p.limit(test.s)
		if limit != test.want || test.p.threshold(limit) != test.mark {
			t.Errorf("%s: limit %d, threshold %d; want %d, %d", test.name, limit, test.p.threshold(limit), test.want, test.mark)
		}
	}
}

// TestUnits compares with the standard library's UTF-16.
func TestUnits(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(0, 20).Draw(t, "n")
		all := utf16.Encode([]rune(s))
		if utf16Units(s) != len(all) {
			t.Fatalf("units(%q) = %d, want %d", s, utf16Units(s), len(all))
		}
		head, whole := headUnits(s, n)
		if whole != (len(all) <= n) || !strings.HasPrefix(s, head) || utf16Units(head) > n || !whole && utf16Units(head) < n-1 {
			t.Fatalf("headUnits(%q, %d) = %q, %v", s, n, head, whole)
		}
		if doc := rawjson.Quote(s); stringify(" "+doc) != doc {
			t.Fatalf("stringify(%s) = %s", doc, stringify(doc))
		}
	})
	const ascii = `{ "b": "caf\u00e9 \ud83d\ude00 \/ \n \u0007", "a": [1.50, "x"] }`
	if got, want := stringify(ascii), `{"b":"café 😀 / \n \u0007","a":[1.50,"x"]}`; got != want {
		t.Errorf("stringify: %s, want %s", got, want)
	}
}

// TestTranscript holds the format of B7, with its three cuts.
func TestTranscript(t *testing.T) {
	list := func(messages ...thread.Message) (entries []entry) {
		for _, m := range messages {
			entries = append(entries, entry{Message: m})
		}
		return entries
	}
	cut := sessionCuts
	got := transcript(list(
		said(thread.User, "Build it"),
		message(thread.Assistant, thread.Reasoning{Text: "hm"}, thread.Text{Text: "I read."}, thread.ToolCall{Name: "Read", Arguments: `{"path": "a.go"}`}),
		message(thread.Tool, result("line\n\"two\"")),
		message(thread.Tool, thread.ToolResult{Structured: `{"ok": true}`}),
	), cut)
	const want = "[0] USER:\nBuild it\n\n---\n\n[1] ASSISTANT:\nI read.\n[Tool: Read({\"path\":\"a.go\"})]" +
		"\n\n---\n\n[2] TOOL:\n[Result: \"line\\n\\\"two\\\"\"...]\n\n---\n\n[3] TOOL:\n[Result: {\"ok\":true}...]"
	if got != want {
		t.Errorf("transcript:\n%s\nwant:\n%s", got, want)
	}
	// The quote in front is one of the 500 characters.
	long := transcript(list(message(thread.Tool, result(strings.Repeat("x", 12_000)))), cut)
	if want := "[0] TOOL:\n[Result: \"" + strings.Repeat("x", 499) + "...]"; long != want {
		t.Errorf("a long result: %d characters, %q", len(long), long)
	}
	for n, isCut := range map[int]bool{2_000: false, 2_001: true} {
		got := transcript(list(said(thread.User, strings.Repeat("y", n))), cut)
		want := "[0] USER:\n" + strings.Repeat("y", 2_000)
		if isCut {
			want += "\n[...truncated...]"
		}
		if got != want {
			t.Errorf("a message of %d characters comes out with %d", n, len(got))
		}
	}
}

// TestWholeTranscript: without cuts nothing is shortened, and nothing says so. E5
func TestWholeTranscript(t *testing.T) {
	long := strings.Repeat("x", 30_000)
	for want, m := range map[string]thread.Message{
		"[0] TOOL:\n[Result: \"" + long + "\"]":     message(thread.Tool, result(long)),
		"[0] TOOL:\n[Result: [\"" + long + "\",1]]": message(thread.Tool, thread.ToolResult{Structured: `["` + long + `", 1]`}),
		"[0] USER:\n" + long:                        said(thread.User, long),
	} {
		if got := transcript([]entry{{Message: m}}, cutLimits{}); got != want {
			t.Errorf("%d characters, want %d", len(got), len(want))
		}
	}
}

// TestAnswerForm: whatever a model makes of the form, heading, order of the
// sections and the task are right, and nothing it wrote beside is lost. B6, B9
func TestAnswerForm(t *testing.T) {
	form := sessionForm{round: 3, task: "Build a flashcard app.\n# Use SQLite", isChained: true}
	const want = `## Session Summary (Compaction Round 3)

### Original Task
Build a flashcard app.
# Use SQLite

### Completed Work
| a | b | c |

### Current State
- Working on: tests

### Errors & Resolutions
E1 → fixed

This summary incorporates context from 2 previous compaction rounds.`
	// What the answers say was said before.
	heard := []thread.Message{said(thread.Assistant, "Working on tests, with tables of a b c. Error E1 is fixed. Just prose. An app. A reworded task.")}
	answered := func(form sessionForm, answer string) string {
		got, err := form.formatAnswer(&summaryModel{}, summarize.NewGrounds(t.Context(), heard, ""), strings.TrimSpace(answer), &summary.Summary{})
		if err != nil {
			t.Error(err)
		}
		return got
	}
	for name, answer := range map[string]string{
		"as asked": want,
		"deeper, other round, other order, task reworded": "### Session Summary (Compaction Round 9)\n#### Errors & Resolutions\nE1 → fixed\n#### Original Task\nAn app.\n" +
			"#### Current State\n- Working on: tests\n\n#### Completed Work\n| a | b | c |",
		"task dropped, no heading": "## Completed Work\n| a | b | c |\n## Current State\n- Working on: tests\n## Errors & resolutions\nE1 → fixed",
		"in a code block":          "```markdown\n" + want + "\n```",
	} {
		if got := answered(form, answer); got != want {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	if got := answered(form, "Just prose."); !strings.Contains(got, "Just prose.") || !strings.Contains(got, form.task) {
		t.Errorf("an answer without sections is lost:\n%s", got)
	}
	form.isChained = false
	if got := answered(form, want); strings.Contains(got, chainedNote) {
		t.Errorf("nothing came before:\n%s", got)
	}
}

// BenchmarkEstimate is what a step of an agent pays: a thread of about 400 KB.
func BenchmarkEstimate(b *testing.B) {
	var entries []entry
	for range 100 {
		entries = append(entries, entry{Message: message(thread.Assistant, thread.ToolCall{Name: "Read", Arguments: `{"file_path": "queue/a.go"}`})},
			entry{Message: message(thread.Tool, result(strings.Repeat("func handle(o Order) error { return nil }\n", 95)))})
	}
	s := &Situation{Base: &prompt.Prompt{}}
	b.ReportAllocs()
	for b.Loop() {
		s.estimateTokens(entries)
	}
}

// TestDueAtThreshold: reaching the threshold is enough, and only with more than
// keep+1 messages, the system prompt counted. B2, B4
func TestDueAtThreshold(t *testing.T) {
	var log []thread.Message
	for range 11 { // 98 + 2 tokens each
		log = append(log, said(thread.User, strings.Repeat("x", 392)))
	}
	for _, test := range []struct {
		limit, messages int
		want            bool
	}{{12_375, 11, true}, {12_377, 11, false}, {11_000, 11, true}, {11_000, 10, false}} {
		s := stateOf(t, "", log[:test.messages]...)
		if due, why := (Session{ContextLimit: test.limit}).Due(s); due != test.want || due == (why == "") {
			t.Errorf("limit %d, %d messages: due %v, %q", test.limit, test.messages, due, why)
		}
	}
}

// TestEstimatesAreRemembered: a message is estimated once, whatever its log grows to;
// what stands otherwise in the prompt is estimated as it stands there, and a log that
// goes another way is estimated anew. B12
func TestEstimatesAreRemembered(t *testing.T) {
	var known Estimates
	log, err := thread.New("t").Append(said(thread.User, "12345678"), said(thread.Assistant, "1234"))
	if err != nil {
		t.Fatal(err)
	}
	longer, err := log.Append(said(thread.User, "1234"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := log.Prefix(1).Append(said(thread.Assistant, strings.Repeat("x", 400)))
	if err != nil {
		t.Fatal(err)
	}
	for n, test := range []struct {
		log  *thread.Thread
		want int
	}{{log, 4 + 3}, {longer, 4 + 3 + 3}, {log, 4 + 3}, {other, 4 + 102}, {longer, 4 + 3 + 3}} {
		s := &Situation{Thread: test.log, Base: &prompt.Prompt{}, Estimates: &known}
		var entries []entry
		for i, m := range test.log.All() {
			entries = append(entries, entry{*m, i, true})
		}
		if got := s.estimateTokens(entries); got != test.want {
			t.Errorf("look %d: %d, want %d", n, got, test.want)
		}
		entries[0].Parts, entries[0].isUnchanged = nil, false
		if got := s.estimateTokens(entries); got != test.want-2 {
			t.Errorf("look %d, with nothing in its place: %d, want %d", n, got, test.want-2)
		}
	}
}
