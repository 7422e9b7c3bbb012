package references

import (
	"fmt"
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// made is a conversation in which the agent reads a file, does a few other
// things, and then writes an id that stood in the file.
func made(t *testing.T) *Session {
	t.Helper()
	say := func(role thread.Role, parts ...thread.Part) thread.Message {
		return thread.Message{Role: role, Parts: parts}
	}
	call := func(id, name, args string) thread.Part { return thread.ToolCall{ID: id, Name: name, Arguments: args} }
	result := func(id, tool, text string) thread.Message {
		return say(thread.Tool, thread.ToolResult{CallID: id, Tool: tool, Content: []thread.Part{thread.Text{Text: text}}})
	}
	th, err := thread.New("made").Append(
		say(thread.User, thread.Text{Text: "Please cancel the order of Ada."}),
		say(thread.Assistant, call("1", "Read", `{"file_path":"orders/list.csv"}`)),
		result("1", "Read", "order,customer,total\nORD-48213-B,ada,127.50\nORD-99001-C,grace,12.00"),
		say(thread.Assistant, thread.Text{Text: "I look at helperFunction first."}, call("2", "Bash", `{"command":"make lint"}`)),
		result("2", "Bash", "ok"),
		say(thread.Assistant, call("3", "Bash", `{"command":"make test"}`)),
		result("3", "Bash", "ok, see ORD-99001-C"),
		say(thread.Assistant, call("4", "cancel", `{"order":"ORD-48213-B","other":"ORD-99001-C","like":"helperFunction"}`)),
		result("4", "cancel", "done"),
		say(thread.Assistant, call("5", "Edit", `{"file_path":"orders/list.csv","new_string":"x"}`)),
	)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSession(&transcript.Transcript{Name: "made", Thread: th}, "made", "made", counter)
	if err != nil {
		t.Fatal(err)
	}
	s.Link(func(ident.Ident) bool { return false })
	return s
}

// TestEligible: what the agent could know from the old part alone.
func TestEligible(t *testing.T) {
	m := made(t).Moment(3)
	var got []string
	for _, n := range m.Needs {
		got = append(got, fmt.Sprintf("%s %s %s %d", n.Type, n.Norm, n.Origin, n.Age))
	}
	// ORD-99001-C stands in the tail; helperFunction only the agent itself said.
	want := []string{"id ORD-48213-B tool 2", "path orders/list.csv call 2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBound: an identifier counts with what stood beside it, a file with what
// was truly done to it.
func TestBound(t *testing.T) {
	m := made(t).Moment(3)
	for _, c := range []struct {
		text                 string
		id, path, bid, bpath bool
	}{
		{"the order ORD-48213-B of ada", true, false, true, false},
		{"ORD-48213-B", true, false, false, false},
		{"ORD-48213-Bx and xorders/list.csv", false, false, false, false},
		{"read orders/list.csv", false, true, false, true},
		{"deleted orders/list.csv", false, true, false, false},
		{`{"order":"ORD-48213-B","customer":"ada"}`, true, false, true, false},
	} {
		out := m.Scan(&Shown{Other: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: c.text}}}}})
		if got := [4]bool{out[0].Direct, out[1].Direct, out[0].Bound, out[1].Bound}; got != [4]bool{c.id, c.path, c.bid, c.bpath} {
			t.Errorf("%q: %v", c.text, got)
		}
	}
}
