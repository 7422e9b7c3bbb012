package shell

import (
	"path"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Report is what the exit status and the output of a whole line tell of one of its
// commands.
type Report struct {
	Dir    string // where "cd" of the line went before it; "" nowhere, Unknown if nobody knows
	Proved bool   // a status of 0 of the line says that it succeeded
	Blamed bool   // any other status of the line says that it failed
	Alone  bool   // nothing else of the line could fail or print
	Shown  Shown
	Most   int  // so many lines of it are shown at the most; 0 is all
	Silent bool // its errors are not shown
	Piped  bool // its output goes into the next command
	List   int  // the list of commands that it stands in
	Sure   bool // it ran, if the commands before it in its list succeeded: there is no alternative
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
var harmlessCommands = scan.WordSet("cd pushd export set source . true : echo printf sleep mkdir unset alias ulimit umask shopt")

func (c *Command) isHarmless() bool {
	return len(c.Words) == 0 || harmlessCommands[c.Words[0].Text] || len(c.Words) == 1 && isAssignment(c.Words[0]) && !c.Words[0].Open
}

// setReports says of each command what the line as a whole shows of it.
func (r *reader) setReports() {
	errexit, pipefail := r.setOptions()
	dir := ""
	for from, list := 0, 0; from < len(r.all); list++ {
		to := from
		either, background, weighty := false, false, 0
		for ended := false; to < len(r.all) && !ended; to++ {
			c := &r.all[to]
			either = either || c.after == "||"
			background = c.after == "&"
			ended = c.after == ";" || c.after == "&" || c.after == ""
			if c.after != "|" && !c.isHarmless() {
				weighty++
			}
		}
		counts := (to == len(r.all) || errexit) && !either && !background
		for i := from; i < to; i++ {
			c := &r.all[i]
			c.Piped = c.after == "|"
			c.Proved = counts && (!c.Piped || pipefail)
			c.Blamed = counts && !c.Piped && weighty == 1 && !c.isHarmless()
			c.Sure = !either && !background
			if c.Shown == AllShown && c.Piped {
				c.Shown, c.Most = r.pipeShows(i + 1)
			}
			if background {
				c.Shown = NotShown
			}
			c.Dir, c.List = dir, list
			if to := c.ChangesTo(); to != "" {
				dir = Join(dir, to)
			}
		}
		from = to
	}
	others := 0
	for i := range r.all {
		if !r.all[i].isHarmless() {
			others++
		}
	}
	for i := range r.all {
		r.all[i].Alone = others == 1 && !r.all[i].isHarmless()
	}
}

// setOptions reads what "set" asks for at the beginning: that the first failure ends the
// line, and that a pipe fails with any of its commands.
func (r *reader) setOptions() (errexit, pipefail bool) {
	if len(r.all) == 0 || r.all[0].Name() != "set" {
		return false, false
	}
	for i, w := range r.all[0].Words[1:] {
		errexit = errexit || strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "e")
		pipefail = pipefail || w.Text == "pipefail" && i > 0
	}
	return errexit, pipefail
}

// pipeShows says what the commands of a pipe from i on let through, and how many lines
// at the most.
func (r *reader) pipeShows(i int) (seen Shown, most int) {
	for ; i < len(r.all); i++ {
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

// ChangesTo is where a "cd" goes, Unknown if nobody knows; "" for another command.
func (c *Command) ChangesTo() string {
	switch c.Name() {
	case "cd", "pushd":
	case "popd":
		return Unknown
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
