package palimpsest

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestDiscardTruncatedCalls: only what was cut off goes. E2
func TestDiscardTruncatedCalls(t *testing.T) {
	text := thread.Text{Text: "I read both."}
	whole := thread.ToolCall{ID: "1", Name: "Read", Arguments: `{"path":"a"}`}
	half := thread.ToolCall{ID: "2", Name: "Read", Arguments: `{"path":"b`}
	none := thread.ToolCall{ID: "3", Name: "List"}
	custom := thread.ToolCall{ID: "4", Name: "patch", Type: "custom", Arguments: "*** Begin"}
	parts := func(p ...thread.Part) []thread.Part { return p }
	for _, test := range []struct {
		name       string
		have, want []thread.Part
	}{
		{"text alone", parts(text), parts(text)},
		{"whole calls stay", parts(text, whole, whole), parts(text, whole, whole)},
		{"half a call goes", parts(text, whole, half), parts(text, whole)},
		{"wherever it stands", parts(half, text), parts(text)},
		{"no arguments yet", parts(text, none), parts(text)},
		{"no arguments at all", parts(none, whole), parts(none, whole)},
		{"free text at the end", parts(whole, custom), parts(whole)},
		{"free text before", parts(custom, whole), parts(custom, whole)},
		{"nothing is left", parts(half), nil},
	} {
		m := thread.Message{Role: thread.Assistant, Parts: test.have, Frame: thread.NewFrame("anthropic", "{}", 0, 0, 0), Index: 1}
		got := discardTruncatedCalls(m)
		if diff := cmp.Diff(test.want, got.Parts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if same := len(test.have) == len(test.want); same != (got.Frame != nil) || same && !reflect.DeepEqual(got, m) {
			t.Errorf("%s: frame %v", test.name, got.Frame)
		}
	}
}
