package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mostText bounds a text of the tokenizers, in bytes.
const mostText = 1 << 20

// texts are what the tokenizers count, each up to a megabyte, of files of the
// repository: nothing in them was made for the purpose.
var texts = []struct {
	name  string
	globs []string
}{
	{"code", []string{"*.go", "plan/*.go", "render/*.go", "thread/*.go", "strategy/*.go", "summarize/*.go"}},
	{"prose", []string{"*.md", "docs/*.md", "docs/formats/*.md"}},
	{"session", []string{"testdata/sessions/*.json*"}},
}

// readText joins the files of a text, in the order of their names.
func readText(root string, globs []string) (string, error) {
	var b strings.Builder
	for _, glob := range globs {
		files, err := filepath.Glob(filepath.Join(root, glob))
		if err != nil {
			return "", err
		}
		slices.Sort(files)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			b.Write(content)
		}
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("no file of %v below %s", globs, root)
	}
	return strings.ToValidUTF8(b.String()[:min(b.Len(), mostText)], ""), nil
}
