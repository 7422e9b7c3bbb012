package adapter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// message is one of a framework: role, a colon and what is said. What the assistant
// says with a * is a call, which the next message of a tool answers.
type message = string

type codec struct{}

func (codec) API() string { return "simple" }

func (codec) Decode(history []message) ([]thread.Message, error) {
	var out []thread.Message
	for i, m := range history {
		role, said, ok := strings.Cut(m, ":")
		if !ok {
			return nil, fmt.Errorf("message %d: no role", i)
		}
		var part thread.Part = thread.Text{Text: said}
		switch {
		case role == "assistant" && strings.HasPrefix(said, "*"):
			part = thread.ToolCall{ID: said, Name: "look", Arguments: "{}"}
		case role == "tool":
			id, text, _ := strings.Cut(said, " ")
			part = thread.ToolResult{CallID: id, Tool: "look", Content: []thread.Part{thread.Text{Text: text}}}
		}
		out = append(out, thread.Message{Role: thread.Role(role), Parts: []thread.Part{part}, Frame: thread.NewFrame("simple", m, i, 1, 1)})
	}
	return out, nil
}

func (codec) Encode(messages []thread.Message) (out []message, err error) {
	for i := range messages {
		said := messages[i].Text()
		for _, c := range messages[i].Calls() {
			said += c.ID
		}
		if r, ok := messages[i].Result(); ok {
			said = r.CallID + " " + r.Text()
		}
		out = append(out, string(messages[i].Role)+":"+said)
	}
	return out, nil
}

func sessions(t *testing.T, o *adapter.Options) (*adapter.Sessions[message], *store.Memory) {
	t.Helper()
	memory := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: memory, Plans: memory}, Recall: &palimpsest.Recall{}})
	if err != nil {
		t.Fatal(err)
	}
	if o.Failed == nil {
		o.Failed = func(_ context.Context, id string, err error) { t.Errorf("%s: %v", id, err) }
	}
	return adapter.New(c, codec{}, o), memory
}

func logged(t *testing.T, memory *store.Memory) map[string]int {
	t.Helper()
	threads, err := memory.Threads(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, info := range threads {
		all[info.ID] = info.Messages
	}
	return all
}

func TestHistories(t *testing.T) {
	s, memory := sessions(t, &adapter.Options{})
	history := []message{"system:be brief", "user:one", "assistant:1", "user:two", "assistant:2", "user:three"}
	send := func(id string, history ...message) {
		t.Helper()
		call := s.Prepare(t.Context(), id, nil, history)
		if diff := cmp.Diff(history, call.Messages); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if len(call.System) > 0 || call.Compacted() {
			t.Errorf("system %q, compacted %v", call.System, call.Compacted())
		}
	}
	for n := 2; n <= len(history); n += 2 {
		send("a", history[:n]...)
		send("a", history[:n]...) // a retry
	}
	send("a", slices.Concat([]message{"system:the time is 10:02"}, history[1:])...) // instructions are no part of the log
	want := map[string]int{"a": 5}
	if diff := cmp.Diff(want, logged(t, memory)); diff != "" {
		t.Fatalf("a history that grows: -want +got\n%s", diff)
	}

	edited := []message{"user:one", "assistant:1", "user:rather this", "assistant:3", "user:go on"}
	send("a", edited[:3]...)
	send("a", edited...)
	send("a", "user:one", "assistant:1") // shorter
	send("a", "user:one", "assistant:1", "user:rather this", "assistant:4", "user:and so?")
	send("a", slices.Concat(history, []message{"assistant:3", "user:four"})...) // the first goes on
	got := logged(t, memory)
	sizes := []int{}
	for id, n := range got {
		if id != "a" && !strings.HasPrefix(id, "a.") {
			t.Errorf("a log %q", id)
		}
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	if diff := cmp.Diff([]int{2, 5, 5, 7}, sizes); diff != "" {
		t.Errorf("logs %v: -want +got\n%s", got, diff)
	}

	send("a", "system:be brief") // nothing yet but instructions, where there is a log
	send("d", "system:be brief")
	if again := logged(t, memory); again["a"] != got["a"] || len(again) != len(got) {
		t.Errorf("logs %v, and before %v", again, got)
	}

	send("c", "user:one", "tool:*9 an answer that nobody asked for", "assistant:*1", "user:never mind")
	send("", "user:no conversation")
	send("b")
	if got := logged(t, memory); got[""] != 0 || got["b"] != 0 {
		t.Errorf("logs %v", got)
	}
}

// long is a history that no longer fits.
func long(turns int) []message {
	history := []message{"system:be brief"}
	for n := range turns {
		history = append(history, fmt.Sprintf("user:question %d, mind rule %d", n, n), fmt.Sprintf("assistant:answer %d "+strings.Repeat("so it is, as was said, ", 100), n))
	}
	return append(history, "user:and now?")
}

func TestCompacts(t *testing.T) {
	s, memory := sessions(t, &adapter.Options{Window: 8_000, Output: 500})
	history := long(40)
	call := s.Prepare(t.Context(), "a", &prompt.Prompt{System: []prompt.System{{Text: "base"}}}, history)
	if !call.Compacted() || len(call.Messages) >= len(history) {
		t.Fatalf("%d messages of %d", len(call.Messages), len(history))
	}
	if call.Messages[0] != history[0] || call.Messages[len(call.Messages)-1] != history[len(history)-1] {
		t.Errorf("instructions %.40q, question %.40q", call.Messages[0], call.Messages[len(call.Messages)-1])
	}
	for i, text := range call.System {
		if call.Messages[1+i] != "system:"+text {
			t.Errorf("message %d is %.40q, want the text behind the instructions", i, call.Messages[1+i])
		}
	}
	again := s.Prepare(t.Context(), "a", nil, append(slices.Clone(history), "assistant:well", "user:go on"))
	n := len(call.Messages)
	if diff := cmp.Diff(call.Messages, again.Messages[:n]); diff != "" || again.Compacted() || len(again.Messages) != n+2 {
		t.Errorf("the prefix has changed: -want +got\n%s", diff)
	}

	found := s.Answer(t.Context(), "a", thread.ToolCall{ID: "1", Name: "recall", Arguments: `{"query":"\"rule 7\""}`})
	if !strings.Contains(found, "question 7") {
		t.Errorf("recall: %s", found)
	}
	if text := s.Answer(t.Context(), "nobody", thread.ToolCall{Name: "recall", Arguments: `{"query":"rule"}`}); strings.Contains(text, "question") {
		t.Errorf("recall in another conversation: %s", text)
	}

	// An agent that sums up by itself begins anew; what it had can still be found.
	s.Prepare(t.Context(), "a", nil, []message{"user:Summary: rules were set.", "assistant:yes", "user:which?"})
	if found := s.Answer(t.Context(), "a", thread.ToolCall{Name: "recall", Arguments: `{"query":"\"rule 7\""}`}); !strings.Contains(found, "question 7") {
		t.Errorf("recall in the fork: %s", found)
	}
	if got := logged(t, memory)["a"]; got != len(history)+1 {
		t.Errorf("the log has %d messages, want %d", got, len(history)+1)
	}
}

// A result that is put aside stands as a pointer behind its call.
func TestChangedMessages(t *testing.T) {
	s, _ := sessions(t, &adapter.Options{Window: 8_000, Output: 500})
	big := strings.Repeat("a line of the report, one of many\n", 400)
	history := []message{"user:read the reports"}
	for n := range 5 {
		history = append(history, fmt.Sprintf("assistant:*%d", n), fmt.Sprintf("tool:*%d %d %s", n, n, big))
	}
	call := s.Prepare(t.Context(), "a", nil, history)
	changed := 0
	for i, m := range call.Messages {
		id, isResult := strings.CutPrefix(m, "tool:")
		if !isResult {
			continue
		}
		if id = id[:2]; call.Messages[i-1] != "assistant:"+id {
			t.Errorf("behind %.40q stands %.40q", call.Messages[i-1], m)
		}
		if !slices.Contains(history, m) {
			changed++
		}
	}
	if size := len(strings.Join(call.Messages, "")); changed == 0 || size > 4*8_000 {
		t.Errorf("%d results changed, %d bytes in all: %.100q", changed, size, call.Messages)
	}
}

// Another process writes to the same log in the middle of a call.
func TestConflict(t *testing.T) {
	memory := &store.Memory{}
	log := &raced{Memory: memory}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: log, Plans: memory}})
	if err != nil {
		t.Fatal(err)
	}
	s := adapter.New(c, codec{}, &adapter.Options{Failed: func(_ context.Context, id string, err error) { t.Errorf("%s: %v", id, err) }})
	s.Prepare(t.Context(), "a", nil, []message{"user:ours"})
	sizes := []int{}
	for _, n := range logged(t, memory) {
		sizes = append(sizes, n)
	}
	if diff := cmp.Diff([]int{1, 1}, sizes); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// raced is a log to which somebody else writes before the first append.
type raced struct {
	*store.Memory
	once sync.Once
}

func (r *raced) Append(ctx context.Context, id string, version int, messages []thread.Message) (*thread.Thread, error) {
	r.once.Do(func() {
		theirs := []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "theirs"}}}}
		if _, err := r.Memory.Append(ctx, id, version, theirs); err != nil {
			panic(err)
		}
	})
	return r.Memory.Append(ctx, id, version, messages)
}

// A process that is started anew goes on under the plan of the one before it.
func TestNewProcess(t *testing.T) {
	o := &adapter.Options{Window: 8_000, Output: 500}
	s, memory := sessions(t, o)
	history := long(40)
	before := s.Prepare(t.Context(), "a", nil, history)
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: memory, Plans: memory}, Recall: &palimpsest.Recall{}})
	if err != nil {
		t.Fatal(err)
	}
	after := adapter.New(c, codec{}, o).Prepare(t.Context(), "a", nil, append(slices.Clone(history), "assistant:well", "user:go on"))
	if diff := cmp.Diff(before.Messages, after.Messages[:len(before.Messages)]); diff != "" || after.Compacted() {
		t.Errorf("compacted anew %v: -want +got\n%s", after.Compacted(), diff)
	}
}

func TestOverflow(t *testing.T) {
	tooLong := errors.New("error 400: This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.")
	s, _ := sessions(t, &adapter.Options{Window: 40_000, Output: 500})
	history := long(40)
	call := s.Prepare(t.Context(), "a", nil, history)
	for name, err := range map[string]error{"none": nil, "another": errors.New("error 500: try again"), "without a word": errors.New("")} {
		if _, ok := s.Overflowed(t.Context(), call, err); ok {
			t.Errorf("%s: asked again", name)
		}
	}
	smaller, ok := s.Overflowed(t.Context(), call, tooLong)
	if !ok || len(smaller.Messages) >= len(call.Messages) {
		t.Fatalf("%v, %d messages of %d", ok, len(smaller.Messages), len(call.Messages))
	}
	next := s.Prepare(t.Context(), "a", nil, append(slices.Clone(history), "assistant:well", "user:go on"))
	if len(next.Messages) != len(smaller.Messages)+2 {
		t.Errorf("the next call has %d messages, want %d", len(next.Messages), len(smaller.Messages)+2)
	}
	if _, ok := s.Overflowed(t.Context(), s.Prepare(t.Context(), "b", nil, []message{"user:hello"}), tooLong); ok {
		t.Error("there was nothing to take, and it asks again")
	}
}

// A count that differs from ours decides over the next compaction.
func TestUsage(t *testing.T) {
	s, _ := sessions(t, &adapter.Options{Window: 30_000, Output: 500})
	history := long(20)
	call := s.Prepare(t.Context(), "a", nil, history)
	if call.Compacted() {
		t.Fatal("it is compacted already")
	}
	last, ok := s.Last("a")
	if !ok {
		t.Fatal("the call is not remembered")
	}
	s.Finish(t.Context(), last, wire.Usage{Input: 29_000, Known: true})
	if next := s.Prepare(t.Context(), "a", nil, append(slices.Clone(history), "assistant:well", "user:go on")); !next.Compacted() {
		t.Error("the provider counted nearly the window, and nothing was compacted")
	}
}

func TestFailures(t *testing.T) {
	var told []string
	s, _ := sessions(t, &adapter.Options{Failed: func(_ context.Context, id string, err error) { told = append(told, id+": "+err.Error()) }})
	history := []message{"user:hello", "no role"}
	call := s.Prepare(t.Context(), "a", nil, history)
	if diff := cmp.Diff(history, call.Messages); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	s.Finish(t.Context(), call, wire.Usage{Input: 10, Known: true})
	if len(told) != 1 || !strings.Contains(told[0], "message 1: no role") {
		t.Errorf("told %q", told)
	}
	if text := s.Answer(t.Context(), "a", thread.ToolCall{Name: "another"}); !strings.HasPrefix(text, "Error: ") || len(told) != 2 {
		t.Errorf("%q, told %q", text, told)
	}
}

func TestParallelCalls(t *testing.T) {
	s, memory := sessions(t, &adapter.Options{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			history := []message{"user:one"}
			for n := range 10 {
				s.Prepare(t.Context(), "a", nil, history)
				history = append(history, fmt.Sprintf("assistant:%d", n), "user:more")
			}
		})
	}
	all.Wait()
	if n := logged(t, memory)["a"]; n != 19 {
		t.Errorf("the log has %d messages, want 19", n)
	}
}

func TestTools(t *testing.T) {
	s, _ := sessions(t, &adapter.Options{})
	for _, tool := range s.Tools() {
		if !json.Valid([]byte(tool.Schema)) || tool.Description == "" {
			t.Errorf("%+v", tool)
		}
	}
	if len(s.Tools()) != 2 {
		t.Errorf("%d tools", len(s.Tools()))
	}
}

// TestContextTools: where they are on, a framework is told of them before the first call, each is
// there once in what is prepared, and a call is answered.
func TestContextTools(t *testing.T) {
	memory := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: memory, Plans: memory}, Recall: &palimpsest.Recall{ContextTools: true}})
	if err != nil {
		t.Fatal(err)
	}
	s := adapter.New(c, codec{}, &adapter.Options{Window: 8000, Output: 100})
	if len(s.Tools()) != 5 {
		t.Fatalf("%d tools", len(s.Tools()))
	}
	s.Prepare(t.Context(), "a", &prompt.Prompt{Tools: s.Tools()}, []message{"user:hello"})
	if text := s.Answer(t.Context(), "a", thread.ToolCall{ID: "1", Name: "context_note", Arguments: `{"action":"write","text":"it rains"}`}); text != "Noted as n1. 1 note of 40." {
		t.Error(text)
	}
	call := s.Prepare(t.Context(), "a", &prompt.Prompt{Tools: s.Tools()}, append(long(30), "user:hello"))
	if shown := strings.Join(call.Messages, "\n"); !call.Compacted() || !strings.Contains(shown, "n1: it rains") {
		t.Errorf("compacted: %v, %s", call.Compacted(), shown)
	}
}

// holding is a codec that marks what it writes for a history.
type holding struct {
	codec
	history []message
}

func (holding) Holding(history []message) adapter.Codec[message] { return holding{history: history} }

func (h holding) Encode(messages []thread.Message) ([]message, error) {
	out, err := h.codec.Encode(messages)
	for i := range out {
		out[i] += fmt.Sprintf(" (of %d)", len(h.history))
	}
	return out, err
}

// TestHolder: what a plan changed is written by the codec that holds the history, and
// nothing else is.
func TestHolder(t *testing.T) {
	memory := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: memory, Plans: memory}})
	if err != nil {
		t.Fatal(err)
	}
	s := adapter.New(c, holding{}, &adapter.Options{Window: 8000, Output: 100})
	history := long(30)
	call := s.Prepare(t.Context(), "a", nil, history)
	if !call.Compacted() {
		t.Fatal("nothing was compacted")
	}
	changed := 0
	for _, m := range call.Messages {
		switch {
		case strings.HasSuffix(m, fmt.Sprintf(" (of %d)", len(history))):
			changed++
		case !slices.Contains(history, m):
			t.Errorf("written without the history: %.200s", m)
		}
	}
	if changed == 0 || changed == len(call.Messages) {
		t.Errorf("%d of %d messages were written", changed, len(call.Messages))
	}
}
