// Package closest finds what somebody may have meant who wrote a name wrong.
package closest

import (
	"cmp"
	"slices"
	"strings"
)

// Names returns the n names that differ least from the one given, the closest
// first and equally close ones by name; capitals do not count.
func Names(name string, known []string, n int) []string {
	name = strings.ToLower(name[:min(len(name), 100)]) // the distance is quadratic
	type near struct {
		name     string
		distance int
	}
	list := make([]near, len(known))
	for i, k := range known {
		list[i] = near{k, distance(name, strings.ToLower(k))}
	}
	slices.SortStableFunc(list, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range list[:min(n, len(list))] {
		names = append(names, c.name)
	}
	return names
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
