package truth

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

// touch is something that a call did to a file, or may have done.
type touch struct {
	path     string
	what     string // "read", "created", "edited" or "deleted"
	at, turn int
	call     *call
	typed    bool // by a tool for files that ran to its end, not by a shell
	failed   bool // the tool says so
}

// sure reports whether it surely took place.
func (t touch) sure() bool { return t.typed && !t.failed }

var (
	patchFile = regexp.MustCompile(`(?m)^\*\*\* (Add|Update|Delete) File: (.+?)\s*$(?:\n\*\*\* Move to: (.+?)\s*$)?`)
	patchDoes = map[string]string{"Add": "created", "Update": "edited", "Delete": "deleted"}
	toolDoes  = map[string]string{"read": "read", "edit": "edited", "write": "created"}
)

// touch takes in what a call says that it does to files.
func (x *index) touch(c *call) {
	if c.result < 0 {
		return
	}
	did := func(p, what string, typed, failed bool) {
		if p = strings.TrimPrefix(p, "file://"); p != "" {
			x.touches = append(x.touches, touch{path.Clean(p), what, c.result, c.turn, c, typed && c.end != unclear, failed})
		}
	}
	failed := c.end == failed
	switch kind := c.fileTool(); {
	case kind == "patch":
		failed = failed && !strings.Contains(c.out, "Success. Updated the following files") // a later command failed
		for _, m := range patchFile.FindAllStringSubmatch(c.said, -1) {
			if did(m[2], patchDoes[m[1]], true, failed); m[3] != "" {
				did(m[2], "deleted", true, failed)
				did(m[3], "created", true, failed)
			}
		}
	case kind == "edit" && c.str("old_string", "oldText", "old_str") == "" && c.args["edits"] == nil:
		did(c.path(), "created", true, failed) // nothing was there to be replaced
	case kind != "":
		did(c.path(), toolDoes[kind], true, failed)
	}
	for _, op := range shell.Files(c.commands) {
		if p := op.Path; op.Op != "read" {
			if !path.IsAbs(p) && path.IsAbs(c.from) { // else a name says nothing of its folder
				p = path.Join(c.from, p)
			}
			did(p, op.Op, false, false)
		}
	}
}

// alternative reports whether a command of a line runs only if another fails.
func alternative(c *call, i int) bool {
	at := strings.Index(c.line, c.commands[i].Text)
	return at > 0 && strings.HasSuffix(strings.TrimRight(c.line[:at], " \n("), "||")
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

// gitReads are commands of git that change no file.
var gitReads = regexp.MustCompile(`^git (?:-C \S+ )?(?:status|diff|log|show|add|commit|push|fetch|blame|ls-files|rev-parse|branch|remote|grep|check-ignore)\b`)

// changing are options by which commands that print change files.
var changing = regexp.MustCompile(`-exec|-delete|^sed .*-(?:\w?\w?i\b|i|-in-place)`)

// mayChange reports whether a command may change the files that it names.
func mayChange(cmd *shell.Command) bool {
	plain := plainly(cmd)
	return len(cmd.Writes) > 0 || changing.MatchString(plain) || !gitReads.MatchString(plain) && !shell.OnlyPrints([]shell.Command{*cmd})
}

func plainly(cmd *shell.Command) string { return strings.Join(cmd.Plain(), " ") }

// mayChange reports whether a command line names a file, or what is in its folder, in a way that
// may change it.
func (c *call) mayChange(p string) bool {
	return c.line != "" && c.fileTool() != "patch" && slices.ContainsFunc(c.commands, func(cmd shell.Command) bool {
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
		return named
	})
}

// mayHave reports whether a command line of a turn (0 is any) after a message may have changed a file.
func (x *index) mayHave(p string, turn, after int) bool {
	return slices.ContainsFunc(x.calls, func(c *call) bool {
		return c.result > after && (turn == 0 || c.turn == turn) && c.mayChange(p)
	})
}

// readByShell reports whether a command line of a turn (0 is any) names a file.
func (x *index) readByShell(p string, turn int) bool {
	return slices.ContainsFunc(x.calls, func(c *call) bool {
		return c.line != "" && c.result >= 0 && (turn == 0 || c.turn == turn) && mentions(c.line, p)
	})
}

// is reports whether a touch did to its file what is told; there says whether the file was there.
func (t touch) is(what string, there bool) bool {
	switch what {
	case "edited":
		return t.what == "edited" || t.what == "created"
	case "created":
		return t.what == "created" && (!t.typed || !there)
	}
	return t.what == what
}

// of lists the touches of a file, or of a folder above it that was deleted.
func (x *index) of(p string) (out []touch) {
	for _, t := range x.touches {
		if samePath(t.path, p) || t.what == "deleted" && strings.HasPrefix(p+"/", strings.TrimSuffix(t.path, "/")+"/") {
			out = append(out, t)
		}
	}
	return out
}

// did looks for what was done to a file after a message; it returns why it was not.
func (x *index) did(p, what string, o origin, after int) string {
	reason := fmt.Sprintf("no call that succeeded shows it: %s", what)
	found := x.of(p)
	shown := func(t touch) bool { return t.sure() && t.what != "created" }
	was := map[string]bool{} // whether it was there; files of several folders may end in this path
	for i, t := range found {
		there := was[t.path]
		if t.sure() || !t.typed {
			was[t.path] = t.what != "deleted"
		}
		if t.at <= after || !o.includes(t.turn, t.at, t.call.at) || !t.is(what, there) {
			continue
		}
		if t.failed {
			reason = "the call failed"
			continue
		}
		if what == "deleted" && slices.ContainsFunc(found[i+1:], func(l touch) bool { return l.sure() && samePath(l.path, p) && l.what != "deleted" }) {
			reason = "it was there again later"
			continue
		}
		return ""
	}
	if what == "read" && x.readByShell(p, o.turn) || (what == "edited" || what == "created" && !slices.ContainsFunc(found, shown)) && x.mayHave(p, o.turn, after) {
		return ""
	}
	return reason
}

var (
	noteLines = regexp.MustCompile(`^(?:lines? |from line |lines from )(\d+)(?:[-–](\d+))?$`)
	noteMoved = regexp.MustCompile(`^(?:moved|copied) (?:from|to) (.+)$`)
)

// touched looks for what the ledger of files tells of one.
func touched(x *index, f summary.File, o origin) string {
	for _, what := range f.Operations {
		if reason := x.did(f.Path, what, origin{}, -1); reason != "" {
			return reason
		}
	}
	if reason := x.lastTouched(f.Path, f.Changed(), o.turn); reason != "" {
		return reason
	}
	saidOf := func(words string) bool {
		return slices.ContainsFunc(x.calls, func(d *call) bool { return mentions(d.said, f.Path) && holds(normal(d.said), words) })
	}
	if f.Note == "" || saidOf(f.Note) {
		return ""
	}
	for note := range strings.SplitSeq(f.Note, ", ") {
		lines := noteLines.FindStringSubmatch(note)
		switch other := matched(noteMoved, note); {
		case other != "" && x.moved(f.Path, other), note == putBack && x.restored(f.Path, 0):
		case lines != nil && x.readLines(f.Path, lines[1], lines[2]), saidOf(note):
		default:
			return "no call for the file shows: " + note
		}
	}
	return ""
}

// moved reports whether a call moves or copies a file from a place or to it.
func (x *index) moved(p, other string) bool {
	names := func(d *call, p string) bool { return strings.HasSuffix(p, "…") || mentions(d.said, p) }
	return slices.ContainsFunc(x.calls, func(d *call) bool {
		return names(d, other) && (names(d, p) || d.mayChange(p))
	})
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
		if t.sure() {
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

// putBack is told of a file that git put back to what was committed.
const putBack = "restored by git"

var restoring = regexp.MustCompile(`git\b.*\b(?:checkout|restore)\b`)

func (x *index) restored(file string, turn int) bool {
	return slices.ContainsFunc(x.calls, func(d *call) bool {
		return (turn == 0 || d.turn == turn) && restoring.MatchString(d.line) && mentions(d.line, file)
	})
}

// notHeld returns what of words, between marks, no text holds. The words themselves may hold a mark.
func notHeld(texts []text, words string, marks ...string) string {
	stands := func(s string) bool {
		return normal(s) == "" || seek(s).inAny(texts)
	}
	if stands(words) {
		return ""
	}
	for _, mark := range marks {
		for at := 0; ; {
			n := strings.Index(words[at:], mark)
			if n < 0 {
				break
			}
			if at += n; stands(words[:at]) {
				return notHeld(texts, words[at+len(mark):], marks...)
			}
			at += len(mark)
		}
	}
	return clip(words, 160)
}
