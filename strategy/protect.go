package strategy

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Protection says how much of a thread is kept from the rungs. The levels go from what a
// reader would wish for to what a prompt cannot do without, so that a tight budget gives
// up the lesser things first.
type Protection uint8

const (
	// generous protects the newest part up to 30 % of the room (parts.newest), in whole steps: agents
	// mostly refer to what they have just seen.
	generous Protection = iota
	// lean protects half of that.
	lean
	// LastStep protects the user's last message and the last step of the model.
	LastStep
	// bare protects the user's first and last message where they fit, and calls that wait for a result.
	bare
)

// Protections lists the levels, the most generous first.
func Protections() []Protection { return []Protection{generous, lean, LastStep, bare} }

// The shares of the room, as ratios, up to which messages are pinned. A larger task is
// kept in the summary, trimmed in the middle.
const (
	pinTask     = 0.35
	pinLast     = 0.5
	pinCommand  = 0.2 // a command that was typed, with the text that it stands for, which is not the user's
	pinPreface  = 0.15
	pinAttached = 0.3 // all of what the user attached, the newest first, where the room is small

	shortRequest = 64   // tokens: a request that takes less than a summary that tells it
	pinnedRoom   = 4000 // tokens; a larger one shows what was attached without a pin, as it is shortened last
)

// Protect pins what the level protects, and sets the protected tail. Every level pins
// instructions of system and developer, calls that wait for a result, and the user's first and last message where they fit,
// or where no person speaks, the first of another agent, and what the user attached. All
// but bare also pin the model's last words and, where it is small, what a harness put
// before the first request. Messages at the positions of whole are pinned too, whatever
// their size.
func (v *View) Protect(level Protection, whole ...int) {
	n := len(v.messages)
	for _, i := range whole {
		v.pin(i)
	}
	v.Tail, v.level = n, level
	task, last, words := -1, -1, -1
	step := n
	for _, i := range Instructions(v.messages) {
		v.pin(i)
	}
	for i := range v.messages {
		m := &v.messages[i]
		if m.StartsTurn() {
			if task < 0 {
				task = i
			}
			last = i
		}
		if m.Role == thread.Assistant {
			step = i
			if strings.TrimSpace(m.Text()) != "" {
				words = i
			}
		}
		if v.Pairs.Open(i) {
			v.pin(i)
		}
	}
	if task < 0 { // a sub-agent's session: its task is another agent's
		task = slices.IndexFunc(v.messages, func(m thread.Message) bool { return m.Kind == thread.Relayed })
		last = task
	}
	if level < bare {
		if task > 0 && v.size(0, task) <= v.part(pinPreface) {
			for i := range task {
				v.pin(i)
			}
		}
		most := v.part(v.parts().step)
		if len(whole) == 0 && step < n && v.Sizes[step] > most {
			step = n
		} else {
			v.Tail = v.tail(level, min(step, n))
		}
		if step > last && step < n && v.Sizes[step] <= most {
			v.pin(step)
		}
		if words >= 0 && v.Sizes[words] <= v.part(pinTask) && v.size(words, n) <= v.part(v.parts().words) {
			v.pin(words) // calls without a word may follow them
		}
	}
	room := v.Room
	if level == bare { // nothing gives way any more: only what the waiting calls leave
		for i, size := range v.Sizes {
			if v.Anchored[i] {
				room -= size
			}
		}
	}
	v.pinRequest(last, room, pinLast)
	if level == bare && last >= 0 && last != task && v.Pinned[last] {
		room -= v.Sizes[last]
	}
	v.pinRequest(task, room, pinTask)
	for i, left := n-1, float64(room)*pinAttached; i >= 0 && room <= pinnedRoom; i-- {
		if size := float64(v.Sizes[i]); v.messages[i].Kind == thread.Attached && size <= left {
			v.pin(i)
			left -= size
		}
	}
}

// Instructions returns the positions of what system and developer laid down in the conversation, the
// last first; where the same is there again, or all tools that it loads are loaded again, its last place. A change
// of the tools holds only behind those before it, so each of them counts.
func Instructions(messages []thread.Message) (at []int) {
	again, loaded := map[string]bool{}, map[string]bool{}
	for i := len(messages) - 1; i >= 0; i-- {
		m := &messages[i]
		if !m.IsInstruction() {
			continue
		}
		var content strings.Builder
		changes := false
		for _, p := range m.Parts {
			if t, ok := p.(thread.Text); ok {
				content.WriteString(t.Text)
			} else {
				content.WriteString(p.From().Raw)
			}
			content.WriteByte(0)
			o, _ := p.(thread.Opaque)
			changes = changes || o.Kind == "tool_addition" || o.Kind == "tool_removal"
		}
		loads := hosted.Loads(m)
		repeats := len(loads) > 0 && m.Role != thread.System && !slices.ContainsFunc(loads, func(tool string) bool { return !loaded[tool] })
		if changes || !again[content.String()] && !repeats {
			at = append(at, i)
		}
		for _, tool := range loads {
			loaded[tool] = true
		}
		again[content.String()] = true
	}
	return at
}

// pinRequest pins a message of the user's that takes at most that share of the room.
func (v *View) pinRequest(i, room int, share float64) {
	if i < 0 {
		return
	}
	if injected.Command(v.messages[i].Text()) != "" {
		share = pinCommand
	}
	if size := v.Sizes[i]; float64(size) <= float64(room)*share || size <= min(shortRequest, room) {
		v.pin(i)
	}
}

// tail is the position where the protected newest part begins.
func (v *View) tail(level Protection, step int) int {
	points := cut.Legal(v.Thread, v.Pairs)
	share := v.parts().newest
	switch {
	case level == lean:
		share /= 2
	case level > lean:
		return cut.LastMessages{N: len(v.messages) - step}.Cut(points, nil)
	}
	p := cut.LastTokens{N: v.part(share), SplitTurns: true}.Cut(points, func(i int) int {
		if large, stub := v.oversized(); v.Sizes[i] > large && v.output(i) && v.storable(i) {
			return stub // it will be externalized, and must not end the tail
		}
		return v.Sizes[i]
	})
	// The last step can stand before a late result of an earlier call.
	return cut.LastMessages{N: len(v.messages) - min(p, step)}.Cut(points, nil)
}

// size is the size of the messages from..to, in tokens.
func (v *View) size(from, to int) (all int) {
	for i := from; i < to; i++ {
		all += v.Sizes[i]
	}
	return all
}

// pin pins a message, and anchors the results of its calls, or the call of a result.
func (v *View) pin(i int) {
	v.Pinned[i] = true
	v.anchor(i)
}

func (v *View) anchor(i int) {
	if v.Anchored[i] {
		return
	}
	v.Anchored[i] = true
	for _, r := range v.Pairs.Results(i) {
		v.anchor(r)
	}
	if call, ok := v.Pairs.Call(i); ok {
		v.anchor(call)
	}
	for k, end := v.Pairs.Beside(i); k < end; k++ {
		v.anchor(k)
	}
}

// PinnedPositions lists the pinned messages, in thread order.
func (v *View) PinnedPositions() []int {
	var at []int
	for i, pinned := range v.Pinned {
		if pinned {
			at = append(at, i)
		}
	}
	return at
}
