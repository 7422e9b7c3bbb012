package adaptertest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestCodec proves a codec with histories that draw makes of the framework's messages.
func TestCodec[M any](t *testing.T, codec adapter.Codec[M], draw *rapid.Generator[[]M]) {
	decode := func(t *rapid.T, history []M) []thread.Message {
		messages, err := codec.Decode(history)
		if err != nil {
			t.Fatalf("Decode: %v", err)
		}
		return messages
	}
	encode := func(t *rapid.T, messages []thread.Message) []M {
		history, err := codec.Encode(messages)
		if err != nil {
			t.Fatalf("Encode: %v", err)
		}
		return history
	}
	t.Run("a history comes back as it was", func(t *testing.T) {
		property.Check(t, func(t *rapid.T) {
			history := draw.Draw(t, "history")
			got := encode(t, decode(t, history))
			if diff := cmp.Diff(history, got); diff != "" && len(history)+len(got) > 0 {
				t.Fatalf("-want +got\n%s", diff)
			}
		})
	})
	t.Run("frames say where messages stand", func(t *testing.T) {
		property.Check(t, func(t *rapid.T) {
			history := draw.Draw(t, "history")
			next := 0
			messages := decode(t, history)
			for i := 0; i < len(messages); {
				f := messages[i].Frame
				if f == nil || f.API() != codec.API() || f.Position() != next || f.Elements() < 1 || f.Messages() < 1 {
					t.Fatalf("message %d: frame %+v, want one of %s at %d", i, f, codec.API(), next)
				}
				next += f.Elements()
				for n := range f.Messages() {
					if messages[i].Frame != f || messages[i].Index != n {
						t.Fatalf("message %d is number %d of its frame, want %d", i, messages[i].Index, n)
					}
					i++
				}
			}
			if next != len(history) {
				t.Fatalf("the frames cover %d messages of %d", next, len(history))
			}
		})
	})
	t.Run("a changed message keeps what was not changed", func(t *testing.T) {
		property.Check(t, func(t *rapid.T) {
			messages := decode(t, draw.Draw(t, "history"))
			bare := make([]thread.Message, len(messages))
			for i, m := range messages {
				m.Frame, m.Index = nil, 0
				bare[i] = m
			}
			if diff := cmp.Diff(said(messages), said(decode(t, encode(t, bare)))); diff != "" {
				t.Fatalf("-want +got\n%s", diff)
			}
		})
	})
	t.Run("so does a piece of a history", func(t *testing.T) {
		property.Check(t, func(t *rapid.T) {
			messages := decode(t, draw.Draw(t, "history"))
			if len(messages) == 0 {
				return
			}
			from := rapid.IntRange(0, len(messages)-1).Draw(t, "from")
			piece := slices.Clone(messages[from:rapid.IntRange(from+1, len(messages)).Draw(t, "to")])
			for i := range piece {
				piece[i].Frame, piece[i].Index = nil, 0
			}
			if diff := cmp.Diff(said(piece), said(decode(t, encode(t, piece)))); diff != "" {
				t.Fatalf("-want +got\n%s", diff)
			}
		})
	})
	t.Run("a message made here is read as it was written", func(t *testing.T) {
		property.Check(t, func(t *rapid.T) {
			messages := portable(t)
			if diff := cmp.Diff(said(messages), said(decode(t, encode(t, messages)))); diff != "" {
				t.Fatalf("-want +got\n%s", diff)
			}
		})
	})
}

// words is what a message says, in the form that every framework knows.
type words struct {
	Role  thread.Role
	Text  string
	Calls []thread.ToolCall
	Of    string // the tool of a result
	Said  string
}

func said(messages []thread.Message) (all []words) {
	for i := range messages {
		m := &messages[i]
		w := words{Role: m.Role, Text: m.Text()}
		for _, c := range m.Calls() {
			w.Calls = append(w.Calls, thread.ToolCall{Name: c.Name, Arguments: c.Arguments})
		}
		if r, ok := m.Result(); ok {
			w.Of, w.Said = r.Tool, r.Text()
		}
		all = append(all, w)
	}
	return all
}

// portable draws messages as a plan puts them into a prompt: texts, calls and results
// as text.
func portable(t *rapid.T) []thread.Message {
	text := func() string { return rapid.StringMatching(`[a-zA-Z0-9äß漢 "\\{}]{1,30}[a-z]`).Draw(t, "text") }
	all := []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text()}}}}
	for range rapid.IntRange(0, 6).Draw(t, "turns") {
		call := thread.ToolCall{ID: rapid.StringMatching(`call_[0-9]{6}`).Draw(t, "id"), Name: "read_part", Arguments: `{"n":1}`}
		all = append(all,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: text()}, call}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
				CallID: call.ID, Tool: call.Name, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text()}},
			}}},
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: text()}}},
			thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text()}}},
		)
	}
	return all
}
