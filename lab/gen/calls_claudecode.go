package main

import "strings"

// claudeCall gives a call the name and the arguments it has in Claude Code.
func claudeCall(c Call) (name string, input object) {
	switch c.Tool {
	case ToolList:
		return "LS", object{"path": absolute(c.Path)}
	case ToolRead:
		in := object{"file_path": absolute(c.Path)}
		if c.From > 0 {
			in["offset"], in["limit"] = c.From, c.To-c.From+1
		}
		return "Read", in
	case ToolGlob:
		return "Glob", object{"pattern": c.Pattern}
	case ToolGrep:
		in := object{"pattern": c.Pattern, "path": absolute(c.Path), "output_mode": "content", "-n": true}
		if c.Context > 0 {
			in["-C"] = c.Context
		}
		return "Grep", in
	case ToolBash:
		return "Bash", object{"command": c.Command, "description": c.Description}
	case ToolEdit:
		return "Edit", object{"file_path": absolute(c.Path), "old_string": c.Old, "new_string": c.New, "replace_all": false}
	case ToolWrite:
		return "Write", object{"file_path": absolute(c.Path), "content": c.Content}
	case ToolTodo:
		return "TodoWrite", object{"todos": claudeTodos(c.Todos)}
	case ToolFetch:
		return "WebFetch", object{"url": c.URL, "prompt": c.Prompt}
	case ToolTask:
		return "Task", object{"description": c.Description, "prompt": c.Prompt, "subagent_type": "general-purpose"}
	}
	return string(c.Tool), object{}
}

// claudeTodos adds the form of a todo that the client shows while it is being
// worked on.
func claudeTodos(todos []Todo) []object {
	out := make([]object, len(todos))
	for i, t := range todos {
		out[i] = object{"content": t.Text, "status": t.Status, "activeForm": "Working on: " + strings.ToLower(t.Text[:1]) + t.Text[1:]}
	}
	return out
}
