// Package golden compares results of tests with files that people have reviewed. The flag -update rewrites the
// files.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Equal fails the test if a file does not have the content got.
func Equal[T ~string | ~[]byte](t testing.TB, path string, got T) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s has changed (-want +got); look at it and run the test with -update:\n%s", path, diff)
	}
}

// Section fails the test if a document does not have the content got between its comments "<!-- NAME: …" and "<!-- end
// of NAME -->".
func Section(t testing.TB, path, name, got string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), "<!-- "+name+": ")
	comment, rest, opened := strings.Cut(rest, "-->\n")
	_, after, closed := strings.Cut(rest, "<!-- end of "+name+" -->")
	if !ok || !opened || !closed {
		t.Fatalf("%s has no place for the %s", path, name)
	}
	Equal(t, path, before+"<!-- "+name+": "+comment+"-->\n"+got+"<!-- end of "+name+" -->"+after)
}
