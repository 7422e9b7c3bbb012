package references

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestRefused: a result without its call is told.
func TestRefused(t *testing.T) {
	orphan := &prompt.Prompt{Model: "m", Messages: []thread.Message{
		{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Go on."}}},
		{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "gone", Tool: "Read", Content: []thread.Part{thread.Text{Text: "x"}}}}},
	}}
	if why := RefusalReason(anthropic.Codec{}, orphan); !strings.Contains(why, "messages[") {
		t.Errorf("%q", why)
	}
}
