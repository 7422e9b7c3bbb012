package strategy

import "slices"

// evenShare is the most that each output in the protected tail may take, in tokens, so
// that together they take no more than their part of the room: what is smaller leaves its
// part to the others.
func (v *View) evenShare() int {
	var sizes []int
	room := v.part(v.parts().tail)
	for i := v.Tail; i < len(v.messages); i++ {
		switch {
		case !v.output(i):
		case v.storable(i) && v.Shrinkable(i) && v.cover[i] < 0:
			sizes = append(sizes, v.now[i])
		default:
			room -= v.now[i]
		}
	}
	slices.Sort(sizes)
	for n, size := range sizes {
		if even := room / (len(sizes) - n); size > even {
			return even
		}
		room -= size
	}
	return v.Room
}

// oversized is the size from which even a message in the protected tail is externalized,
// and what may stay of it, in tokens.
func (v *View) oversized() (size, stub int) {
	if v.level >= LastStep {
		return v.part(tightSize), v.part(tightStub)
	}
	return v.part(oversize), v.part(oversizeStub)
}

// parts are the shares of the room, as ratios, that may go to other things than summaries.
type parts struct {
	// lasting: results that no tool can give again, with their calls, as pointers of their
	// own. Those for which there is no room are named by a summary.
	lasting float64
	// tail: the outputs in the protected tail together, where lines of them are chosen:
	// one step can ask for many.
	tail float64
	// pointers: what a summary names as externalized, as a share of the summary. With
	// Summarize.Pointers it is that of a large room.
	pointers float64
}

var (
	largeParts = parts{lasting: 0.1, tail: 0.3, pointers: 0.25}
	// smallParts are those of a small room: the summary needs what there is.
	smallParts = parts{lasting: 0, tail: 0.15, pointers: 0.125}
)

// smallRoom is the size below which a room is small, in tokens.
const smallRoom = 6_000

func (v *View) parts() parts {
	if v.Room < smallRoom {
		return smallParts
	}
	return largeParts
}

func (v *View) part(share float64) int { return int(float64(v.Room) * share) }
