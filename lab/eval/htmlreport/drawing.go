package htmlreport

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// drawing is a picture in SVG. Its colours are classes of the page, which has a light
// and a dark theme.
type drawing struct {
	body          strings.Builder
	width, height float64
}

// finish is the picture, with a title for readers who do not see it. The name must be
// unique on the page.
func (d *drawing) finish(name, title string) markup {
	class := "whole"
	if d.width > phoneWidth {
		class = "large"
	}
	return markup(fmt.Sprintf(
		`<svg class="%s" style="max-width:%.0fpx" viewBox="0 0 %.0f %.0f" role="img" aria-labelledby="%s" xmlns="http://www.w3.org/2000/svg"><title id="%s">%s</title>%s</svg>`,
		class, 1.15*d.width, d.width, d.height, name, name, html.EscapeString(title), d.body.String()))
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.body, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x1, y1, x2, y2)
}

// mark draws a point; its words show under the pointer.
func (d *drawing) mark(class string, x, y, radius float64, words string) {
	fmt.Fprintf(&d.body, `<circle class="%s" cx="%.1f" cy="%.1f" r="%.1f"><title>%s</title></circle>`, class, x, y, radius, html.EscapeString(words))
}

func (d *drawing) bar(class string, x, y, width, height float64, words string) {
	fmt.Fprintf(&d.body, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`, class, x, y, max(0, width), height, html.EscapeString(words))
}

// text writes words; anchor is start, middle or end.
func (d *drawing) text(class, anchor string, x, y float64, words string) {
	fmt.Fprintf(&d.body, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, class, anchor, x, y, html.EscapeString(words))
}

// path joins points with straight lines.
func (d *drawing) path(class string, points []point, words string) {
	d.body.WriteString(`<path class="` + class + `" d="`)
	for i, p := range points {
		letter := "L"
		if i == 0 {
			letter = "M"
		}
		fmt.Fprintf(&d.body, "%s%.1f %.1f", letter, p.x, p.y)
	}
	d.body.WriteString(`"><title>` + html.EscapeString(words) + `</title></path>`)
}

type point struct{ x, y float64 }

// axis maps values to positions.
type axis struct {
	low, high float64 // values
	from, to  float64 // positions
}

func (a axis) at(v float64) float64 {
	if a.high <= a.low {
		return a.from
	}
	return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from)
}

// ticks are about so many round values on the axis.
func (a axis) ticks(about int) []float64 {
	span := a.high - a.low
	if !(span > 0) || math.IsInf(span, 0) {
		return []float64{a.low}
	}
	step := math.Pow(10, math.Floor(math.Log10(span/float64(about))))
	for _, times := range []float64{1, 2, 5, 10} {
		if span/(step*times) <= float64(about) {
			step *= times
			break
		}
	}
	var all []float64
	for n := math.Ceil(a.low/step - 1e-9); n*step <= a.high+1e-9*step; n++ {
		all = append(all, n*step+0) // no negative zero
	}
	return all
}

// tickText writes a number briefly, for a tick.
func tickText(v float64) string {
	switch {
	case v >= 1e6:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v/1e6), ".0") + "M"
	case v >= 1e4:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v/1e3), ".0") + "k"
	case v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	}
	return strings.TrimRight(fmt.Sprintf("%.2f", v), "0")
}

// frame draws both axes with their grid and names.
func (d *drawing) frame(x, y axis, across, up string) {
	for _, v := range x.ticks(8) {
		d.line("grid", x.at(v), y.from, x.at(v), y.to)
		d.text("tick", "middle", x.at(v), y.from+16, tickText(v))
	}
	for _, v := range y.ticks(6) {
		d.line("grid", x.from, y.at(v), x.to, y.at(v))
		d.text("tick", "end", x.from-6, y.at(v)+4, tickText(v))
	}
	d.line("axis", x.from, y.from, x.to, y.from)
	d.line("axis", x.from, y.from, x.from, y.to)
	d.text("name", "middle", (x.from+x.to)/2, y.from+36, across)
	d.text("name", "start", x.from-44, y.to-12, up)
}
