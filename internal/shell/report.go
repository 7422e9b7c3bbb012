package shell

import (
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
	Dir     string // where "cd" of the line went before it, or "git -C" goes; "" nowhere, Unknown if nobody knows
	End     string // of the last command: where the shell is after the line
	Ran     Ran
	Reached bool // a status of 0 of the line says that it ran
	Proved  bool // such a status says that it succeeded
	Blamed  bool // any other status of the line says that it failed
	Undone  bool // any other status of the line says that it failed or did not run
	Alone   bool // nothing else of the line could fail or print
	Silent  bool // its errors are not shown
	Piped   bool // its output goes into the next command
	Shown   Shown
}

// Ran says whether a command of a line ran.
type Ran uint8

// From surely to perhaps.
const (
	RanSurely  Ran = iota
	RanIfShown     // if the commands before it in its chain succeeded, which say so where they fail
	RanPerhaps     // if they succeeded, some of which say nothing where they fail; in a loop, a condition or the background
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

// harmless are commands that say nothing about the work: where they fail, the line says so by
// itself, and unsure those of them that fail without a word that says so for certain.
var (
	harmless = scan.WordSet("cd pushd popd export set source . true : echo printf sleep mkdir unset alias ulimit umask shopt")
	unsure   = scan.WordSet("pushd source . ulimit mkdir")
	// speechless commands fail without a word.
	speechless = scan.WordSet("test [ [[ ! false grep egrep fgrep rg which command type diff cmp pgrep pkill kill")
	leaving    = scan.WordSet("exit return exec break continue")
	moving     = scan.WordSet("cd pushd popd")
)

// Moves reports whether a command goes to another folder.
func (c *Command) Moves() bool { return moving[c.Name()] }

func (c *Command) isHarmless() bool {
	return harmless[c.Name()] || !slices.ContainsFunc(c.Words, func(w Word) bool { return w.Open || !isAssignment(w.Text) })
}

// isAssignment reports whether a word sets a variable.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && syntax.ValidName(name)
}

// isWeighty reports whether the failure of a command may be that of its chain.
func (c *Command) isWeighty() bool {
	return c.after != "|" && (!c.isHarmless() || unsure[c.Name()] && !slices.Contains(c.Words, Word{Text: "-p"}))
}

// setReports says of each command what the line as a whole shows of it. A chain is a part of the line
// up to ";", "&" or its end.
func setReports(all []Command) {
	working, ends := 0, RanSurely // ends: the line may have ended before
	for i := range all {
		if !all[i].isHarmless() {
			working++
		}
	}
	for from, to := 0, 0; from < len(all); from = to {
		weighty, last, either := 0, -1, false
		for to == from || to < len(all) && !endsChain(all[to-1].after) {
			either = either || all[to].after == "||"
			if all[to].isWeighty() {
				weighty, last = weighty+1, to
			}
			to++
		}
		apart := all[to-1].after == "&"
		tells := to == len(all) && !apart && !either // its status is that of the line, and tells of all its commands
		ran := ends
		for i := from; i < to; i++ {
			c := &all[i]
			known := !c.perhaps && !apart
			c.Piped, c.Alone = c.after == "|", working == 1 && !c.isHarmless()
			c.Ran, c.Reached = ran, tells && known
			c.Proved, c.Undone = c.Reached && !c.Piped, c.Reached && i == last
			c.Blamed = c.Undone && weighty == 1 && ends == RanSurely
			if !known {
				c.Ran = RanPerhaps
			}
			if apart {
				c.Shown = NotShown
			} else if c.Shown == AllShown && c.Piped {
				c.Shown = pipeShows(all[i+1:])
			}
			switch name := c.Name(); {
			case leaving[name] || strings.HasPrefix(c.Text, "set -e"):
				ends, ran = RanPerhaps, RanPerhaps
			case c.after == "||" || c.isWeighty() && (c.perhaps || c.Silent || speechless[name]):
				ran = RanPerhaps
			case c.isWeighty():
				ran = max(ran, RanIfShown)
			}
		}
	}
}

func endsChain(after string) bool { return after == ";" || after == "&" || after == "" }

// target is the folder that "cd" or "pushd" names; "" if nobody knows.
func target(c *Command) string {
	args := Operands(c.Plain()[1:])
	if c.Name() == "popd" || len(args) != 1 || strings.HasPrefix(args[0], "~") {
		return ""
	}
	return Path(args[0])
}

// maxDir bounds the path of a folder, in bytes.
const maxDir = 1024

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
		case name != "tee" && name != "cat":
			return PartShown
		}
		if c.after != "|" {
			return seen
		}
	}
	return PartShown
}
