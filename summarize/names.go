package summarize

import (
	"math"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// mention is an identifier in a text.
type mention struct {
	norm string
	kind ident.Type
	nth  int32 // its number among the different identifiers of its message (see facts.number)
}

// mentions appends the identifiers of a text.
func mentions(to []mention, text string) []mention { return mentionsWhile(nil, to, text) }

// mentionsWhile is mentions as long as the work goes on.
func mentionsWhile(live *effort.Budget, to []mention, text string) []mention {
	ident.ExtractWhile(live, text, func(x ident.Ident) { to = append(to, mention{norm: x.Norm, kind: x.Type}) })
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

// sourceOfCall is the source of the arguments of a tool.
func sourceOfCall(class toolclass.Class) source {
	switch class {
	case toolclass.Edit:
		return inEdit
	case toolclass.Write:
		return inWrite
	case toolclass.Shell:
		return inCommand
	}
	return inArguments
}

// sourceOfResult is the source of the output of a tool.
func sourceOfResult(tool string) source {
	if s, ok := resultSources[toolclass.ClassOf(tool)]; ok {
		return s
	}
	return inResult
}

var resultSources = map[toolclass.Class]source{
	toolclass.Read: inRead, toolclass.Search: inSearch, toolclass.List: inList, toolclass.Shell: inOutput,
	toolclass.Edit: inChange, toolclass.Write: inChange, toolclass.Web: inPage, toolclass.Fetch: inPage, toolclass.Agent: inPage,
}

// ofCall reports whether it is an argument of a call.
func (s source) ofCall() bool { return s >= inEdit && s <= inArguments }

// names are the identifiers of a span and their weights: the chance that the agent soon
// writes one in a call.
type names struct {
	id        map[string]int32
	inMessage [][]int32 // by message of the span: the ids of its different identifiers
	stats     []stat
	weight    []float32
}

// stat is what is known of an identifier.
type stat struct {
	norm            string
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

// learn finds the identifiers and their weights. It returns how many mentions it saw, and
// in how many lines.
func (n *names) learn(work *effort.Budget, in *Input, all []*facts, of func(*thread.Message) *facts) (seen, held int) {
	steps := stepsBack(in)
	total := 0 // to allocate once
	for _, f := range all {
		eachLine(f, func(line []mention, _ source) {
			if len(line) > 0 {
				total += len(line)
				held++
			}
		})
	}
	n.id = make(map[string]int32, total/6) // most come up more than once
	n.stats = make([]stat, 0, total/6)
	n.inMessage = make([][]int32, len(all))
	recent := func(i int, m *thread.Message) bool {
		return steps[i] <= agentSteps && m.Role == thread.Assistant || steps[i] <= userSteps && m.Role == thread.User
	}
	lines := make([][]int32, 0, held) // the identifiers of each line, message after message
	ids := make([]int32, 0, total)
	ends := make([]int, len(all))
	for i, f := range all {
		hot := recent(i, &in.Messages[i])
		eachLine(f, func(line []mention, from source) {
			if len(line) == 0 {
				return
			}
			start := len(ids)
			for _, x := range line {
				if !work.Live(lookUp) {
					break
				}
				id := n.see(x, i, from)
				n.stats[id].inUse = n.stats[id].inUse || hot
				ids = append(ids, id)
			}
			lines = append(lines, ids[start:len(ids):len(ids)])
		})
		ends[i] = len(lines)
	}
	note := func(m *thread.Message, what func(*stat)) {
		eachLine(of(m), func(line []mention, _ source) {
			for _, x := range line {
				if id, ok := n.id[x.norm]; ok {
					what(&n.stats[id])
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
	from := 0
	for _, to := range ends {
		n.measure(lines[from:to])
		from = to
	}
	n.weight = make([]float32, len(n.stats))
	for id := range n.stats {
		if st := &n.stats[id]; !st.inContext {
			n.weight[id] = chance(st.traits(steps))
		}
	}
	return len(ids), held
}

// stepsBack counts the agent's steps after each message of the span and the context.
func stepsBack(in *Input) []int {
	steps := make([]int, len(in.Messages)+len(in.Context))
	n := 0
	for i := len(steps) - 1; i >= 0; i-- {
		steps[i] = n
		m := &in.Context
		at := i - len(in.Messages)
		if at < 0 {
			m, at = &in.Messages, i
		}
		if (*m)[at].Role == thread.Assistant {
			n++
		}
	}
	return steps
}

// find returns the id of an identifier; if the message at i holds it, without a look-up.
func (n *names) find(x mention, i int) (id int32, ok bool) {
	if i >= 0 && i < len(n.inMessage) && int(x.nth) < len(n.inMessage[i]) {
		if id = n.inMessage[i][x.nth]; id >= 0 && n.stats[id].norm == x.norm {
			return id, true
		}
	}
	id, ok = n.id[x.norm]
	return id, ok
}

// see notes that message i holds an identifier.
func (n *names) see(x mention, i int, from source) int32 {
	for int(x.nth) >= len(n.inMessage[i]) {
		n.inMessage[i] = append(n.inMessage[i], -1) // there was no room for the pieces that hold some
	}
	id := n.inMessage[i][x.nth]
	if id < 0 {
		known, ok := n.id[x.norm]
		if id = known; !ok {
			id = int32(len(n.stats))
			n.id[x.norm] = id
			n.stats = append(n.stats, stat{norm: x.norm, kind: x.kind, last: -1, near: farOff})
		}
		n.inMessage[i][x.nth] = id
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

// measure finds how near the identifiers of a message stand to one in use, before or after
// them.
func (n *names) measure(lines [][]int32) {
	hot := func(id int32) bool { return n.stats[id].inUse }
	for _, backwards := range [2]bool{false, true} {
		since := int32(farOff)
		for i := range lines {
			line := lines[i]
			if backwards {
				line = lines[len(lines)-1-i]
			}
			since++
			if slices.ContainsFunc(line, hot) {
				since = 0
			}
			for _, id := range line {
				n.stats[id].near = min(n.stats[id].near, since)
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
		yield(c.idents, sourceOfCall(c.Class))
		all(c.changed, sourceOfCall(c.Class))
	}
	if f.result != nil {
		all(f.result.idLines, f.result.source)
		if f.result.records || len(f.result.idLines) >= maxIDLines || f.result.source != inRead && f.result.source != inSearch { // elsewhere they stand among the keys
			all(f.result.errorLines, f.result.source)
		}
	}
}

// number numbers the different identifiers of a message, so that names looks each up once.
func (f *facts) number() {
	nth := map[string]int32{}
	eachLine(f, func(line []mention, _ source) {
		for i := range line {
			x := &line[i]
			n, ok := nth[x.norm]
			if !ok {
				n = int32(len(nth))
				nth[x.norm] = n
			}
			x.nth = n
		}
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
	for name, id := range n.id {
		bins := n.stats[id].traits(steps)
		all[id] = Traits{name, bins[:]}
	}
	id := -1
	return slices.DeleteFunc(all, func(Traits) bool { id++; return n.stats[id].inContext })
}
