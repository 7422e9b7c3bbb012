package arch

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Ways follows calls through a module. NewWays makes one.
type Ways struct {
	module   *module
	root     string
	compiled types.Importer // what the module imports from outside
	packages map[string]*types.Package
	info     types.Info
	bodies   map[*types.Func]body
}

type body struct {
	at    string // the file
	block *ast.BlockStmt
}

// NewWays reads the module whose go.mod is in root. Unlike Check it needs the go command,
// which compiles what the packages to start from import.
func NewWays(root string, from ...string) (*Ways, error) {
	m, err := load(root)
	if err != nil {
		return nil, fmt.Errorf("arch.NewWays: %w", err)
	}
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}")
	for _, dir := range from {
		list.Args = append(list.Args, "./"+dir)
	}
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("arch.NewWays: go list: %w", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[path] = file
	}
	return &Ways{
		module: m, root: root, packages: map[string]*types.Package{}, bodies: map[*types.Func]body{},
		info:     types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}},
		compiled: importer.ForCompiler(m.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }),
	}, nil
}

// Import implements types.Importer: packages of the module are read from their source.
func (w *Ways) Import(imported string) (*types.Package, error) {
	dir, ours := w.module.within(imported)
	if !ours {
		return w.compiled.Import(imported)
	}
	if p := w.packages[dir]; p != nil {
		return p, nil
	}
	at := slices.IndexFunc(w.module.packages, func(p *pkg) bool { return p.dir == dir })
	if at < 0 {
		return nil, fmt.Errorf("the module has no package %s", dir)
	}
	files := slices.DeleteFunc(w.module.packages[at].production(), func(f *file) bool {
		match, err := build.Default.MatchFile(filepath.Join(w.root, dir), path.Base(f.at))
		return err != nil || !match
	})
	var trees []*ast.File
	for _, f := range files {
		trees = append(trees, f.ast)
	}
	config := types.Config{Importer: w}
	p, err := config.Check(imported, w.module.fset, trees, &w.info)
	if err != nil {
		return nil, err
	}
	w.packages[dir] = p
	for _, f := range files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				w.bodies[w.info.Defs[fn.Name].(*types.Func)] = body{f.at, fn.Body}
			}
		}
	}
	return p, nil
}

// Way is what a function leads through. The way enters the functions that a function names, in
// the order in which they are written, each with those that it names itself, and each once. It
// does not enter what is called through an interface or a variable.
type Way struct {
	// Stays are the files, one for each stretch within a file.
	Stays []string
	// Own is how many stays there are without the stretches in packages that do not lie in the
	// function's own folder: each of them has a face, and its insides are a way of their own.
	Own int
	// Climbs are the calls back, "file: caller -> callee", each once: from another file into one
	// that the way to the caller began in or came through.
	Climbs []string
}

// Way follows a function of the package in dir, such as "Session.PrepareStep". It does not enter
// packages that follow refuses.
func (w *Ways) Way(dir, function string, follow func(dir string) bool) (Way, error) {
	p, err := w.Import(path.Join(w.module.path, dir))
	if err != nil {
		return Way{}, fmt.Errorf("arch.Way: %w", err)
	}
	name, method, isMethod := strings.Cut(function, ".")
	start := p.Scope().Lookup(name)
	if start != nil && isMethod {
		start, _, _ = types.LookupFieldOrMethod(types.NewPointer(start.Type()), true, p, method)
	}
	first, ok := start.(*types.Func)
	if !ok {
		return Way{}, fmt.Errorf("arch.Way: package %s has no function %s", dir, function)
	}
	var way Way
	own := ""                 // the file of the last stay that counts in Own
	var through []*types.Func // the functions on the way to this one
	entered := map[*types.Func]bool{}
	climbs := map[string]bool{}
	var enter func(fn *types.Func)
	enter = func(fn *types.Func) {
		b, ok := w.bodies[fn]
		if !ok || !follow(path.Dir(b.at)) {
			return
		}
		if n := len(through); n > 0 && w.bodies[through[n-1]].at != b.at && slices.ContainsFunc(through, func(f *types.Func) bool { return w.bodies[f].at == b.at }) {
			climbs[b.at+": "+through[n-1].Name()+" -> "+fn.Name()] = true
		}
		if entered[fn] {
			return
		}
		entered[fn] = true
		if len(way.Stays) == 0 || way.Stays[len(way.Stays)-1] != b.at {
			way.Stays = append(way.Stays, b.at)
		}
		if in := path.Dir(b.at); b.at != own && (in == dir || dir != "." && below(in, dir)) {
			own = b.at
			way.Own++
		}
		through = append(through, fn)
		ast.Inspect(b.block, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok {
				if next, ok := w.info.Uses[name].(*types.Func); ok {
					enter(next.Origin())
				}
			}
			return true
		})
		through = through[:len(through)-1]
	}
	enter(first)
	way.Climbs = slices.Sorted(maps.Keys(climbs))
	return way, nil
}
