//go:build unix

package hostile_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// TestRolloutsAreLinear: each command that reads a session takes a time that grows with it, of a long rollout of Codex
// with its own compactions.
func TestRolloutsAreLinear(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for name, args := range map[string]string{
		"inspect": "inspect FILE", "compact": "compact FILE --budget 32000 --store memory: -o OUT", "explain": "explain FILE --budget 32000 -o OUT",
		"into": "compact FILE --into claude-code --budget 32000 --store memory: -o OUT", "handoff": "handoff FILE next -o OUT",
	} {
		t.Run(name, func(t *testing.T) {
			file, out := filepath.Join(t.TempDir(), "rollout.jsonl"), filepath.Join(t.TempDir(), "out")
			words := strings.Fields(strings.NewReplacer("FILE", file, "OUT", out).Replace(args))
			linear(t, 1<<20, 4<<20, func(n int) func() {
				if err := os.WriteFile(file, rollout(n), 0o600); err != nil {
					t.Fatal(err)
				}
				return func() {
					os.Remove(out) // a session is never overwritten
					var said bytes.Buffer
					if status := cli.Run(context.Background(), words, cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &said}); status != 0 {
						t.Fatalf("status %d: %.500s", status, said.String())
					}
				}
			})
		})
	}
}

// rollout is one of Codex of about n bytes: a turn has calls, their outputs, edits and reasoning.
func rollout(n int) []byte {
	var b bytes.Buffer
	line := func(kind, payload string) {
		fmt.Fprintf(&b, `{"timestamp":"2026-11-01T00:00:00Z","type":%q,"payload":%s}`+"\n", kind, payload)
	}
	line("session_meta", `{"id":"s","cwd":"/w","model_provider":"openai"}`)
	line("turn_context", `{"model":"gpt-5.2"}`)
	for turn := 0; b.Len() < n; turn++ {
		line("response_item", fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":"Please mend part %d, and never touch vendor/%[1]d."}]}`, turn))
		for step := range 8 {
			id := fmt.Sprintf("c%d_%d", turn, step)
			line("response_item", `{"type":"reasoning","summary":[],"encrypted_content":"`+strings.Repeat(id, 60)+`"}`)
			line("response_item", fmt.Sprintf(`{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"cat src/part%d_%d.go\"}","call_id":%q}`, turn, step, id))
			text := "Process exited with code 0\nOutput:\n"
			for l := range 30 {
				text += fmt.Sprintf("\tvalue%d_%d := read%d(%q, %d)\n", turn, l, step, id, turn*l)
			}
			line("response_item", fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%s}`, id, rawjson.Quote(text)))
		}
		line("response_item", fmt.Sprintf(`{"type":"custom_tool_call","name":"apply_patch","call_id":"p%d","input":"*** Begin Patch\n*** Update File: src/part%[1]d.go\n@@\n-a%[1]d\n+b%[1]d\n*** End Patch"}`, turn))
		line("response_item", fmt.Sprintf(`{"type":"custom_tool_call_output","call_id":"p%d","output":"Success. Updated the following files:\nM src/part%[1]d.go"}`, turn))
		line("response_item", fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Part %d is mended."}]}`, turn))
		if turn%40 == 39 {
			line("compacted", fmt.Sprintf(`{"message":"Parts up to %d are mended."}`, turn))
		}
	}
	return b.Bytes()
}
