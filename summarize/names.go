package summarize

import (
	"cmp"
	"math"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// mention is an identifier in a text.
type mention struct {
	norm string
	kind ident.Type
}

// mentions appends the identifiers of a text.
func mentions(to []mention, text string) []mention { return mentionsWhile(nil, to, text) }

// mentionsWhile is mentions as long as the work goes on.
func mentionsWhile(live *effort.Budget, to []mention, text string) []mention {
	ident.ExtractWhile(live, text, func(x ident.Ident) { to = append(to, mention{x.Norm, x.Type}) })
	return to
}

// source is the kind of text that an identifier stands in.
type source uint8

const (
	inUser source = iota
	inWords
	inEdit
	inWrite
	inCommand
	inArguments
	inRead
	inSearch
	inList
	inOutput
	inChange
	inPage
	inResult
	sources
)

// ofCall reports whether it is an argument of a call.
func (s source) ofCall() bool { return s >= inEdit && s <= inArguments }

// names are the identifiers of a span and their weights: the chance that the agent soon
// writes one in a call.
type names struct {
	id     map[string]int32
	stats  []stat
	weight []float32
}

// stat is what is known of an identifier.
type stat struct {
	kind            ident.Type
	source          source // where it stood last
	user, words     uint8  // 1 if the user, the agent mentioned it in words
	inUse           bool   // it is in use
	inContext       bool   // it stays in the prompt anyway
	messages, calls int32  // how many messages hold it, how many of them in a call
	last            int32  // the position of the last of them
	near            int32  // lines to the nearest line with an identifier in use
}

const (
	// What the agent mentions in its last agentSteps steps, and the user during its last userSteps,
	// is in use.
	agentSteps, userSteps = 4, 6
	farOff                = 1 << 20
	lookUp                = 128 // what finding an identifier among the others takes, in units of effort
)

// learn finds the identifiers and their weights, and returns how many mentions it saw.
func (n *names) learn(work *effort.Budget, in *Input, all []*facts, of func(*thread.Message) *facts) (seen int) {
	for _, f := range all { // to allocate once
		eachLine(f, func(line []mention, _ source) { seen += len(line) })
	}
	n.id = make(map[string]int32, seen/6) // most come up more than once
	n.stats = make([]stat, 0, seen/6)
	steps := stepsBack(in)
	recent := func(i int, m *thread.Message) bool {
		return steps[i] <= agentSteps && m.Role == thread.Assistant || steps[i] <= userSteps && m.Role == thread.User
	}
	for i, f := range all {
		hot := recent(i, &in.Messages[i])
		eachLine(f, func(line []mention, from source) {
			for k := 0; k < len(line) && work.Live(lookUp); k++ {
				st := n.see(line[k], i, from)
				st.inUse = st.inUse || hot
			}
		})
	}
	note := func(m *thread.Message, what func(*stat)) {
		eachLine(of(m), func(line []mention, _ source) {
			for _, x := range line {
				if st := n.stat(x); st != nil {
					what(st)
				}
			}
		})
	}
	for i := range in.Context {
		if m := &in.Context[i]; recent(len(all)+i, m) {
			note(m, func(st *stat) { st.inUse = true })
		}
	}
	shown := in.shown()
	for i := range shown {
		note(&shown[i], func(st *stat) { st.inContext = true })
	}
	for _, f := range all {
		n.measure(f)
	}
	n.weight = make([]float32, len(n.stats))
	for id := range n.stats {
		if st := &n.stats[id]; !st.inContext {
			n.weight[id] = chance(st.traits(steps))
		}
	}
	return seen
}

// stepsBack counts the agent's steps after each message of the span and the context.
func stepsBack(in *Input) []int {
	steps := make([]int, len(in.Messages)+len(in.Context))
	n := 0
	count := func(messages []thread.Message, steps []int) {
		for i := range slices.Backward(messages) {
			if steps[i] = n; messages[i].Role == thread.Assistant {
				n++
			}
		}
	}
	count(in.Context, steps[len(in.Messages):])
	count(in.Messages, steps)
	return steps
}

// stat is what is known of an identifier; nil for one that was not seen.
func (n *names) stat(x mention) *stat {
	if id, ok := n.id[x.norm]; ok {
		return &n.stats[id]
	}
	return nil
}

// see notes that message i holds an identifier.
func (n *names) see(x mention, i int, from source) *stat {
	st := n.stat(x)
	if st == nil {
		n.id[x.norm] = int32(len(n.stats))
		n.stats = append(n.stats, stat{kind: x.kind, last: -1, near: farOff})
		st = &n.stats[len(n.stats)-1]
	}
	if st.last != int32(i) {
		st.messages++
		if from.ofCall() {
			st.calls++
		}
	}
	st.last, st.source = int32(i), from
	switch from {
	case inUser:
		st.user = 1
	case inWords:
		st.words = 1
	}
	return st
}

// measure finds how near the identifiers of a message stand to a line with one in use, before or after them.
func (n *names) measure(f *facts) {
	var lines [][]mention
	var hot []int // those with an identifier in use
	eachLine(f, func(line []mention, _ source) {
		if len(line) == 0 {
			return
		}
		if slices.ContainsFunc(line, func(x mention) bool { st := n.stat(x); return st != nil && st.inUse }) {
			hot = append(hot, len(lines))
		}
		lines = append(lines, line)
	})
	for k := 0; k < len(lines) && len(hot) > 0; k++ {
		for len(hot) > 1 && hot[1] <= k {
			hot = hot[1:]
		}
		away := max(hot[0]-k, k-hot[0])
		if len(hot) > 1 {
			away = min(away, hot[1]-k)
		}
		for _, x := range lines[k] {
			if st := n.stat(x); st != nil { // else the work has ended
				st.near = min(st.near, int32(away))
			}
		}
	}
}

// eachLine calls yield with the identifiers of every line of a message.
func eachLine(f *facts, yield func([]mention, source)) {
	all := func(pieces []piece, from source) {
		for i := range pieces {
			yield(pieces[i].idents, from)
		}
	}
	yield(f.idents, inUser)
	all(f.said, inWords)
	all(f.recap, inWords)
	for i := range f.calls {
		c := &f.calls[i]
		from := cmp.Or(classes[c.Class].arguments, inArguments)
		yield(c.idents, from)
		all(c.changed, from)
	}
	if f.result != nil {
		all(f.result.idLines, f.result.source)
	}
}

// traits are the bins that an identifier falls into, one for each trait of the table of
// chances.
type traits [traitCount]uint8

const (
	traitKind = iota
	traitAge
	traitMessages
	traitCalls
	traitUser
	traitWords
	traitSource
	traitNear
	traitCount
)

// The upper ends of the bins; one more bin takes what is beyond the last.
var (
	ageBins     = []int{1, 2, 3, 5, 8, 13, 21, 40}
	messageBins = []int{1, 2, 3, 5, 9}
	callBins    = []int{0, 1, 2}
	nearBins    = []int{0, 1, 2, 4, 8, 16, 32, 900}
)

func binOf(x int, ends []int) uint8 {
	for i, end := range ends {
		if x <= end {
			return uint8(i)
		}
	}
	return uint8(len(ends))
}

func (st *stat) traits(steps []int) traits {
	return traits{
		traitKind:     uint8(st.kind),
		traitAge:      binOf(steps[st.last], ageBins),
		traitMessages: binOf(int(st.messages), messageBins),
		traitCalls:    binOf(int(st.calls), callBins),
		traitUser:     st.user,
		traitWords:    st.words,
		traitSource:   uint8(st.source),
		traitNear:     binOf(int(st.near), nearBins),
	}
}

// chance is how likely the agent is to write an identifier in the calls of its
// next 20 steps, from 0 to 1, by the learned table.
func chance(t traits) float32 {
	odds := salience.base
	for trait, bin := range t {
		odds += salience.odds[trait][bin]
	}
	return float32(1 / (1 + math.Exp(-float64(odds))))
}

// Traits are what the summarizer knows of an identifier, as bins of its table of chances.
// The table is learned from them (lab).
type Traits struct {
	Name string
	Bins []uint8
}

// Observe returns the traits of every identifier of in.Messages that the context lacks, in
// the order of their first mention.
func Observe(in Input) []Traits {
	var n names
	facts := make([]*facts, len(in.Messages))
	for i := range in.Messages {
		facts[i] = read(&in.Messages[i])
	}
	n.learn(nil, &in, facts, read)
	steps := stepsBack(&in)
	all := make([]Traits, len(n.stats))
	for x, id := range n.id {
		bins := n.stats[id].traits(steps)
		all[id] = Traits{x, bins[:]}
	}
	id := -1
	return slices.DeleteFunc(all, func(Traits) bool { id++; return n.stats[id].inContext })
}
