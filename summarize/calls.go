package summarize

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/summarize/internal/work"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// callFacts is what was read from a tool call.
type callFacts struct {
	work.Call
	at          int32     // which part of its message it is
	moreFiles   int32     // that are not in Files
	inputIdents []mention // in input
	idents      []mention // in all arguments
	first       int32     // 1 + how many identifiers of its message stand before them
	onlyPrints  bool      // of a command line: it only shows content
	*changeFacts
}

// changeFacts is what a call changes in files, and says of tasks and plans.
type changeFacts struct {
	changed  []piece  // lines that an edit or a write puts into a file
	removed  []string // lines that an edit takes away
	todos    []todo   // a whole list, or one change of it
	todoID   string   // the task that a single change is about; "" for a whole list or a new task
	newTask  bool
	proposed string // the text of a plan that is put before the user
}

const (
	maxArg     = 90  // bytes of one of its arguments
	maxChanged = 400 // lines taken from one edit
	maxFiles   = 200 // files that one call lists
	maxDepth   = 24  // levels of arguments that are read
)

// bodyKeys are the arguments with the new text of a file.
var bodyKeys = scan.WordSet("new_string newText newString new_str content contents file_text text new_source insert_text code_edit replace insert")

// oldKeys are the arguments with the text that an edit replaces.
var oldKeys = scan.WordSet("old_string oldText oldString old_str old_source search")

// changesFile reports whether a call of a class changes a file.
func changesFile(class toolclass.Class) bool {
	return class == toolclass.Edit || class == toolclass.Write
}

// formKeys are arguments that only shape the answer.
var formKeys = scan.WordSet("replace_all activeForm timeout output_mode head_limit -n -A -B -C -i run_in_background dangerouslyDisableSandbox")

// readCall extracts the facts of a call from its name and arguments.
func readCall(live *effort.Budget, c *thread.ToolCall) callFacts {
	f := callFacts{Call: work.Call{ID: c.ID, Name: c.Name, Class: toolclass.ClassOf(c.Name)}, changeFacts: noChange}
	if !live.Live(readingByte * len(c.Arguments)) {
		return f
	}
	args := gjson.Result{}
	if rawjson.Valid(c.Arguments) {
		args = gjson.Parse(c.Arguments)
	}
	f.changeFacts = &changeFacts{}
	line := f.readArguments(live, args, c.Arguments)
	if live.Live(len(c.Arguments)) {
		f.Read(args, line)
	}
	if reflect.ValueOf(f.changeFacts).Elem().IsZero() {
		f.changeFacts = noChange
	}
	return f
}

// readArguments reads the arguments of a call: an object of JSON, or else a patch, a command line or another
// text. It returns the commands of a command line.
func (f *callFacts) readArguments(live *effort.Budget, args gjson.Result, text string) (line []shell.Command) {
	script := text
	const begins = "*** Begin Patch"
	if args.IsObject() {
		if script = ""; f.Class == toolclass.Shell || strings.Contains(text, begins) {
			script = command(args)
		}
	}
	patch := ""
	if changesFile(f.Class) {
		patch = args.Get("patch").Str
	}
	if strings.Contains(script, begins) && (f.Class == toolclass.Shell || changesFile(f.Class) || !args.IsObject()) {
		patch = script
	}
	switch {
	case patch != "":
		f.readPatch(live, patch)
	case f.Class == toolclass.Shell:
		f.Input = clip.Brief(strings.TrimSpace(script), work.MaxInput)
		line = shell.Read(script)
		f.Files, f.onlyPrints = shell.Files(line), shell.OnlyPrints(line)
	case !args.IsObject():
		f.Input = clip.Brief(text, work.MaxInput)
	case f.Class == toolclass.Todo:
		f.readTodo(args)
	case f.Class == toolclass.Read:
		f.addFile(pathIn(args), "read")
		args.Get("paths").ForEach(func(_, v gjson.Result) bool {
			f.addFile(shell.Clean(v.Str), "read")
			return true
		})
	case changesFile(f.Class):
		f.readEdit(live, args)
	}
	if f.Input == "" && f.Class != toolclass.Todo && args.IsObject() {
		f.Input = describe(args, f.Class)
	}
	f.inputIdents = mentions(nil, f.Input)
	if !args.IsObject() {
		f.idents = mentionsWhile(live, nil, text)
		return line
	}
	collect(live, args, maxDepth, "", func(key, s string) {
		if !oldKeys[key] || !changesFile(f.Class) {
			f.idents = mentionsWhile(live, f.idents, s)
		}
	})
	return line
}

// pathIn is the file that arguments name, or "".
func pathIn(args gjson.Result) string {
	return shell.Clean(toolclass.Path(thread.ToolCall{Arguments: args.Raw}))
}

// command returns the command line of a shell call, whatever its shape.
func command(args gjson.Result) string {
	for _, k := range []string{"command", "cmd", "script", "code", "input", "chars"} {
		switch v := args.Get(k); {
		case v.Type == gjson.String:
			return v.Str
		case v.IsArray():
			words := v.Array()
			// ["bash", "-lc", "the command"]
			if n := len(words); n >= 2 && strings.HasPrefix(words[n-2].Str, "-") && strings.HasSuffix(words[n-2].Str, "c") {
				return words[n-1].Str
			}
			var parts []string
			for _, w := range words {
				parts = append(parts, w.String())
			}
			return strings.Join(parts, " ")
		}
	}
	return ""
}

// readEdit reads the arguments of a tool that changes a file, or moves one.
func (f *callFacts) readEdit(live *effort.Budget, args gjson.Result) {
	op := "edited"
	if f.Class == toolclass.Write {
		op = "created"
	}
	switch args.Get("command").Str { // text editors with sub-commands
	case "view":
		f.Class, op = toolclass.Read, "read"
	case "create":
		f.Class, op = toolclass.Write, "created"
	}
	path := pathIn(args)
	f.addFile(path, op)
	if source, to := args.Get("source").Str, args.Get("destination").Str; source != "" && to != "" {
		f.Files = append(f.Files, shell.FileOp{Path: shell.Clean(source), Op: "deleted", Note: "moved to " + to}, shell.FileOp{Path: shell.Clean(to), Op: "created", Note: "moved from " + source})
	}
	var old, body []string
	collect(live, args, maxDepth, "", func(key, s string) {
		switch {
		case bodyKeys[key]:
			body = append(body, s)
		case oldKeys[key]:
			old = append(old, s)
		}
	})
	f.Input = path
	f.readReplacement(live, old, body)
}

// readPatch reads the text of apply_patch.
func (f *callFacts) readPatch(live *effort.Budget, patch string) {
	var names []string
	var added, removed strings.Builder
	for line := range strings.Lines(patch) {
		if !live.Live(lineEffort + len(line)) {
			break
		}
		head, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		name = shell.Clean(name)
		if op := patchMarks[head]; op != "" && f.addFile(name, op) {
			names = append(names, f.Files[len(f.Files)-1].Path)
		}
		if head == "*** Move to" && len(f.Files) > 0 && f.moreFiles == 0 {
			last := &f.Files[len(f.Files)-1]
			last.Op, last.Note = "deleted", "moved to "+name
			f.Files = append(f.Files, shell.FileOp{Path: name, Op: "created", Note: "moved from " + last.Path})
		}
		if rest, ok := strings.CutPrefix(line, "-"); ok && !strings.HasPrefix(rest, "--") {
			removed.WriteString(rest)
		} else if rest, ok := strings.CutPrefix(line, "+"); ok && !strings.HasPrefix(rest, "++") {
			added.WriteString(rest)
		}
	}
	f.Class = toolclass.Edit
	f.Input = clip.Brief(strings.Join(names, ", "), work.MaxInput)
	f.readReplacement(live, []string{removed.String()}, []string{added.String()})
}

// addFile adds a file of the call, if there is one, unless it has very many, and reports whether it did.
func (f *callFacts) addFile(path, op string) bool {
	if path == "" {
		return false
	}
	if len(f.Files) >= maxFiles {
		f.moreFiles++
		return false
	}
	f.Files = append(f.Files, shell.FileOp{Path: strings.Clone(path), Op: op}) // what it stands in is not kept
	return true
}

// patchMarks begin the lines of a patch that name files.
var patchMarks = map[string]string{"*** Update File": "edited", "*** Add File": "created", "*** Delete File": "deleted"}

// readReplacement notes that an edit replaces texts of a file by others.
func (f *callFacts) readReplacement(live *effort.Budget, old, body []string) {
	var removed []string
	for _, text := range body {
		f.changedLines(live, text)
	}
	for _, text := range old {
		for _, p := range textLines(live, text) {
			if len(removed) == maxChanged {
				break
			}
			if p.To-p.From >= 4 {
				removed = append(removed, text[p.From:p.To])
			}
		}
	}
	f.removed = minus(removed, slices.Collect(func(yield func(string) bool) {
		for i := 0; i < len(f.changed) && yield(f.changed[i].text); i++ {
		}
	}))
}

// minus lists what one list holds and the other does not.
func minus(list, other []string) []string {
	in := make(map[string]bool, len(other))
	for _, s := range other {
		in[s] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return in[s] })
}

// changedLines adds the lines of a new text that hold identifiers.
func (f *callFacts) changedLines(live *effort.Budget, s string) {
	line := 0 // after those of the text before
	if n := len(f.changed); n > 0 {
		line = f.changed[n-1].line + 2
	}
	for n, p := range textLines(live, s) {
		if len(f.changed) >= maxChanged {
			break
		}
		if text := s[p.From:p.To]; len(text) >= 6 {
			score := float32(0)
			if Defines(text) {
				score = 1
			}
			f.changed = appendPieces(f.changed, text, line+n, score, score > 0, false)
		}
	}
}

// describe writes the arguments of a call on one line, as name=value or, if there is only
// one, its value. The text that an edit replaces is left out.
func describe(args gjson.Result, class toolclass.Class) string {
	limit := maxArg
	if class == toolclass.Agent {
		limit *= 2
	}
	n := 0
	args.ForEach(func(_, _ gjson.Result) bool { n++; return n < 2 })
	var b strings.Builder
	args.ForEach(func(k, v gjson.Result) bool {
		s := v.Raw
		if v.Type == gjson.String {
			s = v.Str
		}
		if s = clip.Brief(s, limit); s == "" || v.Type == gjson.Null || formKeys[k.Str] || oldKeys[k.Str] && changesFile(class) {
			return true
		}
		if b.Len()+len(s) > 2*work.MaxInput {
			b.WriteString(" …") // two calls may differ in the rest
			return false
		}
		if n > 1 {
			s = k.Str + "=" + s
		}
		if b.Len() > 0 {
			s = " " + s
		}
		b.WriteString(s)
		return true
	})
	return b.String()
}

// collect calls yield with every string and number of a document, down to depth levels, and its
// key, as long as the work goes on, and reports whether it does.
func collect(live *effort.Budget, v gjson.Result, depth int, key string, yield func(key, s string)) bool {
	if !live.Live(lineEffort + len(v.Raw)) {
		return false
	}
	switch {
	case v.Type == gjson.String:
		yield(key, v.Str)
	case v.Type == gjson.Number:
		yield(key, v.Raw)
	case depth == 0: // each level reads the rest again
	case v.IsObject():
		v.ForEach(func(k, e gjson.Result) bool { return collect(live, e, depth-1, k.Str, yield) })
	case v.IsArray():
		v.ForEach(func(_, e gjson.Result) bool { return collect(live, e, depth-1, key, yield) })
	}
	return live.Live(0)
}
