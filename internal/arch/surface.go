package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// surface holds that what others can import is whole: no exported function, method, field, type
// or variable names a type of an internal package, which they could not write. A hidden type that
// an exported one names or embeds is looked into too. What an exported variable without a type is
// made of counts as its type.
func (c *checker) surface(p *pkg) {
	if p.internal() {
		return
	}
	s := surface{c: c, p: p, methods: map[string][]place{}, types: map[string]place{}, seen: map[string]bool{}}
	for _, f := range p.production() {
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					name := receiver(d)
					s.methods[name] = append(s.methods[name], place{f: f, node: d.Type, name: d.Name.Name})
				} else if d.Name.IsExported() {
					s.open = append(s.open, place{f: f, node: d.Type, name: d.Name.Name})
				}
			case *ast.GenDecl:
				s.group(f, d)
			}
		}
	}
	for len(s.open) > 0 {
		next := s.open[0]
		s.open = s.open[1:]
		s.look(next)
	}
}

// place is a piece of a file that is part of what the exported name stands for.
type place struct {
	f    *file
	node ast.Node
	name string
	from string // the internal package whose file it is, "" for the package that is checked
}

// surface is what is still to be looked into, and what the package declares.
type surface struct {
	c       *checker
	p       *pkg
	open    []place
	methods map[string][]place // by the type that has them
	types   map[string]place
	seen    map[string]bool
}

func (s *surface) group(f *file, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.types[spec.Name.Name] = place{f: f, node: spec, name: spec.Name.Name}
			if spec.Name.IsExported() {
				s.reach(spec.Name.Name)
			}
		case *ast.ValueSpec:
			if d.Tok != token.VAR || !slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported) {
				continue
			}
			if spec.Type != nil {
				s.open = append(s.open, place{f: f, node: spec.Type, name: spec.Names[0].Name})
				continue
			}
			for _, v := range spec.Values {
				s.open = append(s.open, place{f: f, node: made(v), name: spec.Names[0].Name})
			}
		}
	}
}

// made is what says the type of a value: the function called, the type of a literal.
func made(v ast.Expr) ast.Node {
	switch v := v.(type) {
	case *ast.CallExpr:
		return v.Fun
	case *ast.CompositeLit:
		return v.Type
	case *ast.UnaryExpr:
		return made(v.X)
	case *ast.FuncLit:
		return v.Type
	}
	return v
}

// reach adds a type of the package and its exported methods. They may be declared further on.
func (s *surface) reach(name string) {
	s.open = append(s.open, place{name: name})
}

// look goes through the names in a piece and adds the types of the package among them.
func (s *surface) look(at place) {
	if at.node == nil {
		if s.seen[at.name] {
			return
		}
		s.seen[at.name] = true
		if t, ok := s.types[at.name]; ok {
			s.open = append(s.open, t)
		}
		for _, m := range s.methods[at.name] {
			if ast.IsExported(m.name) {
				m.name = at.name + "." + m.name
				s.open = append(s.open, m)
			}
		}
		return
	}
	ast.Inspect(at.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			switch {
			case !s.isField(at.node, n):
			case len(n.Names) > 0 && !slices.ContainsFunc(n.Names, (*ast.Ident).IsExported):
				return false // hidden
			case len(n.Names) == 0:
				return !s.promoted(at, n.Type)
			}
		case *ast.SelectorExpr:
			if dir := s.internalOf(at.f, n); dir != "" {
				s.refuse(at, n, dir+"."+n.Sel.Name)
			}
			return false
		case *ast.Ident:
			if at.from != "" && ast.IsExported(n.Name) && s.c.declares(at.from, n.Name) {
				s.refuse(at, n, at.from+"."+n.Name)
			} else if _, ok := s.types[n.Name]; ok && at.from == "" {
				s.reach(n.Name)
			}
		}
		return true
	})
}

// isField reports whether a field belongs to a struct and is no parameter, result or method.
func (s *surface) isField(in ast.Node, field *ast.Field) (found bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		if t, ok := n.(*ast.StructType); ok && slices.Contains(t.Fields.List, field) {
			found = true
		}
		return !found
	})
	return found
}

func (s *surface) refuse(at place, n ast.Node, named string) {
	s.c.add("surface", at.f.at, s.c.module.line(n), "%s is exported and names %s, which others cannot import; move the type out, or hide the name", at.name, named)
}

// promoted handles a type embedded under a hidden name for one of an internal package: the field
// is hidden, its exported methods are not. They are looked into where they are declared.
func (s *surface) promoted(at place, embedded ast.Expr) bool {
	if star, ok := embedded.(*ast.StarExpr); ok {
		embedded = star.X
	}
	name, ok := embedded.(*ast.Ident)
	if !ok || name.IsExported() {
		return false
	}
	spec, ok := s.types[name.Name].node.(*ast.TypeSpec)
	if !ok {
		return false
	}
	of, ok := spec.Type.(*ast.SelectorExpr)
	if !ok || s.internalOf(s.types[name.Name].f, of) == "" {
		return false
	}
	dir := s.internalOf(s.types[name.Name].f, of)
	for _, p := range s.c.module.packages {
		if p.dir != dir {
			continue
		}
		for _, f := range p.production() {
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.IsExported() && receiver(fn) == of.Sel.Name {
					s.open = append(s.open, place{f, fn.Type, at.name + "." + fn.Name.Name, dir})
				}
			}
		}
	}
	return true
}

// internalOf returns the internal package that a name is taken from, or "".
func (s *surface) internalOf(f *file, n *ast.SelectorExpr) string {
	x, ok := n.X.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, spec := range f.ast.Imports {
		dir, within := s.c.module.within(importPath(spec))
		if within && localName(spec) == x.Name && slices.Contains(strings.Split(dir, "/"), "internal") {
			return dir
		}
	}
	return ""
}

// declares reports whether a package declares a type.
func (c *checker) declares(dir, name string) bool {
	i := slices.IndexFunc(c.module.packages, func(p *pkg) bool { return p.dir == dir })
	return i >= 0 && slices.ContainsFunc(c.module.packages[i].production(), func(f *file) bool {
		return slices.ContainsFunc(typeSpecs(f), func(t *ast.TypeSpec) bool { return t.Name.Name == name })
	})
}

// receiver is the name of the type that has the method.
func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch g := t.(type) {
	case *ast.IndexExpr:
		t = g.X
	case *ast.IndexListExpr:
		t = g.X
	}
	if name, ok := t.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
