package summary

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentedFormat: the example in docs/formats/summary.md is the golden
// rendering of version v1.0, line by line.
func TestDocumentedFormat(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/summary.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```text\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/formats/summary.md has no example")
	}
	if diff := cmp.Diff(full().Render(), example); diff != "" {
		t.Errorf("the example in docs/formats/summary.md (-rendered +what the page shows):\n%s", diff)
	}
	_, rest, _ = strings.Cut(rest, "```text\n")
	section, _, _ := strings.Cut(rest, "```")
	if diff := cmp.Diff(RenderWork(work()), section); diff != "" {
		t.Errorf("the section about the work in docs/formats/summary.md (-rendered +what the page shows):\n%s", diff)
	}
}
