package work

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
)

// Call is a tool call, and what it says about the state of the work.
type Call struct {
	ID, Name string
	Class    toolclass.Class
	Input    string         // what was asked for, short, on one line
	Files    []shell.FileOp // what it does to files if it succeeds; see Did

	steps      []step // none if the line says nothing of interest
	says       bool   // something in the line is of interest for where the work stands
	proved     bool   // of a line that says nothing: a status of 0 says that all of it succeeded
	workdir    string // the folder that the tool was told to run in
	target     string // the process or agent that a poll asks for
	background bool
	stops      bool     // the poll ends it
	operates   bool     // the call changes something in a system
	given      []member // its arguments, if it does
}

// step is one command of a command line.
type step struct {
	*shell.Command
	*command        // noCommand if nothing is known of it
	kind     string // of a check
	reports  kinds
	args     []string
	quiet    bool // it cannot print lines that others wrote
	pipe     int  // the first command of its pipe
}

// isCheck reports whether a command builds, tests, lints or formats.
func (s step) isCheck() bool { return is("checks", s.kind) }

// maxCommand bounds a command that is named, in bytes.
const maxCommand = 120

// Read reads what a call of which the name, class and input are known says about the work.
// line are the commands of its command line.
func (c *Call) Read(args gjson.Result, line []shell.Command) {
	name := toolclass.Normal(c.Name)
	switch c.Class {
	case toolclass.Shell:
		switch {
		case name == "writestdin" && args.IsObject():
			c.target = rawjson.FirstText(args, "session_id")
			return
		case is("shells", name):
			c.readSteps(line)
		default:
			c.Files = nil // ">" of Python is none of a shell
		}
		c.workdir = rawjson.FirstText(args, "workdir", "cwd", "working_directory", "dir_path")
		c.background = args.Get("run_in_background").Bool() || args.Get("is_background").Bool()
	case toolclass.Agent:
		c.background = args.Get("run_in_background").Bool()
	case toolclass.Poll:
		c.target = rawjson.FirstText(args, "bash_id", "shell_id", "task_id", "agent_id", "session_id", "id")
		c.stops = is("stopping", name)
	case toolclass.Other:
		if c.operates = changes(c.Name); c.operates {
			c.given = membersOf(args.Raw)
		}
	}
}

// noCommand is the row of a command of which nothing is known.
var noCommand = &command{}

func (c *Call) readSteps(line []shell.Command) {
	c.steps = make([]step, len(line))
	c.says = slices.ContainsFunc(c.Files, func(op shell.FileOp) bool { return op.Op != "read" })
	for n := range line {
		s := &c.steps[n]
		s.Command = &line[n]
		s.command, s.kind, s.args = read().what(s.Plain())
		s.reports = s.command.reports
		if prints := read().prints[s.kind]; s.reports == read().any && prints != 0 {
			s.reports = prints
		}
		s.quiet = s.printsOwnWords()
		c.says = c.says || s.command != noCommand || s.Dir != "" || s.Moves() || s.Name() == "pwd"
		if s.pipe = n; n > 0 && line[n-1].Piped {
			s.pipe = c.steps[n-1].pipe
		}
	}
	if !c.says { // a conversation has very many of them
		c.proved = len(line) > 0 && !slices.ContainsFunc(line, func(l shell.Command) bool { return !l.Proved })
		c.steps = nil
	}
}

// printsOwnWords reports whether a command cannot print lines that others wrote. Those of git that the table has
// print words of git alone.
func (s step) printsOwnWords() bool {
	switch name := s.Name(); {
	case len(s.Words) == 0 || s.Shown == shell.NotShown:
		return true
	case name == "echo" || name == "printf":
		return !slices.ContainsFunc(s.Words, func(w shell.Word) bool { return w.Open })
	case name == "git":
		return s.command != noCommand || len(s.Words) > 1 && is("quiet git", s.Words[1].Text)
	default:
		return is("quiet", name)
	}
}

// paged is the end of a command line that only shows a part of its output.
var paged = lazyregexp.New(`(\s*\|\s*(head|tail)( [^|;&]*)?)+$`)

// Same is the same for calls that do the same: the tool and what was asked for, without a pipe to
// head or tail at the end. It is empty where the input was cut.
func (c *Call) Same() string {
	if c.Input == "" || strings.Contains(c.Input, "…") {
		return ""
	}
	asked := strings.TrimSpace(c.Input)
	if strings.Contains(asked, "|") {
		asked = paged().ReplaceAllString(asked, "")
	}
	return c.Name + "\x00" + strings.TrimSpace(strings.TrimSuffix(asked, "2>&1"))
}

// changes reports whether a tool changes something, by the first word of its name.
func changes(name string) bool {
	name = name[strings.LastIndex(name, "__")+1:]
	name = strings.TrimLeft(name[strings.LastIndexAny(name, "./:")+1:], "_")
	capital := min(1, len(name)) // BookFlight
	end := capital + strings.IndexFunc(name[capital:]+"_", func(c rune) bool { return c < 'a' || c > 'z' })
	return is("changing", strings.ToLower(name[:end]))
}
