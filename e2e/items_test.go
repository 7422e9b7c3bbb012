package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/items"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// sdkTypes says where an SDK declares what a conversation may hold, and which place of the table has
// it. A union is read by the members of its variants that have one value; an answer's by the comment
// that lists its types; a struct by its JSON names.
var sdkTypes = []struct {
	module, file, api, place string
	declarations             []string
}{
	{anthropicSDK, "message.go", wire.Anthropic, "block", []string{"ContentBlockParamUnion", "ContentBlockUnion"}},
	{anthropicSDK, "message.go", wire.Anthropic, "result", []string{"ToolResultBlockParamContentUnion"}},
	{anthropicSDK, "betamessage.go", wire.Anthropic, "block", []string{"BetaContentBlockParamUnion", "BetaContentBlockUnion"}},
	{anthropicSDK, "betamessage.go", wire.Anthropic, "result", []string{"BetaToolResultBlockParamContentUnion"}},
	{openaiSDK, "responses/response.go", wire.Responses, "item", []string{"ResponseInputItemUnionParam", "ResponseOutputItemUnion"}},
	{openaiSDK, "responses/response.go", wire.Responses, "part", []string{"ResponseInputContentUnionParam", "ResponseOutputMessageContentUnionParam"}},
	{openaiSDK, "responses/response.go", wire.Responses, "result", []string{"ResponseFunctionCallOutputItemUnionParam"}},
	{openaiSDK, "betaresponse.go", wire.Responses, "item", []string{"BetaResponseInputItemUnionParam", "BetaResponseOutputItemUnion"}},
	{openaiSDK, "betaresponse.go", wire.Responses, "part", []string{"BetaResponseInputContentUnionParam", "BetaResponseOutputMessageContentUnionParam", "BetaResponseInputItemAgentMessageContentUnionParam"}},
	{openaiSDK, "chatcompletion.go", wire.Chat, "message", []string{"ChatCompletionMessageParamUnion"}},
	{openaiSDK, "chatcompletion.go", wire.Chat, "part", []string{"ChatCompletionContentPartUnionParam", "ChatCompletionAssistantMessageParamContentArrayOfContentPartUnion"}},
	{openaiSDK, "chatcompletion.go", wire.Chat, "call", []string{"ChatCompletionMessageToolCallUnionParam"}},
	{"google.golang.org/genai", "types.go", wire.Gemini, "", []string{"Part"}},
}

const (
	anthropicSDK = "github.com/anthropics/anthropic-sdk-go"
	openaiSDK    = "github.com/openai/openai-go/v3"
)

// TestItemsOfSDKs: the table of items has each type that the SDKs declare.
func TestItemsOfSDKs(t *testing.T) {
	known := map[string]bool{}
	for _, i := range items.All {
		known[i.API+" "+i.Place+" "+i.Type] = true
		known[i.API+"  "+i.Type] = true
	}
	files := map[string]map[string]*ast.StructType{}
	for _, d := range sdkTypes {
		path := filepath.Join(moduleDir(t, d.module), filepath.FromSlash(d.file))
		if files[path] == nil {
			files[path] = structs(t, path)
		}
		for _, name := range d.declarations {
			types := typesOf(files[path], name)
			if len(types) < 2 {
				t.Errorf("%s %s: types %q; the declaration has moved", d.module, name, types)
			}
			for _, kind := range types {
				if !known[d.api+" "+d.place+" "+kind] {
					t.Errorf("%s %s: the table of internal/test/items has no %s %s %q", d.module, name, d.api, d.place, kind)
				}
			}
		}
	}
}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil {
		t.Fatalf("go list -m %s: %v", module, err)
	}
	if dir == "" { // nothing imports it, so it may not be there yet
		if out, err := exec.CommandContext(t.Context(), "go", "mod", "download", module).CombinedOutput(); err != nil {
			t.Skipf("the source of %s cannot be had: %s", module, out)
		}
		return moduleDir(t, module)
	}
	return dir
}

// structs are the struct types that a file declares.
func structs(t *testing.T, path string) map[string]*ast.StructType {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*ast.StructType{}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.GenDecl); ok {
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					if st, ok := s.Type.(*ast.StructType); ok {
						found[s.Name.Name] = st
					}
				}
			}
		}
	}
	return found
}

var (
	quoted   = regexp.MustCompile(`"([a-z_]+)"`)
	capitals = regexp.MustCompile(`([a-z])([A-Z])`)
)

// typesOf are the types that a declaration names.
func typesOf(all map[string]*ast.StructType, name string) (types []string) {
	if all[name] == nil {
		return nil
	}
	for _, field := range all[name].Fields.List {
		if field.Tag == nil || len(field.Names) == 0 {
			continue
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
		json, _, _ := strings.Cut(tag.Get("json"), ",")
		variant, isVariant := strings.CutPrefix(field.Names[0].Name, "Of")
		switch {
		case isVariant:
			types = append(types, typeOf(all, field.Type, variant))
		case name == "Part":
			types = append(types, json)
		case json == "type" && field.Doc != nil:
			for _, m := range quoted.FindAllStringSubmatch(field.Doc.Text(), -1) {
				types = append(types, m[1])
			}
		}
	}
	return types
}

// typeOf is the type, or else the role, that a variant of a union always has.
func typeOf(all map[string]*ast.StructType, variant ast.Expr, name string) string {
	if p, ok := variant.(*ast.StarExpr); ok {
		if id, ok := p.X.(*ast.Ident); ok && all[id.Name] != nil {
			for _, want := range []string{"type", "role"} {
				for _, field := range all[id.Name].Fields.List {
					if field.Tag == nil {
						continue
					}
					tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
					json, _, _ := strings.Cut(tag.Get("json"), ",")
					if json == want && tag.Get("default") != "" {
						return tag.Get("default")
					}
				}
			}
		}
	}
	if strings.HasSuffix(name, "Message") { // its type may be left out
		return "message"
	}
	return strings.ToLower(capitals.ReplaceAllString(name, "${1}_$2"))
}
