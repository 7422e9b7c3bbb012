package arch

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// sizes holds the length of files and the number of exported names.
func (c *checker) sizes(p *pkg) {
	for _, f := range p.files {
		if f.lines > maxLines {
			c.add("long-file", f.at, 0, "%d lines, the limit is %d; split it by concept", f.lines, maxLines)
		}
	}
	surface, values := p.exported()
	if surface > maxNames {
		c.add("many-names", p.dir, 0, "%d exported functions and types, the limit is %d; hide some or split the package", surface, maxNames)
	}
	if values > maxNames {
		c.add("many-values", p.dir, 0, "%d exported variables and constants, the limit is %d; hide some or split the package", values, maxNames)
	}
}

// exported counts the exported functions and types, and apart from them the variables and constants.
func (p *pkg) exported() (surface, values int) {
	for _, f := range p.production() {
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					surface++
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						if s.Name.IsExported() {
							surface++
						}
					case *ast.ValueSpec:
						for _, name := range s.Names {
							if name.IsExported() {
								values++
							}
						}
					}
				}
			}
		}
	}
	return surface, values
}

// interfaces holds the number of methods. Embedded interfaces of the same
// package are counted with their methods, others as one.
func (c *checker) interfaces(p *pkg) {
	declared := map[string]*ast.InterfaceType{}
	for _, f := range p.production() {
		for _, s := range typeSpecs(f) {
			if t, ok := s.Type.(*ast.InterfaceType); ok {
				declared[s.Name.Name] = t
			}
		}
	}
	var methods func(t *ast.InterfaceType) int
	methods = func(t *ast.InterfaceType) int {
		n := 0
		for _, m := range t.Methods.List {
			embedded, ok := m.Type.(*ast.Ident)
			switch {
			case len(m.Names) > 0:
				n += len(m.Names)
			case ok && declared[embedded.Name] != nil:
				n += methods(declared[embedded.Name])
			case ok, isSelector(m.Type):
				n++
			}
		}
		return n
	}
	for _, f := range p.production() {
		ast.Inspect(f.ast, func(node ast.Node) bool {
			t, ok := node.(*ast.InterfaceType)
			if !ok {
				return true
			}
			if n := methods(t); n > maxMethods {
				c.add("wide-interface", f.at, c.module.line(t), "%d methods, the limit is %d; make further abilities interfaces of their own", n, maxMethods)
			}
			return true
		})
	}
}

func isSelector(e ast.Expr) bool {
	_, ok := e.(*ast.SelectorExpr)
	return ok
}

// leftovers are names under which everything and nothing gathers.
var leftovers = []string{"util", "utils", "common", "types", "helper", "helpers", "misc"}

// bags are names of files that say what kind of code is in them and not what it
// is about.
var bags = []string{
	"types.go", "interface.go", "interfaces.go", "const.go", "consts.go", "constants.go",
	"helper.go", "helpers.go", "util.go", "utils.go", "common.go", "misc.go",
}

// naming holds the names of packages and files.
func (c *checker) naming(p *pkg) {
	if slices.Contains(leftovers, p.name) || slices.Contains(leftovers, path.Base(p.dir)) {
		c.add("package-name", p.dir, 0, "a package is named for what it is about")
	}
	for _, f := range p.files {
		if slices.Contains(bags, strings.Replace(path.Base(f.at), "_test.go", ".go", 1)) {
			c.add("file-name", f.at, 0, "a file is named for its concept")
		}
	}
}

// functions refuses init and functional options.
func (c *checker) functions(p *pkg) {
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			if fn.Name.Name == "init" {
				c.add("init", f.at, c.module.line(fn), "tables are literal and wiring is visible; no init")
			}
			if !f.test && isOption(fn.Name.Name) && c.returnsFunc(p, f, fn) {
				c.add("functional-option", f.at, c.module.line(fn), "%s is a functional option; make it a field of an Options struct", fn.Name.Name)
			}
		}
	}
}

// isOption reports whether a name is With and a word.
func isOption(name string) bool {
	rest, ok := strings.CutPrefix(name, "With")
	return ok && token.IsExported(rest)
}

// returnsFunc reports whether the function's only result is a function, or a
// type of the module that is one.
func (c *checker) returnsFunc(p *pkg, f *file, fn *ast.FuncDecl) bool {
	if fn.Type.Results.NumFields() != 1 {
		return false
	}
	switch t := fn.Type.Results.List[0].Type.(type) {
	case *ast.FuncType:
		return true
	case *ast.Ident:
		return p.declaresFunc(t.Name)
	case *ast.SelectorExpr:
		x, ok := t.X.(*ast.Ident)
		if !ok {
			return false
		}
		for _, spec := range f.ast.Imports {
			if dir, within := c.module.within(importPath(spec)); within && localName(spec) == x.Name {
				i := slices.IndexFunc(c.module.packages, func(q *pkg) bool { return q.dir == dir })
				return i >= 0 && c.module.packages[i].declaresFunc(t.Sel.Name)
			}
		}
	}
	return false
}

func (p *pkg) declaresFunc(name string) bool {
	for _, f := range p.production() {
		for _, s := range typeSpecs(f) {
			if _, ok := s.Type.(*ast.FuncType); ok && s.Name.Name == name {
				return true
			}
		}
	}
	return false
}

func typeSpecs(f *file) []*ast.TypeSpec {
	var specs []*ast.TypeSpec
	for _, d := range f.ast.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					specs = append(specs, t)
				}
			}
		}
	}
	return specs
}
