package corpus_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/corpus"
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

// namedInTests collects the rows that comments of tests name.
func namedInTests(t *testing.T) map[string]bool {
	t.Helper()
	id := regexp.MustCompile(`\b[A-E]\d{1,2}\b`)
	named := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git") {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "requirements_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(source)) {
			if _, comment, ok := strings.Cut(line, "//"); ok {
				for _, row := range id.FindAllString(comment, -1) {
					named[row] = true
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
