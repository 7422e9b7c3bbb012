package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestModules: the document of a program, here of this test, has its own module, those
// that it is built from, and the standard library.
func TestModules(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sbom.json")
	if err := run([]string{self, path}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Metadata.Component.Name != "github.com/palimpsest-ai/palimpsest/lab" {
		t.Errorf("%s of %s", b.Format, b.Metadata.Component.Name)
	}
	refs := map[string]bool{}
	for _, c := range b.Components {
		if refs[c.Ref] || !strings.HasPrefix(c.PURL, "pkg:golang/") {
			t.Errorf("%s stands twice, or is called %s", c.Name, c.PURL)
		}
		refs[c.Ref] = true
	}
	if last := b.Components[len(b.Components)-1]; last.Name != "std" || last.Version == "" {
		t.Errorf("the standard library is called %s %s", last.Name, last.Version)
	}
	for _, args := range [][]string{nil, {self}, {path, path}, {self, filepath.Join(path, "x")}} {
		if run(args) == nil {
			t.Errorf("%q is no error", args)
		}
	}
}
