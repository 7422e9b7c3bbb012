package daemon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/golden"
)

// TestProblemsAreDocumented: the type of every problem is the address of its line
// in the documentation.
func TestProblemsAreDocumented(t *testing.T) {
	table := "\n| type | status | |\n|---|---|---|\n"
	for _, k := range problemKinds {
		p := problem(k.name, "")
		if p.Kind() != k.name || !strings.HasSuffix(p.Type, "docs/operations.md#"+k.name) {
			t.Errorf("%s has the type %s", k.name, p.Type)
		}
		table += fmt.Sprintf("| <a id=%q></a>`%s` | %d | %s |\n", k.name, k.name, p.Status, p.Title)
	}
	golden.Section(t, "../../docs/operations.md", "problems", table+"\n")
}

// TestProblemOfNothingKnown: an error that nobody foresaw tells the caller nothing
// of itself.
func TestProblemOfNothingKnown(t *testing.T) {
	p := problemOf(fmt.Errorf("secret"))
	if p.Kind() != api.Internal || strings.Contains(p.Detail, "secret") {
		t.Errorf("%+v", p)
	}
}
