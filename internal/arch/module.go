package arch

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is the source of a module.
type module struct {
	path     string // as go.mod names it
	fset     *token.FileSet
	packages []*pkg // ordered by directory
	texts    []text // documents and scripts
}

type pkg struct {
	dir   string // relative, with slashes; "." is the root
	name  string
	files []*file
}

type file struct {
	at    string // relative path
	test  bool
	lines int
	ast   *ast.File
}

type text struct {
	at   string
	data []byte
}

// textTypes are the endings of files that are searched for names of machines.
var textTypes = []string{".md", ".sh", ".yml", ".yaml", ".toml"}

func load(root string) (*module, error) {
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, err
	}
	m := &module{path: modulePath(gomod), fset: token.NewFileSet()}
	if m.path == "" {
		return nil, errors.New("go.mod names no module")
	}
	byDir := map[string]*pkg{}
	err = filepath.WalkDir(root, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at, err := filepath.Rel(root, full)
		if err != nil {
			return err
		}
		at = filepath.ToSlash(at)
		if d.IsDir() {
			return enter(full, at)
		}
		data, err := read(full, at)
		if err != nil || data == nil {
			return err
		}
		if !strings.HasSuffix(at, ".go") {
			m.texts = append(m.texts, text{at, data})
			return nil
		}
		f, err := parser.ParseFile(m.fset, full, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(at)
		p := byDir[dir]
		if p == nil {
			p = &pkg{dir: dir}
			byDir[dir] = p
			m.packages = append(m.packages, p)
		}
		parsed := &file{at: at, test: strings.HasSuffix(at, "_test.go"), lines: bytes.Count(data, []byte("\n")), ast: f}
		if !parsed.test || p.name == "" {
			p.name = strings.TrimSuffix(f.Name.Name, "_test")
		}
		p.files = append(p.files, parsed)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(m.packages, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return m, nil
}

// enter decides whether a directory belongs to the module.
func enter(full, at string) error {
	name := path.Base(at)
	switch {
	case at == "." || at == ".ci":
		return nil
	case name == "testdata", strings.HasPrefix(name, "."), strings.HasPrefix(name, "_"):
		return filepath.SkipDir
	}
	_, err := os.Stat(filepath.Join(full, "go.mod"))
	switch {
	case err == nil:
		return filepath.SkipDir
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// read returns the content of a file that is checked, nil for others.
func read(full, at string) ([]byte, error) {
	if strings.HasSuffix(at, ".go") || slices.Contains(textTypes, path.Ext(at)) || strings.HasPrefix(at, ".ci/") || path.Base(at) == "Makefile" {
		return os.ReadFile(full)
	}
	return nil, nil
}

func modulePath(gomod []byte) string {
	for line := range strings.Lines(string(gomod)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// importPath is what an import names.
func importPath(s *ast.ImportSpec) string {
	p, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		return s.Path.Value // the parser has let it pass, so no other form is known
	}
	return p
}

// within returns the path of an imported package inside the module.
func (m *module) within(imported string) (dir string, ok bool) {
	if imported == m.path {
		return ".", true
	}
	return strings.CutPrefix(imported, m.path+"/")
}

func (m *module) line(n ast.Node) int { return m.fset.Position(n.Pos()).Line }

// production are the files that are no tests.
func (p *pkg) production() []*file {
	return slices.DeleteFunc(slices.Clone(p.files), func(f *file) bool { return f.test })
}

// internal reports whether nobody outside the module can import the package.
func (p *pkg) internal() bool {
	return p.name == "main" || slices.Contains(strings.Split(p.dir, "/"), "internal")
}
