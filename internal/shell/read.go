// Package shell reads command lines as models write them for POSIX shells: the
// simple commands that they are made of, and what the exit status and the output of
// a whole line tell of each.
package shell

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// Command is one simple command of a command line.
type Command struct {
	Words    []Word  // without variables that are set for it alone
	Text     string  // as it was written, without redirections
	Document Word    // the body of its here-document
	Writes   []Write // files that its redirections write
	Report

	after   string // the operator behind it: "&&", "||", ";", "|", "&", or "" at the end
	perhaps bool   // it stands in a loop, a condition, a function, behind "!", in the background
}

// Word is one word with its quotes taken off.
type Word struct {
	Text string
	Open bool // it holds a variable or a substitution: nobody knows what it came to
}

// Write is a redirection into a file.
type Write struct {
	To     string
	Append bool
}

// Plain returns the words as text.
func (c *Command) Plain() []string {
	out := make([]string, len(c.Words))
	for i, w := range c.Words {
		out[i] = w.Text
	}
	return out
}

// Name is the first word, "" where there is none.
func (c *Command) Name() string {
	if len(c.Words) == 0 {
		return ""
	}
	return c.Words[0].Text
}

// Unread reports whether the command stands for what could not be read.
func (c *Command) Unread() bool { return len(c.Words) == 1 && c.Words[0] == Word{Open: true} }

// Path returns the word if it can only be a path, else "".
func Path(word string) string {
	if word == "" || len(word) > 300 || strings.HasPrefix(word, "/dev/") || strings.ContainsAny(word, "$*?`(){}|&;<>=!\n") {
		return ""
	}
	return Clean(word)
}

// Clean takes "./" from the front of a path, so that one file has one name.
func Clean(p string) string {
	p = strings.TrimSpace(p)
	for strings.HasPrefix(p, "./") && len(p) > 2 {
		p = p[2:]
	}
	return p
}

// wrappers only run another command.
var wrappers = scan.WordSet("time nice nohup command sudo exec xvfb-run env timeout gtimeout")

// Unwrap takes off what only runs another command, and variables that are set for it.
func Unwrap(words []string) []string {
	for len(words) > 0 {
		name, n := path.Base(words[0]), 1
		if !wrappers[name] && !isAssignment(words[0]) {
			break
		}
		for wrappers[name] && n < len(words) && (strings.HasPrefix(words[n], "-") || strings.Contains(words[n], "=") && name == "env") {
			n++
		}
		if strings.HasSuffix(name, "timeout") {
			n++
		}
		words = words[min(n, len(words)):]
	}
	return words
}

// Bounds of what is read of a command line: its bytes, and how deep brackets and keywords may nest. The
// parser takes seconds, and much memory, for thousands of brackets in brackets; keywords also begin the lines of
// programs in here-documents.
const (
	maxLine     = 20_000
	maxDepth    = 100
	maxKeywords = 1000
)

// mostWords bounds the words of a line of so many bytes, each command counted as commandWords of
// them: what is held of a word takes some 40 bytes, and each command is compared with all others.
func mostWords(bytes int) int { return 480 + bytes/64 }

const commandWords = 12

// Read splits a command line into its commands. Where it cannot be read to its end, the last command is
// Unread, and stands for the rest: for all of a line that a shell could not read either, or that nests too deep.
func Read(line string) []Command {
	r := reader{src: line}
	if len(line) > maxLine {
		r.src = strings.Clone(line[:clip.CutBefore(line, maxLine)])
	}
	file, err := parse(r.src)
	if mended := withDocumentEnd(r.src, err); mended != "" {
		r.src = mended
		file, err = parse(mended)
	}
	r.room = mostWords(len(r.src))
	for n := 0; err == nil && n < len(file.Stmts); n++ {
		r.statement(file.Stmts[n])
	}
	if err != nil || r.room < 0 {
		r.room = 2 * commandWords
		r.add(Command{Words: []Word{{Open: true}}})
	}
	setReports(r.all)
	if n := len(r.all); n > 0 {
		r.all[n-1].End = r.folder
	}
	return slices.Clone(r.all)
}

var errDeep = errors.New("brackets or keywords nest too deep")

func parse(src string) (*syntax.File, error) {
	if nestsDeep(src) {
		return nil, errDeep
	}
	return syntax.NewParser().Parse(strings.NewReader(src), "")
}

// nesting says how many levels a word or character opens, where a command may begin; behind it another
// may.
var nesting = map[string]int{
	"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1, ";": 0, "&": 0, "|": 0, "\n": 0, "`": 0, "!": 0,
	"if": 1, "while": 1, "until": 1, "for": 1, "case": 1, "select": 1, "fi": -1, "done": -1, "esac": -1,
	"then": 0, "do": 0, "else": 0, "elif": 0, "time": 0,
}

// nestsDeep reports whether brackets or keywords may nest deeper than maxDepth and maxKeywords. They count
// wherever they stand, in quotes and in here-documents too.
func nestsDeep(s string) bool {
	if strings.Count(s, "((") > 5*maxDepth { // closed in quotes they would nest deeper than they seem to
		return true
	}
	depth, keywords, begins := 0, 0, true
	for i, n := 0, 0; i < len(s); i += n {
		if n = strings.IndexAny(s[i:], " \t\n;&|<(){}[]`!"); n < 0 {
			n = len(s) - i
		}
		n = max(n, 1)
		by, known := nesting[s[i:i+n]]
		switch {
		case s[i] == ' ' || s[i] == '\t':
			continue
		case n == 1:
			depth = max(depth+by, 0)
		case begins:
			keywords = max(keywords+by, 0)
		}
		if begins = known && (begins || n == 1); depth > maxDepth || keywords > maxKeywords {
			return true
		}
	}
	return false
}

// withDocumentEnd ends a here-document as shells do where its mark does not stand alone: at "EOF)",
// or, not closed, with the line. It is "" for any error but that.
func withDocumentEnd(s string, err error) string {
	var wrong syntax.ParseError
	errors.As(err, &wrong)
	mark, ok := strings.CutPrefix(wrong.Text, "unclosed here-document `")
	if mark = "\n" + strings.TrimSuffix(mark, "`"); !ok || mark == "\n" {
		return ""
	}
	if mended := strings.ReplaceAll(s, mark+")", mark+"\n)"); mended != s {
		return mended
	}
	return s + mark + "\n"
}
