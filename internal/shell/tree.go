package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// reader makes a list of commands of the syntax tree of a line.
type reader struct {
	src    string
	all    []Command
	folder string // where the line is
	room   int    // for words
}

// statement reads a chain of commands. Its operators nest to the left: they are read in a loop, since a
// line may hold thousands of them.
func (r *reader) statement(s *syntax.Stmt) {
	if r.room < 0 {
		return
	}
	from, was := len(r.all), r.folder
	first, chain := s, []*syntax.BinaryCmd(nil)
	for {
		c, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok || first != s && first.Negated {
			break
		}
		first, chain = c.X, append(chain, c)
	}
	if first == s {
		r.command(s)
	} else {
		r.statement(first)
	}
	for _, c := range slices.Backward(chain) {
		op := strings.Replace(c.Op.String(), "|&", "|", 1)
		r.followBy(from, op)
		at := len(r.all)
		r.statement(c.Y)
		if op == "|" && len(r.all) > at+1 { // brackets at the end of a pipe
			r.doubt(at)
		}
	}
	if s.Background {
		r.folder = was
		r.followBy(from, "&")
	}
	if s.Negated || s.Background {
		r.doubt(from)
	}
}

// followBy notes the operator behind the last command, if there is one from a place on.
func (r *reader) followBy(from int, op string) {
	if n := len(r.all); n > from {
		r.all[n-1].after = op
	}
}

// doubt notes of the commands from a place on that nobody knows whether they run.
func (r *reader) doubt(from int) {
	for i := range r.all[from:] {
		r.all[from+i].perhaps = true
	}
}

// command reads what is no chain.
func (r *reader) command(s *syntax.Stmt) {
	var out Command
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		var text []string
		add := func(name string, w *syntax.Word, n syntax.Node) {
			if text = append(text, r.source(n)); name == "" || len(c.Args) == 0 { // else it is set for the command alone
				plain, open := r.word(w)
				out.Words = append(out.Words, Word{name + plain, open})
			}
		}
		for _, a := range c.Assigns {
			add(a.Name.Value+"=", a.Value, a)
		}
		for _, w := range c.Args {
			add("", w, w)
		}
		out.Text = strings.Join(text, " ")
	case *syntax.TimeClause:
		if c.Stmt != nil {
			r.statement(c.Stmt)
		}
		return
	case *syntax.DeclClause, *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		out.Text = r.source(c)
		out.Words = []Word{{Text: scan.FirstWord(out.Text)}}
	default:
		r.compound(s)
		return
	}
	r.redirect(&out, s.Redirs)
	r.add(out)
}

// add adds a command, if there is one and room for it.
func (r *reader) add(c Command) {
	if len(c.Words) == 0 && len(c.Writes) == 0 {
		return
	}
	if r.room -= commandWords + len(c.Words) + len(c.Writes); r.room < 0 {
		return
	}
	if n := len(r.all); n > 0 && r.all[n-1].after == "" {
		r.all[n-1].after = ";"
	}
	switch c.Dir = r.folder; {
	case c.Moves():
		r.folder = join(r.folder, target(&c))
	case c.Name() == "git" && len(c.Words) > 2 && c.Words[1].Text == "-C":
		c.Dir = join(r.folder, Path(c.Words[2].Text))
	}
	r.all = append(r.all, c)
}

// compound reads a command that holds others: brackets, a loop, a condition, a function. Brackets around
// one chain are read as if they were not there. Nobody knows where the commands of others run that hold a "cd".
func (r *reader) compound(s *syntax.Stmt) {
	var around Command
	r.redirect(&around, s.Redirs)
	r.add(around)
	from, was, inner := len(r.all), r.folder, 0
	_, block := s.Cmd.(*syntax.Block)
	_, apart := s.Cmd.(*syntax.Subshell)
	syntax.Walk(s.Cmd, func(n syntax.Node) bool {
		if child, ok := n.(*syntax.Stmt); ok {
			r.statement(child)
			inner++
			return false
		}
		_, word := n.(*syntax.Word)
		return !word
	})
	lost := r.folder != was && !block && !apart
	if apart {
		r.folder = was
	} else if lost {
		r.folder = Unknown
	}
	if (block || apart) && inner == 1 && len(s.Redirs) == 0 {
		return
	}
	r.doubt(from)
	for i := range r.all[from:] {
		c := &r.all[from+i]
		c.Shown, c.Silent = max(c.Shown, around.Shown), c.Silent || around.Silent
		if lost {
			c.Dir = Unknown
		}
	}
}

// redirect notes the redirections of a command.
func (r *reader) redirect(c *Command, redirections []*syntax.Redirect) {
	for _, to := range redirections {
		errors := to.N != nil && to.N.Value == "2"
		switch to.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if to.Hdoc != nil {
				c.Document.Text, c.Document.Open = r.text(to.Hdoc.Parts, inQuotes)
			}
		case syntax.DplOut: // 2>&1 behind >f
			c.Silent = c.Silent || c.Shown == NotShown && errors
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			c.Silent = c.Silent || errors || to.Op == syntax.RdrAll || to.Op == syntax.AppAll
			if !errors {
				name, _ := r.word(to.Word)
				c.Shown = NotShown
				c.Writes = append(c.Writes, Write{name, to.Op == syntax.AppOut || to.Op == syntax.AppAll})
			}
		}
	}
}

// What a backslash stands before, in a word, and in double quotes and here-documents.
var (
	inWord   = lazyregexp.New(`(?s)\\(.)`)
	inQuotes = lazyregexp.New("\\\\([\"\\\\$`])")
)

// word is what a word comes to; open if nobody knows.
func (r *reader) word(w *syntax.Word) (text string, open bool) {
	if w == nil {
		return "", false
	}
	return r.text(w.Parts, inWord)
}

// text is what parts of a word come to.
func (r *reader) text(parts []syntax.WordPart, escapes func() *regexp.Regexp) (text string, open bool) {
	var b strings.Builder
	for _, part := range parts {
		inner, opens := r.source(part), true
		switch p := part.(type) {
		case *syntax.Lit:
			if inner, opens = p.Value, false; strings.IndexByte(inner, '\\') >= 0 {
				inner = escapes().ReplaceAllString(inner, "$1")
			}
		case *syntax.SglQuoted:
			if !p.Dollar {
				inner, opens = p.Value, false
			}
		case *syntax.DblQuoted:
			inner, opens = r.text(p.Parts, inQuotes)
		}
		b.WriteString(inner)
		open = open || opens
	}
	return b.String(), open
}

func (r *reader) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	return r.src[min(from, len(r.src)):min(max(from, to), len(r.src))]
}
