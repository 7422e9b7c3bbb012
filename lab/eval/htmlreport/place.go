package htmlreport

import "math"

// box is the place of something.
type box struct{ x1, y1, x2, y2 float64 }

func (b box) overlaps(c box) bool { return b.x1 < c.x2 && c.x1 < b.x2 && b.y1 < c.y2 && c.y1 < b.y2 }

// placer places words where they cover nothing.
type placer struct {
	width, height float64
	taken         []box
}

// reserve keeps words off a place.
func (p *placer) reserve(b box) { p.taken = append(p.taken, b) }

// letter is about the mean width of a letter in labels, size the height of a line.
const (
	letter = 6.4
	size   = 13
)

// labelPlace is a place for words, so many steps away from their point.
type labelPlace struct {
	anchor string
	x, y   float64
	steps  int
	box    box
}

// farthest is how many steps away words may be; from leadFrom steps on a line leads to
// them.
const (
	farthest = 40
	leadFrom = 2
)

// placeNear finds a free place for words, as near to a point as possible, to the right
// first. It does not reserve it.
func (p *placer) placeNear(at point, words string) labelPlace {
	wide := letter * float64(len([]rune(words)))
	for step := 0; ; step++ {
		distance := 9 + 7*float64(step)
		for _, angle := range []float64{0, 180, -90, 90, -35, 35, -145, 145, -65, 65, -115, 115} {
			dx, dy := math.Cos(angle*math.Pi/180)*distance, math.Sin(angle*math.Pi/180)*distance
			b := box{at.x + dx, at.y + dy - size/2, at.x + dx + wide, at.y + dy + size/2}
			s := labelPlace{"start", at.x + dx, at.y + dy + 4, step, b}
			switch {
			case math.Abs(dx) < 1:
				s.box.x1, s.box.x2 = at.x-wide/2, at.x+wide/2
				s.anchor, s.x = "middle", at.x
			case dx < 0:
				s.box.x1, s.box.x2 = at.x+dx-wide, at.x+dx
				s.anchor = "end"
			}
			free := s.box.x1 >= 2 && s.box.y1 >= 2 && s.box.x2 <= p.width-2 && s.box.y2 <= p.height-2
			for _, t := range p.taken {
				free = free && !s.box.overlaps(t)
			}
			if free || step == farthest {
				return s
			}
		}
	}
}
