package htmlreport

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
)

// whisker is a value with its interval.
type whisker struct {
	name             string
	value, low, high float64
	strong           bool
}

// forest draws one line for each contender: its value and its interval.
func forest(name, title, across string, rows []whisker) template.HTML {
	const line, left, top = 22, 250, 14
	d := &drawing{width: 760, height: top + line*float64(len(rows)) + 46}
	x := axis{0, 1, left, d.width - 60}
	bottom := d.height - 44
	for _, v := range x.ticks(10) {
		d.line("grid", x.at(v), top, x.at(v), bottom)
		d.text("tick", "middle", x.at(v), bottom+16, short(v))
	}
	d.text("name", "middle", (x.from+x.to)/2, bottom+36, across)
	for i, r := range rows {
		y := top + line*(float64(i)+0.5)
		class := "other"
		if r.strong {
			class = "auto"
		}
		words := fmt.Sprintf("%s: %.3f (%.3f to %.3f)", r.name, r.value, r.low, r.high)
		d.text("label "+class, "end", left-10, y+4, r.name)
		d.line("whisker "+class, x.at(r.low), y, x.at(r.high), y)
		d.mark("dot "+class, x.at(r.value), y, 4, words)
		d.text("tick", "start", x.to+10, y+4, fmt.Sprintf("%.3f", r.value))
	}
	return d.finish(name, title)
}

// place is a point with a name.
type place struct {
	name   string
	x, y   float64
	strong bool
}

// scatter draws named points.
func scatter(name, title, across, up string, places []place) template.HTML {
	d := &drawing{width: 760, height: 460}
	most := 1.0
	for _, p := range places {
		most = max(most, p.x)
	}
	x, y := axis{0, most * 1.05, 60, d.width - 20}, axis{0, 1, d.height - 50, 30}
	d.frame(x, y, across, up)
	sorted := slices.Clone(places)
	slices.SortStableFunc(sorted, func(a, b place) int { return cmp.Compare(b.y, a.y) })
	var taken []point
	for _, p := range sorted {
		class := "other"
		if p.strong {
			class = "auto"
		}
		at := point{x.at(p.x), y.at(p.y)}
		d.mark("dot "+class, at.x, at.y, 5, fmt.Sprintf("%s: %s %.3f, %s %.3f", p.name, across, p.x, up, p.y))
		// Names move down until they cover no other.
		label := point{at.x + 9, at.y + 4}
		anchor := "start"
		if at.x > d.width*0.66 {
			label.x, anchor = at.x-9, "end"
		}
		for slices.ContainsFunc(taken, func(t point) bool {
			return abs(t.y-label.y) < 13 && abs(t.x-label.x) < 190
		}) {
			label.y += 2
		}
		taken = append(taken, label)
		d.text("label "+class, anchor, label.x, label.y, p.name)
	}
	return d.finish(name, title)
}

// trace is a value that changes from step to step.
type trace struct {
	name   string
	steps  []float64 // where, empty for 0, 1, 2 and so on
	values []float64
}

// lines draws traces, each with a colour of its own and its name below.
func lines(name, title, across, up string, traces []trace) template.HTML {
	d := &drawing{width: 760, height: 400 + 18*float64((len(traces)+1)/2)}
	longest, most := 1.0, 0.0
	for _, t := range traces {
		for i, v := range t.values {
			most = max(most, v)
			longest = max(longest, t.at(i))
		}
	}
	x, y := axis{0, longest, 60, d.width - 20}, axis{0, most * 1.05, 350, 30}
	d.frame(x, y, across, up)
	for i, t := range traces {
		class := fmt.Sprintf("s%d", i%colours)
		points := make([]point, len(t.values))
		for k, v := range t.values {
			points[k] = point{x.at(t.at(k)), y.at(v)}
		}
		d.path("trace "+class, points, t.name)
		lx, ly := 60+350*float64(i%2), 408+18*float64(i/2)
		d.line("trace "+class, lx, ly-4, lx+24, ly-4)
		d.text("label", "start", lx+32, ly, t.name)
	}
	return d.finish(name, title)
}

// colours is how many the page has for traces.
const colours = 8

func (t *trace) at(i int) float64 {
	if len(t.steps) > 0 {
		return t.steps[i]
	}
	return float64(i)
}

// group is a named group of bars of the same kinds.
type group struct {
	name   string
	values []float64
}

// bars draws groups of bars from 0 to 1, with the kinds named below.
func bars(name, title string, kinds []string, groups []group) template.HTML {
	const left, bar, space = 190, 13, 9
	each := bar*float64(len(kinds)) + space
	d := &drawing{width: 760, height: 14 + each*float64(len(groups)) + 62}
	x := axis{0, 1, left, d.width - 60}
	bottom := 14 + each*float64(len(groups))
	for _, v := range x.ticks(10) {
		d.line("grid", x.at(v), 10, x.at(v), bottom)
		d.text("tick", "middle", x.at(v), bottom+16, short(v))
	}
	for i, g := range groups {
		y := 14 + each*float64(i)
		d.text("label", "end", left-10, y+each/2, g.name)
		for k, v := range g.values {
			class := fmt.Sprintf("fill s%d", k%colours)
			d.bar(class, x.from, y+bar*float64(k), x.at(v)-x.from, bar-1, fmt.Sprintf("%s, %s: %.3f", g.name, kinds[k], v))
			d.text("value", "start", x.at(v)+4, y+bar*float64(k)+10, fmt.Sprintf("%.2f", v))
		}
	}
	at := float64(left)
	for k, kind := range kinds {
		d.bar(fmt.Sprintf("fill s%d", k%colours), at, bottom+32, 12, 12, kind)
		d.text("label", "start", at+18, bottom+42, kind)
		at += 36 + 8*float64(len(kind))
	}
	return d.finish(name, title)
}

func abs(x float64) float64 { return max(x, -x) }
