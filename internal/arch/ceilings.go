package arch

import (
	"go/ast"
	"slices"
)

// Ceilings bound how large the product may be: all packages but those for tests. They go down
// with what is taken out; the zero value bounds nothing.
type Ceilings struct {
	// Lines bound the lines of files that are no tests, comments counted.
	Lines []LineCeiling
	// Packages is the most packages, Public the most that others can import, and Names the
	// most exported functions, types, variables and constants in those, methods left out.
	Packages, Public, Names int
	// Methods is the most methods that a type has, exported or not. Types lists those with
	// more, by package and name ("proxy.exchange").
	Methods int
	Types   map[string]int
}

// LineCeiling bounds the lines of some packages together.
type LineCeiling struct {
	Of    string   // what they are
	Floor int      // all packages of this floor, if In is empty
	In    []string // these packages, and those below them
	Most  int
}

// ceilings holds the module to them. What is more than 1 % below its ceiling is a problem too:
// a ceiling that is not lowered lets the next one fill it.
func (c *checker) ceilings() {
	most := c.rules.Ceilings
	if most == nil {
		return
	}
	var packages, public, names int
	lines := map[string]int{}
	methods := map[string]int{}
	for _, p := range c.module.packages {
		if c.rules.Packages[p.dir].Support || len(p.production()) == 0 {
			continue
		}
		packages++
		for _, f := range p.production() {
			lines[p.dir] += f.lines
			countMethods(p, f, methods)
		}
		if !p.internal() {
			functions, values := p.exported()
			public, names = public+1, names+functions+values
		}
	}
	for _, l := range most.Lines {
		n := 0
		for dir, count := range lines {
			if l.In == nil && c.rules.Packages[dir].Floor == l.Floor || slices.ContainsFunc(l.In, func(in string) bool { return below(dir, in) }) {
				n += count
			}
		}
		c.ceiling(l.Of, "lines", n, l.Most)
	}
	c.ceiling("the module", "packages", packages, most.Packages)
	c.ceiling("the module", "public packages", public, most.Public)
	c.ceiling("the public packages", "exported names", names, most.Names)
	for name, n := range methods {
		if allowed, named := most.Types[name]; named {
			c.ceiling(name, "methods", n, allowed)
		} else if n > most.Methods {
			c.add("ceiling", name, 0, "%d methods, the limit is %d", n, most.Methods)
		}
	}
	for name := range most.Types {
		if methods[name] <= most.Methods {
			c.add("ceiling", name, 0, "it has %d methods and needs no ceiling of its own", methods[name])
		}
	}
}

func (c *checker) ceiling(of, what string, n, most int) {
	switch {
	case n > most:
		c.add("ceiling", of, 0, "%d %s, the ceiling is %d; take something out", n, what, most)
	case n < most-most/100:
		c.add("ceiling", of, 0, "%d %s, the ceiling is %d; lower it", n, what, most)
	}
}

// countMethods counts by the type they belong to.
func countMethods(p *pkg, f *file, methods map[string]int) {
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil {
			continue
		}
		methods[p.dir+"."+receiver(fn)]++
	}
}
