package htmlreport

import (
	"fmt"
	"math"
)

// spot is one size of a contender.
type spot struct {
	name string // of the size; empty for a contender without sizes
	x, y float64
	at   point
}

// curve is a way to compact at several sizes, or at one.
type curve struct {
	name   string
	strong bool
	spots  []spot
}

// frontierPlot draws recall against cost, a line for each way to compact that has sizes
// and a point for each other. The axis of cost is logarithmic: some ways cost ten times
// as much as others.
func frontierPlot(name, title, across, up string, curves []curve) markup {
	d := &drawing{width: 760, height: 500}
	low, high, least := 0.5, 1.5, 1.0
	for _, c := range curves {
		for _, s := range c.spots {
			low, high, least = min(low, s.x), max(high, s.x), min(least, s.y)
		}
	}
	x := axis{math.Log(low * 0.9), math.Log(high * 1.12), 56, d.width - 16}
	y := axis{math.Floor(least*10-0.5) / 10, 1, d.height - 56, 34}
	y.low = max(0, y.low)
	for _, v := range []float64{0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20} {
		if at := x.at(math.Log(v)); at >= x.from && at <= x.to {
			class := "grid"
			if v == 1 {
				class = "goal"
				d.text("tick", "start", at+4, y.to-6, "no compaction")
			}
			d.line(class, at, y.from, at, y.to)
			d.text("tick", "middle", at, y.from+17, tickText(v))
		}
	}
	for _, v := range y.ticks(8) {
		d.line("grid", x.from, y.at(v), x.to, y.at(v))
		d.text("tick", "end", x.from-7, y.at(v)+4, tickText(v))
	}
	d.line("axis", x.from, y.from, x.to, y.from)
	d.line("axis", x.from, y.from, x.from, y.to)
	d.text("name", "middle", (x.from+x.to)/2, y.from+40, across)
	d.text("name", "start", x.from-44, 14, up)

	p := &placer{width: d.width, height: y.from}
	p.reserve(box{0, 0, x.from + 2, d.height}) // the axis
	p.reserve(box{x.at(0), 20, x.at(0) + 90, y.to})
	kinds := 0
	class := make([]string, len(curves))
	for i := range curves {
		c := &curves[i]
		switch {
		case c.strong:
			class[i] = "s1"
		case len(c.spots) == 1:
			class[i] = "s0"
		default:
			kinds++
			class[i] = fmt.Sprintf("s%d", 2+(kinds-1)%(traceColours-2))
		}
		points := make([]point, len(c.spots))
		for k := range c.spots {
			s := &c.spots[k]
			s.at = point{x.at(math.Log(s.x)), y.at(s.y)}
			points[k] = s.at
			p.reserve(box{s.at.x - 6, s.at.y - 6, s.at.x + 6, s.at.y + 6})
			for n := 1; k > 0 && n < 12; n++ {
				share := float64(n) / 12
				before := points[k-1]
				on := point{before.x + (s.at.x-before.x)*share, before.y + (s.at.y-before.y)*share}
				p.reserve(box{on.x - 2, on.y - 2, on.x + 2, on.y + 2})
			}
		}
		if len(points) > 1 {
			d.path("trace "+class[i], points, c.name)
		}
	}
	// Ours is drawn last, to be on top, and labelled first, to have room.
	for _, strong := range []bool{false, true} {
		for i, c := range curves {
			for _, s := range c.spots {
				if c.strong == strong {
					d.shape(class[i], s.at, fmt.Sprintf("%s %s: cost %.3f, recall %.3f", c.name, s.name, s.x, s.y))
				}
			}
		}
	}
	for _, strong := range []bool{true, false} {
		for i, c := range curves {
			if c.strong != strong || len(c.spots) == 0 {
				continue
			}
			// The name goes where there is room next to the line.
			best, lead := p.placeNear(c.spots[0].at, c.name), c.spots[0].at
			for _, s := range c.spots[1:] {
				if other := p.placeNear(s.at, c.name); other.steps < best.steps {
					best, lead = other, s.at
				}
			}
			p.reserve(best.box)
			if best.steps >= leadFrom {
				d.line("lead-line", lead.x, lead.y, best.x, best.y-4)
			}
			d.text("label "+class[i], best.anchor, best.x, best.y, c.name)
		}
	}
	for _, c := range curves {
		for k, s := range c.spots {
			if len(c.spots) > 1 && s.name != "" && (c.strong || k == 0 || k == len(c.spots)-1) {
				if place := p.placeNear(s.at, s.name); place.steps < leadFrom {
					p.reserve(place.box)
					d.text("value", place.anchor, place.x, place.y, s.name)
				}
			}
		}
	}
	return d.finish(name, title)
}

// shape draws a mark that has a form as well as a colour of its class.
func (d *drawing) shape(class string, at point, words string) {
	form := func(points ...float64) {
		all := make([]point, 0, len(points)/2)
		for i := 0; i < len(points); i += 2 {
			all = append(all, point{at.x + points[i], at.y + points[i+1]})
		}
		d.path("fill "+class, all, words)
	}
	switch class {
	case "s1":
		d.mark("fill "+class, at.x, at.y, 6, words)
	case "s2":
		form(-4.5, -4.5, 4.5, -4.5, 4.5, 4.5, -4.5, 4.5)
	case "s3":
		form(0, -6, 5.5, 4.5, -5.5, 4.5)
	case "s4":
		form(0, -6, 6, 0, 0, 6, -6, 0)
	case "s5":
		form(0, 6, 5.5, -4.5, -5.5, -4.5)
	case "s6":
		form(-5, -2, -2, -2, -2, -5, 2, -5, 2, -2, 5, -2, 5, 2, 2, 2, 2, 5, -2, 5, -2, 2, -5, 2)
	default:
		d.mark("fill "+class, at.x, at.y, 4, words)
	}
}
