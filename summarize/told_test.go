package summarize

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestWindows: a long line is cut at words, each window knows its place, and what
// lies between two pieces of an item is marked.
func TestWindows(t *testing.T) {
	line := "first_word_of_it " + strings.Repeat("plain words here ", 20) + "last_word_of_it"
	pieces := appendPieces(nil, line, 1, 0, true, false)
	pieces = appendPieces(pieces, "next_line()", 2, 0, true, false)
	if len(pieces) != 3 {
		t.Fatalf("%d pieces", len(pieces))
	}
	for _, p := range pieces {
		if !slices.Contains(strings.Fields(line+" next_line()"), strings.Fields(p.text)[0]) {
			t.Errorf("a window begins in mid-word: %q", p.text)
		}
	}
	var g group
	for _, p := range pieces {
		g.places = append(g.places, p.place)
	}
	if !g.apart(0, 1) {
		t.Error("windows without identifiers are left out, and nothing marks it")
	}
	if g.apart(1, 2) {
		t.Error("the end of a line and the next line stand together")
	}
	g.places[1].more = true
	if !g.apart(1, 2) {
		t.Error("the end of a line is left out, and nothing marks it")
	}
	long := strings.Repeat("x", maxSentence-10) + " tail"
	if end := windowEnd(long); long[end-1] != ' ' {
		t.Errorf("a long word is cut at %d", end)
	}
}

// TestMaskedOutcome: where a pipe hides the exit status, the output of a check says
// how it went.
func TestMaskedOutcome(t *testing.T) {
	for _, tt := range []struct {
		command, out string
		want         thread.Outcome
	}{
		{"go build ./... 2>&1 | head -40", "# x/y\ncmd/a.go:105:51: undefined: z", thread.Failure},
		{"mise run fmt && mise run lint 2>&1 | tail -20", "cmd/a.go:85:26: unused (lint)", thread.Failure},
		{"mise run fmt 2>&1 && mise run lint 2>&1 | tail -5", "[lint] ERROR task failed", thread.Failure},
		{"go test ./... -v 2>&1 | tail -100", "--- FAIL: TestX (0.0s)\nFAIL", thread.Failure},
		{"go test ./... 2>&1 | tail -3", "ok  \tx/y\t0.1s", thread.Success},
		{"go build ./... 2>&1 | head -40", "", thread.Success},
		{"cat notes.txt; go build ./... | head", "a.go:1:1: said the notes", thread.Success},
	} {
		k := new(talk).user("Mend it, please.").calls("Bash", args{"command": tt.command}, tt.out, thread.Success).says("I see.")
		s := summarizeNow(t, Input{Messages: k.done(t), Budget: 2000})
		if len(s.ToolOutcomes) != 1 || s.ToolOutcomes[0].Outcome != tt.want {
			t.Errorf("%s: %+v, want %s", tt.command, s.ToolOutcomes, tt.want)
		}
	}
	k := new(talk).user("Where is it used?").calls("LSP", args{"operation": "incomingCalls"}, "Error performing incomingCalls: request failed", thread.Success).says("I see.")
	if s := summarizeNow(t, Input{Messages: k.done(t), Budget: 2000}); len(s.ToolOutcomes) != 1 || s.ToolOutcomes[0].Outcome != thread.Failure {
		t.Errorf("a request that failed: %+v", s.ToolOutcomes)
	}
}

func ledgerOf(s summary.Summary) string {
	var all []string
	for _, f := range s.Files {
		all = append(all, fmt.Sprintf("%s %s", strings.Join(f.Operations, "+"), f.Path))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// TestOneNamePerFile: a file that is named with its root and without is one file,
// and what was there before was not created.
func TestOneNamePerFile(t *testing.T) {
	done := func(path string) string { return "The file " + path + " has been updated successfully." }
	edit := func(k *talk, path string) *talk {
		return k.calls("Edit", args{"file_path": path, "old_string": "a", "new_string": "b"}, done(path), thread.Success)
	}
	write := func(k *talk, path, said string) *talk {
		return k.calls("Write", args{"file_path": path, "content": "some text"}, said+path, thread.Success)
	}
	for _, tt := range []struct {
		name string
		log  func(*talk)
		want string
	}{
		{"root last", func(k *talk) {
			k.calls("Bash", args{"command": "sed -i s/a/b/ pkg/a.go"}, "", thread.Success)
			edit(k, "/r/pkg/a.go")
		}, "edited /r/pkg/a.go"},
		{"root first", func(k *talk) {
			edit(k, "/r/pkg/a.go").calls("Bash", args{"command": "rm pkg/a.go"}, "", thread.Success)
		}, "edited+deleted /r/pkg/a.go"},
		{"with its folder", func(k *talk) {
			edit(k, "/r/pkg/a.go").calls("Bash", args{"command": "rm -rf /r/pkg"}, "", thread.Success)
		}, "deleted /r/pkg; edited+deleted /r/pkg/a.go"},
		{"a name alone", func(k *talk) {
			edit(k, "/r/pkg/.env").calls("Bash", args{"command": "rm .env"}, "", thread.Success)
		}, "deleted .env; edited /r/pkg/.env"},
		{"two that end alike", func(k *talk) {
			edit(edit(k, "/r/pkg/a.go"), "/s/pkg/a.go").calls("Bash", args{"command": "rm pkg/a.go"}, "", thread.Success)
		}, "deleted pkg/a.go; edited /r/pkg/a.go; edited /s/pkg/a.go"},
		{"written over", func(k *talk) { write(k, "/r/a.md", "The file has been updated: ") }, "edited /r/a.md"},
		{"new", func(k *talk) { write(k, "/r/a.md", "File created successfully at: ") }, "created /r/a.md"},
		{"on a condition", func(k *talk) {
			k.calls("Bash", args{"command": "if true; then\n rm a.go\nfi\nrm b.go"}, "", thread.Success)
		}, "deleted b.go"},
		{"into a folder", func(k *talk) {
			k.calls("Bash", args{"command": "cd /r && mv a.go b.go core/ && mv x/c.go ."}, "", thread.Success)
		}, "created /r/c.go; created /r/core/a.go; created /r/core/b.go; deleted /r/a.go; deleted /r/b.go; deleted /r/x/c.go"},
		{"after another, of a tool that flags nothing", func(k *talk) {
			k.calls("bash", args{"command": "cd /r && mv a.go b.go && mv c.go d.go"}, "", thread.Success)
		}, "created /r/b.go; created /r/d.go; deleted /r/a.go; deleted /r/c.go"},
		{"after what fails without a word", func(k *talk) {
			k.calls("bash", args{"command": "grep -q x a.go && mv c.go d.go"}, "", thread.Success)
		}, ""},
	} {
		k := new(talk).user("Mend the files, please.")
		tt.log(k)
		k.says("Mended.")
		if got := ledgerOf(summarizeNow(t, Input{Messages: k.done(t), Budget: 3000})); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	k := new(talk).user("Write the plan, please.")
	write(k, "/r/plan.md", "File created successfully at: ").user("And again, with more in it.")
	write(k, "/r/plan.md", "Wrote ").says("Done.")
	if got := ledgerOf(summarizeNow(t, Input{Messages: k.done(t), Budget: 3000})); got != "created+edited /r/plan.md" {
		t.Errorf("written twice: %s", got)
	}
}

// TestTaskList: a list of tasks that was shown says how they stand.
func TestTaskList(t *testing.T) {
	create := func(k *talk, id, subject string) *talk {
		return k.calls("TaskCreate", args{"subject": subject, "description": "Do " + id + "."}, "Task #"+id+" created successfully: "+subject, thread.Success)
	}
	plan := func(k *talk) string {
		k.says("Going on.")
		var all []string
		log := k.done(t)
		for _, s := range summarizeNow(t, Input{Messages: log, Log: log, Budget: 2000}).CurrentPlan {
			all = append(all, strings.TrimSpace(s.Status+" "+s.Text+" "+s.Detail))
		}
		return strings.Join(all, "; ")
	}
	two := func() *talk {
		k := new(talk).user("Do both of the things, please.")
		return create(create(k, "1", "write it"), "2", "test it").calls("TaskUpdate", args{"taskId": "1", "status": "in_progress"}, "Updated task #1 status", thread.Success)
	}
	done := func() *talk {
		return two().calls("TaskList", args{}, "#1 [completed] write it\n#2 [completed] test it", thread.Success)
	}
	for _, tt := range []struct {
		name string
		log  *talk
		want string
	}{
		{"as updated", two(), "in_progress write it Do 1.; pending test it"},
		{"as shown", two().calls("TaskList", args{}, "#1 [completed] write it\n#2 [pending] test it", thread.Success), "completed write it; pending test it Do 2."},
		{"one is gone", two().calls("TaskList", args{}, "#2 [pending] test it", thread.Success), "pending test it Do 2."},
		{"none", two().calls("TaskList", args{}, "No tasks found", thread.Success), ""},
		{"all done in this turn", done(), "completed write it; completed test it"},
		{"all done before", done().user("Now something else, please."), "completed all 2 steps, the last: test it"},
		{"not all done before", two().user("Now something else, please."), "in_progress write it Do 1.; pending test it"},
		{"numbers begin anew", create(two(), "1", "ship it"), "pending ship it Do 1."},
	} {
		if got := plan(tt.log); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestDirectoryOfCallsTogether: of calls that were made together nobody knows which
// ran last, so where one of them went says nothing.
func TestDirectoryOfCallsTogether(t *testing.T) {
	l := &logOf{}
	l.ok("cd /r/x && ls", "a\nShell cwd was reset to /r")
	l.add(thread.Message{Role: thread.Assistant, Parts: []thread.Part{
		thread.ToolCall{ID: "a", Name: "Bash", Arguments: `{"command":"cd /s && ls"}`}, thread.ToolCall{ID: "b", Name: "Bash", Arguments: `{"command":"cd /s && cat x"}`}}})
	for _, r := range []struct{ id, out string }{{"a", "x\nShell cwd was reset to /r"}, {"b", "y"}} {
		l.add(thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: r.id, Tool: "Bash", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: r.out}}}}})
	}
	w := l.ok("npm test", "3 passing").fold(t, state.Work{})
	if w.Directory.Text != "/r" || len(w.Checks) != 1 || w.Checks[0].Command != "npm test" {
		t.Errorf("in %s, checks %+v", w.Directory.Text, w.Checks)
	}
}

// TestAnswered: what the assistant offered stands in the summary where the user's next
// message opens as an answer to it, however long that is.
func TestAnswered(t *testing.T) {
	for said, want := range map[string]bool{
		"No I think this is fine": true, "2, and keep the name": true, "Yes.": true, "ok - do that": true, "Both": true,
		"Move the retry code": false, "Note that": false, "why?": false, "": false, "10 of them fail": false,
	} {
		if answers(said) != want {
			t.Errorf("%q: %v", said, !want)
		}
	}
	const offer = "Should the index keep what was stashed, at the price of a slower commit?"
	worth := func(next string) float32 {
		k := (&talk{}).user("Look at the lock and tell me what it does.").says("It guards the table of the open files against two writers.\n\n" + offer).user(next)
		for _, c := range newPool(t.Context(), &Input{Messages: k.done(t)}, read).candidates {
			if c.text == offer {
				return c.base
			}
		}
		t.Fatalf("%q: what was offered is no candidate", next)
		return 0
	}
	order := worth("Now write down which of the tables are guarded by it and which of them are not.")
	if answer := worth("No I think this is fine, it has too much risk of a false positive for what it brings."); answer < 3*order {
		t.Errorf("an offer is worth %v where the user answers it, %v where not", answer, order)
	}
}

// TestAnswersFit: where there is little room, the user's answers to a tool's questions come before most else, and the
// questions go before an answer does. A later summary has a question again that it can read.
func TestAnswersFit(t *testing.T) {
	k := new(talk).user("Build the report.")
	var answers []string
	for n, answer := range []string{"krona", "landscape", "Mondays", "Faroe", "decimals", "ochre", "Birta", "Jost", "cellar", "branch nine", "no packages", "brackets"} {
		answers = append(answers, answer)
		k.calls("Ask", args{"n": n}, answer, thread.Success).says(fmt.Sprintf("Noted, and now I read the module for the harbour of island %d.", n))
		r := k.messages[len(k.messages)-2].Parts[0].(thread.ToolResult)
		r.Said = []thread.Said{{Asked: fmt.Sprintf("What should the report do about the matter that comes up as number %d of the list?", n), Text: answer}}
		k.messages[len(k.messages)-2].Parts[0] = r
	}
	in := Input{Messages: k.says("Done.").done(t), Budget: 220}
	s := summarizeNow(t, in)
	for _, answer := range answers {
		if !strings.Contains(s.Render(), answer) {
			t.Errorf("no %q in\n%s", answer, s.Render())
		}
	}
	in.Previous, in.Budget = &s, 4000
	s = summarizeNow(t, in)
	for _, answer := range answers {
		if strings.Count(s.Render(), `"`+answer+`" (asked: `) != 1 || strings.Count(s.Render(), `"`+answer+`"`) != 1 {
			t.Errorf("%q is told twice, or without its question:\n%s", answer, s.Render())
		}
	}
}

// TestShownElsewhere: the summary knows of which of its turns the user's message stands
// beside it, and what the model said between them.
func TestShownElsewhere(t *testing.T) {
	k := (&talk{}).user("Move the retry code of the carrier client.").says("Moved.").user("Now write the changelog entry.").says("Written.")
	all := k.done(t)
	s := summarizeNow(t, Input{Messages: all[1:2], Shown: []thread.Message{all[0], all[2]}, Budget: 400})
	if want := []int{1}; !slices.Equal(s.Elsewhere, want) {
		t.Errorf("elsewhere %v, want %v", s.Elsewhere, want)
	}
	all = k.user("And push it.").says("Pushed.").done(t)
	s = summarizeNow(t, Input{Messages: slices.Concat(all[:3], all[4:5]), Shown: []thread.Message{all[3], all[5]}, Budget: 400})
	if want := []int{2}; !slices.Equal(s.Elsewhere, want) {
		t.Errorf("elsewhere of the model's words: %v, want %v", s.Elsewhere, want)
	}
}

// TestWritten: what a model wrote of the messages comes before sentences that code finds.
func TestWritten(t *testing.T) {
	k := new(talk).user("Please find out why the orders of the harbour are slow.")
	for n, part := range []string{"cranes", "lights", "ropes", "boats", "pilots", "tides"} {
		k.says(fmt.Sprintf("I looked at the %s: the queue of the %s is read every %d minutes, because the clock of the %s is slow in the morning hours.", part, part, n+2, part)).
			user(fmt.Sprintf("Go on with what stands behind the %s in the list, please.", part))
	}
	messages := k.says("All are read.").done(t)
	var proposed summary.Summary
	for n, fact := range []string{
		"Orders wait for the clock of the harbour master, which all queues ask.", "The clock is read over one connection that is never shared.",
		"Each queue waits at most nine minutes before it gives up and says so in its journal.", "Nobody has changed the clock since spring, so the reason lies elsewhere.",
		"The pilots have a clock of their own, which is never slow and could be asked instead.", "In the afternoon half of the queues are empty, and nothing waits for long.",
		"The journal of the queues holds the times of all waits, a line each, for thirty days.",
	} {
		proposed.Facts = append(proposed.Facts, summary.Item{Text: fact, Turn: 1, Sources: []thread.ID{messages[n].ID}})
	}
	got, err := new(Extractive).Complete(t.Context(), Input{Messages: messages, Budget: 440}, Result{Summary: proposed})
	if err != nil {
		t.Fatal(err)
	}
	text := got.Render()
	for _, f := range proposed.Facts {
		if !strings.Contains(text, f.Text) {
			t.Errorf("%q is not there", f.Text)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestProposedPlan: of a plan that was put before the user, headings and sentences come before its code.
func TestProposedPlan(t *testing.T) {
	plan := "# Ferry timetable\n\n## Decisions\nThe table is kept by pier, because crews ask by pier.\n\n```go\ntype pierTable struct{ pier, crew string }\n```\n\n```go\n" +
		strings.Repeat("pierTable = append(pierTable, ferryCrew)\n", 12) + "```\n\n## Steps\n1. Read the list of piers from the harbour office.\n2. Write one page for each pier.\n"
	messages := new(talk).user("Plan the ferry timetable for me.").calls("ExitPlanMode", map[string]any{"plan": plan}, "User has approved your plan.", thread.Success).
		calls("Bash", map[string]any{"command": "cat pierTable"}, "ferryCrew", thread.Success).done(t)
	text := summarizeNow(t, Input{Messages: messages, Budget: 136}).Render()
	for _, want := range []string{"Decisions", "crews ask by pier", "Steps", "one page for each pier"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "append(pierTable") || strings.Contains(text, "type pierTable") {
		t.Errorf("code stands in\n%s", text)
	}
}

// TestFileOrder: files that were changed come first, the most and last touched before the others, and temporary ones last.
func TestFileOrder(t *testing.T) {
	var files []summary.File
	for _, f := range []string{"/tmp/x.sh created 9 1", "/r/read.go read 8 3", "/r/once.go edited 2 1", "/r/last.go edited 7 1", "/r/often.go edited 1 5"} {
		w := strings.Fields(f)
		turn, _ := strconv.Atoi(w[2])
		touched, _ := strconv.Atoi(w[3])
		files = append(files, summary.File{Path: w[0], Operations: w[1:2], Turn: turn, Sources: make([]thread.ID, touched)})
	}
	slices.SortStableFunc(files, fileOrder)
	var got []string
	for _, f := range files {
		got = append(got, path.Base(f.Path))
	}
	if want := "often.go last.go once.go read.go x.sh"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %s", got, want)
	}
}
