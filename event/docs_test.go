package event_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
)

// TestEventsAreDocumented: every type of event is in the documentation, in the words of its comment. A type without one
// belongs to the comment above it.
func TestEventsAreDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "type.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var names, rows []string
	words := []string{"TokensBefore", "`tokens_before`", "TokensAfter", "`tokens_after`", "Duration", "`duration_us`", "Err ", "`error_class` "} // as the JSON has them
	said := ""
	add := func() {
		if len(names) > 0 {
			rows = append(rows, "| "+strings.Join(names, ", ")+" | "+said+" |")
		}
		names = nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Type" {
			return false
		}
		if comment := strings.Join(strings.Fields(spec.Doc.Text()), " "); comment != "" {
			add()
			said = strings.TrimPrefix(comment, spec.Names[0].Name+" ") // "Boundary marks where …"
			if of, rest, ok := strings.Cut(comment, ": "); ok && len(strings.Fields(of)) <= 3 {
				said = rest // "Failed: …", "PlanCommitted and PlanConflict: …"
			}
		}
		value := "`" + strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`) + "`"
		names, words = append(names, value), append(words, " "+spec.Names[0].Name, " "+value)
		return false
	})
	add()
	if len(rows) < 18 {
		t.Fatalf("only %d rows were found", len(rows))
	}
	golden.Section(t, "../docs/operations.md", "events", "\n| event | |\n|---|---|\n"+strings.NewReplacer(words...).Replace(strings.Join(rows, "\n"))+"\n\n")
}
