package thread

import (
	"maps"
	"slices"
)

// Pairing knows which tool messages answer which calls of a thread, and which messages are one
// unit: a hosted call, its result, and what its program called in between. It is safe for
// concurrent use. One from PairFrom must not be asked about messages before its position.
type Pairing struct {
	from     int          // position of the first message that was looked at
	messages []Message    // from there on
	call     []int32      // per message from there on: position of the message whose call it answers, or -1
	part     []int32      // and which of its parts the call is
	results  []int        // positions of all results that answer a call, by the message of the call and in log order
	ends     []int32      // per message from there on: where its results end
	extra    map[int]bool // tool messages that answer a call answered before
	missing  map[int][]ToolCall
	tail     int          // position of the last assistant message if nothing but results follows it, else -1
	hosted   map[int]bool // tool messages that answer a hosted call
	late     map[int][]LateCall
	units    map[int]*unit
	waiting  int // position of the first hosted call that waits for its result; beyond the end if none does
}

// LateCall is a call of which a message has the result, or a nested call, after somebody else has spoken, or the
// model has gone on without it.
type LateCall struct {
	ID string
	At int // position of its message
}

// unit is a stretch of messages around a hosted call.
type unit struct{ first, last int }

// maxNesting is how many calls within calls are followed.
const maxNesting = 8

// Pair pairs calls and results. A call is answered by the first later tool message with its
// id, before another call has the id; further ones are duplicates. A result without a call is
// an orphan.
func Pair(t *Thread) *Pairing {
	p, _ := PairFrom(t, 0)
	return p
}

// PairFrom pairs the messages from a position on, for callers that know the pairs before it.
// It is false if a result there answers none of the calls there: it may be a late one of an
// earlier call. It panics if from is negative or greater than the length of the thread.
func PairFrom(t *Thread, from int) (*Pairing, bool) {
	messages := t.messages[from:]
	whole := true
	p := &Pairing{
		from: from, messages: messages,
		call:    make([]int32, len(messages)),
		part:    make([]int32, len(messages)),
		extra:   map[int]bool{},
		missing: map[int][]ToolCall{},
		hosted:  map[int]bool{},
		late:    map[int][]LateCall{},
		tail:    -1,
	}
	given := map[string]int{}               // all hosted calls so far, by id: where they stand
	hosted := map[string]int{}              // hosted calls without their result, by id: where they stand
	parents := map[string]string{}          // of these, by id
	goesOn := map[string]bool{}             // those that the message at hand has to do with
	reach := map[int]int{}                  // from the message of a hosted call: to the last of what belongs to it
	within := func(id string, i int) bool { // message i belongs to the hosted call
		first, found := hosted[id]
		if found {
			reach[first] = i
		}
		for depth, ok := 0, found; ok && depth < maxNesting; depth++ {
			goesOn[id] = true
			id = parents[id]
			_, ok = hosted[id]
		}
		return found
	}
	type asked struct {
		at, part int
		answered bool
	}
	var calls []asked        // one for each id in a message
	open := map[string]int{} // the latest of them by id
	var all []int            // for each call, in log order, which of them it is
	for n := range messages {
		m, i := &messages[n], from+n
		p.call[n] = -1
		switch m.Role {
		case Assistant:
			p.tail = i
			clear(goesOn)
			for k, part := range m.Parts {
				if o, ok := part.(Opaque); ok && o.Call != "" {
					within(o.Parent, i)
					if !o.Answers {
						hosted[o.Call], parents[o.Call], goesOn[o.Call] = i, o.Parent, true
						given[o.Call] = i
					} else if within(o.Call, i) {
						delete(hosted, o.Call)
					} else {
						p.comesLate(i, given, o.Call)
						whole = false
					}
				}
				c, ok := part.(ToolCall)
				if !ok {
					continue
				}
				if c.Parent != "" && !within(c.Parent, i) {
					p.comesLate(i, given, c.Parent)
					whole = false
				}
				if a, ok := open[c.ID]; !ok || calls[a].at != i {
					open[c.ID], calls = len(calls), append(calls, asked{at: i, part: k})
				}
				all = append(all, open[c.ID])
			}
			// A message that has nothing to do with a call goes on without its result.
			maps.DeleteFunc(hosted, func(id string, _ int) bool { return !goesOn[id] })
		case Tool:
			r, _ := m.Result()
			at, known := open[r.CallID]
			if !known {
				if p.hosted[i] = within(r.CallID, i); !p.hosted[i] {
					p.hosted[i] = p.comesLate(i, given, r.CallID)
					whole = false
				}
				delete(hosted, r.CallID)
				break
			}
			a := &calls[at]
			p.call[n], p.part[n] = int32(a.at), int32(a.part)
			if p.tail != a.at {
				p.late[i] = []LateCall{{r.CallID, a.at}}
			}
			if c, _ := messages[a.at-from].Parts[a.part].(ToolCall); c.Parent != "" {
				within(c.Parent, i)
			}
			if a.answered {
				p.extra[i] = true
				break
			}
			a.answered = true
		case User:
			clear(hosted) // whoever speaks has given up what was running
			p.tail = -1
		default:
			p.tail = -1
		}
	}
	p.waiting = t.Len()
	for _, i := range hosted {
		p.waiting = min(p.waiting, i)
	}
	if p.waiting < t.Len() {
		reach[p.waiting] = t.Len() - 1
	}
	p.units = units(reach)
	for n := range messages {
		for _, part := range messages[n].Parts {
			if c, ok := part.(ToolCall); ok && messages[n].Role == Assistant {
				if !calls[all[0]].answered {
					p.missing[from+n] = append(p.missing[from+n], c)
				}
				all = all[1:]
			}
		}
	}
	p.sortResults()
	return p, whole
}

// sortResults finds the results of each message from the calls that they answer.
func (p *Pairing) sortResults() {
	p.ends = make([]int32, len(p.messages))
	count := int32(0)
	for _, at := range p.call {
		if at >= 0 {
			p.ends[int(at)-p.from]++
			count++
		}
	}
	p.results = make([]int, count)
	for n, begin := 0, int32(0); n < len(p.ends); n++ {
		begin, p.ends[n] = begin+p.ends[n], begin
	}
	for n, at := range p.call {
		if at >= 0 {
			end := &p.ends[int(at)-p.from]
			p.results[*end] = p.from + n
			*end++
		}
	}
}

// comesLate notes that the message at i answers a hosted call that was given up, if there is one.
func (p *Pairing) comesLate(i int, given map[string]int, id string) bool {
	at, ok := given[id]
	if ok {
		p.late[i] = append(p.late[i], LateCall{id, at})
	}
	return ok
}

// units merges stretches that share a message, and lists them by their messages.
func units(reach map[int]int) map[int]*unit {
	byMessage := map[int]*unit{}
	var u *unit
	for _, first := range slices.Sorted(maps.Keys(reach)) {
		if u == nil || first > u.last {
			u = &unit{first, first - 1}
		}
		for ; u.last < reach[first]; u.last++ {
			byMessage[u.last+1] = u
		}
	}
	return byMessage
}

// Unit returns the positions of the first and the last message of the unit that the message at i
// is part of. All of them are hidden, or none. A message of no unit, or of one that it holds
// alone, is both itself.
func (p *Pairing) Unit(i int) (first, last int) {
	if u := p.units[i]; u != nil {
		return u.first, u.last
	}
	return i, i
}

// Together returns the positions of what is shown or hidden with the message at i, in order: itself, its calls
// and their results, and its unit.
func (p *Pairing) Together(i int) []int {
	if call, ok := p.Call(i); ok {
		i = call
	}
	all := append([]int{i}, p.Results(i)...)
	for k, last := p.Unit(i); k <= last; k++ {
		all = append(all, k)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Beside returns the positions to go on to from the message at i, to reach all of its unit: from the
// first message all others, from another one the first.
func (p *Pairing) Beside(i int) (from, to int) {
	first, last := p.Unit(i)
	if i != first {
		return first, first + 1
	}
	return first + 1, last + 1
}

// Call returns the position of the message whose call the tool message at i
// answers. It is false for orphans and for messages that are no results.
func (p *Pairing) Call(i int) (int, bool) {
	at := int(p.call[i-p.from])
	return at, at >= 0
}

// Hosted reports whether the tool message at i answers a hosted call, which is no ToolCall.
func (p *Pairing) Hosted(i int) bool { return p.hosted[i] }

// Late returns the calls that the message at i is late for. They may be hidden while it stays.
func (p *Pairing) Late(i int) []LateCall { return p.late[i] }

// Answered returns the call that the tool message at i answers. It is false for
// orphans and for messages that are no results.
func (p *Pairing) Answered(i int) (ToolCall, bool) {
	at, ok := p.Call(i)
	if !ok {
		return ToolCall{}, false
	}
	c, ok := p.messages[at-p.from].Parts[p.part[i-p.from]].(ToolCall)
	return c, ok
}

// Results returns the positions of the messages that answer calls of the
// message at i, in log order, duplicates included.
func (p *Pairing) Results(i int) []int {
	begin := int32(0)
	if i > p.from {
		begin = p.ends[i-p.from-1]
	}
	return p.results[begin:p.ends[i-p.from]:p.ends[i-p.from]]
}

// Duplicate reports whether the tool message at i answers a call that an
// earlier message answered.
func (p *Pairing) Duplicate(i int) bool { return p.extra[i] }

// Missing returns the calls of the message at i that no message answers.
func (p *Pairing) Missing(i int) []ToolCall { return p.missing[i] }

// Open reports whether the message at i has a call whose result may still come, or belongs to the
// unit of one: an unanswered call of the last assistant message, followed only by results, or a
// hosted call behind which nobody has spoken and the model has not gone on without it. Earlier
// unanswered calls were aborted.
func (p *Pairing) Open(i int) bool {
	return i >= p.waiting || i == p.tail && len(p.missing[i]) > 0
}
