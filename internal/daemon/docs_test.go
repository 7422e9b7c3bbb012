package daemon

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
)

var update = flag.Bool("update", false, "write the table of problems in docs/operations.md anew")

// TestProblemsAreDocumented: the type of every problem is the address of its line
// in the documentation.
func TestProblemsAreDocumented(t *testing.T) {
	const path = "../../docs/operations.md"
	const begin, end = "<!-- problems: written by go test ./internal/daemon -update -->\n", "<!-- end of problems -->"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("%s has no place for the problems", path)
	}
	table := "\n| type | status | |\n|---|---|---|\n"
	for _, k := range kinds {
		p := problem(k.name, "")
		if p.Kind() != k.name || !strings.HasSuffix(p.Type, "docs/operations.md#"+k.name) {
			t.Errorf("%s has the type %s", k.name, p.Type)
		}
		table += fmt.Sprintf("| <a id=%q></a>`%s` | %d | %s |\n", k.name, k.name, p.Status, p.Title)
	}
	want := before + begin + table + "\n" + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if string(data) != want {
		t.Error("the table of problems is not the one in the code; run: go test ./internal/daemon -update")
	}
}

// TestProblemOfNothingKnown: an error that nobody foresaw tells the caller nothing
// of itself.
func TestProblemOfNothingKnown(t *testing.T) {
	p := problemOf(fmt.Errorf("secret"))
	if p.Kind() != api.Internal || strings.Contains(p.Detail, "secret") {
		t.Errorf("%+v", p)
	}
}
