package truth

import (
	"regexp"
	"strconv"
	"strings"
)

// cannotRead begins a short result of a tool that could not read a file.
var cannotRead = regexp.MustCompile(`(?i)^(?:error: |error reading |file not found|file does not exist|no such file|enoent|failed to read|could not read|cannot read|path does not exist)`)

// editFailed begins a result of a tool for files that did not do it.
var editFailed = regexp.MustCompile(`(?i)^(?:error\b|failed|could not|cannot |unable to |no changes|no (?:match|replacement|occurrences)|old_?(?:string|str|text) (?:was )?not found|string to replace not found|the edit was not|invalid|` +
	`patch (?:failed|rejected)|apply_patch verification failed|found 0 |file (?:\S+ )?(?:does not exist|not found|has (?:not been read|been \w+ since)))`)

// fileTool says what a call of a tool for files does: "read", "write", "edit",
// "patch" or nothing.
func (r *replay) fileTool(c *call) string {
	if c.line != "" && !strings.Contains(c.line, "*** Begin Patch") {
		return ""
	}
	if strings.Contains(c.said, "*** Begin Patch") {
		return "patch"
	}
	if c.path() == "" || c.args == nil {
		return ""
	}
	has := func(names ...string) bool {
		for _, n := range names {
			if _, ok := c.args[n]; ok {
				return true
			}
		}
		return false
	}
	name := strings.ToLower(c.Name)
	switch cmd := c.str("command"); {
	case cmd == "view":
		return "read"
	case cmd == "create":
		return "write"
	case cmd == "str_replace" || cmd == "insert" || cmd == "undo_edit":
		return "edit"
	case has("old_string", "oldText", "old_str", "edits", "replacements", "new_source", "search"):
		if findTool.MatchString(c.Name) {
			return ""
		}
		return "edit"
	case has("content", "contents", "file_text", "text") && (strings.Contains(name, "write") || strings.Contains(name, "create") || strings.Contains(name, "save")):
		return "write"
	case name == "create" && has("filename"):
		return "write"
	case findTool.MatchString(c.Name):
		return ""
	case readTool.MatchString(c.Name):
		return "read"
	}
	return ""
}

type replacement struct {
	old, new string
	all      bool
	strange  bool // it cannot be followed
}

// edits are the replacements of a call.
func (c *call) edits() []replacement {
	one := func(m map[string]any) replacement {
		get := func(names ...string) (string, bool) {
			for _, n := range names {
				if s, ok := m[n].(string); ok {
					return s, true
				}
			}
			return "", false
		}
		old, ok := get("old_string", "oldText", "old_str", "old", "search")
		new, _ := get("new_string", "newText", "new_str", "new", "replace")
		all, _ := m["replace_all"].(bool)
		return replacement{old, new, all, !ok}
	}
	for _, k := range []string{"edits", "replacements", "edit"} {
		switch v := c.args[k].(type) {
		case []any:
			var out []replacement
			for _, x := range v {
				if m, ok := x.(map[string]any); ok {
					out = append(out, one(m))
				}
			}
			return out
		case map[string]any:
			return []replacement{one(v)}
		}
	}
	return []replacement{one(c.args)}
}

// readLines are the lines of a file that a result shows.
func (c *call) readLines() (from int, lines []string, whole bool) {
	body := reminders.ReplaceAllString(c.out, "")
	offset, limit := c.num("offset", "line_offset", "start_line"), c.num("limit", "n_lines", "end_line")
	from = 0
	all := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	for _, l := range all {
		m := numbered.FindStringSubmatch(l)
		if m == nil {
			if len(lines) > 0 {
				break
			}
			continue
		}
		n, _ := strconv.Atoi(m[1])
		if from == 0 {
			from = n
		} else if n != from+len(lines) {
			break
		}
		lines = append(lines, l[len(m[0]):])
	}
	if len(lines) > 0 {
		// More than 2,000 lines come in parts.
		return from, lines, from == 1 && offset <= 1 && limit == 0 && len(lines) < 2000 && !strings.Contains(body, "truncated")
	}
	if strings.HasPrefix(body, "File unchanged since") || strings.HasPrefix(body, "[") || body == "" {
		return 0, nil, false
	}
	// Without numbers: the text as it is, and perhaps a note at its end.
	whole = offset <= 1 && limit == 0
	if i := strings.LastIndex(body, "\n\n["); i >= 0 && strings.HasSuffix(strings.TrimSpace(body), "]") {
		note := body[i:]
		if strings.Contains(note, "more lines") || strings.Contains(note, "Showing") || strings.Contains(note, "offset=") || strings.Contains(note, "runcated") {
			// The line before the note may be empty.
			return max(offset, 1), strings.Split(body[:i], "\n"), false
		}
	}
	if strings.HasPrefix(body, "<") {
		return 0, nil, false // in a form of its own
	}
	return max(offset, 1), fileLines(body), whole
}
