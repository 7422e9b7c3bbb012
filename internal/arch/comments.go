package arch

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
)

// named is a file of Go, or a pattern of some, that a comment names without a folder.
var named = regexp.MustCompile(`(?:^|[\s(])([\w*]+\.go)\b`)

// documented holds that every package says what it is for, and every exported
// name of a package that others can import has a comment.
func (c *checker) documented(p *pkg) {
	files := p.production()
	if len(files) > 0 && !slices.ContainsFunc(files, func(f *file) bool { return f.ast.Doc != nil }) {
		c.add("undocumented", p.dir, 0, "the package has no comment")
	}
	for _, f := range files {
		for _, m := range named.FindAllStringSubmatch(f.ast.Doc.Text(), -1) {
			if !slices.ContainsFunc(files, func(f *file) bool { ok, _ := path.Match(m[1], path.Base(f.at)); return ok }) {
				c.add("stale-name", f.at, 0, "the package comment names %s, which is not here", m[1])
			}
		}
	}
	if p.internal() {
		return
	}
	for _, f := range files {
		var before *ast.FuncDecl // the function above, when it is documented
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && !c.follows(before, d) {
					before = nil
					if d.Name.IsExported() && exportedReceiver(d) {
						c.undocumented(f, d, d.Name.Name)
					}
					continue
				}
				before = d
			case *ast.GenDecl:
				before = nil
				c.documentedGroup(f, d)
			}
		}
	}
}

// follows reports whether a function stands directly below a documented one of
// the same name: a comment speaks for such a run of methods.
func (c *checker) follows(before, fn *ast.FuncDecl) bool {
	return before != nil && before.Name.Name == fn.Name.Name &&
		c.module.fset.Position(before.End()).Line+1 == c.module.line(fn)
}

// documentedGroup: each type has its comment; constants and variables may share
// that of their group.
func (c *checker) documentedGroup(f *file, d *ast.GenDecl) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen != token.NoPos) {
				c.undocumented(f, s, s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil && !shared(d, s) {
					c.undocumented(f, name, name.Name)
				}
			}
		}
	}
}

// shared reports whether a constant without a comment belongs to a list of
// values whose first has one, as enumerations are written.
func shared(d *ast.GenDecl, s *ast.ValueSpec) bool {
	return d.Tok == token.CONST && s.Type == nil && s.Values == nil
}

func (c *checker) undocumented(f *file, n ast.Node, name string) {
	c.add("undocumented", f.at, c.module.line(n), "%s is exported and has no comment", name)
}

// exportedReceiver reports whether a function is none of a hidden type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
