package shell

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Report is what the exit status and the output of a whole line tell of one of its
// commands.
type Report struct {
	Dir    string // where "cd" of the line went before it; "" nowhere, Unknown if nobody knows
	To     string // where it goes if it is "cd", "pushd" or "popd", seen from where the line began
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
	makes := c.Name() == "mkdir" && c.has("-p") // hardly fails
	return c.after != "|" && (!c.isHarmless() || failingCommands[c.Name()] && !makes)
}

// has reports whether one of these is a word of the command.
func (c *Command) has(words ...string) bool {
	return slices.ContainsFunc(c.Words, func(w Word) bool { return slices.Contains(words, w.Text) })
}

// setReports says of each command what the line as a whole shows of it. A list is a part of the line up
// to ";", "&" or its end.
func setReports(all []Command) {
	o := optionsOf(all)
	weighty, others := 0, 0
	for i := range all {
		if all[i].isWeighty() {
			weighty++
		}
		if !all[i].isHarmless() {
			others++
		}
	}
	before, number := 0, 0 // weighty commands and lists in front of the list
	for from, to := 0, 0; from < len(all); from = to {
		operators, own, last := "", 0, -1
		for to == from || to < len(all) && !endsList(all[to-1].after) {
			if operators += " " + all[to].after; all[to].isWeighty() {
				own, last = own+1, to
			}
			to++
		}
		apart, ends := all[to-1].after == "&", to == len(all)
		plain := !apart && !strings.Contains(operators, "||") // its status tells of all its commands
		single := plain && !strings.Contains(operators, "&&") // it is one pipe
		runs := before == 0 || !o.stops
		for i := from; i < to; i++ {
			c := &all[i]
			c.Piped, c.List, c.Apart, c.Sure, c.Ran = c.after == "|", number, apart, plain, runs
			// bash goes on after "a && b" of which a failed, errexit or not.
			c.Proved = (ends && plain || o.errexit && single) && (!c.Piped || o.pipefail)
			c.Only = plain && own == 1 && c.isWeighty()
			c.Blamed = c.Only && (ends && !o.stops || weighty == 1 && (ends || o.errexit))
			c.Undone = ends && plain && i == last
			c.Alone = others == 1 && !c.isHarmless()
			runs = runs && c.after != "||" && !(c.after == "&&" && c.isWeighty())
			if c.Shown == AllShown && c.Piped {
				c.Shown, c.Most = pipeShows(all[i+1:])
			}
			if apart {
				c.Shown = NotShown
			}
			if c.inside {
				c.Report = Report{Dir: c.Dir, To: c.To, Shown: c.Shown, Silent: c.Silent, Piped: c.Piped, List: number}
			}
		}
		before += own
		if !o.errexit || !single { // else a failure ends the line, as in a chain
			number++
		}
	}
}

func endsList(after string) bool { return after == ";" || after == "&" || after == "" }

// folder is where a line is, and where "popd" goes back to.
type folder struct {
	dir   string
	stack []string
}

// move notes where a command runs, and goes where it goes.
func (r *reader) move(c *Command) {
	c.Dir = r.folder.dir
	n := len(r.folder.stack)
	switch name := c.Name(); {
	case name == "popd" && n > 0 && len(c.Words) == 1:
		r.folder = folder{r.folder.stack[n-1], r.folder.stack[:n-1]}
	case name == "cd", name == "pushd", name == "popd":
		if name == "pushd" {
			r.folder.stack = append(r.folder.stack[:n:n], c.Dir)
		}
		if r.folder.dir = join(c.Dir, target(c)); len(r.folder.dir) > r.folderRoom {
			r.folder.dir = Unknown
		}
		r.folderRoom -= len(r.folder.dir)
	default:
		return
	}
	c.To = cmp.Or(r.folder.dir, ".")
}

// target is the folder that "cd" or "pushd" names; "" if nobody knows.
func target(c *Command) string {
	args := c.Words[1:]
	for len(args) > 0 && (args[0].Text == "--" || args[0].Text == "-P" || args[0].Text == "-L") {
		args = args[1:]
	}
	if c.Name() == "popd" || len(args) != 1 || args[0].Text == "-" || strings.HasPrefix(args[0].Text, "~") {
		return ""
	}
	return Path(args[0].Text)
}

// maxDir bounds the path of a folder, in bytes.
const maxDir = 4096

// join is where one is after going from one folder, "" where the line began, to
// another, "" for one that nobody knows.
func join(from, to string) string {
	switch {
	case path.IsAbs(to):
		return path.Clean(to)
	case to == "" || from == Unknown || len(from)+len(to) > maxDir:
		return Unknown
	}
	return path.Join(from, to)
}

// options are what "set" and "exit" make of a line.
type options struct {
	errexit  bool // from its beginning the first failure ends it
	pipefail bool // a pipe fails with any of its commands
	stops    bool // it may end before its end
}

func optionsOf(all []Command) (o options) {
	for i := range all {
		c := &all[i]
		switch name := c.Name(); {
		case name == "exit" || name == "return":
			o.stops = true
		case name == "set" && !c.inside:
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

// What filters let through: "tail" not only the end, "head" how many lines, a search lines that say FAIL.
var (
	notEnd    = lazyregexp.New(`^tail.* (\+|-r( |$))`)
	headLines = lazyregexp.New(`^head(?: -n? ?(\d+))?$`)
	ofFails   = lazyregexp.New(`^\w+(?: -[Eie-]*)* \(*(?:[^-].*\|)?[\^\\]*FAIL[\^\\]*(?:\|.*)?\)*$`)
)

// pipeShows says what the commands of a pipe let through, and how many lines at the most.
func pipeShows(pipe []Command) (seen Shown, most int) {
	for i := range pipe[:min(len(pipe), maxPipe)] {
		c := &pipe[i]
		text := strings.Join(c.Plain(), " ")
		head := headLines().FindStringSubmatch(text)
		switch name := c.Name(); {
		case c.Shown == NotShown:
			return NotShown, 0
		case name == "tail" && !notEnd().MatchString(text):
			seen = max(seen, EndShown)
		case head != nil:
			n, _ := strconv.Atoi(cmp.Or(head[1], "10"))
			if n == 0 {
				return PartShown, 0
			}
			most = min(n, cmp.Or(most, n))
		case name == "tee" || name == "cat":
		case seen == AllShown && (name == "grep" || name == "egrep" || name == "rg") && ofFails().MatchString(text):
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
