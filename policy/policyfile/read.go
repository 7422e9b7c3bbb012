package policyfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/closest"
	"github.com/palimpsest-ai/palimpsest/internal/yamlfile"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// ErrInvalid is wrapped by errors about a policy file that was read and is not
// valid.
var ErrInvalid = errors.New("the policy file is not valid")

// Problem is one thing that is wrong with a policy file. It wraps ErrInvalid.
type Problem struct {
	// File is the name that Read was given. Line and Column count from 1; Line is
	// 0 where the whole file is meant.
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

// MaxBytes is the largest policy file.
const MaxBytes = yamlfile.MaxBytes

// maxProblems is how many problems of a file are told one by one.
const maxProblems = 20

// Read reads a policy file; name is what errors call it. A field that is not
// there has the value of its base. The error joins a *Problem for everything
// that is wrong, in the order of the file, and counts those after the first twenty.
func Read(name string, data []byte) (*Settings, error) {
	r := &reader{file: name}
	root, problem := parse(name, data)
	if problem != nil {
		return nil, problem
	}
	s := r.settings(root)
	if len(r.problems) == 0 {
		return s, nil
	}
	slices.SortStableFunc(r.problems, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var errs []error
	for i, p := range r.problems {
		if i == maxProblems {
			errs = append(errs, &Problem{File: name, Message: fmt.Sprintf("and %d problems more", len(r.problems)-i)})
			break
		}
		errs = append(errs, p)
	}
	return nil, errors.Join(errs...)
}

// parse reads YAML into its tree, nil where there is none.
func parse(name string, data []byte) (ast.Node, *Problem) {
	f, wrong := yamlfile.Parse(data)
	if wrong != nil {
		return nil, &Problem{File: name, Line: wrong.Line, Column: wrong.Column, Message: wrong.Message}
	}
	var bodies []ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, &Problem{File: name, Message: "it is empty: say at least base: auto"}
	case 1:
		return bodies[0], nil
	}
	return nil, &Problem{File: name, Message: "it holds several documents, want one"}
}

// reader turns a tree into settings and collects what is wrong.
type reader struct {
	file     string
	problems []*Problem
}

func (r *reader) add(n ast.Node, path, format string, args ...any) {
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
	key   string
	at    ast.Node
	value ast.Node
}

// entries lists a mapping; false, and a problem, where the node is none.
func (r *reader) entries(n ast.Node, path string) ([]entry, bool) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		example := ""
		if path == "" {
			example = ", such as base: auto"
		}
		r.add(n, path, "want keys with values%s; found %s", example, described(n))
		return nil, false
	}
	var list []entry
	seen := map[string]bool{}
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.add(v.Key, path, "want a plain key, found %s", v.Key.String())
			continue
		}
		if seen[key.Value] {
			r.add(v.Key, joined(path, key.Value), "the key stands there twice")
			continue
		}
		seen[key.Value] = true
		list = append(list, entry{key.Value, v.Key, v.Value})
	}
	return list, true
}

func joined(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// settings reads the base first, since it says which keys there are.
func (r *reader) settings(root ast.Node) *Settings {
	list, ok := r.entries(root, "")
	if !ok {
		return nil
	}
	s := Default(automatic)
	for _, e := range list {
		if e.key == "base" {
			value, ok := scalar(e.value)
			name, isText := value.(string)
			if !ok || !isText {
				r.add(e.value, "base", "want the name of a policy: %s", strings.Join(Bases(), ", "))
				return nil
			}
			if slices.Contains(Bases(), name) {
				s = Default(name)
				continue
			}
			var err error
			if s, err = Named(name); err != nil {
				r.add(e.value, "base", "%v", err)
				return nil
			}
		}
	}
	r.fields(s, list, "")
	return s
}

// fields reads the keys under a path.
func (r *reader) fields(s *Settings, list []entry, path string) {
	for _, e := range list {
		at := joined(path, e.key)
		if at == "base" {
			continue
		}
		if at == overrides && len(toolFields(s.Base)) > 0 {
			r.overrides(s, e.value)
			continue
		}
		if _, single := scalar(e.value); at == "summarizer" && (single || e.value.Type() == ast.SequenceType) {
			at = "summarizer.use" // "summarizer: anthropic:MODEL" says only who
		}
		if f := find(s.Base, at); f != nil {
			r.set(f, f.at(s), at, e.value)
			continue
		}
		if _, inside := keys(s.Base, at); inside {
			if below, ok := r.entries(e.value, at); ok {
				r.fields(s, below, at)
			}
			continue
		}
		r.unknown(s.Base, path, e)
	}
}

// find looks a path up, nil where there is no such field.
func find(base, path string) *field {
	for i := range table {
		if table[i].path == path && table[i].of(base) {
			return &table[i]
		}
	}
	return nil
}

// keys lists what may stand directly under a path, and reports whether anything
// may.
func keys(base, path string) ([]string, bool) {
	var list []string
	add := func(full string) {
		rest := full
		if path != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(full, path+"."); !ok {
				return
			}
		}
		key, _, _ := strings.Cut(rest, ".")
		if !slices.Contains(list, key) {
			list = append(list, key)
		}
	}
	add("base")
	for i := range table {
		if table[i].of(base) {
			add(table[i].path)
		}
	}
	if len(toolFields(base)) > 0 {
		add(overrides)
	}
	return list, len(list) > 0
}

// habits are keys that people write although no letter of them is wrong.
var habits = map[string]string{"policy": "base", "summarizer.model": "use", "summarizer.models": "use"}

// hint says what was meant, or what there is.
func hint(near string, known []string) string {
	if near != "" {
		return "did you mean " + near + "?"
	}
	return "known are " + strings.Join(known, ", ")
}

// unknown says what a key that is not there could have been.
func (r *reader) unknown(base, path string, e entry) {
	at := joined(path, e.key)
	list, _ := keys(base, path)
	near := closest.Name(e.key, list)
	if habit, ok := habits[at]; ok {
		near = habit
	}
	if path == "tools" && near == "" {
		near = "overrides." + e.key
	}
	if near != "" {
		near = joined(path, near)
	}
	hint := hint(near, list)
	if near == "" {
		// The key may be that of another group, or of another policy.
		var others []string
		for i := range table {
			f := &table[i]
			last := f.path[strings.LastIndex(f.path, ".")+1:]
			switch {
			case f.of(base) && last == e.key:
				hint = "did you mean " + f.path + "?"
			case f.path == at, strings.HasPrefix(f.path, at+"."):
				others = append(others, f.bases...)
			}
		}
		if len(others) > 0 {
			slices.Sort(others)
			hint = fmt.Sprintf("it is for %s, the base is %s", strings.Join(slices.Compact(others), ", "), base)
		}
	}
	r.add(e.at, at, "unknown key; %s", hint)
}

// set reads one value.
func (r *reader) set(f *field, at any, path string, n ast.Node) {
	value, ok := scalar(n)
	if list, isList := n.(*ast.SequenceNode); isList && kindOf(at) == texts {
		value, ok = make([]string, 0, len(list.Values)), true
		for _, v := range list.Values {
			item, _ := scalar(v)
			text, isText := item.(string)
			if !isText {
				r.add(v, path, "want a text in the list, found %s", described(v))
				return
			}
			value = append(value.([]string), text)
		}
	}
	if !ok || !f.set(at, value) {
		r.add(n, path, "want %s; found %s", f.want(kindOf(at)), described(n))
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
			if v <= most {
				return int64(v), true
			}
			return float64(v), true
		}
	}
	return nil, false
}

// described is a value as a message shows it.
func described(n ast.Node) string {
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

// overrides reads what is said of single tools.
func (r *reader) overrides(s *Settings, n ast.Node) {
	if _, ok := n.(*ast.NullNode); ok {
		return
	}
	tools, ok := r.entries(n, overrides)
	if !ok {
		return
	}
	names, fields := map[string]string{}, toolFields(s.Base)
	for _, tool := range tools {
		at := joined(overrides, tool.key)
		normal := toolpolicy.Normal(tool.key)
		switch other := names[normal]; {
		case normal == "":
			r.add(tool.at, at, "want the name of a tool; default_durability holds for tools that nobody declares")
			continue
		case other != "":
			r.add(tool.at, at, "it is the same tool as %s", other)
			continue
		}
		names[normal] = tool.key
		list, ok := r.entries(tool.value, at)
		if !ok {
			continue
		}
		var p toolpolicy.Policy
		for _, e := range list {
			f := slices.IndexFunc(fields, func(f toolField) bool { return f.path == e.key })
			if f >= 0 {
				r.set(&fields[f].field, fields[f].at(&p), joined(at, e.key), e.value)
				continue
			}
			var known []string
			for _, f := range fields {
				known = append(known, f.path)
			}
			r.add(e.at, joined(at, e.key), "unknown key; %s", hint(closest.Name(e.key, known), known))
		}
		if len(p.PreserveFields) == 0 {
			p.PreserveFields = nil // both leave what is built in
		}
		if s.Tools == nil {
			s.Tools = map[string]toolpolicy.Policy{}
		}
		s.Tools[tool.key] = p
	}
}
