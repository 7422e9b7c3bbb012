package palimpsest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestTypedCommandGivesRoom: the text behind a command that the user typed gives way to
// what happened, where it would take more than a fifth of the room; as much that the user
// wrote stands whole. Where there is room, both do.
func TestTypedCommandGivesRoom(t *testing.T) {
	text := strings.Repeat("Look at each comment and answer below it.\n", 190) + "Tell what is left.\n" + strings.Repeat("Then look at the next one.\n", 50)
	for _, tt := range []struct {
		name, last string
		budget     int
		whole      bool
	}{
		{"a command in a small prompt", "<command-message>answer</command-message>\n<command-name>/answer</command-name>\n" + text, 5_000, false},
		{"the user's words in a small prompt", text, 5_000, true},
		{"a command in a large prompt", "<command-message>answer</command-message>\n<command-name>/answer</command-name>\n" + text, 14_000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said := func(role thread.Role, s string) thread.Message {
				return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: s}}}
			}
			messages := []thread.Message{said(thread.User, "Find out why orders are sent twice.")}
			for i := range 40 {
				var found strings.Builder
				for k := range 20 {
					fmt.Fprintf(&found, "Order %d%02d failed in worker_%d since queue/part%d.go:%d was closed too early.\n", i, k, k*i, i+k, 17*k+i)
				}
				messages = append(messages, said(thread.Assistant, found.String()), said(thread.User, fmt.Sprintf("And those of shop %d?", i+1)))
			}
			messages = append(messages, said(thread.User, tt.last), said(thread.Assistant, "I begin with the first comment."))
			log, err := thread.New("t").Append(messages...)
			if err != nil {
				t.Fatal(err)
			}
			c, err := palimpsest.New(palimpsest.Config{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: tt.budget})
			if err != nil {
				t.Fatal(err)
			}
			var prompt strings.Builder
			for i := range r.Prompt.Messages {
				prompt.WriteString(r.Prompt.Messages[i].Text() + "\n")
			}
			if got := strings.Contains(prompt.String(), "Tell what is left."); got != tt.whole {
				t.Errorf("the text stands whole: %v\n%s", got, prompt.String())
			}
			if strings.HasPrefix(tt.last, "<") && !strings.Contains(prompt.String(), "/answer") {
				t.Errorf("the command is not named:\n%s", prompt.String())
			}
		})
	}
}
