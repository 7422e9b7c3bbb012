// Package arch holds the module to its own architecture: which package may
// import which, what the lower floors must not know, and how large files,
// packages and interfaces may grow. Its test runs over the module, so that a
// broken rule fails the build and names the place.
//
// The checks read source text with go/parser and need no build. They judge the
// module alone: nested modules, testdata and hidden folders are passed over.
package arch

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits of the style rules.
const (
	maxLines   = 700 // of a file
	maxNames   = 30  // exported functions and types of a package, and apart from them its variables and constants
	maxMethods = 4   // of an interface
	pureFloors = 1   // the highest floor that knows no clock, I/O or goroutine
	topFloor   = 7   // the floor that wires everything together
)

// Package is what the table says of one package.
type Package struct {
	// Floor is 0 for values to 7 for programs. A package imports lower floors.
	Floor int
	// Same are packages of the same floor that it may import too.
	Same []string
	// External are the import paths outside the module and the standard library
	// that it may use, each with everything below it.
	External []string
	// Leaf marks an implementation of a contract: only the top floor and tests
	// import it.
	Leaf bool
	// Support marks a package for tests: only tests and other such packages
	// import it, and the floors do not bind it.
	Support bool
}

// Exception lets one rule pass at one place.
type Exception struct {
	Rule string // the name of the rule, as Problem has it
	At   string // a package or file, as Problem has it without the line
	Why  string
}

// Rules are what a module is held to.
type Rules struct {
	// Packages lists every package by its path in the module, the root as ".".
	Packages map[string]Package
	// TestLibraries are external imports that every test may use.
	TestLibraries []string
	// Reserved are functions that one package calls for all others.
	Reserved []Reserved
	// Properties is the package that runs property tests from a fixed seed. Other
	// tests call it, not rapid.
	Properties string
	// Ceilings bound the size of the product; nil for none.
	Ceilings   *Ceilings
	Exceptions []Exception
}

// Reserved are functions from outside that production code leaves to one package.
type Reserved struct {
	Import string   // the package that has them
	Names  []string // of the functions
	In     string   // the package of the module that may use them; empty for none
	Why    string   // and what to use in their place
}

// Problem is a rule broken at a place.
type Problem struct {
	Rule string
	At   string // the package or file, relative to the module
	Line int    // 0 where the whole is meant
	What string // what is wrong and what to do
}

// String writes the problem as compilers do.
func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s (%s)", p.At, p.Line, p.What, p.Rule)
	}
	return fmt.Sprintf("%s: %s (%s)", p.At, p.What, p.Rule)
}

// Check returns the broken rules of the module whose go.mod is in root, ordered
// by place. An exception that excuses nothing is a problem too. The error says
// what could not be read.
func Check(root string, rules Rules) ([]Problem, error) {
	m, err := load(root)
	if err != nil {
		return nil, fmt.Errorf("arch.Check: %w", err)
	}
	c := checker{module: m, rules: rules}
	c.table()
	for _, p := range m.packages {
		c.imports(p)
		c.purity(p)
		c.contexts(p)
		c.sizes(p)
		c.interfaces(p)
		c.naming(p)
		c.functions(p)
		c.documented(p)
		c.literals(p)
		c.reserved(p)
		c.seeds(p)
		c.surface(p)
	}
	c.texts()
	c.ceilings()
	return c.report(), nil
}

type checker struct {
	module   *module
	rules    Rules
	problems []Problem
}

func (c *checker) add(rule, at string, line int, format string, args ...any) {
	c.problems = append(c.problems, Problem{rule, at, line, fmt.Sprintf(format, args...)})
}

// report takes out what is excused, and adds the exceptions that excuse nothing.
func (c *checker) report() []Problem {
	used := make([]bool, len(c.rules.Exceptions))
	left := slices.DeleteFunc(c.problems, func(p Problem) bool {
		i := slices.IndexFunc(c.rules.Exceptions, func(e Exception) bool { return e.Rule == p.Rule && e.At == p.At })
		if i >= 0 {
			used[i] = true
		}
		return i >= 0
	})
	for i, e := range c.rules.Exceptions {
		if !used[i] {
			left = append(left, Problem{Rule: "exception", At: e.At, What: fmt.Sprintf("the exception from %q is not needed; take it out", e.Rule)})
		}
	}
	slices.SortStableFunc(left, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return left
}
