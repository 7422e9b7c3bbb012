package references

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestOutdated: a line that an edit took out is old where a prompt tells it as it
// was; one that is told as gone, one that came back and one that never went are not.
func TestOutdated(t *testing.T) {
	call := func(id, name, args string) thread.Message {
		return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: name, Arguments: args}}}
	}
	result := func(id, text string) thread.Message {
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Content: []thread.Part{thread.Text{Text: text}}}}}
	}
	th, err := thread.New("edited").Append(
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Change it."}}},
		call("1", "Read", `{"file_path":"a.go"}`),
		result("1", "  1→const relayPort = 7411\n  2→const relayHost = 4\n  3→const relayName = 12"),
		call("2", "Edit", `{"file_path":"a.go","old_string":"const relayPort = 7411\nconst relayHost = 4","new_string":"const relayPort = 9322"}`),
		result("2", "ok"),
		call("3", "Edit", `{"file_path":"a.go","old_string":"const relayPort = 9322","new_string":"const relayPort = 9322\nconst relayHost = 4"}`),
		result("3", "ok"),
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "Changed."}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSession(&transcript.Transcript{Name: "edited", Thread: th}, "edited", "edited", counterOf(t))
	if err != nil {
		t.Fatal(err)
	}
	s.Link(tooCommon([]*Session{s}))
	m := &Moment{Session: s, At: 7}
	for _, c := range []struct {
		name, text string
		want       Freshness
	}{
		{"gone", "- (turn 1) a.go:\n  const relayPort = 7411\n", Freshness{Old: 1}},
		{"back", "- (turn 1) a.go:\n  const relayHost = 4\n", Freshness{Current: 1}},
		{"never went", "- (turn 1) a.go:\n  const relayName = 12\n", Freshness{}},
	} {
		got := m.Outdated(&Shown{Other: []thread.Message{{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: c.text}}}}})
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	before := m.Outdated(&Shown{Other: nil})
	if before != (Freshness{}) {
		t.Errorf("an empty prompt tells %+v", before)
	}
}
