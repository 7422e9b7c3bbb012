package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Report is what the exit status and the output of a whole line tell of one of its
// commands.
type Report struct {
	Dir    string // where "cd" of the line went before it; "" nowhere, Unknown if nobody knows
	Proved bool   // a status of 0 of the line says that it succeeded
	Blamed bool   // any other status of the line says that it failed
	Undone bool   // any other status of the line says that it failed or did not run
	Ran    bool   // nothing before it could keep it from running
	Alone  bool   // nothing else of the line could fail or print
	Shown  Shown
	Most   int  // so many lines of it are shown at the most; 0 is all
	Silent bool // its errors are not shown
	Piped  bool // its output goes into the next command
	List   int  // the list of commands that it stands in
	Only   bool // its list fails only if it does
	Sure   bool // it ran, if the commands before it in its list succeeded: there is no alternative
	Apart  bool // its list runs in the background, in a shell of its own
}

// Shown says what of a command's output is seen.
type Shown uint8

// From all to nothing.
const (
	AllShown   Shown = iota
	EndShown         // the last lines
	FailsShown       // lines that match a pattern with "FAIL" in it
	PartShown        // some lines
	NotShown
)

// Unknown is a folder that nobody knows.
const Unknown = "?"

// harmlessCommands are commands that say nothing about the work: where they fail, the line
// says so by itself.
var harmlessCommands = scan.WordSet("cd pushd popd export set source . true : echo printf sleep mkdir unset alias ulimit umask shopt")

// failingCommands are those of them that fail without a word that says so for certain.
var failingCommands = scan.WordSet("pushd source . mkdir ulimit")

func (c *Command) isHarmless() bool {
	return harmlessCommands[c.Name()] || !slices.ContainsFunc(c.Words, func(w Word) bool { return w.Open || !isAssignment(w.Text) })
}

// isAssignment reports whether a word sets a variable.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && syntax.ValidName(name)
}

// isWeighty reports whether the failure of a command may be that of its list.
func (c *Command) isWeighty() bool {
	makes := c.Name() == "mkdir" && slices.ContainsFunc(c.Words, func(w Word) bool { return w.Text == "-p" }) // hardly fails
	return c.after != "|" && (!c.isHarmless() || failingCommands[c.Name()] && !makes)
}

// setReports says of each command what the line as a whole shows of it.
func (r *reader) setReports() {
	o := r.setOptions()
	weighty, others := 0, 0
	for i := range r.all {
		if r.all[i].isWeighty() {
			weighty++
		}
		if !r.all[i].isHarmless() {
			others++
		}
	}
	before := 0 // weighty commands in the lists before
	for from, n := 0, 0; from < len(r.all); {
		l := r.listFrom(from)
		r.reportList(&l, o, n, before, weighty)
		before += l.weighty
		if !o.errexit || !l.single() { // else a failure ends the line, as in a chain
			n++
		}
		from = l.to
	}
	for i := range r.all {
		c := &r.all[i]
		if c.Alone = others == 1 && !c.isHarmless(); c.inside {
			c.Report = Report{Dir: c.Dir, Shown: c.Shown, Silent: c.Silent, Piped: c.Piped, List: c.List}
		}
	}
}

// list is a part of a line up to ";", "&" or the end, with what it says of its commands.
type list struct {
	from, to   int
	chained    bool // with "&&"
	either     bool // with "||"
	background bool
	weighty    int // commands the failure of which may be that of the list
	last       int // the last of them
}

// listFrom reads the list that begins with a command.
func (r *reader) listFrom(from int) list {
	l := list{from: from, to: from, last: -1}
	for ended := false; l.to < len(r.all) && !ended; l.to++ {
		c := &r.all[l.to]
		l.chained = l.chained || c.after == "&&"
		l.either = l.either || c.after == "||"
		l.background = c.after == "&"
		ended = c.after == ";" || c.after == "&" || c.after == ""
		if c.isWeighty() {
			l.weighty, l.last = l.weighty+1, l.to
		}
	}
	return l
}

// plain reports whether the status of the list tells of all its commands.
func (l *list) plain() bool { return !l.either && !l.background }

// single reports whether it is one pipe.
func (l *list) single() bool { return l.plain() && !l.chained }

// reportList says of the commands of the n-th list what the line shows of them. before are
// the weighty commands in front of it, all those of the line.
func (r *reader) reportList(l *list, o options, n, before, all int) {
	last := l.to == len(r.all)
	// bash goes on after "a && b" of which a failed, errexit or not.
	proves := last && l.plain() || o.errexit && l.single()
	blames := last && !o.stops || all == 1 && (last || o.errexit)
	runs := before == 0 || !o.stops
	for i := l.from; i < l.to; i++ {
		c := &r.all[i]
		c.Piped, c.List, c.Apart = c.after == "|", n, l.background
		c.Proved = proves && (!c.Piped || o.pipefail)
		c.Only = l.plain() && l.weighty == 1 && c.isWeighty()
		c.Blamed = blames && c.Only
		c.Undone = last && l.plain() && i == l.last
		c.Sure = l.plain()
		c.Ran = runs
		runs = runs && c.after != "||" && !(c.after == "&&" && c.isWeighty())
		if c.Shown == AllShown && c.Piped {
			c.Shown, c.Most = r.pipeShows(i + 1)
		}
		if l.background {
			c.Shown = NotShown
		}
	}
}

// folder is where a line is, and where "popd" goes back to.
type folder struct {
	dir   string
	stack []string
}

// move notes where a command runs, and goes where it goes.
func (r *reader) move(c *Command) {
	c.Dir = r.folder.dir
	switch n := len(r.folder.stack); {
	case c.Name() == "pushd":
		r.folder.stack = append(r.folder.stack[:n:n], c.Dir)
	case c.Name() != "popd":
	case n > 0 && len(c.Words) == 1:
		c.back = way(c.Dir, r.folder.stack[n-1])
		r.folder = folder{r.folder.stack[n-1], r.folder.stack[:n-1]}
		return
	default:
		c.back = Unknown
	}
	if to := c.ChangesTo(); to != "" {
		if r.folder.dir = Join(c.Dir, to); len(r.folder.dir) > r.folderRoom {
			r.folder.dir = Unknown
		}
		r.folderRoom -= len(r.folder.dir)
	}
}

// way is how one gets back from a folder to one above it, or to one by its whole path.
func way(from, to string) string {
	rest, below := strings.CutPrefix(from+"/", strings.TrimPrefix(to+"/", "/"))
	switch {
	case path.IsAbs(to):
		return to
	case !below || path.IsAbs(from) || rest == "" || from == Unknown || strings.HasPrefix(rest, ".."):
		return Unknown
	}
	return strings.TrimSuffix(strings.Repeat("../", strings.Count(rest, "/")), "/")
}

// options are what "set" and "exit" make of a line.
type options struct {
	errexit  bool // from its beginning the first failure ends it
	pipefail bool // a pipe fails with any of its commands
	stops    bool // it may end before its end
}

func (r *reader) setOptions() (o options) {
	for i := range r.all {
		c := &r.all[i]
		switch c.Name() {
		case "exit", "return":
			o.stops = true
		case "set":
			if c.inside {
				break
			}
			for k, w := range c.Words[1:] {
				exits := strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "e")
				o.stops = o.stops || exits
				o.errexit = (o.errexit || exits && i == 0) && w.Text != "+e"
				o.pipefail = o.pipefail || i == 0 && k > 0 && w.Text == "pipefail"
			}
		}
	}
	return o
}

// maxPipe is how many commands of a pipe are looked at for what it lets through.
const maxPipe = 64

// pipeShows says what the commands of a pipe from i on let through, and how many lines
// at the most.
func (r *reader) pipeShows(i int) (seen Shown, most int) {
	for end := min(len(r.all), i+maxPipe); i < end; i++ {
		c := &r.all[i]
		if c.Shown == NotShown {
			return NotShown, 0
		}
		switch c.Name() {
		case "tail":
			for _, w := range c.Words[1:] {
				if strings.HasPrefix(w.Text, "+") || w.Text == "-r" {
					return PartShown, 0
				}
			}
			seen = max(seen, EndShown)
		case "head":
			n := headLines(c.Words[1:])
			if n == 0 {
				return PartShown, 0
			}
			if most == 0 || n < most {
				most = n
			}
		case "tee", "cat":
		case "grep", "egrep", "rg":
			if seen != AllShown || !showsFailures(c.Words[1:]) {
				return PartShown, 0
			}
			seen = FailsShown
		default:
			return PartShown, 0
		}
		if c.after != "|" {
			return seen, most
		}
	}
	return PartShown, 0
}

// headLines is how many lines "head" shows; 0 if nobody knows.
func headLines(args []Word) int {
	if len(args) == 0 {
		return 10
	}
	n := strings.TrimPrefix(strings.TrimPrefix(args[0].Text, "-n"), "-")
	if n == "" && len(args) == 2 {
		n = args[1].Text
	} else if len(args) != 1 {
		return 0
	}
	lines, _ := strconv.Atoi(n)
	return max(lines, 0)
}

// showsFailures reports whether a search lets lines through that say FAIL.
func showsFailures(args []Word) bool {
	pattern := ""
	for _, w := range args {
		switch option := strings.HasPrefix(w.Text, "-"); {
		case option && strings.Trim(w.Text, "-Eie") != "":
			return false
		case !option && pattern == "":
			pattern = w.Text
		}
	}
	for part := range strings.SplitSeq(strings.Trim(pattern, "()"), "|") {
		if strings.Trim(part, "^\\") == "FAIL" {
			return true
		}
	}
	return false
}

// ChangesTo is where a "cd" or "popd" goes, Unknown if nobody knows; "" for another command.
func (c *Command) ChangesTo() string {
	switch c.Name() {
	case "cd", "pushd":
	case "popd":
		return c.back
	default:
		return ""
	}
	args := c.Words[1:]
	for len(args) > 0 && (args[0].Text == "--" || args[0].Text == "-P" || args[0].Text == "-L") {
		args = args[1:]
	}
	if len(args) == 1 && args[0].Text != "-" && !strings.HasPrefix(args[0].Text, "~") {
		if to := Path(args[0].Text); to != "" {
			return to
		}
	}
	return Unknown
}

// maxDir bounds the path of a folder, in bytes.
const maxDir = 4096

// Join is where one is after going from one folder, "" where the line began, to
// another, "" for one that nobody knows.
func Join(from, to string) string {
	switch {
	case path.IsAbs(to):
		return path.Clean(to)
	case to == "" || to == Unknown || from == Unknown || len(from)+len(to) > maxDir:
		return Unknown
	}
	return path.Join(from, to)
}
