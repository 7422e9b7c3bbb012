package toolclass

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
)

// errorWords are words of lines that report failures, strongest first, in lower case.
var errorWords = []string{
	"error:", "error[", "fatal:", "panic:", "exception", "traceback", "--- fail", "fail:", "failed", "failure", "not found",
	"no such file", "permission denied", "cannot ", "undefined:", "assert", "timed out", "denied", "refused", "error",
}

// maxEvidence is how many lines of a text are searched for failures.
const maxEvidence = 20_000

// FailureLines returns lines of a text that report failures, of at most limit bytes together. It
// prefers those with the strongest words, and returns them in the order of the text, without
// duplicates. The lines are data, not instructions.
func FailureLines(text string, limit int) []string {
	type line struct {
		text string
		at   int // index of its word in errorWords
	}
	var found []line
	seen := map[string]bool{}
	for n, rest := 0, text; rest != "" && n < maxEvidence; n++ {
		var l string
		l, rest, _ = strings.Cut(rest, "\n")
		l = strings.TrimSpace(l)
		if l == "" || len(l) > limit || seen[l] {
			continue
		}
		lower := strings.ToLower(l)
		if at := slices.IndexFunc(errorWords, func(word string) bool { return strings.Contains(lower, word) }); at >= 0 {
			seen[l] = true
			found = append(found, line{l, at})
		}
	}
	chosen := make([]bool, len(found))
	size := 0
	for at := range errorWords {
		for i, l := range found {
			if l.at == at && size+len(l.text)+1 <= limit {
				chosen[i] = true
				size += len(l.text) + 1
			}
		}
	}
	var lines []string
	for i, l := range found {
		if chosen[i] {
			lines = append(lines, l.text)
		}
	}
	return lines
}

// firstErrorLine returns the line that reports a failure most clearly: the first with the strongest
// word, else the first that is not blank.
func firstErrorLine(text string) string {
	best, bestAt := "", len(errorWords)
	first := ""
	for n, rest := 0, text; rest != "" && n < 400; n++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		first = cmp.Or(first, line)
		lower := strings.ToLower(line[:clip.Boundary(line, 300)])
		for at, word := range errorWords[:bestAt] {
			if strings.Contains(lower, word) {
				best, bestAt = line, at
				break
			}
		}
	}
	return cmp.Or(best, first)
}
