package daemon_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
)

// TestTakenBack: what the API answers of a thread makes the same thread again, also
// of a picture that nobody kept and of a message that says nothing, and a step goes on
// from it.
func TestTakenBack(t *testing.T) {
	c := start(t, daemon.Config{}).client(t, "")
	messages := []neutral.Message{
		{Role: "user", Parts: []neutral.Part{{Type: neutral.TextPart, Text: "See."}, {Type: neutral.MediaPart, Media: "image", MIME: "image/png"}}},
		{Role: "assistant", Parts: []neutral.Part{}},
		said("user", "Go on."),
	}
	var before []neutral.Message
	for _, id := range []string{"one", "two"} {
		if _, err := c.CreateThread(t.Context(), api.NewThread{ID: id}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(t.Context(), id, 0, api.Append{Messages: messages}); err != nil {
			t.Fatal(err)
		}
		log, err := c.Log(t.Context(), id, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		got := log.Items
		if before != nil {
			if diff := cmp.Diff(before, got); diff != "" {
				t.Errorf("-was +is:\n%s", diff)
			}
		}
		before, messages = got, got
		if _, err := c.Prepare(t.Context(), id, len(got), api.Step{Model: "claude-sonnet-4-5", Base: &neutral.Prompt{}, Messages: []neutral.Message{said("user", "And?")}, Window: 16_000, Output: 1000}); err != nil {
			t.Error(err)
		}
	}
}
