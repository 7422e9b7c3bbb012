package palimpsest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestReadingInASmallWindow: however small the window or the limit of a policy, what read_artifact
// gives reaches the model whole, and reading on to the end gives all of the content. A10
func TestReadingInASmallWindow(t *testing.T) {
	for _, dense := range []bool{false, true} {
		for _, size := range []struct{ window, limit int }{{window: 6_000}, {window: 8_192}, {window: 16_000}, {window: 32_000}, {window: 200_000}, {window: 200_000, limit: 8_192}} {
			t.Run(fmt.Sprintf("%+v, dense: %v", size, dense), func(t *testing.T) {
				config, window := palimpsest.Config{Recall: &palimpsest.Recall{}}, size.window
				if size.limit > 0 {
					config.Policy = policy.Ladder{MaxInputTokens: size.limit}
				}
				c, err := palimpsest.New(config)
				if err != nil {
					t.Fatal(err)
				}
				s := c.Session("t")
				var lines []string
				for n := range 600 {
					line := fmt.Sprintf("line %d: the order was sent to the customer in the evening", n)
					if dense {
						line = fmt.Sprintf("%d|%x|%d", n, n*7919*104729, n*n*31)
					}
					lines = append(lines, line)
				}
				step := palimpsest.Step{Profile: render.For(wire.Anthropic), Window: window, Output: 1_000, Messages: []thread.Message{plain(thread.User, "Look at the orders.")}}
				next := func(call thread.ToolCall, result thread.Message) *palimpsest.Prepared {
					t.Helper()
					if _, err := s.PrepareStep(t.Context(), step); err != nil {
						t.Fatal(err)
					}
					if err := s.FinishStep(t.Context(), nil, llm.Usage{}, thread.Message{Role: thread.Assistant, Parts: []thread.Part{call}}); err != nil {
						t.Fatal(err)
					}
					step.Messages = []thread.Message{result}
					p, err := s.PrepareStep(t.Context(), step)
					if err != nil {
						t.Fatal(err)
					}
					step.Messages = nil
					return p
				}
				p := next(thread.ToolCall{ID: "orders", Name: "Read", Arguments: `{"file_path":"orders"}`}, toolMessage("orders", strings.Join(lines, "\n")))
				log, err := s.Append(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				id := string(log.Log.At(2).ID)
				var read []string
				for n, offset := 0, 1; offset <= len(lines); n++ {
					arguments, err := json.Marshal(map[string]any{"artifact_id": id, "offset": offset})
					if err != nil || n > 100 {
						t.Fatalf("%d readings: %v", n, err)
					}
					call := thread.ToolCall{ID: fmt.Sprint("read_", n), Name: "read_artifact", Arguments: string(arguments)}
					answer, ok, err := s.Answer(t.Context(), p, call)
					if err != nil || !ok {
						t.Fatal(ok, err)
					}
					p = next(call, answer)
					given, _ := answer.Result()
					shown, _ := p.Messages[len(p.Messages)-1].Result()
					if shown.Text() != given.Text() {
						t.Fatalf("reading %d: %d bytes are answered, the model sees %d: %.300s", n, len(given.Text()), len(shown.Text()), shown.Text())
					}
					before := len(read)
					for line := range strings.Lines(given.Text()) {
						if line = strings.TrimSpace(line); len(read) < len(lines) && line == lines[len(read)] {
							read = append(read, line)
						}
					}
					if len(read) == before {
						t.Fatalf("reading %d from line %d gives nothing new: %.300s", n, offset, given.Text())
					}
					offset = len(read) + 1
				}
			})
		}
	}
}
