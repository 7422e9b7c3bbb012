package strategy

import "slices"

// group are messages that stay or go together: calls and their results, and units of hosted calls.
type group struct {
	at   []int // in order
	size int   // their Sizes together, in tokens
}

// isIn reports whether all of a group is inside.
func (g *group) isIn(inside map[int]bool) bool {
	return !slices.ContainsFunc(g.at, func(i int) bool { return !inside[i] })
}

// linked is the group of the message at i.
func (v *View) linked(i int) *group {
	if v.groups[i] != nil {
		return v.groups[i]
	}
	g := &group{at: []int{i}}
	v.groups[i] = g
	add := func(k int) {
		if v.groups[k] == nil {
			v.groups[k] = g
			g.at = append(g.at, k)
		}
	}
	for n := 0; n < len(g.at); n++ {
		for _, result := range v.Pairs.Results(g.at[n]) {
			add(result)
		}
		if call, ok := v.Pairs.Call(g.at[n]); ok {
			add(call)
		}
		for k, end := v.Pairs.Beside(g.at[n]); k < end; k++ {
			add(k)
		}
	}
	slices.Sort(g.at)
	g.size = sum(v.Sizes, g.at)
	return g
}
