package arch_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// light are all packages from outside the standard library that a program which
// imports the root package gets. Programs, stores and clients bring the others.
var light = []string{
	"github.com/clipperhouse/uax29/v2/graphemes",
	gjson, "github.com/tidwall/match", "github.com/tidwall/pretty",
	"github.com/tidwall/sjson",                         // the codecs: no plan comes into force whose request the API would refuse
	"mvdan.cc/sh/v3/syntax", "mvdan.cc/sh/v3/fileutil", // summaries say what commands did
	"github.com/blevesearch/snowballstem", "github.com/blevesearch/snowballstem/english", "github.com/blevesearch/snowballstem/russian", // a search finds other forms of a word
}

// heavy are packages of the standard library that would make such a program large
// or slow to start, and that it has no use for.
var heavy = []string{"database/sql", "encoding/gob", "html/template", "testing", "text/template", "go/parser", "net/rpc"}

// TestWeight: who imports the root package alone gets what it needs and no more.
func TestWeight(t *testing.T) {
	const module = "github.com/palimpsest-ai/palimpsest"
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{else}}std {{.ImportPath}}{{end}}", module)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		path, standard := strings.CutPrefix(strings.TrimSpace(line), "std ")
		switch {
		case standard:
			if slices.Contains(heavy, path) {
				t.Errorf("the root package imports %s, itself or by others", path)
			}
		case path == module || strings.HasPrefix(path, module+"/"):
		case !slices.Contains(light, path):
			t.Errorf("the root package imports %s, itself or by others: leave it to a leaf, or say here why everyone needs it", path)
		}
	}
}
