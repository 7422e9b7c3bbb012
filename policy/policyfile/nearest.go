package policyfile

import (
	"slices"
	"strings"
)

// nearest returns the candidate that a mistyped name most likely means; empty
// when none is near.
func nearest(name string, candidates []string) string {
	best, least := "", max(2, len(name)/3)+1
	name = strings.ToLower(name)
	for _, c := range candidates {
		d := distance(name, c)
		if d >= least && len(name) >= 4 && (strings.Contains(c, name) || strings.Contains(name, c) || within(name, c)) {
			d = least - 1
		}
		if d < least {
			best, least = c, d
		}
	}
	return best
}

// within reports whether a key holds all the words of another.
func within(name, key string) bool {
	words := strings.Split(key, "_")
	for word := range strings.SplitSeq(name, "_") {
		if !slices.Contains(words, word) {
			return false
		}
	}
	return true
}

// distance is the number of letters to insert, delete, replace or exchange with
// their neighbour to make b of a (optimal string alignment).
func distance(a, b string) int {
	if len(a) > 100 {
		return len(a)
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := range len(a) {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		rows[0], rows[1], rows[2] = last, row, before
	}
	return rows[1][len(b)]
}
