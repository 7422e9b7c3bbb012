package arch

import (
	"go/ast"
	"slices"
)

// reserved holds production code to the functions that are left to one package. A
// function counts when it is named, called or not.
func (c *checker) reserved(p *pkg) {
	for _, r := range c.rules.Reserved {
		if p.dir == r.In || c.rules.Packages[p.dir].Support {
			continue
		}
		for _, f := range p.production() {
			for _, spec := range f.ast.Imports {
				if importPath(spec) != r.Import {
					continue
				}
				name := localName(spec)
				if name == "." {
					c.add("reserved", f.at, c.module.line(spec), "import %s by its name, so that its use can be seen", r.Import)
				}
				ast.Inspect(f.ast, func(n ast.Node) bool {
					s, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					if x, ok := s.X.(*ast.Ident); ok && x.Name == name && slices.Contains(r.Names, s.Sel.Name) {
						c.add("reserved", f.at, c.module.line(s), "%s.%s: %s", name, s.Sel.Name, r.Why)
					}
					return true
				})
			}
		}
	}
}
