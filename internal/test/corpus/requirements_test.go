package corpus_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// later are rows that nothing here can prove yet, and why.
var later = map[string]string{}

// TestEveryRequirementHasATest reads the rows of the requirements and looks for
// a test that names each.
func TestEveryRequirementHasATest(t *testing.T) {
	spec, err := os.ReadFile(filepath.Join(corpus.Dir(t, "spec"), "requirements.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([A-E]\d+) \|`).FindAllStringSubmatch(string(spec), -1)
	if len(rows) < 60 {
		t.Fatalf("only %d rows were found", len(rows))
	}
	named := namedInTests(t)
	for _, row := range rows {
		id := row[1]
		why, isLater := later[id]
		switch {
		case named[id] && isLater:
			t.Errorf("%s has a test now: take it off the list of later ones", id)
		case !named[id] && !isLater:
			t.Errorf("no test names %s", id)
		case isLater:
			t.Logf("%s is for later: %s", id, why)
		}
	}
}

// namedInTests collects the rows that tests name: in the comment of a test, a
// fuzz test or an example, in a comment inside of one, or at the head of a
// scenario. A comment elsewhere in a test file proves nothing.
func namedInTests(t *testing.T) map[string]bool {
	t.Helper()
	id := regexp.MustCompile(`\b[A-E]\d{1,2}\b`)
	named := map[string]bool{}
	scenarios, err := filepath.Glob("../../../testdata/scenarios/*.txtar")
	for _, name := range scenarios {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "\n-- ")
		for _, row := range ids(id, head) {
			named[row] = true
		}
	}
	if err != nil || len(scenarios) == 0 {
		t.Fatalf("%d scenarios, %v", len(scenarios), err)
	}
	err = filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git") {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "requirements_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			test, ok := decl.(*ast.FuncDecl)
			if !ok || test.Recv != nil || !testName.MatchString(test.Name.Name) {
				continue
			}
			from := test.Pos()
			if test.Doc != nil {
				from = test.Doc.Pos()
			}
			for _, group := range file.Comments {
				if group.Pos() >= from && group.End() <= test.End() {
					for _, row := range ids(id, group.Text()) {
						named[row] = true
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return named
}

// testName are the functions that go test runs and that can fail.
var testName = regexp.MustCompile(`^(?:Test|Fuzz|Example)(?:[^a-z]|$)`)

// span is a row of rows, as "B6 to B9".
var span = regexp.MustCompile(`\b([A-E])(\d{1,2}) to ([A-E])(\d{1,2})\b`)

// ids are the rows that a comment names, those in the middle of a span too.
func ids(id *regexp.Regexp, text string) []string {
	rows := id.FindAllString(text, -1)
	for _, m := range span.FindAllStringSubmatch(text, -1) {
		from, _ := strconv.Atoi(m[2])
		to, _ := strconv.Atoi(m[4])
		for n := from; m[1] == m[3] && n <= to; n++ {
			rows = append(rows, m[1]+strconv.Itoa(n))
		}
	}
	return rows
}
