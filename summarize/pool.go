package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// section is a section of the summary, in the order in which room is given out.
type section uint8

const (
	secConstraint section = iota
	secPlan
	secFile
	secDecision
	secFailed
	secSaid
	secReport
	secOutcome
	secFact
	secOpen
	secArtifact
	secChange
	secSnippet
	sections
)

// pool is all that a summary could say: entries of each section, and candidates
// that point to them.
type pool struct {
	// Summary holds all entries of the sections without groups, and the requests in full:
	// they are trimmed when the budget is known.
	summary.Summary
	requests []request // for each of Requests
	task     int       // index of the request that is the current task, or -1
	oldTask  string    // the task of the previous summary, where the span has none
	written  bool      // somebody who read the messages wrote items of the previous summary
	later    bool      // a newer task stands behind the span, in the prompt itself
	together int       // Input.Together
	stated   []rule    // for each of the constraints
	changes  []change
	// groups are the entries of which single pieces may be taken: messages of the
	// assistant, earlier summaries as facts, and lines of tool output, of edits and of
	// arguments.
	groups [sections][]group

	candidates []candidate
	names      names

	asked map[string]bool // stems of what the user asks the summary to keep
	terms terms
}

// request is what is known of a message of the user's: the identifiers in it, and whether it
// is a command with the text that it stands for, which the user did not write.
type request struct {
	idents  []mention
	command bool
}

// rule is where a rule was stated: the user's whole message; weak says that it may
// be none.
type rule struct {
	message string
	weak    bool
}

// group is an entry made of pieces, some of which may be chosen.
type group struct {
	label   string // in front of the pieces; empty for what people said
	turn    int
	sources []thread.ID
	places  []place // of each piece
	idents  []int32 // that the label holds
	// path is the file that the label names. Where the list of files names it too,
	// its last parts do.
	path string
}

// candidate is one thing that may be taken into the summary.
type candidate struct {
	section section
	entry   int // index among the entries, or the groups, of the section
	piece   int // index among the pieces of the group; -1 for a plain entry
	at      int // position of its message in the span, for recency and order
	base    float32
	text    string // a piece's text; of plain entries it is rendered later
	idents  []int32
	terms   []int32 // of the assistant's words
	choice  bool    // the assistant says that it chose this, and why
	dead    bool    // a later candidate says the same, newer
}

// builder fills a pool from the facts of messages.
type builder struct {
	*pool
	messages []thread.Message
	facts    []*facts
	tasks    []task             // of a task list kept by single calls
	listed   bool               // the agent wrote a whole list of tasks
	before   []summary.Step     // of the plan of the previous summary
	logged   map[thread.ID]bool // summaries of the agent's own: whether the log holds what they sum up
	calls    map[string]callRef
	fileAt   map[string]int
	based    map[string][]string // the paths of files with folders, by their last part
	outcomes map[string]int      // by tool and input, the newest
	latest   []int               // per outcome, its candidate
	origins  map[originKey]*origin
	expected map[originKey]int  // how often each of them comes up
	tried    map[int]string     // of failed attempts of the span: what was called
	edits    map[editKey]*edits // what was changed, by turn and file
	edited   []editKey          // in the order of the first change
	wrote    []wrote            // what edits wrote, in order
	standing map[string]*standing
	replied  []bool            // by message: whether the user's next words tell what was asked
	agreed   []bool            // by message: whether the user's next words answer it, and mean nothing without it
	small    map[string]string // of files that hold next to nothing: what
	seen     map[said]struct{} // texts taken, so that nothing is said twice
	idents   []int32           // storage for candidates
	entries  [sections]int     // how many plain entries have a candidate
}

type callRef struct{ message, call int }

// newPool collects what the messages and the previous summary hold.
func newPool(in *Input, of func(*thread.Message) *facts) *pool {
	b := &builder{
		pool: &pool{task: -1}, messages: in.Messages, calls: map[string]callRef{}, fileAt: map[string]int{},
		outcomes: map[string]int{}, origins: map[originKey]*origin{}, expected: map[originKey]int{}, based: map[string][]string{},
		tried: map[int]string{}, edits: map[editKey]*edits{}, standing: map[string]*standing{}, small: map[string]string{},
	}
	b.facts = make([]*facts, len(in.Messages))
	pieces := 0
	for i := range in.Messages {
		f := of(&in.Messages[i])
		b.facts[i] = f
		b.expect(f)
		pieces += len(f.said)
		if f.result != nil {
			pieces += len(f.result.keys)
		}
	}
	for i := range in.Context {
		b.expect(of(&in.Context[i]))
	}
	b.replied, b.agreed = make([]bool, len(b.facts)), make([]bool, len(b.facts))
	for i, next := len(b.facts)-1, ""; i >= 0; i-- {
		b.replied[i] = substantial(next) && !answers(next)
		b.agreed[i] = answers(next) || picks(next) || next != "" && !substantial(next) && !strings.HasSuffix(next, "?")
		if b.messages[i].StartsTurn() {
			next = b.facts[i].user
		}
	}
	b.seen = make(map[said]struct{}, pieces) // most of them; growing would hash all texts again
	seen, held := b.names.learn(in, b.facts, of)
	b.idents = make([]int32, 0, seen)
	b.candidates = make([]candidate, 0, 256+held)
	if in.Previous != nil {
		b.previous(in.Previous)
	}
	b.together = in.Together
	b.Span, b.asked = spanOf(in), stemsOf(in.Instructions)
	if b.logged = loggedRecaps(in.Log); in.Log == nil {
		b.logged = loggedRecaps(in.Messages)
	}
	for i, f := range b.facts {
		m := &b.messages[i]
		if f.user != "" {
			b.user(i, m, f)
		}
		if len(f.recap) > 0 {
			b.recap(i, m, f)
		}
		if len(f.said) > 0 {
			b.assistant(i, m, f)
		}
		for c := range f.calls {
			b.call(i, c, m, &f.calls[c])
		}
		if f.result != nil {
			b.result(i, m, f.result)
		}
	}
	b.later = b.overtaken(in)
	b.elsewhere(in)
	if !in.Continued {
		b.foldWork(in, of)
	}
	b.overtake(in.Context, of)
	if in.Log != nil {
		b.catchUp(in, of)
	}
	b.finish()
	return b.pool
}

// foldWork says where the work stands at the end of the log. What was said to come
// next is left out where the prompt shows it.
func (b *builder) foldWork(in *Input, of func(*thread.Message) *facts) {
	var before state.Work
	log := in.Log
	if log == nil {
		log = in.Messages
		if in.Previous != nil {
			before = in.Previous.Work
		}
	}
	// Most of the log is the span: its messages are not looked up again.
	next := 0
	b.Work = foldWork(before, log, func(m *thread.Message) *facts {
		if next < len(b.messages) && same(m, &b.messages[next]) {
			next++
			return b.facts[next-1]
		}
		return of(m)
	})
	b.Work.Again = in.Restated
	if slices.ContainsFunc(in.Context, func(m thread.Message) bool { return m.Role == thread.Assistant }) {
		b.Work.Next = state.Seen{}
	}
}

// same reports whether two messages are one: they have the same parts, and not only
// such as say the same.
func same(a, b *thread.Message) bool {
	return a.ID == b.ID && a.Role == b.Role && a.Kind == b.Kind && len(a.Parts) > 0 && len(a.Parts) == len(b.Parts) && &a.Parts[0] == &b.Parts[0]
}

// elsewhere notes whether the message that opens the last turn of the span stands beside
// the summary: behind it, mostly, so that a reader meets the answer first.
func (b *builder) elsewhere(in *Input) {
	last := b.Span.LastTurn
	if last > 0 && slices.ContainsFunc(in.shown(), func(m thread.Message) bool { return m.StartsTurn() && m.Turn == last }) {
		b.Elsewhere = []int{last}
	}
}

// overtaken reports whether the prompt itself shows a task that is newer than
// those of the span.
func (b *builder) overtaken(in *Input) bool {
	turn := 0
	if b.task >= 0 {
		turn = b.Requests[b.task].Turn
	}
	newer := func(m *thread.Message) bool {
		return m.StartsTurn() && (m.Turn == 0 || m.Turn > turn) && substantial(injected.UserWords(m))
	}
	return slices.ContainsFunc(in.Context, func(m thread.Message) bool { return newer(&m) }) ||
		slices.ContainsFunc(in.Shown, func(m thread.Message) bool { return newer(&m) })
}

// spanOf is what the summary stands for, that of before included.
func spanOf(in *Input) thread.Span {
	var s thread.Span
	for i := range in.Messages {
		s.MessageIDs = append(s.MessageIDs, in.Messages[i].ID)
	}
	if n := len(in.Messages); n > 0 {
		s.FirstTurn, s.LastTurn = in.Messages[0].Turn, in.Messages[n-1].Turn
	}
	if in.Previous != nil {
		s = summary.Merge(summary.Summary{Span: in.Previous.Span}, summary.Summary{Span: s}).Span
	}
	return s
}

// entry adds the candidate that stands for the next plain entry of a section.
func (b *builder) entry(sec section, at int, base float32, idents []mention) *candidate {
	b.entries[sec]++
	return b.add(candidate{section: sec, entry: b.entries[sec] - 1, piece: -1, at: at, base: base}, idents)
}

// piece adds a piece to a group that will be the next of its section, and its
// candidate.
func (b *builder) piece(sec section, g *group, at int, base float32, p piece) *candidate {
	c := candidate{section: sec, entry: len(b.groups[sec]), piece: len(g.places), at: at, base: base, text: p.text}
	g.places = append(g.places, p.place)
	return b.add(c, p.idents)
}

func (b *builder) add(c candidate, idents []mention) *candidate {
	from := len(b.idents)
	for _, x := range idents {
		if id, ok := b.names.find(x, c.at); ok {
			b.idents = append(b.idents, id)
		}
	}
	c.idents = b.idents[from:len(b.idents):len(b.idents)]
	b.candidates = append(b.candidates, c)
	return &b.candidates[len(b.candidates)-1]
}

// once reports whether a text is new, and marks it as taken.
func (b *builder) once(kind byte, text string) bool {
	n := len(b.seen)
	b.seen[said{kind, text}] = struct{}{}
	return len(b.seen) > n
}

// said is a text of one kind: u user message, r rule, d decision, f failed
// attempt, m what was said of it, e edit, o open item, a artifact, c assistant's words, t tool output.
type said struct {
	kind byte
	text string
}

// age is the weight of recency of the message at i: 1 for the newest.
func (b *builder) age(i int) float32 {
	n := len(b.messages)
	if n <= 1 || i < 0 {
		return 0.4
	}
	x := float32(i) / float32(n-1)
	return 0.4 + 0.6*x*x
}

func (b *builder) call(i, n int, m *thread.Message, c *callFacts) {
	b.calls[c.id] = callRef{i, n}
	if c.class != toolpolicy.Todo {
		return
	}
	b.todo(m, c)
	if c.planText == "" {
		return
	}
	g := group{label: "proposed plan", turn: m.Turn, sources: []thread.ID{m.ID}}
	for _, p := range paragraphs(c.planText) {
		if p.says() && b.once('c', p.text) {
			b.piece(secSaid, &g, i, 0.8*b.age(i), p)
		}
	}
	b.groups[secSaid] = append(b.groups[secSaid], g)
}

// maxLabel bounds the label of a group, in bytes.
const maxLabel = 110

// snippet adds the pieces of one message as a group of the last section.
func (b *builder) snippet(i int, m *thread.Message, c *callFacts, label string, pieces []piece, base float32) {
	g := group{label: clip.Brief(label, maxLabel), turn: m.Turn, sources: []thread.ID{m.ID}}
	if c != nil {
		g.path = c.path()
		for _, x := range c.asked {
			if id, ok := b.names.id[x.norm]; ok && strings.Contains(g.label, x.norm) {
				g.idents = append(g.idents, id)
			}
		}
	}
	age := b.age(i)
	g.places = make([]place, 0, len(pieces))
	for _, p := range pieces {
		if !b.once('t', p.text) {
			continue
		}
		b.piece(secSnippet, &g, i, base*(1+p.score)*age, p)
	}
	if len(g.places) > 0 {
		b.groups[secSnippet] = append(b.groups[secSnippet], g)
	}
}

// label names where a result came from, for the group of its lines.
func label(c *callFacts, tool string) string {
	if c == nil {
		return tool
	}
	if c.class == toolpolicy.Read && len(c.files) > 0 {
		return c.files[0].path
	}
	return c.name + " " + c.input
}

// path is the only file that a call is about; empty where there are more.
func (c *callFacts) path() string {
	if len(c.files) != 1 {
		return ""
	}
	return c.files[0].path
}

// finish turns the ledger and the plan, which are known only at the end, into
// candidates.
func (b *builder) finish() {
	b.settled()
	b.changed()
	b.written()
	if len(b.tasks) > 0 {
		b.CurrentPlan = b.CurrentPlan[:0:0]
		for _, t := range b.tasks {
			if t.step.Status != "deleted" {
				b.CurrentPlan = append(b.CurrentPlan, t.step)
			}
		}
	}
	if b.listed || len(b.tasks) > 0 {
		b.planned()
	}
	for i := range b.CurrentPlan {
		base := float32(5)
		if b.CurrentPlan[i].Status == "completed" {
			base = 2.5
		}
		b.entry(secPlan, len(b.messages), base, nil)
	}
	position := make(map[thread.ID]int, len(b.messages))
	for i := range b.messages {
		position[b.messages[i].ID] = i
	}
	for i := range b.Files {
		f := &b.Files[i]
		at := -1
		if n := len(f.Sources); n > 0 {
			if p, ok := position[f.Sources[n-1]]; ok {
				at = p
			}
		}
		base := float32(1.5)
		if len(f.Operations) > 1 || len(f.Operations) == 1 && f.Operations[0] != "read" {
			base = 3.5
		}
		base += 0.7 * float32(min(len(f.Sources)-1, 4)) // often touched, soon touched again
		idents := mentions(nil, f.Path)
		if text := b.small[f.Path]; text != "" {
			f.Note = addNote(f.Note, holds+text)
			idents = mentions(idents, text)
		}
		b.entry(secFile, at, base*b.age(at), idents)
	}
}
