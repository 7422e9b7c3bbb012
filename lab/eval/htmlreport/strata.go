package htmlreport

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval"
)

// kinds are the strata of a column by one property: type, age, origin or state.
type kinds struct {
	name string
	plot markup
	rows []kind
}

// kind is how much of one kind of references was kept.
type kind struct {
	name               string
	needs              int
	best, auto, lookup float64
	// missed counts the references that auto did not keep bound, share is their share of
	// all that it missed.
	missed int
	share  float64
}

// ages is the order of the ages.
var ages = []string{"1-5", "6-10", "11-20", "21-40", "over 40"}

// kindWords say what a property is.
var kindWords = map[string]string{
	"type": "type of identifier", "age": "steps since it was last mentioned", "origin": "who brought it up", "state": "whether it is out of date",
}

// kindNames are clearer names of kinds than those of a report.
var kindNames = map[string]string{
	"origin call": "the agent, in a call", "origin tool": "a tool's result", "origin user": "the user",
	"state current": "current", "state superseded": "out of date",
}

// keptByKind is what was kept, by type, age, origin and state, over all budgets.
func (d *Data) keptByKind() []kinds {
	type sums struct{ needs, best, auto, lookup float64 }
	of := map[string]map[string]*sums{}
	for _, c := range d.Recall.Columns {
		for _, s := range c.Scores {
			for stratum, x := range s.Strata {
				property, name, _ := strings.Cut(stratum, " ")
				if of[property] == nil {
					of[property] = map[string]*sums{}
				}
				sum := of[property][name]
				if sum == nil {
					sum = &sums{}
					of[property][name] = sum
				}
				n := float64(x.Needs)
				switch s.Contender {
				case best:
					sum.best += n * x.Bound
				case auto:
					sum.needs += n
					sum.auto += n * x.Bound
					sum.lookup += n * x.Lookup
				}
			}
		}
	}
	var all []kinds
	for _, property := range []string{"type", "age", "origin", "state"} {
		k := kinds{name: kindWords[property]}
		missed := 0.0
		for _, name := range slices.Sorted(maps.Keys(of[property])) {
			s := of[property][name]
			if s.needs == 0 {
				continue
			}
			missed += s.needs - s.auto
			k.rows = append(k.rows, kind{
				name: cmp.Or(kindNames[property+" "+name], name), needs: int(s.needs), best: s.best / s.needs, auto: s.auto / s.needs, lookup: s.lookup / s.needs,
				missed: int(s.needs - s.auto + 0.5),
			})
		}
		if property == "age" {
			slices.SortFunc(k.rows, func(a, b kind) int { return cmp.Compare(slices.Index(ages, a.name), slices.Index(ages, b.name)) })
		}
		var groups []group
		for i := range k.rows {
			r := &k.rows[i]
			if missed > 0 {
				r.share = (1 - r.auto) * float64(r.needs) / missed
			}
			groups = append(groups, group{fmt.Sprintf("%s (%s)", r.name, thousands(r.needs)), []float64{r.best, r.auto, r.lookup}})
		}
		if len(groups) == 0 {
			continue
		}
		k.plot = barPlot("kept-"+property, "Bound recall by "+kindWords[property]+", over all budgets", []string{best, auto, "auto with a lookup"}, groups)
		all = append(all, k)
	}
	return all
}

// shownMisses bounds the examples of a page.
const shownMisses = 40

// exampleMisses are examples of what auto lost, one for each session, type and origin.
func (d *Data) exampleMisses() []eval.Miss {
	seen := map[string]bool{}
	var out []eval.Miss
	for _, m := range d.Recall.Misses {
		key := m.Session + "\x00" + m.Type + "\x00" + m.Origin
		if seen[key] || len(out) == shownMisses {
			continue
		}
		seen[key] = true
		m.Line = strings.Join(strings.Fields(strings.ToValidUTF8(m.Line, "")), " ")
		out = append(out, m)
	}
	return out
}
