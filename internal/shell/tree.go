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
	src        string
	all        []Command
	folder     string // where the line is
	folderRoom int    // bytes that the folders of the line may still take together
	room       int    // for words
}

func (r *reader) statements(all []*syntax.Stmt) {
	for _, s := range all {
		r.statement(s)
	}
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
	at := from
	for _, c := range slices.Backward(chain) {
		op := c.Op.String()
		if op == "|&" {
			op = "|"
		}
		if n := len(r.all); n > from {
			r.all[n-1].after = op
		}
		at = len(r.all)
		r.statement(c.Y)
		if op == "|" && at > from && len(r.all) > at+1 { // brackets at the end of a pipe
			r.doubt(at)
		}
	}
	if s.Background {
		r.folder = was
		if n := len(r.all); n > from {
			r.all[n-1].after = "&"
		}
	}
	if s.Negated || s.Background {
		r.doubt(from)
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
		for _, a := range c.Assigns {
			if text = append(text, r.source(a)); len(c.Args) == 0 {
				plain, open := r.word(a.Value)
				out.Words = append(out.Words, Word{a.Name.Value + "=" + plain, open || a.Array != nil})
			}
		}
		for _, w := range c.Args {
			text = append(text, r.source(w))
			plain, open := r.word(w)
			out.Words = append(out.Words, Word{plain, open})
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
	r.move(&c)
	r.all = append(r.all, c)
}

// compound reads a command that holds others: brackets, a loop, a condition, a function. Brackets around
// one chain are read as if they were not there.
func (r *reader) compound(s *syntax.Stmt) {
	var around Command
	r.redirect(&around, s.Redirs)
	r.add(around)
	from, was := len(r.all), r.folder
	lists := [][]*syntax.Stmt{nil} // each of which is read as if it were the only one
	block, apart := false, false
	switch c := s.Cmd.(type) {
	case *syntax.Block:
		lists[0], block = c.Stmts, true
	case *syntax.Subshell:
		lists[0], apart = c.Stmts, true
	case *syntax.ForClause:
		lists[0] = c.Do
	case *syntax.WhileClause:
		lists[0] = slices.Concat(c.Cond, c.Do)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			lists = append(lists, slices.Concat(c.Cond, c.Then))
		}
	case *syntax.CaseClause:
		for _, item := range c.Items {
			lists = append(lists, item.Stmts)
		}
	case *syntax.FuncDecl:
		lists[0] = []*syntax.Stmt{c.Body}
	case *syntax.CoprocClause:
		lists[0] = []*syntax.Stmt{c.Stmt}
	}
	moved := false
	for _, list := range lists {
		r.folder = was
		r.statements(list)
		moved = moved || r.folder != was
	}
	surely := (block || apart) && len(lists[0]) == 1 && len(s.Redirs) == 0
	switch {
	case apart || !moved:
		r.folder = was
	case !block: // nobody knows where its commands ran
		r.folder = Unknown
	}
	if surely {
		return
	}
	r.doubt(from)
	for i := range r.all[from:] {
		c := &r.all[from+i]
		c.Shown, c.Silent = max(c.Shown, around.Shown), c.Silent || around.Silent
		if moved && !block && !apart {
			c.Dir = Unknown
		}
	}
}

// redirect notes the redirections of a command.
func (r *reader) redirect(c *Command, redirections []*syntax.Redirect) {
	for _, to := range redirections {
		switch to.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			c.Document = r.document(to)
		case syntax.DplOut: // 2>&1 behind >f
			c.Silent = c.Silent || c.Shown == NotShown && to.N != nil && to.N.Value == "2"
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			both := to.Op == syntax.RdrAll || to.Op == syntax.AppAll
			errors := to.N != nil && to.N.Value == "2"
			c.Silent = c.Silent || both || errors
			if !errors {
				name, _ := r.word(to.Word)
				c.Shown = NotShown
				c.Writes = append(c.Writes, Write{name, to.Op == syntax.AppOut || to.Op == syntax.AppAll})
			}
		}
	}
}

// document is the body of a here-document.
func (r *reader) document(d *syntax.Redirect) (body Word) {
	if d.Hdoc == nil {
		return body
	}
	escapes := inDocument
	if mark := d.Word.Lit(); mark == "" || strings.Contains(mark, "\\") { // in quotes: the body is as it stands
		escapes = nil
	}
	if body.Text, body.Open = r.text(d.Hdoc.Parts, escapes); d.Op == syntax.DashHdoc {
		body.Text = leadingTabs().ReplaceAllString(body.Text, "")
	}
	return body
}

// What a backslash stands before, in a word, in double quotes and in a here-document.
var (
	inWord      = lazyregexp.New(`(?s)\\(.)`)
	inQuotes    = lazyregexp.New("\\\\([\"\\\\$`])")
	inDocument  = lazyregexp.New("\\\\([\\\\$`])")
	leadingTabs = lazyregexp.New(`(?m)^\t+`)
)

// word is what a word comes to; open if nobody knows.
func (r *reader) word(w *syntax.Word) (text string, open bool) {
	if w == nil {
		return "", false
	}
	return r.text(w.Parts, inWord)
}

// text is what parts of a word come to. What "$(cat <<'EOF' …)" prints is known.
func (r *reader) text(parts []syntax.WordPart, escapes func() *regexp.Regexp) (text string, open bool) {
	var b strings.Builder
	for _, part := range parts {
		inner, opens := "", false
		switch p := part.(type) {
		case *syntax.Lit:
			if inner = p.Value; escapes != nil && strings.IndexByte(inner, '\\') >= 0 {
				inner = escapes().ReplaceAllString(inner, "$1")
			}
		case *syntax.SglQuoted:
			if inner, opens = p.Value, p.Dollar; opens {
				inner = r.source(p)
			}
		case *syntax.DblQuoted:
			inner, opens = r.text(p.Parts, inQuotes)
		default:
			if printed, ok := r.printed(p); ok && !printed.Open {
				inner = printed.Text
			} else {
				inner, opens = r.source(p), true
			}
		}
		b.WriteString(inner)
		open = open || opens
	}
	return b.String(), open
}

// printed is what "$(cat <<EOF …)" prints.
func (r *reader) printed(p syntax.WordPart) (body Word, ok bool) {
	sub, ok := p.(*syntax.CmdSubst)
	if !ok || len(sub.Stmts) != 1 || len(sub.Stmts[0].Redirs) != 1 || sub.Stmts[0].Redirs[0].Hdoc == nil {
		return body, false
	}
	call, ok := sub.Stmts[0].Cmd.(*syntax.CallExpr)
	return r.document(sub.Stmts[0].Redirs[0]), ok && len(call.Args) == 1 && call.Args[0].Lit() == "cat"
}

func (r *reader) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	return r.src[min(from, len(r.src)):min(max(from, to), len(r.src))]
}
