package main

// chatTool is the definition of a tool as the endpoint wants it.
type chatTool struct {
	Type     string          `json:"type"`
	Function chatDeclaration `json:"function"`
}

type chatDeclaration struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  object `json:"parameters"`
}

// chatTools are the tools of the chat agent.
var chatTools = []chatTool{
	declare("list_dir", "List the entries of a directory. Directories end in a slash, files show their size.",
		need("path", str("Directory, relative to the root of the repository; \".\" is the root."))),
	declare("read_file", "Read a text file, or a range of its lines. Every line is shown with its number.",
		need("path", str("File, relative to the root of the repository.")),
		may("start_line", integer("First line, counted from 1.")),
		may("end_line", integer("Last line, included."))),
	declare("find_files", "List the files whose path matches a glob pattern.",
		need("pattern", str("For example *_test.go, or docs/*.md."))),
	declare("grep", "Search files for a regular expression (RE2), line by line.",
		need("pattern", str("The expression.")),
		need("path", str("File or directory to search.")),
		may("context", integer("Lines to show around a match."))),
	declare("run", "Run go or gofmt in the root of the repository. Output may be piped through head, tail and grep.",
		need("command", str("The command line."))),
	declare("edit_file", "Replace a piece of text that occurs exactly once in a file.",
		need("path", str("File, relative to the root of the repository.")),
		need("old_text", str("The text to replace, with enough around it to be unique.")),
		need("new_text", str("The text to put there."))),
	declare("write_file", "Create a file or replace all of it.",
		need("path", str("File, relative to the root of the repository.")),
		need("content", str("The whole new text."))),
	declare("update_plan", "Replace the plan that the user sees.",
		need("items", object{
			"type":        "array",
			"description": "All steps in their order.",
			"items": object{
				"type": "object",
				"properties": object{
					"text":   str("The step."),
					"status": object{"type": "string", "enum": []string{"pending", "in_progress", "completed"}},
				},
				"required":             []string{"text", "status"},
				"additionalProperties": false,
			},
		})),
	declare("fetch_url", "Read a page from the web as text.",
		need("url", str("The address."))),
}

// parameter is one parameter of a tool.
type parameter struct {
	name   string
	schema object
	needed bool
}

func need(name string, schema object) parameter { return parameter{name, schema, true} }
func may(name string, schema object) parameter  { return parameter{name, schema, false} }

func str(description string) object {
	return object{"type": "string", "description": description}
}

func integer(description string) object {
	return object{"type": "integer", "minimum": 1, "description": description}
}

func declare(name, description string, params ...parameter) chatTool {
	properties := object{}
	required := []string{}
	for _, p := range params {
		properties[p.name] = p.schema
		if p.needed {
			required = append(required, p.name)
		}
	}
	return chatTool{Type: "function", Function: chatDeclaration{
		Name:        name,
		Description: description,
		Parameters: object{
			"type":                 "object",
			"properties":           properties,
			"required":             required,
			"additionalProperties": false,
		},
	}}
}
