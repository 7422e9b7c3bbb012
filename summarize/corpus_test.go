package summarize

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// session reads a transcript of Claude Code or pi, as far as these tests need it.
func session(t testing.TB, name string) []thread.Message {
	t.Helper()
	file, err := os.Open(filepath.Join(corpus.Dir(t, "transcripts"), name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	type block struct {
		Type, Text, ID, Name, ToolUseID, ToolCallID string
		Input, Arguments, Content                   json.RawMessage
		IsError                                     bool
	}
	var messages []thread.Message
	tools := map[string]string{}
	result := func(id string, content json.RawMessage, failed bool) thread.Message {
		r := thread.ToolResult{CallID: id, Tool: tools[id], Outcome: thread.Success}
		if failed {
			r.Outcome = thread.Failure
		}
		var s string
		var list []block
		if json.Unmarshal(content, &s) == nil {
			r.Content = append(r.Content, thread.Text{Text: s})
		} else if json.Unmarshal(content, &list) == nil {
			for _, b := range list {
				if b.Text != "" {
					r.Content = append(r.Content, thread.Text{Text: b.Text})
				}
			}
		}
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{r}}
	}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		var line struct {
			Type                                  string
			IsMeta, IsSidechain, IsCompactSummary bool
			Summary                               string
			Message                               struct {
				ID, Role, ToolCallID string
				Content              json.RawMessage
				IsError              bool
			}
		}
		doc := strings.NewReplacer(`"tool_use_id":`, `"toolUseID":`, `"is_error":`, `"isError":`).Replace(scanner.Text())
		if json.Unmarshal([]byte(doc), &line) != nil || line.IsSidechain {
			continue
		}
		if line.Type == "compaction" {
			messages = append(messages, thread.Message{Role: thread.User, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: line.Summary}}})
			continue
		}
		m := line.Message
		var text string
		var blocks []block
		if json.Unmarshal(m.Content, &text) == nil {
			blocks = []block{{Type: "text", Text: text}}
		} else if json.Unmarshal(m.Content, &blocks) != nil {
			continue
		}
		switch m.Role {
		case "user":
			var parts []thread.Part
			kind := thread.Plain
			for _, b := range blocks {
				switch b.Type {
				case "tool_result":
					messages = append(messages, result(b.ToolUseID, b.Content, b.IsError))
				case "text":
					if strings.HasPrefix(b.Text, "<") || strings.HasPrefix(b.Text, "Caveat:") || strings.HasPrefix(b.Text, "[Request interrupted") {
						kind = thread.Injected
					}
					parts = append(parts, thread.Text{Text: b.Text})
				}
			}
			if line.IsMeta {
				kind = thread.Injected
			}
			if line.IsCompactSummary {
				kind = thread.Recap
			}
			if len(parts) > 0 {
				messages = append(messages, thread.Message{Role: thread.User, Kind: kind, Parts: parts})
			}
		case "assistant":
			var parts []thread.Part
			for _, b := range blocks {
				switch b.Type {
				case "text":
					parts = append(parts, thread.Text{Text: b.Text})
				case "tool_use", "toolCall":
					args := b.Input
					if args == nil {
						args = b.Arguments
					}
					tools[b.ID] = b.Name
					parts = append(parts, thread.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(args)})
				}
			}
			if len(parts) > 0 {
				messages = append(messages, thread.Message{Role: thread.Assistant, Parts: parts})
			}
		case "toolResult":
			messages = append(messages, result(m.ToolCallID, m.Content, m.IsError))
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	th, err := thread.New(name).Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	return th.Messages()
}
