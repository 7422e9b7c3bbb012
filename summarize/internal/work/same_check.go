package work

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// showing are variables and options that change how a check reports, not what it checks.
var showing = scan.WordSet("CI NO_COLOR FORCE_COLOR CLICOLOR TERM COLUMNS PYTHONUNBUFFERED RUST_BACKTRACE -v -count=1")

// checkWords are the words of a check without those that only change how it reports.
func checkWords(command string) (out []string) {
	for word := range strings.FieldsSeq(command) {
		if name, _, sets := strings.Cut(word, "="); !showing[word] && !(sets && len(out) == 0 && showing[name]) {
			out = append(out, word)
		}
	}
	return out
}

// sameCheck reports whether two commands check the same.
func sameCheck(a, b string) bool { return a == b || slices.Equal(checkWords(a), checkWords(b)) }

// includes reports whether a run of tests includes another: it has the race detector too,
// or runs all tests where the other ran some of them.
func includes(all, some string) bool {
	wide, narrow := checkWords(all), checkWords(some)
	plain := slices.DeleteFunc(slices.Clone(wide), func(w string) bool { return w == "-race" || strings.HasPrefix(w, "-count=") })
	whole, ok := wholeTests(narrow)
	return slices.Equal(plain, narrow) || ok && (slices.Equal(wide, whole) || slices.Equal(plain, whole))
}

// wholeTests is a command of go test or pytest without what narrows it to some of its tests:
// files, folders, a pattern. It is not ok for other commands.
func wholeTests(words []string) (wide []string, ok bool) {
	at := slices.IndexFunc(words, func(w string) bool { return path.Base(w) == "pytest" })
	goTest := at < 0
	if goTest {
		if at = slices.Index(words, "test"); at < 1 || words[at-1] != "go" {
			return nil, false
		}
	}
	wide = slices.Clone(words[:at+1])
	for i := at + 1; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-run" || w == "-k":
			i++
		case strings.HasPrefix(w, "-run="), strings.HasPrefix(w, "-k="):
		case strings.HasPrefix(w, "-"):
			wide = append(wide, w)
		case strings.HasSuffix(w, "…"), goTest && w != "." && !strings.HasPrefix(w, "./"), !goTest && strings.HasPrefix(w, ".."):
			return nil, false // of another module or folder, or the value of an option
		}
	}
	if goTest {
		wide = append(wide, "./...")
	}
	return wide, true
}
