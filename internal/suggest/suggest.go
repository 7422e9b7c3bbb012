// Package suggest finds what a user meant by a mistyped name or the beginning of an id.
package suggest

import (
	"cmp"
	"slices"
	"strings"
)

// Names returns the n known names that are closest to a name, ignoring case: those that hold
// it whole, then the closest, equally close ones by name.
func Names(name string, known []string, n int) []string {
	name = strings.ToLower(name[:min(len(name), 100)]) // the distance is quadratic
	type near struct {
		name     string
		distance int
	}
	list := make([]near, len(known))
	for i, k := range known {
		list[i] = near{k, distance(name, strings.ToLower(k))}
		if len(name) > 2 && strings.Contains(strings.ToLower(k), name) {
			list[i].distance = 0
		}
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

// Name returns the name that was most likely meant; empty if none is close. Names with
// underscores are also close if one has all words of the other.
func Name(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	if len(name) > 100 {
		return ""
	}
	name = strings.ToLower(name)
	for _, k := range known {
		d := distance(name, k)
		if d >= least && len(name) >= 4 && (strings.Contains(k, name) || strings.Contains(name, k) || hasAllWords(name, k)) {
			d = least - 1
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// hasAllWords reports whether a key has all words of a name.
func hasAllWords(name, key string) bool {
	words := strings.Split(key, "_")
	for word := range strings.SplitSeq(name, "_") {
		if !slices.Contains(words, word) {
			return false
		}
	}
	return true
}

// distance counts the bytes to insert, delete, replace or swap with their neighbour to turn a
// into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// MinID is the minimum length of the beginning of an id.
const MinID = 6

// ByID returns the first element with an id, else all whose ids begin with it if it is long
// enough.
func ByID[T any](all []T, id string, of func(T) string) []T {
	var found []T
	for _, one := range all {
		switch have := of(one); {
		case have == id:
			return []T{one}
		case len(id) >= MinID && strings.HasPrefix(have, id):
			found = append(found, one)
		}
	}
	return found
}
