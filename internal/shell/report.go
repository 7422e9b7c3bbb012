package shell

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Report is what the exit status and the output of a whole line tell of one of its
// commands.
type Report struct {
	Dir     string // where "cd" of the line went before it; "" nowhere, Unknown if nobody knows
	To      string // where it goes if it is "cd" or the like, seen from where the line began
	End     string // of the last command: where the shell is after the line
	Ran     Ran
	Proved  bool // a status of 0 of the line says that it succeeded
	Reached bool // such a status says that it ran
	Blamed  bool // any other status of the line says that it failed
	Undone  bool // any other status of the line says that it failed or did not run
	Alone   bool // nothing else of the line could fail or print
	Shown   Shown
	Silent  bool // its errors are not shown
	Piped   bool // its output goes into the next command
	List    int  // the chain of commands that it stands in
}

// Ran says whether a command of a line ran.
type Ran uint8

// From surely to perhaps.
const (
	RanSurely   Ran = iota
	RanIfShown      // if the commands before it in its chain succeeded, which say so where they fail
	RanIfBefore     // if they succeeded, some of which say nothing where they fail
	RanPerhaps      // in a condition, a loop or a function, behind "||", in the background
)

// Shown says what of a command's output is seen.
type Shown uint8

// From all to nothing.
const (
	AllShown   Shown = iota
	EndShown         // the last lines
	BeginShown       // the first
	PartShown        // some lines
	NotShown
)

// Unknown is a folder that nobody knows.
const Unknown = "?"

// harmlessCommands are commands that say nothing about the work: where they fail, the line says so by
// itself, and unsureCommands those of them that fail without a word that says so for certain.
var (
	harmlessCommands = scan.WordSet("cd pushd popd export set source . true : echo printf sleep mkdir unset alias ulimit umask shopt")
	unsureCommands   = scan.WordSet("pushd source . ulimit mkdir")
	// speechless commands fail without a word.
	speechless = scan.WordSet("test [ [[ ! false grep egrep fgrep rg which command type diff cmp pgrep pkill kill")
)

func (c *Command) isHarmless() bool {
	return harmlessCommands[c.Name()] || !slices.ContainsFunc(c.Words, func(w Word) bool { return w.Open || !isAssignment(w.Text) })
}

// isAssignment reports whether a word sets a variable.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && syntax.ValidName(name)
}

// isWeighty reports whether the failure of a command may be that of its chain.
func (c *Command) isWeighty() bool {
	return c.after != "|" && (!c.isHarmless() || unsureCommands[c.Name()] && !c.has("-p"))
}

// failing is what is known of the commands behind one in its chain, which run only if it succeeded.
func (c *Command) failing() Ran {
	if c.perhaps || c.Silent || speechless[c.Name()] {
		return RanIfBefore
	}
	return RanIfShown
}

// setReports says of each command what the line as a whole shows of it. A chain is a part of the line
// up to ";", "&" or its end.
func setReports(all []Command) {
	others, ends := 0, RanSurely // ends: the line may have ended before
	for i := range all {
		c := &all[i]
		if !c.isHarmless() {
			others++
		}
	}
	for from, to, number := 0, 0, 0; from < len(all); from, number = to, number+1 {
		operators, weighty, last := "", 0, -1
		for to == from || to < len(all) && !endsChain(all[to-1].after) {
			if operators += " " + all[to].after; all[to].isWeighty() {
				weighty, last = weighty+1, to
			}
			to++
		}
		apart := all[to-1].after == "&"
		plain := to == len(all) && !apart && !strings.Contains(operators, "||") // its status is that of the line, and tells of all its commands
		ran := ends
		for i := from; i < to; i++ {
			c := &all[i]
			c.Piped, c.List, c.Ran = c.after == "|", number, ran
			c.Reached, c.Proved = plain, plain && !c.Piped
			c.Blamed = plain && weighty == 1 && i == last && ends == RanSurely
			c.Undone = plain && i == last
			c.Alone = others == 1 && !c.isHarmless()
			if c.Shown == AllShown && c.Piped {
				c.Shown = pipeShows(all[i+1:])
			}
			if apart {
				c.Shown = NotShown
			}
			if c.perhaps || apart {
				c.Reached, c.Proved, c.Blamed, c.Undone, c.Ran = false, false, false, false, RanPerhaps
			}
			switch name := c.Name(); {
			case name == "exit" || name == "return" || name == "exec" || name == "break" || name == "continue" || name == "set" && strings.HasPrefix(c.Text, "set -e"):
				ends = RanIfBefore
			case c.after == "||":
				ran = RanPerhaps
			case c.after != "|" && c.isWeighty():
				ran = max(ran, c.failing())
			}
		}
	}
}

func endsChain(after string) bool { return after == ";" || after == "&" || after == "" }

// has reports whether one of these is a word of the command.
func (c *Command) has(words ...string) bool {
	return slices.ContainsFunc(c.Words, func(w Word) bool { return slices.Contains(words, w.Text) })
}

// move notes where a command runs, and goes where it goes.
func (r *reader) move(c *Command) {
	c.Dir = r.folder
	switch c.Name() {
	case "cd", "pushd", "popd":
		if r.folder = join(c.Dir, target(c)); len(r.folder) > r.folderRoom {
			r.folder = Unknown
		}
		r.folderRoom -= len(r.folder)
		c.To = cmp.Or(r.folder, ".")
	}
}

// target is the folder that "cd" or "pushd" names; "" if nobody knows.
func target(c *Command) string {
	args := c.Words[1:]
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	if c.Name() == "popd" || len(args) != 1 || strings.HasPrefix(args[0].Text, "-") || strings.HasPrefix(args[0].Text, "~") {
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

// maxPipe is how many commands of a pipe are looked at for what it lets through.
const maxPipe = 64

// notEnd is a "tail" that shows not only the end.
var notEnd = lazyregexp.New(`^tail.* (\+|-r( |$))`)

// pipeShows says what the commands of a pipe let through.
func pipeShows(pipe []Command) (seen Shown) {
	for i := range pipe[:min(len(pipe), maxPipe)] {
		c := &pipe[i]
		switch name := c.Name(); {
		case c.Shown == NotShown:
			return NotShown
		case name == "tail" && !notEnd().MatchString(strings.Join(c.Plain(), " ")):
			seen = max(seen, EndShown)
		case name == "head":
			seen = max(seen, BeginShown)
		case name == "tee" || name == "cat":
		default:
			return PartShown
		}
		if c.after != "|" {
			return seen
		}
	}
	return PartShown
}
