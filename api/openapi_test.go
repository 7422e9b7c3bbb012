package api_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/event"
)

var update = flag.Bool("update", false, "write the OpenAPI document anew")

// TestDocument: the document that is served is the one that the operations and
// their types give. Run with -update to write it anew.
func TestDocument(t *testing.T) {
	want, err := json.MarshalIndent(newGenerator(t).document(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(api.Document(), want) {
		t.Error("openapi.json is not what the operations and types give; run: go test ./api -update")
	}
}

// TestOperations: what the table says of one operation holds together.
func TestOperations(t *testing.T) {
	ids, routes := map[string]bool{}, map[string]bool{}
	for _, op := range api.Operations() {
		route := op.Method + " " + op.Path
		if ids[op.ID] || routes[route] {
			t.Errorf("%s, %s: there is another one", op.ID, route)
		}
		ids[op.ID], routes[route] = true, true
		if op.Right == 0 || op.Status == 0 || op.Summary == "" || (op.Response == nil) != (op.Status == 204) {
			t.Errorf("%s: right, status, summary or response is missing", op.ID)
		}
		if op.Method == "GET" && (op.Request != nil || op.IfMatch != "") {
			t.Errorf("%s: a GET has no body and changes nothing", op.ID)
		}
	}
}

type object = map[string]any

// generator makes the document. Comments of the Go types become descriptions;
// those of other packages stay out, so that a word changed there changes nothing
// here.
type generator struct {
	t        *testing.T
	schemas  object
	comments map[string]string // "pkg.Type" and "pkg.Type.Field"
}

func newGenerator(t *testing.T) *generator {
	g := &generator{t: t, schemas: object{}, comments: map[string]string{}}
	for _, dir := range []string{".", "neutral", "view"} {
		g.read(dir)
	}
	return g
}

// read collects the comments of a package.
func (g *generator) read(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		g.t.Fatalf("no package in %s: %v", dir, err)
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			g.t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	pkg, err := doc.NewFromFiles(set, parsed, dir)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, typ := range pkg.Types {
		g.comments[pkg.Name+"."+typ.Name] = oneLine(typ.Doc)
		for _, spec := range typ.Decl.Specs {
			fields, ok := spec.(*ast.TypeSpec).Type.(*ast.StructType)
			if !ok {
				continue
			}
			above := ""
			for _, f := range fields.Fields.List {
				text := f.Doc.Text() + f.Comment.Text()
				if text == "" {
					text = above // a comment speaks for the fields below it
				}
				above = text
				for _, name := range f.Names {
					g.comments[pkg.Name+"."+typ.Name+"."+name.Name] = oneLine(text)
				}
			}
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

var variable = regexp.MustCompile(`\{(\w+)\}`)

func (g *generator) document() object {
	paths := object{}
	for _, op := range api.Operations() {
		if paths[op.Path] == nil {
			paths[op.Path] = object{}
		}
		paths[op.Path].(object)[strings.ToLower(op.Method)] = g.operation(op)
	}
	for path, page := range beside() {
		paths[path] = object{"get": page}
	}
	g.ref(reflect.TypeOf(api.Problem{}))
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Palimpsest", "version": "1",
			"description": "Threads of LLM agents, kept inside their context window. Answers that are no success are problem documents (RFC 9457).",
			"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"security": []any{object{"key": []any{}}},
		"paths":    paths,
		"components": object{
			"schemas":         g.schemas,
			"securitySchemes": object{"key": object{"type": "http", "scheme": "bearer"}},
		},
	}
}

// beside are the pages for those who run the daemon.
func beside() map[string]object {
	page := func(id, summary, mediaType, kind string, security ...any) object {
		return object{
			"operationId": id, "summary": summary, "security": append([]any{}, security...),
			"responses": object{
				"200":     object{"description": "Success.", "content": object{mediaType: object{"schema": object{"type": kind}}}},
				"default": problems,
			},
		}
	}
	return map[string]object{
		"/healthz":      page("health", "Whether the process answers.", "text/plain", "string"),
		"/readyz":       page("ready", "Whether the daemon can work: its store answers, and it does not stop.", "text/plain", "string"),
		"/metrics":      page("metrics", "Metrics in the format of Prometheus. Needs any key, where keys are in use.", "text/plain", "string", object{"key": []any{}}),
		"/openapi.json": page("document", "This document.", "application/json", "object"),
		"/":             page("page", "A page for people, on which threads are looked at.", "text/html", "string"),
		"/page.css":     page("page-style", "The style sheet of the page.", "text/css", "string"),
		"/page.js":      page("page-script", "The script of the page.", "text/javascript", "string"),
		"/page.json":    page("page-choices", "The policies that a preview can be made with, and what the policy auto can favour.", "application/json", "object"),
	}
}

// problems stands for every answer that is no success.
var problems = object{"description": "A problem.", "content": object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}

func (g *generator) operation(op api.Operation) object {
	var parameters []any
	add := func(in, name, kind, description string, required bool) {
		parameters = append(parameters, object{"in": in, "name": name, "required": required, "description": description, "schema": object{"type": kind}})
	}
	about := map[string]string{"thread": "The id of the thread.", "version": "The version of the plan, or \"current\".", "artifact": "The id of the artifact.", "session": "The id of the session."}
	for _, m := range variable.FindAllStringSubmatch(op.Path, -1) {
		add("path", m[1], "string", about[m[1]], true)
	}
	query := map[string][2]string{
		"cursor": {"string", "What the page before gave as next."}, "limit": {"integer", "The most items that are wanted."},
		"from": {"integer", "The version of a plan, 0 for none; 0 when it is left out."}, "to": {"integer", "The version of a plan, 0 for none; the one in force when it is left out."},
		"q": {"string", "What to look for; a part in double quotes is looked for as it stands."}, "tool": {"string", "Only results of this tool."},
		"role": {"string", "Only messages of this role."}, "about": {"string", "\"yes\" says of each thread what it is about, which reads the threads of the page."},
		"plan": {"integer", "The version of a plan, 0 for none; the one in force when it is left out."}, "message": {"string", "The id of a message."},
		"part": {"integer", "A position in the prompt of the view."},
	}
	for _, name := range op.Query {
		if query[name][0] == "" {
			g.t.Errorf("%s: nobody knows what %s is", op.ID, name)
		}
		add("query", name, query[name][0], query[name][1], name == "q")
	}
	if op.IfMatch != "" {
		add("header", "If-Match", "string", "The "+op.IfMatch+" in double quotes that must be the current one.", false)
	}
	success := object{"description": "Success."}
	switch op.Response.(type) {
	case nil:
	case string:
		success["content"] = object{"*/*": object{"schema": object{"type": "string"}}}
	case event.Event:
		add("header", "Last-Event-ID", "string", "The id of the last event that was seen; 0 begins with the first.", false)
		success["content"] = object{"text/event-stream": object{"schema": object{"type": "string"}}}
	default:
		success["content"] = object{"application/json": object{"schema": g.ref(reflect.TypeOf(op.Response))}}
	}
	out := object{
		"operationId": op.ID, "summary": op.Summary, "description": "Needs a key with the right to " + op.Right.String() + ", where keys are in use.",
		"responses": object{
			strconv.Itoa(op.Status): success,
			"default":               problems,
		},
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if op.Request != nil {
		out["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": g.ref(reflect.TypeOf(op.Request))}}}
	}
	return out
}

// ref is the schema of a type; that of a struct is named and kept once.
func (g *generator) ref(t reflect.Type) object {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeOf(time.Time{}):
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeOf(json.RawMessage{}):
		return object{}
	case t.Implements(reflect.TypeOf((*encoding.TextMarshaler)(nil)).Elem()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": g.ref(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.ref(t.Elem())}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		return object{"$ref": "#/components/schemas/" + g.named(t)}
	}
	g.t.Fatalf("no schema for %s", t)
	return nil
}

// named makes the schema of a struct and returns its name.
func (g *generator) named(t reflect.Type) string {
	name := strings.TrimPrefix(t.String(), "api.")
	if g.schemas[name] != nil {
		return name
	}
	schema := object{"type": "object"}
	if text := g.comments[t.String()]; text != "" {
		schema["description"] = text
	}
	g.schemas[name] = schema // before its fields, which may be of its own type
	properties, required := object{}, []string{}
	g.fields(t, properties, &required)
	schema["properties"] = properties
	if len(required) > 0 {
		schema["required"] = required
	}
	return name
}

func (g *generator) fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" {
			g.fields(f.Type, properties, required)
			continue
		}
		if !f.IsExported() || tag == "-" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		schema := g.ref(f.Type)
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if !optional {
			*required = append(*required, tag)
			// Go writes a list or map that was never made as null. The types of this
			// package always make theirs.
			if k := f.Type.Kind(); (k == reflect.Slice || k == reflect.Map) && schema["type"] != nil && filepath.Base(t.PkgPath()) != "api" {
				schema["type"] = []string{schema["type"].(string), "null"}
			}
		}
		if text := g.comments[t.String()+"."+f.Name]; text != "" {
			schema["description"] = text
		} else if filepath.Base(t.PkgPath()) == "api" {
			g.t.Errorf("%s.%s has no comment", t, f.Name)
		}
		properties[tag] = schema
	}
}

// TestEveryTypeIsReached: a type of the package that no operation uses would be
// left out of the document.
func TestEveryTypeIsReached(t *testing.T) {
	g := newGenerator(t)
	g.document()
	others := map[string]bool{"Client": true, "Options": true, "Operation": true, "StreamedEvent": true}
	for name := range g.comments {
		typ, ok := strings.CutPrefix(name, "api.")
		if ok && !strings.Contains(typ, ".") && !others[typ] && g.schemas[typ] == nil {
			t.Errorf("%s is in no operation", name)
		}
	}
}
