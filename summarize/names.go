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
func mentions(to []mention, text string) []mention {
	var few [16]mention // as many as a line has
	return append(to, mentionsWhile(nil, few[:0], text)...)
}

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
	in     [][]int32 // by message, the identifiers of its lines, in the order of eachLine
	stats  []stat
	weight []float32
}

// known are the numbers of the identifiers that the span holds.
func (n *names) known(all []mention) (ids []int32) {
	for _, x := range all {
		if id, ok := n.id[x.norm]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// ofPiece are the identifiers of a piece of the message at i.
func (n *names) ofPiece(i int, p *piece) []int32 {
	if p.first == 0 { // it is none of its lines
		return n.known(p.idents)
	}
	return n.in[i][p.first-1:][:len(p.idents):len(p.idents)]
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

// learn finds the identifiers and their weights.
func (n *names) learn(work *effort.Budget, in *Input, all []*facts, of func(*thread.Message) *facts) {
	seen := 0
	for _, f := range all { // to allocate once
		seen += int(f.mentions)
	}
	n.id = make(map[string]int32, seen/6) // most come up more than once
	n.stats = make([]stat, 0, seen/6)
	n.in = make([][]int32, len(all))
	ids := make([]int32, 0, seen)
	steps := stepsBack(in)
	recent := func(i int, m *thread.Message) bool {
		return steps[i] <= agentSteps && m.Role == thread.Assistant || steps[i] <= userSteps && m.Role == thread.User
	}
	for i, f := range all {
		hot, from := recent(i, &in.Messages[i]), len(ids)
		ids = ids[:from+int(f.mentions)]
		n.in[i] = ids[from:]
		eachLine(f, func(line []mention, first *int32, source source) {
			for k := 0; k < len(line) && work.Live(lookUp); k++ {
				id := n.see(line[k], i, source)
				n.in[i][int(*first)-1+k] = id
				n.stats[id].inUse = n.stats[id].inUse || hot
			}
		})
	}
	note := func(m *thread.Message, what func(*stat)) {
		eachLine(of(m), func(line []mention, _ *int32, _ source) {
			for _, id := range n.known(line) {
				what(&n.stats[id])
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
	if work.Live(0) { // else not all are known
		n.measure(all)
	}
	n.weight = make([]float32, len(n.stats))
	for id := range n.stats {
		if st := &n.stats[id]; !st.inContext {
			n.weight[id] = chance(st.traits(steps))
		}
	}
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

// see notes that message i holds an identifier.
func (n *names) see(x mention, i int, from source) int32 {
	id, ok := n.id[x.norm]
	if !ok {
		id = int32(len(n.stats))
		n.id[x.norm] = id
		n.stats = append(n.stats, stat{kind: x.kind, last: -1, near: farOff})
	}
	st := &n.stats[id]
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
	return id
}

// measure finds how near the identifiers of each message stand to a line with one in use, before or after them.
func (n *names) measure(all []*facts) {
	var lines [][]int32
	var hot []int // those with an identifier in use
	for i, f := range all {
		lines, hot = lines[:0], hot[:0]
		eachLine(f, func(line []mention, first *int32, _ source) {
			if len(line) == 0 {
				return
			}
			ids := n.in[i][*first-1:][:len(line)]
			if slices.ContainsFunc(ids, func(id int32) bool { return n.stats[id].inUse }) {
				hot = append(hot, len(lines))
			}
			lines = append(lines, ids)
		})
		for k, next := 0, 0; k < len(lines) && len(hot) > 0; k++ {
			for next+1 < len(hot) && hot[next+1] <= k {
				next++
			}
			away := max(hot[next]-k, k-hot[next])
			if next+1 < len(hot) {
				away = min(away, hot[next+1]-k)
			}
			for _, id := range lines[k] {
				n.stats[id].near = min(n.stats[id].near, int32(away))
			}
		}
	}
}

// eachLine calls yield with the identifiers of every line of a message, and 1 + how many of the message stand before.
func eachLine(f *facts, yield func(line []mention, first *int32, from source)) {
	all := func(pieces []piece, from source) {
		for i := range pieces {
			yield(pieces[i].idents, &pieces[i].first, from)
		}
	}
	first := int32(1)
	yield(f.idents, &first, inUser)
	all(f.said, inWords)
	all(f.recap, inWords)
	for i := range f.calls {
		c := &f.calls[i]
		from := cmp.Or(classes[c.Class].arguments, inArguments)
		yield(c.idents, &c.first, from)
		all(c.changed, from)
	}
	if f.result != nil {
		all(f.result.idLines, f.result.source)
	}
}

// number notes where in its message the identifiers of each line stand.
func (f *facts) number() {
	eachLine(f, func(line []mention, first *int32, _ source) {
		*first = f.mentions + 1
		f.mentions += int32(len(line))
	})
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
