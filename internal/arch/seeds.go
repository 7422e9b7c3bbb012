package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// drawing are the names of packages that draw from a seed of their own, which no
// second run can repeat. A name may stand for all that are called.
var drawing = map[string][]string{
	"pgregory.net/rapid": {"Check", "MakeCheck"},
	"testing/quick":      {"Check", "CheckEqual"},
	"math/rand":          nil,
	"math/rand/v2":       nil,
	"crypto/rand":        nil,
}

// seeds holds tests and what they are made of to seeds that are written down:
// what fails once, fails again.
func (c *checker) seeds(p *pkg) {
	if p.dir == c.rules.Properties {
		return
	}
	support := c.rules.Packages[p.dir].Support
	for _, f := range p.files {
		if !f.test && !support {
			continue
		}
		imported := map[string]string{}
		for _, spec := range f.ast.Imports {
			imported[localName(spec)] = importPath(spec)
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			from := imported[x.Name]
			if names, ok := drawing[from]; ok && chance(names, s.Sel.Name) {
				c.add("seed", f.at, c.module.line(s), "%s.%s draws anew in each run; draw from a seed that is written down, properties by %s", from, s.Sel.Name, c.rules.Properties)
			}
			return true
		})
	}
}

// chance reports whether a name of a package draws. Where no names are listed,
// all do but types, makers and the reader that keys and certificates take.
func chance(names []string, name string) bool {
	if names != nil {
		return slices.Contains(names, name)
	}
	return !strings.HasPrefix(name, "New") && !slices.Contains([]string{"Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf", "Reader"}, name)
}
