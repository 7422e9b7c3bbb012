package truth

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// index says what stands where in a log.
type index struct {
	log      []thread.Message
	position map[thread.ID]int
	calls    []*call
	at       map[int][]*call // by the message of the call
	ended    map[int]*call   // by the message of the result

	texts   map[int][]text // what a message says, once it was asked
	sources map[int][]text // what it holds for quotation

	touches []touch // of files, in order
	*places
	todo   []todo // the agent's list of things to do, as last written
	listed bool
	stops  []int // interruptions and rejections by the user
}

type ending int

const (
	unanswered ending = iota
	succeeded
	failed
	unclear // it was canceled: it may have run in part
)

// call is a call with its result.
type call struct {
	thread.ToolCall
	at, turn int
	result   int // -1 while there is none
	out      string
	args     map[string]any
	said     string // the arguments, decoded, a value per line
	asked    []text // what stands in the arguments
	words    string // those of the arguments, and of each of them, once they were asked
	line     string // of a shell
	commands []shell.Command
	from     string // the folder where the line began, and that of each command; "" if it is not known
	dirs     []string
	end      ending
	refused  bool // by the user
	flagged  bool // as a failure
	code     int  // exit status; 0 when none was said
	aside    bool // it ran while changes were put aside that came back
}

var (
	shellTool = regexp.MustCompile(`(?i)bash|shell|exec|terminal|run_command|^run$|^cmd$`)
	exitCode  = regexp.MustCompile(`(?im)^(?:Exit code|Process exited with code|Command exited with code|exit status|Command failed with exit code|.*"exit_code":)[: ]*(-?\d+)`)
	// stopped is what harnesses say above or below the output of a command that they stopped.
	stopped   = regexp.MustCompile(`(?i)^(?:command (?:timed out|aborted)|\(?command timed out|\[the command timed out)|\n(?:\(?command (?:timed out after[^\n]*|aborted[^\n]*)|\[the command timed out[^\n]*|(?:<bash_metadata>\n)?bash tool terminated command after exceeding timeout[^\n]*(?:\n</bash_metadata>)?)\s*$`)
	canceled  = regexp.MustCompile(`^(?:<tool_use_error>)?(?:Sibling tool call errored|Cancelled: parallel tool call)`)
	refusal   = regexp.MustCompile(`(?i)^[\s\[(*#>-]{0,3}(?:errors?\s*[:\])]|error \w+ing\b|error executing|failed to |failure:|exception:|access denied|permission denied|forbidden\b|cannot |could not |unable to |no such |[\w ]{0,30} not found\b|[\w ]{0,40} is not (?:enough|allowed|permitted|available|valid))`)
	reminders = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)
	readTool  = regexp.MustCompile(`(?i)^(?:read|view|cat|open)|read_?file|file_?read|get_file|view_file`)
	findTool  = regexp.MustCompile(`(?i)grep|glob|^ls$|list_dir|find_|search|fetch|lsp`)
	// editFailed begins the result of a tool that did not change a file.
	editFailed = regexp.MustCompile(`(?i)^(?:error\b|failed|could not|cannot |unable to |no changes|no (?:match|replacement|occurrences)|old_?(?:string|str|text) (?:was )?not found|string to replace not found|the edit was not|invalid|` +
		`patch (?:failed|rejected)|apply_patch verification failed|found 0 |file (?:\S+ )?(?:does not exist|not found|has (?:not been read|been \w+ since)))`)
)

func newIndex(log []thread.Message) *index {
	x := &index{log: log, position: map[thread.ID]int{}, at: map[int][]*call{}, ended: map[int]*call{}, texts: map[int][]text{}, sources: map[int][]text{}}
	open := map[string]*call{}
	for i := range log {
		m := &log[i]
		x.position[m.ID] = i
		for _, tc := range m.Calls() {
			c := newCall(tc, i, m.Turn)
			x.calls = append(x.calls, c)
			x.at[i] = append(x.at[i], c)
			open[tc.ID] = c
		}
		if res, ok := m.Result(); ok {
			if c := open[res.CallID]; c != nil && c.result < 0 {
				c.resulted(i, res)
				x.ended[i] = c
				if c.refused {
					x.stops = append(x.stops, i)
				}
				x.lists(c)
			}
		} else if m.Role == thread.User && strings.Contains(m.Text(), "[Request interrupted by user") {
			x.stops = append(x.stops, i)
		}
	}
	x.places = newPlaces(x) // before files are: it says where commands ran
	for _, c := range x.calls {
		x.touch(c)
	}
	slices.SortStableFunc(x.touches, func(a, b touch) int { return a.at - b.at })
	return x
}

func newCall(tc thread.ToolCall, at, turn int) *call {
	c := &call{ToolCall: tc, at: at, turn: turn, result: -1}
	if c.said = tc.Arguments; json.Unmarshal([]byte(tc.Arguments), &c.args) == nil {
		c.said = strings.Join(leaves(c.args), "\n")
	}
	if shellTool.MatchString(tc.Name) || c.args == nil && tc.Type == "custom" {
		c.line = c.shellLine()
		c.commands = shell.Read(c.line)
	}
	c.asked = []text{newText(c.said), newText(c.Arguments)}
	if c.line != "" {
		c.asked = append(c.asked, newText(c.line))
	}
	return c
}

// shellLine is the command line of a shell's call.
func (c *call) shellLine() string {
	if c.args == nil {
		return c.said
	}
	for _, k := range []string{"command", "cmd", "script", "code"} {
		switch v := c.args[k].(type) {
		case string:
			return v
		case []any:
			words := leaves(v)
			if len(words) > 0 && slices.Contains([]string{"sh", "bash", "zsh"}, path.Base(words[0])) {
				return words[len(words)-1]
			}
			return strings.Join(words, " ")
		}
	}
	return ""
}

// leaves are the texts of decoded JSON, by the order of their names.
func leaves(v any) (out []string) {
	switch v := v.(type) {
	case nil:
	case string:
		return []string{v}
	case []any:
		for _, x := range v {
			out = append(out, leaves(x)...)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, leaves(v[k])...)
		}
	default:
		if data, err := json.Marshal(v); err == nil {
			return []string{string(data)}
		}
	}
	return out
}

func (c *call) str(names ...string) string {
	for _, n := range names {
		if s, ok := c.args[n].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

func (c *call) path() string {
	return c.str("file_path", "path", "filePath", "absolute_path", "target_file", "notebook_path", "filename", "file", "file_name")
}

// resulted takes in a result, and says how the call ended.
func (c *call) resulted(at int, res thread.ToolResult) {
	c.result, c.out = at, res.Text()
	c.flagged, c.refused = res.Outcome == thread.Failure, res.Denied
	body := strings.TrimSpace(ansi.ReplaceAllString(c.out, ""))
	file := c.fileTool()
	bad := false
	switch {
	case c.flagged && canceled.MatchString(body):
		c.end = unclear
		return
	case c.refused || c.flagged:
		bad = true
	case c.line != "":
		for _, part := range []string{body[:min(len(body), 400)], body[max(0, len(body)-200):]} {
			// What the agent had printed with "echo $?" is the status of one command, not of the line.
			if m := exitCode.FindStringSubmatch(part); m != nil && c.code <= 0 && !strings.Contains(c.line, "$?") {
				c.code, _ = strconv.Atoi(m[1])
			}
		}
		bad = c.code > 0 || stopped.MatchString(body) || strings.Contains(c.line, "*** Begin Patch") && editFailed.MatchString(body)
	case file == "read" || findTool.MatchString(c.Name) && !strings.HasPrefix(body, "Error"):
	case file != "":
		m := exitCode.FindStringSubmatch(body[:min(len(body), 100)])
		bad = m != nil && m[1] != "0" || editFailed.MatchString(body)
	default:
		bad = refusal.MatchString(body)
	}
	if c.end = succeeded; bad {
		c.end = failed
	}
}

// fileTool says what a call of a tool for files does: "read", "write", "edit",
// "patch" or nothing.
func (c *call) fileTool() string {
	if strings.Contains(c.said, "*** Begin Patch") {
		return "patch"
	}
	if c.line != "" || c.path() == "" {
		return ""
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { _, ok := c.args[n]; return ok })
	}
	name := strings.ToLower(c.Name)
	switch {
	case findTool.MatchString(c.Name):
		return ""
	case has("old_string", "oldText", "old_str", "edits", "replacements", "new_source", "search"):
		return "edit"
	case has("content", "contents", "file_text", "text") && (strings.Contains(name, "write") || strings.Contains(name, "create") || strings.Contains(name, "save")), name == "create" && has("filename"):
		return "write"
	case readTool.MatchString(c.Name):
		return "read"
	}
	return ""
}

// todo is a step of the agent's list.
type todo struct{ id, text, status string }

var (
	taskMade = regexp.MustCompile(`^Task #(\w+) created successfully: (.*)`)
	taskRow  = regexp.MustCompile(`(?m)^#(\w+)\.? \[(\w+)\] (.*)$`)
	listTool = regexp.MustCompile(`(?i)todo|plan|task_?list`)
)

// lists takes in what a call says of the agent's list.
func (x *index) lists(c *call) {
	byID := func(id string) int { return slices.IndexFunc(x.todo, func(t todo) bool { return t.id == id }) }
	switch name := strings.ToLower(c.Name); {
	case c.end == failed:
	case name == "taskcreate":
		if m := taskMade.FindStringSubmatch(c.out); m != nil {
			if byID(m[1]) >= 0 { // numbers begin anew in a new list
				x.todo = nil
			}
			x.todo, x.listed = append(x.todo, todo{m[1], m[2], "pending"}), true
		}
	case name == "taskupdate":
		if i := byID(c.str("taskId", "task_id", "id")); i >= 0 {
			x.todo[i].text = cmp.Or(c.str("subject"), x.todo[i].text)
			x.todo[i].status = cmp.Or(c.str("status"), x.todo[i].status)
			x.todo = slices.DeleteFunc(x.todo, func(t todo) bool { return t.status == "deleted" })
		}
	case name == "tasklist":
		var now []todo
		for _, m := range taskRow.FindAllStringSubmatch(c.out, -1) {
			if i := byID(m[1]); i >= 0 && strings.HasPrefix(m[3], x.todo[i].text) { // rows may say more than the subject
				m[3] = x.todo[i].text
			}
			now = append(now, todo{m[1], m[3], m[2]})
		}
		// A list that is done is put away.
		open := slices.ContainsFunc(x.todo, func(t todo) bool { return t.status != "completed" })
		if len(now) > 0 || open && strings.HasPrefix(c.out, "No tasks") {
			x.todo, x.listed = now, true
		}
	case listTool.MatchString(name):
		for _, k := range []string{"steps", "todo_list", "tasks", "items", "plan", "todos"} {
			rows, ok := c.args[k].([]any)
			if !ok {
				continue
			}
			x.todo, x.listed = nil, true
			for _, r := range rows {
				m, _ := r.(map[string]any)
				s, _ := r.(string)
				row := &call{args: m}
				x.todo = append(x.todo, todo{row.str("id"), cmp.Or(s, row.str("content", "step", "title", "description", "text", "task", "subject")), row.str("status", "state")})
			}
		}
	}
}
