package arch

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// table compares the table of packages with the module.
func (c *checker) table() {
	known := map[string]bool{}
	for _, p := range c.module.packages {
		known[p.dir] = true
		if _, ok := c.rules.Packages[p.dir]; !ok {
			c.add("table", p.dir, 0, "the package stands on no floor; add it to the table of internal/arch")
		}
	}
	for dir := range c.rules.Packages {
		if !known[dir] {
			c.add("table", dir, 0, "the table names a package that is not there; take it out")
		}
	}
}

// imports holds the floors and the allowances for external packages.
func (c *checker) imports(p *pkg) {
	self, ok := c.rules.Packages[p.dir]
	if !ok {
		return
	}
	for _, f := range p.files {
		for _, spec := range f.ast.Imports {
			imported := importPath(spec)
			if dir, ok := c.module.within(imported); ok {
				if why := c.refuse(p.dir, self, dir); why != "" && !f.test && !self.Support {
					c.add("floor", f.at, c.module.line(spec), "%s", why)
				}
				continue
			}
			if !external(imported) {
				continue
			}
			allowed := self.External
			if f.test || self.Support {
				allowed = slices.Concat(allowed, c.rules.TestLibraries)
			}
			if !slices.ContainsFunc(allowed, func(a string) bool { return below(imported, a) }) {
				c.add("external", f.at, c.module.line(spec), "%s may not import %s; the table of internal/arch lists what it may", p.dir, imported)
			}
		}
	}
}

// refuse says why production code of a package may not import another, or "".
func (c *checker) refuse(from string, self Package, to string) string {
	target, known := c.rules.Packages[to]
	switch {
	case !known:
		return "" // reported by table
	case target.Support:
		return fmt.Sprintf("%s is for tests; production code may not import it", to)
	case target.Leaf && self.Floor < topFloor:
		return fmt.Sprintf("%s is an implementation; only programs and tests import it, %s takes the contract", to, from)
	case target.Floor > self.Floor:
		return fmt.Sprintf("%s on floor %d may not import %s on floor %d", from, self.Floor, to, target.Floor)
	case target.Floor == self.Floor && !slices.Contains(self.Same, to):
		return fmt.Sprintf("%s and %s are both on floor %d, and the table has no arrow between them", from, to, self.Floor)
	}
	return ""
}

// external reports whether an import path is outside the standard library: its
// first element is a host. Package C counts, since the module is built without
// cgo.
func external(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return imported == "C" || strings.Contains(first, ".")
}

// impure are the imports that pure packages do without, each with everything
// below it.
var impure = []string{"context", "crypto/rand", "io/fs", "io/ioutil", "log", "math/rand", "net", "os", "os/exec", "plugin", "runtime/debug", "syscall", "testing"}

// clock are the names of package time that read or wait for the clock.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// purity holds the lower floors: no context, no clock, no input or output, no
// chance, no goroutine.
func (c *checker) purity(p *pkg) {
	self, ok := c.rules.Packages[p.dir]
	if !ok || self.Floor > pureFloors || self.Support {
		return
	}
	for _, f := range p.production() {
		timeName := ""
		for _, spec := range f.ast.Imports {
			imported := importPath(spec)
			if slices.ContainsFunc(impure, func(i string) bool { return below(imported, i) }) {
				c.add("pure", f.at, c.module.line(spec), "floor %d does without %q; let the caller bring what is needed", self.Floor, imported)
			}
			if imported == "time" {
				timeName = localName(spec)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				c.add("pure", f.at, c.module.line(n), "floor %d starts no goroutine", self.Floor)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && timeName != "" && x.Name == timeName && slices.Contains(clock, n.Sel.Name) {
					c.add("pure", f.at, c.module.line(n), "floor %d has no clock; take the time as a value instead of time.%s", self.Floor, n.Sel.Name)
				}
			}
			return true
		})
		if timeName == "." {
			c.add("pure", f.at, 0, "import time by its name, so that reads of the clock can be seen")
		}
	}
}

// contexts holds that a context carries deadlines and cancellation and no values:
// what a function needs is an argument, what it found out is a result.
func (c *checker) contexts(p *pkg) {
	for _, f := range p.production() {
		for _, spec := range f.ast.Imports {
			if importPath(spec) != "context" {
				continue
			}
			name := localName(spec)
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "WithValue" {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
						c.add("context-value", f.at, c.module.line(n), "nothing travels in a context but its end; make it an argument or a result")
					}
				}
				return true
			})
		}
	}
}

// localName is the name that an import has in its file.
func localName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	imported := importPath(spec)
	if base := path.Base(imported); !version.MatchString(base) {
		return base
	}
	return path.Base(path.Dir(imported))
}

// version is the last element of an import path that names none.
var version = regexp.MustCompile(`^v[0-9]+$`)

// below reports whether a path is another one, or below it.
func below(path, of string) bool { return path == of || strings.HasPrefix(path, of+"/") }
