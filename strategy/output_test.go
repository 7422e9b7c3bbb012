package strategy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestSaid: a value that stands in JSON as it is needs no encoding to be found.
func TestSaid(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[ -~]{0,6}`), rapid.String()).Draw(t, "text")
		call := thread.ToolCall{Arguments: rapid.OneOf(rapid.Just(canonjson.Spaced(map[string]any{"path": text})), rapid.StringMatching(`[ -~]{0,12}`)).Draw(t, "arguments")}
		want := strings.Contains(call.Arguments, strings.Trim(canonjson.Spaced(text), `"`))
		if got := said(call, text); got != want {
			t.Fatalf("said(%q, %q) is %v, want %v", call.Arguments, text, got, want)
		}
	})
}
