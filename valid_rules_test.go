package palimpsest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestBrokenRules: a request whose long texts were cut breaks the same rules as the whole one, and its size
// is nearly the same.
func TestBrokenRules(t *testing.T) {
	long := strings.Repeat("each line says something ünusual\n", 400)
	said := func(role thread.Role, text string) thread.Message {
		return thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}}
	}
	call := thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: long + "."}, thread.ToolCall{ID: "a", Name: "Read", Arguments: `{"path":"a.go"}`}}}
	result := thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "a", Tool: "Read", Content: []thread.Part{thread.Text{Text: long}}}}}
	for name, messages := range map[string][]thread.Message{
		"valid":             {said(thread.User, long), call, result},
		"call without end":  {said(thread.User, long), call},
		"result of nothing": {said(thread.User, long), result},
		"blank":             {said(thread.User, strings.Repeat(" ", 2000)), call, result},
		"model first":       {call, result},
	} {
		for _, api := range []string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini} {
			p := &prompt.Prompt{Model: "m", MaxOutput: 100, Messages: messages}
			if _, cut := outline(p); cut < len(long)/2 && name != "blank" {
				t.Errorf("%s: only %d bytes were cut", name, cut)
			}
			got, size := brokenRules(api, p)
			codec := apicodec.For(api)
			body, err := codec.Encode(p)
			if err != nil {
				t.Fatal(name, api, err)
			}
			var want []wire.Problem
			for _, b := range codec.Validate(body) {
				if !b.Advice {
					want = append(want, b)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %s: %v, want %v", name, api, got, want)
			}
			if size.Bytes > len(body) || size.Bytes < len(body)*9/10 {
				t.Errorf("%s, %s: %d bytes, want about %d", name, api, size.Bytes, len(body))
			}
		}
	}
}

// TestBrokenSize: how large a request is counts with all its bytes.
func TestBrokenSize(t *testing.T) {
	most := wire.LimitsOf(wire.Anthropic, "").Bytes
	for size, want := range map[int]string{most / 2: "[]", most - 1000: "[]", most: "[size]"} {
		text := strings.Repeat("a", size)
		p := &prompt.Prompt{Model: "m", Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}}}
		got, have := brokenRules(wire.Anthropic, p)
		rules := []string{}
		for _, b := range got {
			rules = append(rules, b.Rule)
		}
		if fmt.Sprint(rules) != want || have.Bytes < size {
			t.Errorf("%d bytes: %v, %d bytes", size, rules, have.Bytes)
		}
	}
}
