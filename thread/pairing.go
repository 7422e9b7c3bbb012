package thread

// Pairing knows which tool messages answer which calls of a thread. It is safe for concurrent
// use. One from PairFrom must not be asked about messages before its position.
type Pairing struct {
	from     int           // position of the first message that was looked at
	messages []Message     // from there on
	call     []int         // per message from there on: position of the message whose call it answers, or -1
	part     []int         // and which of its parts the call is
	results  map[int][]int // per message with calls: positions of its results, in log order
	extra    map[int]bool  // tool messages that answer a call answered before
	missing  map[int][]ToolCall
	tail     int // position of the last assistant message if nothing but results follows it, else -1
}

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
		call:    make([]int, len(messages)),
		part:    make([]int, len(messages)),
		results: map[int][]int{},
		extra:   map[int]bool{},
		missing: map[int][]ToolCall{},
		tail:    -1,
	}
	type asked struct {
		at, part int
		answered bool
	}
	open := map[string]*asked{}
	all := map[int][]*asked{} // per message: of each of its calls
	for n := range messages {
		m, i := &messages[n], from+n
		p.call[n] = -1
		switch m.Role {
		case Assistant:
			p.tail = i
			for k, part := range m.Parts {
				c, ok := part.(ToolCall)
				if !ok {
					continue
				}
				if a := open[c.ID]; a == nil || a.at != i {
					open[c.ID] = &asked{at: i, part: k}
				}
				all[i] = append(all[i], open[c.ID])
			}
		case Tool:
			r, _ := m.Result()
			a := open[r.CallID]
			if a == nil {
				whole = false
				break
			}
			p.call[n], p.part[n] = a.at, a.part
			p.results[a.at] = append(p.results[a.at], i)
			if a.answered {
				p.extra[i] = true
				break
			}
			a.answered = true
		default:
			p.tail = -1
		}
	}
	for i, list := range all {
		n := 0
		for _, part := range messages[i-from].Parts {
			if c, ok := part.(ToolCall); ok {
				if !list[n].answered {
					p.missing[i] = append(p.missing[i], c)
				}
				n++
			}
		}
	}
	return p, whole
}

// Call returns the position of the message whose call the tool message at i
// answers. It is false for orphans and for messages that are no results.
func (p *Pairing) Call(i int) (int, bool) { return p.call[i-p.from], p.call[i-p.from] >= 0 }

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
func (p *Pairing) Results(i int) []int { return p.results[i] }

// Duplicate reports whether the tool message at i answers a call that an
// earlier message answered.
func (p *Pairing) Duplicate(i int) bool { return p.extra[i] }

// Missing returns the calls of the message at i that no message answers.
func (p *Pairing) Missing(i int) []ToolCall { return p.missing[i] }

// Open reports whether the message at i has a call whose result may still come: an unanswered
// call of the last assistant message, followed only by results. Earlier unanswered calls were
// aborted.
func (p *Pairing) Open(i int) bool { return i == p.tail && len(p.missing[i]) > 0 }
