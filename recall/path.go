package recall

import (
	"slices"
	"strings"
)

const (
	// shortestPath and longestPath bound a path that tells of one file, in bytes,
	// and maxPaths how many of a question are looked at: the first ones.
	shortestPath, longestPath = 11, 199
	maxPaths                  = 64
)

// pathsIn lists the paths that a question names, each once. A path has two
// slashes at least: fewer stand in much that is none.
func pathsIn(query string) []string {
	var paths []string
	for field := range strings.FieldsFuncSeq(query, func(r rune) bool { return strings.ContainsRune(" \n\t\"'`(),;:", r) }) {
		if len(field) < shortestPath || len(field) > longestPath || strings.Count(field, "/") < 2 || slices.Contains(paths, field) {
			continue
		}
		if paths = append(paths, field); len(paths) == maxPaths {
			break
		}
	}
	return paths
}
