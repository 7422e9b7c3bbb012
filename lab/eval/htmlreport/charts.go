package htmlreport

import (
	"fmt"
)

// phoneWidth is the width of a picture that a phone shows whole.
const phoneWidth = 580

// whisker is a value with its interval.
type whisker struct {
	name             string
	value, low, high float64
	strong           bool
	over             bool // most prompts are over the budget
	failed           bool // most prompts were not made
}

// forestPlot draws one line for each contender: its value and its interval.
func forestPlot(name, title, across string, rows []whisker) markup {
	const line, left, top = 22, 222, 14
	d := &drawing{width: phoneWidth, height: top + line*float64(len(rows)) + 46}
	x := axis{0, 1, left, d.width - 60}
	bottom := d.height - 44
	for _, v := range x.ticks(10) {
		d.line("grid", x.at(v), top, x.at(v), bottom)
		d.text("tick", "middle", x.at(v), bottom+16, tickText(v))
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
		if r.over {
			class = "hollow"
			words += ", beyond the budget"
		}
		d.mark("dot "+class, x.at(r.value), y, 4, words)
		told := fmt.Sprintf("%.3f", r.value)
		if r.failed {
			told = "not made"
		}
		d.text("tick", "start", x.to+10, y+4, told)
	}
	return d.finish(name, title)
}

// trace is a value that changes from step to step.
type trace struct {
	name   string
	strong bool
	values []float64
}

// linePlot draws traces, each with a colour and dashes of its own and its name below.
// A positive top cuts off higher values.
func linePlot(name, title, across, up string, top float64, traces []trace) markup {
	d := &drawing{width: phoneWidth, height: 400 + 18*float64((len(traces)+1)/2)}
	longest, most := 1.0, 0.0
	for _, t := range traces {
		for i, v := range t.values {
			most = max(most, v)
			longest = max(longest, float64(i))
		}
	}
	if top > 0 {
		most = min(most, top)
	}
	x, y := axis{0, longest, 60, d.width - 20}, axis{0, most * 1.05, 350, 30}
	d.frame(x, y, across, up)
	other := 0
	for i, t := range traces {
		class := "s1"
		if !t.strong {
			// The second colour is for the trace that the plot points out.
			class = fmt.Sprintf("s%d", []int{0, 2, 3, 4, 5, 6, 7}[other%(traceColours-1)])
			other++
		}
		var points []point
		for k, v := range t.values {
			if v > y.high {
				break
			}
			points = append(points, point{x.at(float64(k)), y.at(v)})
		}
		d.path("trace "+class, points, t.name)
		lx, ly := 24+286*float64(i%2), 408+18*float64(i/2)
		d.line("trace "+class, lx, ly-4, lx+34, ly-4)
		d.text("label", "start", lx+42, ly, t.name)
	}
	return d.finish(name, title)
}

// traceColours is how many colours the page has for traces.
const traceColours = 8

// group is a named group of bars, one for each kind.
type group struct {
	name   string
	values []float64
}

// barPlot draws groups of bars from 0 to 1, with the kinds named below.
func barPlot(name, title string, kinds []string, groups []group) markup {
	const left, bar, space = 190, 13, 9
	each := bar*float64(len(kinds)) + space
	d := &drawing{width: phoneWidth, height: 14 + each*float64(len(groups)) + 62}
	x := axis{0, 1, left, d.width - 60}
	bottom := 14 + each*float64(len(groups))
	for _, v := range x.ticks(10) {
		d.line("grid", x.at(v), 10, x.at(v), bottom)
		d.text("tick", "middle", x.at(v), bottom+16, tickText(v))
	}
	for i, g := range groups {
		y := 14 + each*float64(i)
		d.text("label", "end", left-10, y+each/2, g.name)
		for k, v := range g.values {
			class := fmt.Sprintf("fill s%d", k%traceColours)
			d.bar(class, x.from, y+bar*float64(k), x.at(v)-x.from, bar-1, fmt.Sprintf("%s, %s: %.3f", g.name, kinds[k], v))
			d.text("value", "start", x.at(v)+4, y+bar*float64(k)+10, fmt.Sprintf("%.2f", v))
		}
	}
	at := float64(left)
	for k, kind := range kinds {
		d.bar(fmt.Sprintf("fill s%d", k%traceColours), at, bottom+32, 12, 12, kind)
		d.text("label", "start", at+18, bottom+42, kind)
		at += 36 + 8*float64(len(kind))
	}
	return d.finish(name, title)
}
