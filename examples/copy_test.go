package examples

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopy: an example can be copied into another module.
func TestCopy(t *testing.T) {
	paths, err := filepath.Glob("*/main.go")
	if err != nil || len(paths) < 3 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if strings.Contains(i.Path.Value, "/internal/") {
				t.Errorf("%s imports %s, which no other module can", path, i.Path.Value)
			}
		}
	}
}
