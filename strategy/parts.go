package strategy

// parts are the shares of a room, as ratios, that may go to other things than what
// summaries say of what happened.
type parts struct {
	// lasting: lasting results and their calls, as pointers of their own. Those for which
	// there is no room are named by a summary, in a line.
	lasting float64
	// tail: the outputs in the protected tail together, where lines of them are chosen: one
	// step can ask for many.
	tail float64
	// pointers: of a summary, what it names as externalized. Asked for (Summarize.Pointers), it is
	// that of a large room.
	pointers float64
}

var (
	largeParts = parts{lasting: 0.1, tail: 0.3, pointers: 0.25}
	// smallParts are those of a small room: the summary needs what there is.
	smallParts = parts{lasting: 0, tail: 0.15, pointers: 0.125}
)

// smallRoom is the room, in tokens, below which it is a small one.
const smallRoom = 6_000

// parts are those of the view's room.
func (v *View) parts() parts {
	if v.Room < smallRoom {
		return smallParts
	}
	return largeParts
}
