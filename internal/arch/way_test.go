package arch_test

import (
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/arch"
)

// ways are those that most of the work takes, with the most stays that each may make. The
// figures go down, as the ceilings do.
var ways = []struct {
	dir, function string
	most          int
}{
	{".", "Session.PrepareStep", 73},
	{"internal/cli", "compactCommand", 157},
	{"proxy", "Transport.RoundTrip", 155},
}

// TestWays: what a step, a command and a request lead through on the floors that decide and
// act. The floors below hold what any line may use.
func TestWays(t *testing.T) {
	var from []string
	for _, way := range ways {
		from = append(from, way.dir)
	}
	w, err := arch.NewWays("../..", from...)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range ways {
		stays, err := w.Stays(way.dir, way.function, func(dir string) bool { return floors[dir].Floor >= 5 })
		switch n := len(stays); {
		case err != nil:
			t.Error(err)
		case n > way.most:
			t.Errorf("%s of %s makes %d stays, at most %d are allowed: %q", way.function, way.dir, n, way.most, stays)
		case n < way.most-way.most/20:
			t.Errorf("%s of %s makes %d stays, and %d are allowed; lower it", way.function, way.dir, n, way.most)
		}
	}
}

func TestStays(t *testing.T) {
	root := write(t, map[string]string{
		"go.mod":     "module example.test/m\n\ngo 1.26\n",
		"a.go":       "package m\n\nimport \"example.test/m/low\"\n\ntype T[V any] struct{}\n\nfunc (t T[V]) Do() { t.two(); low.Do(); one(); func() { low.Again() }() }\n\nfunc one() {}\n",
		"b.go":       "package m\n\nfunc (t *T[V]) two() { one(); three(); unused() }\n\nfunc three() {}\n",
		"low/low.go": "package low\n\nfunc Do() { Do() }\n\nfunc Again() { hook() }\n\nvar hook = Do\n",
		"ignored.go": "//go:build ignore\n\npackage m\n\nfunc three() {}\n",
		"c.go":       "package m\n\nfunc unused() {}\n",
	})
	w, err := arch.NewWays(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	all := func(string) bool { return true }
	if got, err := w.Stays(".", "T.Do", all); err != nil || !slices.Equal(got, []string{"a.go", "b.go", "a.go", "b.go", "c.go", "low/low.go"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := w.Stays(".", "T.Do", func(dir string) bool { return dir == "." }); err != nil || len(got) != 5 {
		t.Errorf("without the package low: %q, %v", got, err)
	}
	if _, err := w.Stays(".", "T.Gone", all); err == nil {
		t.Error("a method that is not there has a way")
	}
	if _, err := w.Stays("gone", "F", all); err == nil {
		t.Error("a package that is not there has a way")
	}
}
