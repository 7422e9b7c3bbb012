package policyfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/internal/yamlfile"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
)

// ErrInvalid is wrapped by errors about a policy file that is not valid.
var ErrInvalid = errors.New("the policy file is not valid")

// Problem is one thing that is wrong with a policy file. It wraps ErrInvalid.
type Problem struct {
	// File is the name that Read was given. Line and Column count from 1; Line is 0 for
	// the file as a whole.
	File         string
	Line, Column int
	// Path are the keys down to the place, joined by dots; it may be empty.
	Path string
	// Message says what is wrong and what would be right.
	Message string
}

// Error names file, line, column, path and reason.
func (p *Problem) Error() string {
	where := p.File
	if p.Line > 0 {
		where += fmt.Sprintf(":%d:%d", p.Line, p.Column)
	}
	if p.Path != "" {
		where += ": " + p.Path
	}
	return where + ": " + p.Message
}

// Unwrap returns ErrInvalid.
func (p *Problem) Unwrap() error { return ErrInvalid }

// maxProblems is how many problems of a file are listed one by one.
const maxProblems = 20

// Read reads a policy file; name is its name in errors. A missing field has the value of
// its base. The error joins a *Problem for everything that is wrong, in the order of the
// file, and counts those after the first twenty.
func Read(name string, data []byte) (*Settings, error) {
	r := &reader{file: name}
	root, wrong := yamlfile.Read(data)
	switch {
	case wrong != nil:
		return nil, &Problem{File: name, Line: wrong.Line, Column: wrong.Column, Message: wrong.Message}
	case root == nil:
		return nil, &Problem{File: name, Message: "it is empty: say at least base: auto"}
	}
	s := r.readSettings(root)
	if len(r.problems) == 0 {
		return s, nil
	}
	slices.SortStableFunc(r.problems, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := len(r.problems) - maxProblems; more > 0 {
		r.problems = append(r.problems[:maxProblems], &Problem{File: name, Message: fmt.Sprintf("and %d problems more", more)})
	}
	var errs []error
	for _, p := range r.problems {
		errs = append(errs, p)
	}
	return nil, errors.Join(errs...)
}

// reader turns a tree into settings and collects problems.
type reader struct {
	file     string
	settings *Settings // that it reads into
	problems []*Problem
}

func (r *reader) addProblem(n ast.Node, path, format string, args ...any) {
	p := &Problem{File: r.file, Path: path, Message: fmt.Sprintf(format, args...)}
	if n != nil {
		if t := n.GetToken(); t != nil && t.Position != nil {
			p.Line, p.Column = t.Position.Line, t.Position.Column
		}
	}
	r.problems = append(r.problems, p)
}

// entry is a key with its value.
type entry struct {
	key     string
	keyNode ast.Node
	value   ast.Node
}

// mappingEntries lists the keys of a mapping. Where the node is none, it adds a problem
// and returns false.
func (r *reader) mappingEntries(n ast.Node, path string) ([]entry, bool) {
	values, ok := yamlfile.Pairs(n)
	if !ok {
		example := ""
		if path == "" {
			example = ", such as base: auto"
		}
		r.addProblem(n, path, "want keys with values%s; found %s", example, describeNode(n))
		return nil, false
	}
	var list []entry
	seen := map[string]bool{}
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.addProblem(v.Key, path, "want a plain key, found %s", v.Key.String())
			continue
		}
		if seen[key.Value] {
			r.addProblem(v.Key, joinPath(path, key.Value), "the key stands there twice")
			continue
		}
		seen[key.Value] = true
		list = append(list, entry{key.Value, v.Key, v.Value})
	}
	return list, true
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// readSettings reads the base first, since it decides which keys there are.
func (r *reader) readSettings(root ast.Node) *Settings {
	list, ok := r.mappingEntries(root, "")
	if !ok {
		return nil
	}
	s := Default(autoWord)
	for _, e := range list {
		if e.key != "base" {
			continue
		}
		value, _ := scalar(e.value)
		name, isText := value.(string)
		if !isText {
			r.addProblem(e.value, "base", "want the name of a policy: %s", strings.Join(Bases(), ", "))
			return nil
		}
		if slices.Contains(Bases(), name) {
			s = Default(name)
			continue
		}
		var err error
		if s, err = ByName(name); err != nil {
			r.addProblem(e.value, "base", "%v", err)
			return nil
		}
	}
	r.settings = s
	r.readFields(s.fields(), list, "")
	return s
}

// readFields reads the keys under a path.
func (r *reader) readFields(fields []field, list []entry, path string) {
	known := keysUnder(fields, path)
	for _, e := range list {
		at := joinPath(path, e.key)
		if _, below := yamlfile.Pairs(e.value); at == "summarizer" && !below {
			at = "summarizer.use" // "summarizer: anthropic:MODEL" says only who
		}
		i := slices.IndexFunc(fields, func(f field) bool { return f.path == at })
		switch {
		case at == "base":
		case i >= 0 && fields[i].kind == toolOverrides:
			r.readToolOverrides(e.value)
		case i >= 0:
			r.readValue(&fields[i], at, e.value)
		case slices.Contains(known, e.key):
			if below, ok := r.mappingEntries(e.value, at); ok {
				r.readFields(fields, below, at)
			}
		default:
			r.addUnknownKey(fields, path, e)
		}
	}
}

// keysUnder lists what may stand directly under a path.
func keysUnder(fields []field, path string) []string {
	var list []string
	if path == "" {
		list = []string{"base"}
	}
	for _, f := range fields {
		if rest, ok := strings.CutPrefix(f.path, joinPath(path, "")); ok {
			key, _, _ := strings.Cut(rest, ".")
			list = append(list, key)
		}
	}
	return slices.Compact(list)
}

// commonMistakes are wrong keys that are not misspelled.
var commonMistakes = map[string]string{"policy": "base", "summarizer.model": "use", "summarizer.models": "use"}

// addUnknownKey suggests what an unknown key could have been: another one of its group, of
// another policy, or of another group.
func (r *reader) addUnknownKey(fields []field, path string, e entry) {
	at := joinPath(path, e.key)
	known := keysUnder(fields, path)
	near := cmp.Or(commonMistakes[at], suggest.Name(e.key, known))
	if path == "tools" && near == "" {
		near = "overrides." + e.key
	}
	hint := "known are " + strings.Join(known, ", ")
	if others := basesWithPath(at); near != "" {
		hint = "did you mean " + joinPath(path, near) + "?"
	} else if len(others) > 0 {
		hint = fmt.Sprintf("it is for %s, the base is %s", strings.Join(others, ", "), r.settings.Base)
	} else if i := slices.IndexFunc(fields, func(f field) bool { return strings.HasSuffix(f.path, "."+e.key) }); i >= 0 {
		hint = "did you mean " + fields[i].path + "?"
	}
	r.addProblem(e.keyNode, at, "unknown key; %s", hint)
}

// basesWithPath are the bases whose files have a path.
func basesWithPath(path string) []string {
	return slices.DeleteFunc(Bases(), func(base string) bool {
		return !slices.ContainsFunc(pathsByBase()[base], func(p string) bool { return p == path || strings.HasPrefix(p, path+".") })
	})
}

// pathsByBase are the paths of every base.
var pathsByBase = sync.OnceValue(func() map[string][]string {
	paths := map[string][]string{}
	for _, base := range Bases() {
		for _, f := range Default(base).fields() {
			paths[base] = append(paths[base], f.path)
		}
	}
	return paths
})

func (r *reader) readValue(f *field, path string, n ast.Node) {
	value, ok := scalar(n)
	if list, isList := n.(*ast.SequenceNode); isList && f.kind == textList {
		items := make([]string, 0, len(list.Values))
		for _, v := range list.Values {
			item, _ := scalar(v)
			text, isText := item.(string)
			if !isText {
				r.addProblem(v, path, "want a text in the list, found %s", describeNode(v))
				return
			}
			items = append(items, text)
		}
		value, ok = items, true
	}
	if !ok || !f.set(value) {
		r.addProblem(n, path, "want %s; found %s", f.expectation(), describeNode(n))
	}
}

// scalar is a single value: a bool, int64, float64 or string.
func scalar(n ast.Node) (any, bool) {
	switch n := n.(type) {
	case *ast.BoolNode:
		return n.Value, true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode:
		switch v := n.Value.(type) {
		case int64:
			return v, true
		case uint64:
			if v <= maxNumber {
				return int64(v), true
			}
			return float64(v), true
		}
	}
	return nil, false
}

// describeNode is a value as messages show it.
func describeNode(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys with values"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AliasNode, *ast.AnchorNode, *ast.TagNode, *ast.MergeKeyNode:
		return "an anchor, alias or tag, which policy files have not"
	default:
		return clip.Short(n.String(), 60)
	}
}

// readToolOverrides reads the settings of single tools.
func (r *reader) readToolOverrides(n ast.Node) {
	if _, ok := n.(*ast.NullNode); ok {
		return
	}
	list, ok := r.mappingEntries(n, overridesPath)
	if !ok {
		return
	}
	names := map[string]string{}
	for _, tool := range list {
		at := joinPath(overridesPath, tool.key)
		normal := toolclass.Normal(tool.key)
		switch other := names[normal]; {
		case normal == "":
			r.addProblem(tool.keyNode, at, "want the name of a tool; default_durability holds for tools that nobody declares")
			continue
		case other != "":
			r.addProblem(tool.keyNode, at, "it is the same tool as %s", other)
			continue
		}
		names[normal] = tool.key
		list, ok := r.mappingEntries(tool.value, at)
		if !ok {
			continue
		}
		p := new(toolpolicy.Policy)
		fields := fieldsOf(r.settings.Base, p)
		for i := range fields {
			fields[i].path = joinPath(at, fields[i].path)
		}
		r.readFields(fields, list, at)
		if len(p.PreserveFields) == 0 {
			p.PreserveFields = nil // both leave what is built in
		}
		if r.settings.Tools == nil {
			r.settings.Tools = map[string]toolpolicy.Policy{}
		}
		r.settings.Tools[tool.key] = *p
	}
}
