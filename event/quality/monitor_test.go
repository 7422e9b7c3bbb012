package quality_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func user(text string) thread.Message {
	return thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}
}

func says(text string) thread.Message {
	return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: text}}}
}

// does is a call and its result.
func does(id, tool, args string) []thread.Message {
	return []thread.Message{
		{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: tool, Arguments: args}}},
		{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: "result of " + id}}}}},
	}
}

// watched is a thread and its monitor, told of the same.
type watched struct {
	testing.TB
	th      *thread.Thread
	monitor *quality.Monitor
	events  []event.Event
}

func watch(t testing.TB, o quality.Options) *watched {
	w := &watched{TB: t, th: thread.New("ticket-4711")}
	o.Events = event.Func(func(_ context.Context, e event.Event) {
		w.monitor.Metrics() // a sink may ask the monitor
		w.events = append(w.events, e)
	})
	w.monitor = quality.New(w.th.ID(), &o)
	return w
}

func (w *watched) log(messages ...thread.Message) *watched {
	w.Helper()
	for _, m := range messages {
		th, err := w.th.Append(m)
		if err != nil {
			w.Fatal(err)
		}
		w.th = th
		w.monitor.Message(w.Context(), *th.At(th.Len() - 1))
	}
	return w
}

// clear compacts: the results of the calls are cleared.
func (w *watched) clear(calls ...string) *watched {
	p := &plan.Plan{}
	for _, m := range w.th.All() {
		if r, ok := m.Result(); ok {
			for _, id := range calls {
				if r.CallID == id {
					p.Add(plan.Clearing{Span: thread.Span{MessageIDs: []thread.ID{m.ID}}})
				}
			}
		}
	}
	w.monitor.Compacted(w.th, p)
	return w
}

// found are the classes of the events, in order.
func (w *watched) found() string {
	var found []string
	for _, e := range w.events {
		if e.Type == event.ContextRequested {
			found = append(found, fmt.Sprint(e.Details["class"]))
		} else {
			found = append(found, string(e.Type))
		}
	}
	return strings.Join(found, " ")
}

// A22: what an agent does says as much as what it asks.
func TestLookingAgain(t *testing.T) {
	const a, b = `{"file_path":"/w/a.go"}`, `{"file_path":"/w/b.go"}`
	tests := []struct {
		name string
		want string
		run  func(w *watched)
	}{
		{"the same file", "reread", func(w *watched) {
			w.log(does("1", "Read", a)...).clear("1").log(does("2", "Read", a)...)
		}},
		{"the same file by another tool and argument name", "reread", func(w *watched) {
			w.log(does("1", "Read", a)...).clear("1").log(does("2", "read_file", `{"path":"/w/a.go"}`)...)
		}},
		{"once removed, once noticed", "reread", func(w *watched) {
			w.log(does("1", "Read", a)...).clear("1").log(does("2", "Read", a)...).log(does("3", "Read", a)...)
		}},
		{"another file", "", func(w *watched) {
			w.log(does("1", "Read", a)...).clear("1").log(does("2", "Read", b)...)
		}},
		{"nothing was removed", "", func(w *watched) {
			w.log(does("1", "Read", a)...).clear().log(does("2", "Read", a)...)
		}},
		{"no compaction", "", func(w *watched) {
			w.log(does("1", "Read", a)...).log(does("2", "Read", a)...)
		}},
		{"a newer reading is still there", "", func(w *watched) {
			w.log(does("1", "Read", a)...).log(does("2", "Read", a)...).clear("1").log(does("3", "Read", a)...)
		}},
		{"the file was changed before the compaction", "", func(w *watched) {
			w.log(does("1", "Read", a)...).log(does("e", "Edit", a)...).clear("1").log(does("2", "Read", a)...)
		}},
		{"the file was changed after the compaction", "", func(w *watched) {
			w.log(does("1", "Read", a)...).clear("1").log(does("e", "Write", a)...).log(does("2", "Read", a)...)
		}},
		{"another file was changed", "reread", func(w *watched) {
			w.log(does("1", "Read", a)...).log(does("e", "Edit", b)...).clear("1").log(does("2", "Read", a)...)
		}},
		{"other lines", "", func(w *watched) {
			w.log(does("1", "Read", `{"file_path":"/w/a.go","offset":0,"limit":100}`)...).clear("1")
			w.log(does("2", "Read", `{"file_path":"/w/a.go","offset":100,"limit":100}`)...)
		}},
		{"some of the lines", "reread", func(w *watched) {
			w.log(does("1", "view", `{"path":"/w/a.go","start_line":1,"end_line":100}`)...).clear("1")
			w.log(does("2", "view", `{"path":"/w/a.go","start_line":100,"end_line":120}`)...)
		}},
		{"long after", "", func(w *watched) {
			w.log(does("1", "Read", a)...).clear("1")
			for range 10 {
				w.log(says("Going on."))
			}
			w.log(does("2", "Read", a)...)
		}},
		{"just in time", "reread", func(w *watched) {
			w.log(does("1", "Read", a)...).clear("1")
			for range 9 {
				w.log(says("Going on."))
			}
			w.log(does("2", "Read", a)...)
		}},
		{"removed earlier, another compaction since", "", func(w *watched) {
			w.log(does("1", "Read", a)...).clear("1")
			for range 10 {
				w.log(says("Going on."))
			}
			w.clear("1").log(does("2", "Read", a)...)
		}},
		{"the same command", "rerun", func(w *watched) {
			w.log(does("1", "Bash", `{"command":"env","description":"see the environment"}`)...).clear("1")
			w.log(does("2", "Bash", `{"command":"env","description":"again"}`)...)
		}},
		{"the same search", "rerun", func(w *watched) {
			w.log(does("1", "Grep", `{"pattern":"x","path":"/w"}`)...).clear("1").log(does("2", "Grep", `{"path":"/w","pattern":"x"}`)...)
		}},
		{"a command after a change", "", func(w *watched) {
			w.log(does("1", "Bash", `{"command":"go test"}`)...).log(does("e", "Edit", a)...).clear("1").log(does("2", "Bash", `{"command":"go test"}`)...)
		}},
		{"a command after a later change", "", func(w *watched) {
			w.log(does("1", "Bash", `{"command":"go test"}`)...).clear("1").log(does("e", "Edit", a)...).log(does("2", "Bash", `{"command":"go test"}`)...)
		}},
		{"a file that a command changed", "", func(w *watched) {
			w.log(does("1", "Read", a)...).log(does("e", "Bash", `{"command":"cd /w && sed -i s/x/y/ a.go"}`)...).clear("1").log(does("2", "Read", a)...)
		}},
		{"a command after one that changed a file", "", func(w *watched) {
			w.log(does("1", "Bash", `{"command":"go test"}`)...).clear("1").log(does("e", "shell", `{"command":["bash","-lc","rm a.go"]}`)...)
			w.log(does("2", "Bash", `{"command":"go test"}`)...)
		}},
		{"a command that is run time and again", "", func(w *watched) {
			w.log(does("1", "Bash", `{"command":"git status"}`)...).log(does("2", "Bash", `{"command":"git status"}`)...).clear("1", "2")
			w.log(does("3", "Bash", `{"command":"git status"}`)...)
		}},
		{"content externalized", "artifact_read", func(w *watched) {
			w.clear().log(does("1", "read_artifact", `{"id":"art_1"}`)...)
		}},
		{"a search in it, through a server", "artifact_read", func(w *watched) {
			w.clear().log(does("1", "mcp__palimpsest__recall", `{"query":"budget"}`)...)
		}},
		{"arguments that are no JSON", "", func(w *watched) {
			w.log(does("1", "Read", `{"file_path":`)...).log(does("2", "Bash", ``)...).clear("1", "2").log(does("3", "Read", `nonsense`)...).log(does("4", "Bash", ``)...)
		}},
		{"words and deeds in one message", "lost_content reread", func(w *watched) {
			w.log(does("1", "Read", a)...).clear("1")
			again := does("2", "Read", a)
			again[0].Parts = append([]thread.Part{thread.Text{Text: "I no longer have that file."}}, again[0].Parts...)
			w.log(again...)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := watch(t, quality.Options{}).log(user("Please see to it."))
			test.run(w)
			if got := w.found(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A22: the seed's figures, and that what is asked before a compaction does not count.
func TestMetrics(t *testing.T) {
	w := watch(t, quality.Options{}).log(user("My budget is 4,200."), says("What was the budget again?"))
	if diff := cmp.Diff(quality.Metrics{}, w.monitor.Metrics()); diff != "" {
		t.Errorf("before a compaction: %s", diff)
	}
	w.clear().log(says("Let me think."), says("What was the budget again?"), user("I already told you."))
	w.log(does("1", "read_artifact", `{"id":"art_1"}`)...)
	w.monitor.TaskFinished(thread.Success)
	want := quality.Metrics{
		Compactions: 1, TurnsSinceCompaction: 3, AgentAskedForContext: true, RehydrationRequests: 1, UserRepeats: 1, Task: thread.Success,
		Asks: []quality.Ask{
			{MessageID: w.th.At(3).ID, Class: quality.AskedAgain, Turns: 2},
			{MessageID: w.th.At(4).ID, Class: quality.UserRepeats, Turns: 2},
			{MessageID: w.th.At(5).ID, Class: quality.ArtifactRead, Turns: 3},
		},
	}
	if diff := cmp.Diff(want, w.monitor.Metrics()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.monitor.Compacted(nil, nil)
	got := w.monitor.Metrics()
	if got.TurnsSinceCompaction != 0 || got.AgentAskedForContext || got.Compactions != 2 || got.RehydrationRequests != 1 {
		t.Errorf("after another compaction: %+v", got)
	}
}

// A22: an agent that keeps asking raises an alert, once; one that asks now and
// then does not.
func TestAlert(t *testing.T) {
	ask, work := says("Could you remind me what the deadline is?"), says("Working.")
	repeat := func(n int, m ...thread.Message) (out []thread.Message) {
		for range n {
			out = append(out, m...)
		}
		return out
	}
	tests := []struct {
		name  string
		o     quality.Options
		after []thread.Message
		want  int
	}{
		{"two", quality.Options{}, repeat(2, ask), 0},
		{"three", quality.Options{}, repeat(3, ask), 1},
		{"five are one alert", quality.Options{}, repeat(5, ask), 1},
		{"six are two", quality.Options{}, repeat(6, ask), 2},
		{"the third in turn 10", quality.Options{}, append(repeat(2, ask), append(repeat(7, work), ask)...), 1},
		{"the third in turn 11", quality.Options{}, append(repeat(2, ask), append(repeat(8, work), ask)...), 0},
		{"asked of the user, who turns up between", quality.Options{}, repeat(3, ask, user("In May.")), 1},
		{"configured", quality.Options{Asks: 1, Turns: 2}, []thread.Message{work, ask}, 1},
		{"configured, too late", quality.Options{Asks: 1, Turns: 2}, []thread.Message{work, work, ask}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := watch(t, test.o).log(user("Please see to it.")).log(repeat(5, ask)...).clear().log(test.after...)
			alerts := 0
			for _, e := range w.events {
				if e.Type == event.QualityAlert {
					alerts++
				}
			}
			if alerts != test.want || w.monitor.Metrics().Alerts != test.want {
				t.Errorf("%d alerts, metrics say %d, want %d", alerts, w.monitor.Metrics().Alerts, test.want)
			}
		})
	}
	t.Run("across compactions", func(t *testing.T) {
		w := watch(t, quality.Options{}).log(user("Please see to it."))
		w.clear().log(ask).clear().log(work, ask).clear().log(ask)
		if got := w.found(); got != "asked_again asked_again asked_again quality_alert" {
			t.Errorf("got %s", got)
		}
	})
}

// Events and metrics have ids and classes, no word of the conversation.
func TestNoContent(t *testing.T) {
	w := watch(t, quality.Options{Asks: 1}).log(user("CANARY")).log(does("1", "Read", `{"file_path":"CANARY"}`)...).clear("1")
	again := does("2", "Read", `{"file_path":"CANARY"}`)
	again[0].Parts = append(again[0].Parts, thread.Text{Text: "What was the CANARY again?"})
	w.log(again...).log(user("I already told you: CANARY"))
	if len(w.events) != 3 {
		t.Errorf("%d events, want 3: %s", len(w.events), w.found())
	}
	written, err := json.Marshal([]any{w.events, w.monitor.Metrics()})
	if err != nil || strings.Contains(string(written), "CANARY") {
		t.Errorf("%s, %v", written, err)
	}
	if strings.Contains(fmt.Sprintf("%+v", w.monitor), "CANARY") {
		t.Error("the monitor keeps content")
	}
	if !strings.Contains(string(written), `"message_id":"`+string(w.th.At(3).ID)+`"`) {
		t.Errorf("the message is not named: %s", written)
	}
}

func TestAsksAreBounded(t *testing.T) {
	w := watch(t, quality.Options{}).clear()
	for range 250 {
		w.log(says("What was the budget again?"))
	}
	got := w.monitor.Metrics().Asks
	if len(got) != 100 || got[99].MessageID != w.th.Last() {
		t.Errorf("%d asks are kept, the newest is %v", len(got), got[len(got)-1])
	}
}

// Run with -race.
func TestConcurrentUse(t *testing.T) {
	m := quality.New("x", nil)
	th, err := thread.New("x").Append(does("1", "Read", `{"path":"a"}`)...)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{}
	p.Add(plan.Removal{Span: th.Range(0, 2)})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 100 {
				m.Message(t.Context(), *th.At(0))
				m.Compacted(th, p)
				m.Metrics()
				m.TaskFinished(thread.Failure)
			}
		})
	}
	group.Wait()
	if got := m.Metrics(); got.Compactions != 400 {
		t.Errorf("%+v", got)
	}
}

func FuzzAsks(f *testing.F) {
	for _, s := range []string{"What was it again?", "```\ncode", "„Was war \"noch mal\"“ “x", "¿Qué dijiste sobre…?", "`", "I no longer have\xff\xfe", strings.Repeat("«", 99)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		class, ok := quality.Asks(s)
		if ok != (class != "") || ok && class != quality.AskedAgain && class != quality.LostContent {
			t.Errorf("Asks(%q) = %q, %v", s, class, ok)
		}
	})
}

func BenchmarkAsks(b *testing.B) {
	text := strings.Repeat("I changed the parser so that it reads one line at a time, and the tests pass again. Which of the two do you want next?\n", 40)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := quality.Asks(text); ok {
			b.Fatal("taken for asking")
		}
	}
}

func BenchmarkCompacted(b *testing.B) {
	th := thread.New("x")
	for n := range 500 {
		next, err := th.Append(does(fmt.Sprint(n), "Read", fmt.Sprintf(`{"file_path":"/w/%d.go"}`, n%50))...)
		if err != nil {
			b.Fatal(err)
		}
		th = next
	}
	p := &plan.Plan{}
	p.Add(plan.Removal{Span: th.Range(0, 800)})
	m := quality.New("x", nil)
	b.ReportAllocs()
	for b.Loop() {
		m.Compacted(th, p)
	}
}
