package arch_test

import (
	"reflect"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/arch"
)

// ways are those that most of the work takes, with the most stays that each may make, how many of
// them in its own folder, and the most climbs. The figures go down, as the ceilings do.
var ways = []struct {
	dir, function     string
	most, own, climbs int
}{
	{".", "Session.PrepareStep", 52, 39, 0},
	{"internal/cli", "compactCommand", 157, 79, 3},
	{"proxy", "Transport.RoundTrip", 122, 45, 0},
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
		got, err := w.Way(way.dir, way.function, func(dir string) bool { return floors[dir].Floor >= 5 })
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []struct {
			what     string
			is, most int
			found    []string
		}{{"stays", len(got.Stays), way.most, got.Stays}, {"stays in its folder", got.Own, way.own, got.Stays}, {"climbs", len(got.Climbs), way.climbs, got.Climbs}} {
			switch {
			case n.is > n.most:
				t.Errorf("%s of %s makes %d %s, at most %d are allowed: %q", way.function, way.dir, n.is, n.what, n.most, n.found)
			case n.is < n.most-n.most/20:
				t.Errorf("%s of %s makes %d %s, and %d are allowed; lower it", way.function, way.dir, n.is, n.what, n.most)
			}
		}
	}
}

func TestWay(t *testing.T) {
	root := write(t, map[string]string{
		"go.mod":     "module example.test/m\n\ngo 1.26\n",
		"a.go":       "package m\n\nimport \"example.test/m/low\"\n\ntype T[V any] struct{}\n\nfunc (t T[V]) Do() { t.two(); low.Do(); one(); func() { low.Again() }() }\n\nfunc one() {}\n",
		"b.go":       "package m\n\nfunc (t *T[V]) two() { one(); three(); unused() }\n\nfunc three() {}\n",
		"low/low.go": "package low\n\nfunc Do() { Do() }\n\nfunc Again() { hook() }\n\nvar hook = Do\n",
		"ignored.go": "//go:build ignore\n\npackage m\n\nfunc three() {}\n",
		"c.go":       "package m\n\nfunc unused() { three() }\n",
	})
	w, err := arch.NewWays(root, ".")
	if err != nil {
		t.Fatal(err)
	}
	all := func(string) bool { return true }
	want := arch.Way{
		Stays: []string{"a.go", "b.go", "a.go", "b.go", "c.go", "low/low.go"}, Own: 5,
		Climbs: []string{"a.go: two -> one", "b.go: unused -> three"}, // the second was entered before, and is a climb all the same
	}
	if got, err := w.Way(".", "T.Do", all); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := w.Way(".", "T.Do", func(dir string) bool { return dir == "." }); err != nil || len(got.Stays) != 5 || got.Own != 5 {
		t.Errorf("without the package low: %+v, %v", got, err)
	}
	if got, err := w.Way("low", "Again", all); err != nil || len(got.Stays) != 1 || got.Own != 1 || got.Climbs != nil {
		t.Errorf("within one file: %+v, %v", got, err)
	}
	if _, err := w.Way(".", "T.Gone", all); err == nil {
		t.Error("a method that is not there has a way")
	}
	if _, err := w.Way("gone", "F", all); err == nil {
		t.Error("a package that is not there has a way")
	}
}
