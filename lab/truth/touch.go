package truth

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
)

// touch is something that a call did to a file, or may have done.
type touch struct {
	path     string
	what     string // "read", "created", "edited", "deleted", "moved to", "moved from"
	at, turn int
	call     *call
	typed    bool // by a tool for files
	failed   bool
	perhaps  bool // the command need not have run
}

var patchFile = regexp.MustCompile(`(?m)^\*\*\* (Add|Update|Delete) File: (.+?)\s*$(?:\n\*\*\* Move to: (.+?)\s*$)?`)

// touch takes in what a call says that it does to files.
func (x *index) touch(c *call) {
	at := c.result
	if at < 0 {
		return
	}
	did := func(p, what string, typed, perhaps bool) {
		if p = strings.TrimPrefix(p, "file://"); p != "" {
			x.touches = append(x.touches, touch{path.Clean(p), what, at, c.turn, c, typed, c.end == failed && typed, perhaps || c.end != succeeded})
		}
	}
	switch kind := c.fileTool(); {
	case kind == "patch":
		for _, m := range patchFile.FindAllStringSubmatch(c.said, -1) {
			did(m[2], map[string]string{"A": "created", "U": "edited", "D": "deleted"}[m[1][:1]], true, false)
			if m[3] != "" {
				did(m[2], "moved to", true, false)
				did(m[3], "moved from", true, false)
			}
		}
		if strings.Contains(c.out, "Success. Updated the following files") { // a later command failed
			for i := range x.touches {
				if t := &x.touches[i]; t.call == c {
					t.failed, t.perhaps = false, false
				}
			}
		}
	case kind == "edit" && c.str("old_string", "oldText", "old_str") == "" && c.args["edits"] == nil:
		did(c.path(), "created", true, false) // nothing was there to be replaced
	case kind != "":
		did(c.path(), map[string]string{"read": "read", "edit": "edited", "write": "created"}[kind], true, false)
	}
	for i := range c.commands {
		cmd := &c.commands[i]
		name, args := path.Base(cmd.Name()), operands(cmd)
		if name == "git" && len(args) > 0 && (args[0].Text == "rm" || args[0].Text == "mv") {
			name, args = args[0].Text, args[1:]
		}
		unsure := cmd.Undone && c.end == failed || complains(c.out, name) || alternative(c, i)
		byShell := func(p, what string, perhaps bool) {
			dir := c.dirs[i]
			if p != "" && !path.IsAbs(p) && !strings.HasPrefix(p, "~") {
				if !path.IsAbs(dir) { // a name says nothing of its folder
					dir, perhaps = "", true
				}
				p = path.Join(dir, p)
			}
			did(p, what, false, perhaps || unsure)
		}
		for _, w := range cmd.Writes {
			if w.To != "/dev/null" {
				byShell(w.To, "created", false)
			}
		}
		for k, w := range args {
			last := k == len(args)-1
			switch {
			case w.Open && !strings.ContainsAny(w.Text, "/."):
			case name == "rm" || name == "unlink" || name == "rmdir":
				byShell(w.Text, "deleted", w.Open)
			case name == "mv" && !last:
				to := args[len(args)-1].Text
				byShell(w.Text, "moved to", w.Open)
				byShell(to, "moved from", false)
				byShell(path.Join(to, path.Base(w.Text)), "moved from", true)
			case name == "cp" && last, name == "touch", name == "tee":
				byShell(w.Text, "created", w.Open)
			case (name == "sed" || name == "perl") && inPlace(cmd):
				byShell(w.Text, "edited", w.Open)
				if m := loop.FindStringSubmatch(c.line); m != nil && strings.TrimLeft(w.Text, "${") == m[1] {
					for file := range strings.FieldsSeq(m[2]) { // what the variable stands for
						byShell(file, "edited", strings.ContainsAny(file, "$*`("))
					}
				}
			}
		}
	}
}

// loop is a loop over words.
var loop = regexp.MustCompile(`\bfor (\w+) in ([^;\n]+)`)

// operands are the words after the name, options left out.
func operands(cmd *shell.Command) (out []shell.Word) {
	if len(cmd.Words) == 0 {
		return nil
	}
	for i, w := range cmd.Words[1:] {
		if w.Text == "--" {
			return append(out, cmd.Words[i+2:]...)
		}
		if len(w.Text) < 2 || w.Text[0] != '-' {
			out = append(out, w)
		}
	}
	return out
}

func inPlace(cmd *shell.Command) bool {
	return slices.ContainsFunc(cmd.Words, func(w shell.Word) bool {
		return strings.HasPrefix(w.Text, "-i") || w.Text == "--in-place" || len(w.Text) < 5 && strings.HasPrefix(w.Text, "-") && strings.HasSuffix(w.Text, "i")
	})
}

// alternative reports whether a command of a line runs only if another fails.
func alternative(c *call, i int) bool {
	at := strings.Index(c.line, c.commands[i].Text)
	return at > 0 && strings.HasSuffix(strings.TrimRight(c.line[:at], " \n("), "||")
}

// complains reports whether a command says of itself that something is wrong.
func complains(out, name string) bool {
	return name != "" && (strings.HasPrefix(out, name+": ") || strings.Contains(out, "\n"+name+": ") || strings.Contains(out, "/"+name+": "))
}

// tail reports whether a path ends in another.
func tail(long, short string) bool {
	short = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(short, "…"), "./"), "/")
	return strings.TrimPrefix(long, "/") == short || short != "" && strings.HasSuffix(long, "/"+short)
}

func samePath(a, b string) bool { return a == b || tail(a, b) || tail(b, a) }

// mentions reports whether a text names a file, by the end of its path or by its name.
func mentions(s, p string) bool {
	base := path.Base(p)
	for i := 0; ; i++ {
		n := strings.Index(s[i:], base)
		if n < 0 {
			return false
		}
		i += n
		end := i + len(base)
		if (i == 0 || !pathByte(s[i-1]) || s[i-1] == '/' || s[i-1] == '*') && (end >= len(s) || !pathByte(s[end]) || s[end] == '.' || s[end] == '/') {
			return true
		}
	}
}

func pathByte(b byte) bool {
	return b == '_' || b == '-' || b == '.' || b == '/' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// readers are commands that change nothing.
var readers = regexp.MustCompile(`^(?:cat|head|tail|nl|less|more|bat|grep|egrep|rg|wc|diff|jq|cut|sort|file|stat|od|xxd|strings|ls|echo|printf|cd|find|sleep|pwd|which|test|\[|tree|du)$`)

// gitReads are commands of git that change no file.
var gitReads = regexp.MustCompile(`^git (?:-C \S+ )?(?:status|diff|log|show|add|commit|push|fetch|blame|ls-files|rev-parse|branch|remote|grep|check-ignore)\b`)

// mayChange reports whether a command may change the files that it names.
func mayChange(cmd *shell.Command) bool {
	plain := plainly(cmd)
	if name := path.Base(cmd.Name()); readers.MatchString(name) || name == "sed" && !inPlace(cmd) || gitReads.MatchString(plain) {
		return len(cmd.Writes) > 0 || strings.Contains(plain, "-exec") || strings.Contains(plain, "-delete")
	}
	return true
}

func plainly(cmd *shell.Command) string { return strings.Join(cmd.Plain(), " ") }

// mayHave reports whether a command line of a turn (0 is any) after a message names a file, or what
// is in its folder, in a way that may change it.
func (x *index) mayHave(p string, turn, after int) bool {
	return slices.ContainsFunc(x.calls, func(c *call) bool {
		return c.line != "" && c.result > after && c.fileTool() != "patch" && (turn == 0 || c.turn == turn) && slices.ContainsFunc(c.commands, func(cmd shell.Command) bool {
			if !mayChange(&cmd) {
				return false
			}
			s := cmd.Text + "\n" + cmd.Document.Text
			for _, w := range cmd.Writes {
				s += "\n" + w.To
			}
			if cmd.Unread() || slices.ContainsFunc(cmd.Words, func(w shell.Word) bool { return w.Open }) {
				s = c.line // perhaps a variable is the file
			}
			named := mentions(s, p) || path.Ext(p) != "" && strings.Contains(s, "*"+path.Ext(p))
			for d := path.Dir(p); d != "." && d != "/"; d = path.Dir(d) {
				named = named || strings.Contains(s, path.Base(d)+"/*") || strings.Contains(s, path.Base(d)+"/{")
			}
			return named
		})
	})
}

// readByShell reports whether a command line of a turn (0 is any) names a file.
func (x *index) readByShell(p string, turn int) bool {
	return slices.ContainsFunc(x.calls, func(c *call) bool {
		return c.line != "" && c.result >= 0 && (turn == 0 || c.turn == turn) && mentions(c.line, p)
	})
}

// changes reports whether a touch changed its file, as the words of a summary have it; before are
// the touches of the same file before it.
func (t touch) changes(what string, before []touch) bool {
	was := false
	for _, b := range before {
		if b.sure() && samePath(b.path, t.path) {
			was = b.what != "deleted" && b.what != "moved to"
		}
	}
	head := t.call.out[:min(len(t.call.out), 400)]
	was = was || t.what == "created" && t.typed && (strings.Contains(head, "has been updated") || strings.Contains(head, "verwritten"))
	switch what {
	case "edited":
		return t.what == "edited" || t.what == "created" || strings.HasPrefix(t.what, "moved")
	case "created":
		return t.what == "created" && !was || t.what == "moved from"
	case "deleted":
		return t.what == "deleted" || t.what == "moved to"
	}
	return t.what == what
}

// sure reports whether it surely took place.
func (t touch) sure() bool { return !t.failed && !t.perhaps }

// of lists the touches of a file, or of a folder above it that was deleted or moved.
func (x *index) of(p string) (out []touch) {
	for _, t := range x.touches {
		if samePath(t.path, p) || (t.what == "deleted" || t.what == "moved to") && strings.HasPrefix(p+"/", strings.TrimSuffix(t.path, "/")+"/") {
			out = append(out, t)
		}
	}
	return out
}

// did looks for what was done to a file after a message, in a turn or in any; it returns why it
// was not.
func (x *index) did(p, what string, turn, after int, named []int) string {
	reason := fmt.Sprintf("no call that succeeded shows it: %s", what)
	found := x.of(p)
	for i, t := range found {
		if t.at <= after || turn > 0 && t.turn != turn || len(named) > 0 && !slices.Contains(named, t.at) && !slices.Contains(named, t.call.at) {
			continue
		}
		if !t.changes(what, found[:i]) {
			continue
		}
		if t.failed {
			reason = "the call failed"
			continue
		}
		if what == "deleted" && slices.ContainsFunc(found[i+1:], func(l touch) bool {
			return l.typed && l.sure() && samePath(l.path, p) && l.what != "deleted" && l.what != "moved to"
		}) {
			reason = "it was there again later"
			continue
		}
		return ""
	}
	switch what {
	case "read":
		if x.readByShell(p, turn) {
			return ""
		}
	case "edited", "created":
		before := slices.ContainsFunc(found, func(t touch) bool { return t.typed && t.sure() && t.what != "created" })
		if x.mayHave(p, turn, after) && !(what == "created" && before) {
			return ""
		}
	}
	return reason
}

var (
	noteLines = regexp.MustCompile(`^(?:lines? |from line |lines from )(\d+)(?:[-–](\d+))?$`)
	noteMoved = regexp.MustCompile(`^(?:moved|copied) (from|to) (.+)$`)
)

// touched looks for what a line of the ledger of files tells.
func touched(x *index, c claim) string {
	p := c.parts["path"]
	changed := false
	for what := range strings.SplitSeq(c.parts["ops"], ", ") {
		changed = changed || what != "read"
		if reason := x.did(p, what, 0, -1, nil); reason != "" {
			return reason
		}
	}
	if reason := x.lastTouched(p, changed, c.turn); reason != "" {
		return reason
	}
	saidOf := func(words string) bool {
		return slices.ContainsFunc(x.calls, func(d *call) bool { return mentions(d.said, p) && holds(normal(d.said), words) })
	}
	note := c.parts["note"]
	if note == "" || saidOf(note) {
		return ""
	}
	for note := range strings.SplitSeq(note, ", ") {
		if m := noteMoved.FindStringSubmatch(note); m != nil {
			if x.did(p, "moved "+m[1], 0, -1, nil) != "" && !x.mayHave(p, 0, -1) {
				return "the log has no such move"
			}
			if !strings.HasSuffix(m[2], "…") && !slices.ContainsFunc(x.calls, func(d *call) bool { return mentions(d.said, m[2]) }) {
				return "no call names " + m[2]
			}
		} else if note == "restored by git" {
			if !x.restored(p, 0) {
				return "no command of git puts it back"
			}
		} else if m := noteLines.FindStringSubmatch(note); m != nil && !x.readLines(p, m[1], m[2]) || m == nil && !saidOf(note) {
			return "no call for the file shows: " + note
		}
	}
	return ""
}

// lastTouched says why a file was not changed last in a turn, or read where nothing changed it.
func (x *index) lastTouched(p string, changed bool, turn int) string {
	if turn == 0 {
		return ""
	}
	last := 0
	there := x.readByShell(p, turn) && (!changed || x.mayHave(p, turn, -1))
	for _, t := range x.of(p) {
		if changed && t.what == "read" || t.failed {
			continue
		}
		there = there || t.turn == turn
		if t.sure() && (t.typed || t.what != "read") {
			last = t.turn
		}
	}
	switch {
	case last > turn:
		return fmt.Sprintf("it was touched last in turn %d", last)
	case !there:
		return fmt.Sprintf("nothing touched it in turn %d", turn)
	}
	return ""
}

// readLines reports whether a call for a file was asked for lines from one to another, or shows them.
func (x *index) readLines(p, from, to string) bool {
	return slices.ContainsFunc(x.calls, func(d *call) bool {
		shows := func(n string) bool {
			return n == "" || regexp.MustCompile(`(?m)^ *`+n+`[→\t]`).MatchString(d.out)
		}
		return mentions(d.said, p) && (shows(from) && shows(to) || mentions(d.said+d.Arguments, from) && !numberedLine.MatchString(d.out))
	})
}

var numberedLine = regexp.MustCompile(`(?m)^ *\d+[→\t]`)

// restoring puts files back to what was committed.
var restoring = regexp.MustCompile(`git\b.*\b(?:checkout|restore)\b`)

func (x *index) restored(file string, turn int) bool {
	return slices.ContainsFunc(x.calls, func(d *call) bool {
		return (turn == 0 || d.turn == turn) && restoring.MatchString(d.line) && mentions(d.line, file)
	})
}

// changed looks for the call that did what a line tells of a change.
func changed(x *index, c claim) string {
	file, note := c.parts["file"], c.parts["note"]
	if note == "restored by git" {
		if !x.restored(file, c.turn) {
			return "no command of git puts it back"
		}
		return ""
	}
	if reason := x.did(file, c.parts["what"], c.turn, -1, c.named); reason != "" {
		return reason
	}
	if m := noteMoved.FindStringSubmatch(note); m != nil && x.did(file, "moved "+m[1], c.turn, -1, nil) != "" && !x.mayHave(file, c.turn, -1) {
		return "the log has no such move"
	}
	var said []text
	for _, d := range x.calls {
		if (c.turn == 0 || d.turn == c.turn) && d.end != failed && (mentions(d.said, file) || samePath(d.path(), file)) {
			said = append(said, newText(d.said))
			for _, l := range leaves(d.args) {
				said = append(said, newText(l))
			}
		}
	}
	for _, words := range []string{c.parts["new"], c.parts["old"]} {
		if missing := notHeld(said, words, " ; ", " → "); missing != "" {
			return "the arguments of the calls do not hold: " + missing
		}
	}
	return ""
}

var moreTold = regexp.MustCompile(`^… ?\d+ more$`)

// notHeld returns the first part of words, between marks, that no text holds.
func notHeld(texts []text, words string, marks ...string) string {
	stands := func(s string) bool {
		return normal(s) == "" || moreTold.MatchString(s) || seek(s).inAny(texts)
	}
	if stands(words) {
		return ""
	}
	for _, mark := range marks {
		parts := strings.Split(words, mark)
		for i := 0; i < len(parts) && len(parts) > 1; {
			n := i + 1
			for n < len(parts) && !stands(strings.Join(parts[i:n], mark)) { // the words themselves may hold the mark
				n++
			}
			if !stands(strings.Join(parts[i:n], mark)) {
				break
			}
			if i = n; i == len(parts) {
				return ""
			}
		}
	}
	return clip(words, 160)
}
