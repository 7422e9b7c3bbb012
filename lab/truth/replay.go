package truth

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// replay is what happened in a log.
type replay struct {
	log   []thread.Message
	index map[thread.ID]int
	calls []*call
	byID  map[string]*call // the last call with an id
	at    map[int][]*call  // by the message of the call
	ended map[int]*call    // by the message of the result

	files  map[string]*file
	vague  []vague // commands whose effect on files cannot be told
	cwd    string  // the directory that commands start in, as far as it was said
	shell  string  // the directory of a shell that keeps it; "" if it is not known
	todo   []todo
	listed bool // the agent has a list
	// emptied is the message that showed an empty list.
	emptied int
	dirs    []seen
	branch  []seen

	commits []commit
	pushes  []seen // text is the folder
	started []started
	stops   []seen // interruptions and rejections by the user
}

// seen is something that was observed.
type seen struct {
	text string
	at   int
	// vague says that only its beginning is known.
	vague bool
}

// vague is a command that may have touched files that it does not name.
type vague struct {
	at, turn int
	line     string // what it names
	all      bool   // it may have touched any
	perhaps  bool   // it ran only if another failed
}

type ending int

const (
	unknown ending = iota
	succeeded
	failed
)

// call is a call with its result.
type call struct {
	thread.ToolCall
	at, turn int
	result   int // -1 while there is none
	out      string
	args     map[string]any
	said     string // the arguments, decoded, a value per line
	line     string // of a shell
	commands []command
	places   []string // the folder of each; "" if it is not known
	end      ending
	refused  bool // by the user
	canceled bool // since a call beside it failed
	flagged  bool // as a failure
	patched  bool // the call failed, and not its patch
	code     int  // exit code; -1 when none was said
}

type todo struct {
	id, text, status string
	at               int
}

// operation is something that was done to a file.
type operation struct {
	what string // "read", "created", "edited", "deleted", "moved to", "moved from"
	at   int    // the message of the result
	turn int
	from int // of a read: its first and last line
	to   int
	path string // of a move: the other path
	// typed says that a tool for files did it, not a shell.
	typed bool
	call  *call
	// known says of a write that the file was there before, as far as was seen.
	known bool
	size  change
}

// change is how many lines a change added and took, by each way to count.
type change [4]struct{ added, removed int }

// The ways to count: the fewest lines; those between what both begin and end
// with; all lines of old and new text; the fewest, and all of a rewrite.
func (c *change) add(old, new []string, rewrite bool) {
	a, b := changed(old, new), changed(new, old)
	same := common(a, b)
	for i, n := range [...]struct{ added, removed int }{
		{len(b) - same, len(a) - same}, {len(b), len(a)}, {len(new), len(old)}, {len(b) - same, len(a) - same},
	} {
		if i == 3 && rewrite || i == 2 && rewrite {
			n.added, n.removed = len(new), 0
		}
		c[i].added += n.added
		c[i].removed += n.removed
	}
}

// common is how many lines two texts have in common, in order; too many to
// compare have none.
func common(a, b []string) int {
	if len(a)*len(b) > 4<<20 {
		return 0
	}
	row := make([]int, len(b)+1)
	for _, x := range a {
		before := 0
		for j, y := range b {
			was := row[j+1]
			if x == y {
				row[j+1] = before + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			before = was
		}
	}
	return row[len(b)]
}

// file is what is known of a file.
type file struct {
	path string
	*content
	operations []operation
	seen       bool // it is known to be there
	deleted    bool
	failed     []operation // that did not come to pass
}

func follow(log []thread.Message) *replay {
	r := &replay{log: log, index: map[thread.ID]int{}, byID: map[string]*call{}, at: map[int][]*call{}, ended: map[int]*call{}, files: map[string]*file{}}
	for i := range log {
		m := &log[i]
		r.index[m.ID] = i
		switch m.Role {
		case thread.Assistant:
			for _, c := range m.Calls() {
				r.called(i, m.Turn, c)
			}
		case thread.Tool:
			if res, ok := m.Result(); ok {
				r.resulted(i, res)
			}
		default:
			r.notes(i, m)
		}
	}
	return r
}

func (r *replay) called(at, turn int, tc thread.ToolCall) {
	c := &call{ToolCall: tc, at: at, turn: turn, result: -1, code: -1}
	if json.Unmarshal([]byte(tc.Arguments), &c.args) != nil {
		c.args = nil
		c.said = tc.Arguments
	} else {
		c.said = strings.Join(leaves(c.args), "\n")
	}
	if shellTool.MatchString(tc.Name) || c.args == nil && tc.Type == "custom" {
		c.line = c.shellLine()
		c.commands = splitShell(c.line)
	}
	r.calls = append(r.calls, c)
	r.byID[tc.ID] = c
	r.at[at] = append(r.at[at], c)
}

var (
	shellTool = regexp.MustCompile(`(?i)bash|shell|exec|terminal|run_command|^run$|^cmd$`)
	exitCode  = regexp.MustCompile(`(?im)^(?:Exit code|Process exited with code|Command exited with code|exit status|Command failed with exit code|.*"exit_code":)[: ]*(-?\d+)`)
	// stopped is what harnesses say above or below the output of a command that they stopped.
	stopped    = regexp.MustCompile(`(?i)^(?:command (?:timed out|aborted)|\(?command timed out|\[the command timed out)|\n(?:\(?command (?:timed out after[^\n]*|aborted[^\n]*)|\[the command timed out[^\n]*|(?:<bash_metadata>\n)?bash tool terminated command after exceeding timeout[^\n]*(?:\n</bash_metadata>)?)\s*$`)
	canceled   = regexp.MustCompile(`^(?:<tool_use_error>)?(?:Sibling tool call errored|Cancelled: parallel tool call)`)
	refusal    = regexp.MustCompile(`(?i)^[\s\[(*#>-]{0,3}(?:errors?\s*[:\])]|error \w+ing\b|error executing|failed to |failure:|exception:|access denied|permission denied|forbidden\b|cannot |could not |unable to |no such |[\w ]{0,30} not found\b|[\w ]{0,40} is not (?:enough|allowed|permitted|available|valid))`)
	errorField = regexp.MustCompile(`^\s*\{\s*"(?:error|errors)"\s*:\s*("(?:[^"\\]|\\.)+"|\{|\[\s*[^\]\s])`)
	reminders  = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)
	readTool   = regexp.MustCompile(`(?i)^(?:read|view|cat|open)|read_?file|file_?read|get_file|view_file`)
	findTool   = regexp.MustCompile(`(?i)grep|glob|^ls$|list_dir|find_|search|fetch|lsp`)
	taskTool   = regexp.MustCompile(`(?i)^(?:task|agent|subagent|dispatch_agent)$`)
)

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
			var words []string
			for _, w := range v {
				if s, ok := w.(string); ok {
					words = append(words, s)
				}
			}
			if len(words) > 0 && (words[0] == "bash" || words[0] == "sh" || strings.HasSuffix(words[0], "/bash") || strings.HasSuffix(words[0], "/zsh")) {
				return words[len(words)-1]
			}
			return strings.Join(words, " ")
		}
	}
	return ""
}

// leaves are the texts of decoded JSON, by the order of their names.
func leaves(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, x := range v {
			out = append(out, leaves(x)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, leaves(v[k])...)
		}
		return out
	case nil:
		return nil
	default:
		data, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return []string{string(data)}
	}
}

func (c *call) str(names ...string) string {
	for _, n := range names {
		if s, ok := c.args[n].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

func (c *call) num(names ...string) int {
	for _, n := range names {
		switch v := c.args[n].(type) {
		case float64:
			return int(v)
		case string:
			if i, err := strconv.Atoi(v); err == nil {
				return i
			}
		}
	}
	return 0
}

func (c *call) path() string {
	return c.str("file_path", "path", "filePath", "absolute_path", "target_file", "notebook_path", "filename", "file", "file_name")
}

// resulted takes in a result.
func (r *replay) resulted(at int, res thread.ToolResult) {
	c := r.byID[res.CallID]
	if c == nil || c.result >= 0 {
		return
	}
	c.result, c.out = at, res.Text()
	r.ended[at] = c
	c.flagged = res.Outcome == thread.Failure
	body := strings.TrimSpace(ansi.ReplaceAllString(c.out, ""))
	c.refused = res.Denied
	if c.refused {
		r.stops = append(r.stops, seen{text: body, at: at})
	}
	r.background(c)
	file := r.fileTool(c)
	c.canceled = c.flagged && canceled.MatchString(body)
	switch {
	case c.canceled: // it may have run in part: nothing can be said of its end
		r.tried(c, file)
		return
	case c.refused || c.flagged:
		c.end = failed
	case c.line != "":
		head, tail := body[:min(len(body), 400)], body[max(0, len(body)-200):]
		for _, part := range []string{head, tail} {
			// What the agent had printed with "echo $?" is the status of one command, not of the line.
			if m := exitCode.FindStringSubmatch(part); m != nil && c.code <= 0 && !strings.Contains(c.line, "$?") {
				c.code, _ = strconv.Atoi(m[1])
			}
		}
		c.end = succeeded
		if c.code > 0 || stopped.MatchString(body) {
			c.end = failed
		}
	case strings.HasPrefix(body, "<tool_use_error>"):
		c.end = failed
	case file == "read" && len(body) < 500 && cannotRead.MatchString(body):
		c.end = failed
	case file == "read" || findTool.MatchString(c.Name) && !strings.HasPrefix(body, "Error"):
		c.end = succeeded
	case file != "":
		c.end = succeeded
		if m := exitCode.FindStringSubmatch(body[:min(len(body), 100)]); m != nil && m[1] != "0" || editFailed.MatchString(body) {
			c.end = failed
		}
	default:
		c.end = succeeded
		if refusal.MatchString(body) && !taskTool.MatchString(c.Name) || errorField.MatchString(body) {
			c.end = failed
		}
	}
	if c.line != "" {
		r.setPlaces(c)
	}
	if c.end == failed {
		r.tried(c, file)
		return
	}
	switch {
	case c.line != "":
		r.ran(c)
	case file != "":
		r.touched(c, file)
	case taskTool.MatchString(c.Name):
		if kind := c.str("subagent_type", "agent_type"); !regexp.MustCompile(`(?i)explore|plan|search|review`).MatchString(kind) {
			r.vague = append(r.vague, vague{at: at, turn: c.turn, all: true})
			r.doubtAll(at, true)
		}
	}
	r.lists(c)
}

// file returns the file at a path, which may be relative.
func (r *replay) file(p string) *file {
	p = r.absolute(p)
	f := r.files[p]
	if f == nil {
		f = &file{path: p, content: newContent()}
		r.files[p] = f
	}
	return f
}

func (r *replay) absolute(p string) string {
	p = strings.TrimPrefix(p, "file://")
	if p == "" || path.IsAbs(p) || strings.HasPrefix(p, "~") {
		return path.Clean(p)
	}
	p = path.Clean(p)
	if r.cwd != "" {
		if q := path.Join(r.cwd, p); r.files[q] != nil {
			return q
		}
	}
	var found []string
	for k := range r.files {
		// A name alone says nothing of its folder.
		if strings.Contains(p, "/") && strings.HasSuffix(k, "/"+p) {
			found = append(found, k)
		}
	}
	switch {
	case len(found) == 1:
		return found[0]
	case r.cwd != "":
		return path.Join(r.cwd, p)
	}
	return p
}

// lookup returns the files that a statement may mean.
func (r *replay) lookup(p string) []*file {
	p = strings.TrimPrefix(p, "./")
	if f := r.files[path.Clean(p)]; f != nil && path.IsAbs(p) {
		return []*file{f}
	}
	var out []*file
	for k, f := range r.files {
		if tail(k, p) || tail(p, k) {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	return out
}

// tail reports whether a path ends in another.
func tail(long, short string) bool {
	short = strings.TrimPrefix(strings.TrimPrefix(short, "…"), "/")
	return long == short || short != "" && strings.HasSuffix(long, "/"+short)
}

func (f *file) did(o operation) {
	f.operations = append(f.operations, o)
	switch o.what {
	case "deleted", "moved to":
		f.deleted, f.seen = true, false
	default:
		f.deleted, f.seen = false, true
	}
}

// tried notes what a failed call would have done.
func (r *replay) tried(c *call, kind string) {
	if kind == "" {
		if c.line != "" { // part of it may have been done
			r.vague = append(r.vague, vague{at: c.result, turn: c.turn, line: c.line})
			if !c.refused {
				r.effects(c, c.cameBefore)
			}
			for i, cmd := range c.commands {
				if cmd.name() == "git" && len(cmd.words) > 1 && cmd.words[1].text == "cherry-pick" {
					r.committed(c, i, false) // those before the one that did not fit
				}
			}
		}
		return
	}
	if kind == "patch" {
		if strings.Contains(c.out, "Success. Updated the following files") { // a later command failed
			c.patched = true
			r.patch(c, c.said)
		}
		return
	}
	f := r.file(c.path())
	what := map[string]string{"read": "read", "write": "created", "edit": "edited"}[kind]
	f.failed = append(f.failed, operation{what: what, at: c.result, turn: c.turn, call: c})
}

// touched replays a call of a tool for files.
func (r *replay) touched(c *call, kind string) {
	at := c.result
	if kind == "patch" {
		r.patch(c, c.said)
		return
	}
	f := r.file(c.path())
	op := operation{at: at, turn: c.turn, typed: true, call: c, known: f.seen}
	switch kind {
	case "read":
		op.what = "read"
		from, lines, whole := c.readLines()
		if len(lines) > 0 && from > 0 {
			op.from, op.to = from, from+len(lines)-1
			if whole {
				f.rewrite(lines, at)
			} else {
				f.saw(from, lines, at)
			}
		}
		f.did(op)
	case "write":
		op.what = "created"
		if f.seen || strings.Contains(c.out[:min(len(c.out), 400)], "has been updated") || strings.Contains(c.out[:min(len(c.out), 400)], "verwritten") {
			op.what, op.known = "edited", true
		}
		text := c.str("content", "contents", "file_text", "text")
		var old []string
		if f.whole && len(f.parts) > 0 && op.known {
			old = f.parts[0].lines
		}
		op.size.add(old, fileLines(text), true)
		f.rewrite(fileLines(text), at)
		f.did(op)
	case "edit":
		op.what = "edited"
		for _, e := range c.edits() {
			if e.old == "" && !f.seen && len(f.parts) == 0 {
				op.what = "created"
			}
			if e.strange {
				f.doubt(at, true)
				continue
			}
			op.size.add(strings.Split(e.old, "\n"), strings.Split(e.new, "\n"), false)
			f.edit(e.old, e.new, e.all, at)
		}
		f.did(op)
	}
}

// doubtAll notes that any file may have changed.
func (r *replay) doubtAll(at int, strong bool) {
	for _, f := range r.files {
		f.doubt(at, strong)
	}
}

var (
	changedNote = regexp.MustCompile(`(?:Note: )?(/[^\s:]+) was modified, either by the user or by a linter`)
	directory   = regexp.MustCompile(`(?i)(?:working directory|current directory|cwd)\W{1,4}(/[^\s<>"')]+)`)
)

// notes reads what a harness says in the user's name.
func (r *replay) notes(at int, m *thread.Message) {
	text := m.Text()
	if r.cwd == "" {
		if d := directory.FindStringSubmatch(text); d != nil {
			r.cwd = path.Clean(d[1])
		}
	}
	if strings.Contains(text, "[Request interrupted by user") {
		r.stops = append(r.stops, seen{text: text, at: at})
	}
	r.notices(at, text)
	r.changes(at, text)
}

// changes reads the notes on files that somebody else changed.
func (r *replay) changes(at int, text string) {
	for _, m := range changedNote.FindAllStringSubmatchIndex(text, -1) {
		f := r.file(text[m[2]:m[3]])
		f.doubt(at, true)
		var from int
		var lines []string
		for l := range strings.SplitSeq(text[m[1]:], "\n") {
			d := numbered.FindStringSubmatch(l)
			if d == nil {
				if len(lines) > 0 {
					break
				}
				continue
			}
			n, _ := strconv.Atoi(d[1])
			if from == 0 {
				from = n
			} else if n != from+len(lines) {
				break
			}
			lines = append(lines, l[len(d[0]):])
		}
		f.saw(from, lines, at)
	}
}
