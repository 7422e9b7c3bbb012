package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// chatFile is a request to OpenAI's chat completions endpoint: the whole
// conversation, and the tools.
type chatFile struct {
	Model    string        `json:"model"`
	Messages []chatMessage `json:"messages"`
	Tools    []chatTool    `json:"tools"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// chatSystem is the system message of the agent.
const chatSystem = `You are a coding agent that works in the repository at ` + virtualRoot + `.

- Look before you change: read the code and the tests that are concerned, and run the tests first.
- Make the smallest change that solves the task, in the style of the code around it.
- After a change run the tests of the package, and before you report run everything that the task touches.
- If a requirement is unclear, ask, and say what you would do without an answer.
- Report in a few sentences: what was wrong, what changed, what is left.
- You have no network besides fetch_url, and no shell besides the go tools.`

func recordOpenAIChat(s *Session) ([]byte, error) {
	f := chatFile{Model: "gpt-5.1", Tools: chatTools}
	text := func(s string) *string { return &s }
	f.Messages = append(f.Messages, chatMessage{Role: "system", Content: text(chatSystem)})
	for _, e := range s.Events {
		switch {
		case e.User != "":
			f.Messages = append(f.Messages, chatMessage{Role: "user", Content: text(e.User)})
			continue
		case e.System != "" || e.Think != "":
			return nil, fmt.Errorf("the chat format has no place for thoughts and client lines")
		}
		m := chatMessage{Role: "assistant"}
		if e.Say != "" {
			m.Content = text(e.Say)
		}
		var results []chatMessage
		for _, c := range e.Calls {
			call, err := newChatCall(c)
			if err != nil {
				return nil, err
			}
			m.ToolCalls = append(m.ToolCalls, call)
			results = append(results, chatMessage{Role: "tool", ToolCallID: call.ID, Content: text(c.Result.Text)})
		}
		f.Messages = append(append(f.Messages, m), results...)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(f)
	return b.Bytes(), err
}

// newChatCall gives a call its name in this agent and its arguments as a JSON
// text.
func newChatCall(c DoneCall) (chatCall, error) {
	if c.Interrupted {
		return chatCall{}, fmt.Errorf("the chat format does not allow a call without a result")
	}
	name, args, err := chatArguments(c.Call)
	if err != nil {
		return chatCall{}, err
	}
	data, err := marshal(args)
	return chatCall{
		ID:       "call_" + c.ID[:24],
		Type:     "function",
		Function: chatFunction{Name: name, Arguments: string(data)},
	}, err
}

func chatArguments(c Call) (name string, args object, err error) {
	switch c.Tool {
	case ToolList:
		return "list_dir", object{"path": c.Path}, nil
	case ToolRead:
		args := object{"path": c.Path}
		if c.From > 0 {
			args["start_line"], args["end_line"] = c.From, c.To
		}
		return "read_file", args, nil
	case ToolGlob:
		return "find_files", object{"pattern": c.Pattern}, nil
	case ToolGrep:
		args := object{"pattern": c.Pattern, "path": c.Path}
		if c.Context > 0 {
			args["context"] = c.Context
		}
		return "grep", args, nil
	case ToolBash:
		return "run", object{"command": c.Command}, nil
	case ToolEdit:
		return "edit_file", object{"path": c.Path, "old_text": c.Old, "new_text": c.New}, nil
	case ToolWrite:
		return "write_file", object{"path": c.Path, "content": c.Content}, nil
	case ToolTodo:
		items := make([]object, len(c.Todos))
		for i, t := range c.Todos {
			items[i] = object{"text": t.Text, "status": t.Status}
		}
		return "update_plan", object{"items": items}, nil
	case ToolFetch:
		return "fetch_url", object{"url": c.URL}, nil
	}
	return "", nil, fmt.Errorf("the chat agent has no tool %q", c.Tool)
}
