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
	// newest: the newest steps that the most generous level protects; the next protects half of it.
	newest float64
	// step: the last step of the model, as far as it is pinned. A larger one, such as a file written,
	// would take the room of all that was said.
	step float64
	// words: the model's last words, with all that came after them.
	words float64
}

var (
	largeParts = parts{lasting: 0.1, tail: 0.3, pointers: 0.25, newest: 0.3, step: 0.4, words: 1}
	// smallParts are those of a small room: the summary needs what there is.
	smallParts = parts{lasting: 0, tail: 0.15, pointers: 0.125, newest: 0.15, step: 0.15, words: 0.45}
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

// What summaries may take, as shares of the room that pinned messages leave.
const (
	// summaryShare is for all of them; it was tuned on the dev split (lab/README.md): lines
	// chosen from everything hold more of what is needed later than the newest messages
	// whole.
	summaryShare = 0.7
	// A plan that grows begins with summaries of firstShare, and each compaction adds one of
	// addedShare, of minAdded tokens at least, until summaryShare is taken.
	firstShare, addedShare = 0.4, 0.15
	minAdded               = 1_500
	// keptShare is what summaries in force may take where a plan fills the room: with more,
	// the new one is squeezed and loses what was done last. At 0.8 scripted agents began a
	// part of their task again.
	keptShare = 0.5
)

// LeavesSummaryRoom reports whether the summaries in force leave enough room for another.
func (v *View) LeavesSummaryRoom() bool {
	kept := v.summaryTokens(0, v.inForce)
	if !v.grows() {
		return kept <= v.part(keptShare)
	}
	return kept+v.addedRoom() <= int(summaryShare*float64(v.unpinnedRoom()))
}

// grows reports whether new summaries leave room for later ones. In a small room the parts
// would be too small.
func (v *View) grows() bool { return v.Grows && v.Room >= smallRoom }

// newSummaryRoom is what new summaries may still take together, in tokens.
func (v *View) newSummaryRoom() int {
	made := v.summaryTokens(v.inForce, len(v.records))
	switch {
	case !v.grows():
		return v.Room
	case v.summaryTokens(0, v.inForce) > 0:
		return max(0, v.addedRoom()-made)
	}
	return max(0, int(firstShare*float64(v.unpinnedRoom()))-made)
}

func (v *View) addedRoom() int { return max(minAdded, int(addedShare*float64(v.unpinnedRoom()))) }

// unpinnedRoom is the room without what stays before the protected tail.
func (v *View) unpinnedRoom() int {
	room := v.Room
	for i := range v.Tail {
		if !v.Free(i) && v.summaryAt(i) == 0 {
			room -= v.now[i]
		}
	}
	return room
}

// summaryTokens is how many tokens the summaries take that the records from..to are.
func (v *View) summaryTokens(from, to int) int {
	total := 0
	for i, c := range v.cover {
		if c >= from && c < to {
			total += v.summaryAt(i)
		}
	}
	return total
}
