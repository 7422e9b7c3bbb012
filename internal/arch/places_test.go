package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPlaces: what CONTRIBUTING.md says of where things are is there.
func TestPlaces(t *testing.T) {
	guide, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "| what | where |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	places := 0
	for row := range strings.Lines(table) {
		for _, m := range regexp.MustCompile("`([a-z_]+/?[^` ]*[/.][^` ]*)`").FindAllStringSubmatch(row, -1) {
			places++
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("CONTRIBUTING.md names %s: %v", m[1], err)
			}
		}
	}
	if places < 40 {
		t.Errorf("the table names %d places", places)
	}
}
