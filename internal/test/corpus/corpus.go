// Package corpus finds the real transcripts and requests that tests read when
// they are there. They lie beside the project, not in it. A test that would take
// many seconds over all of it takes a part, and all with PALIMPSEST_LONG=1.
package corpus

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// CollectLessOften saves a tenth of the time of tests over the corpus, which make much
// garbage and hold little of it. GOGC decides where it is set.
func CollectLessOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// Root returns the folder of the project, which the test runs somewhere in.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			t.Fatal("the test does not run within the project")
		}
		dir = above
	}
}

// Dir returns the path of a folder of the corpus, such as "transcripts" or
// "wire-samples". Where the corpus is missing it skips the test with the
// reason, or fails it when PALIMPSEST_REQUIRE_CORPUS is set.
func Dir(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(Root(t), "..", "shared", name)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("PALIMPSEST_REQUIRE_CORPUS") != "" {
			t.Fatalf("the corpus is required and not there: %v", err)
		}
		t.Skipf("the corpus of real transcripts is not beside the project: %v", err)
	}
	return dir
}

// Long reports whether PALIMPSEST_LONG asks for long runs: over the whole corpus,
// with a hundred thousand random operations, with hundreds of killed processes.
func Long() bool { return os.Getenv("PALIMPSEST_LONG") != "" }

// Longest reports whether PALIMPSEST_LONG=all asks also for runs that take minutes and say
// little more than their short forms.
func Longest() bool { return os.Getenv("PALIMPSEST_LONG") == "all" }

// EveryNth returns every n-th of all, from the first on; in a long run all.
func EveryNth[T any](all []T, n int) []T {
	if Long() {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}
