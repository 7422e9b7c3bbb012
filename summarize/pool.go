package summarize

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize/internal/work"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// section is a section of the summary, in the order in which the floors are filled.
type section uint8

const (
	secPlan section = iota
	secFile
	secDecision
	secFailed
	secSaid
	secReport
	secOutcome
	secFact
	secOpen
	secArtifact
	secSnippet
	sections
)

// pool is everything that a summary could say. A candidate points either to an entry of
// a list of Summary (a plain entry, taken whole) or to a piece of a group.
type pool struct {
	// Summary holds the plain entries, and the user's requests in full: selection trims them.
	summary.Summary
	requests []request         // for each of Requests
	task     int               // index of the request that is the current task, or -1
	oldTask  string            // the task of the previous summary, for a span without one
	byModel  bool              // a model wrote some items of the previous summary
	full     bool              // Input.Full
	later    bool              // the prompt shows a newer task, so this summary names none
	together int               // Input.Together
	standing int               // Input.StandingTokens
	omitted  []summary.Item    // what cannot be shown
	stands   standingSentences // what the user laid down
	// groups are entries of which single pieces may be taken: messages of the assistant,
	// sub-agents' reports, earlier summaries (as facts), and lines of outputs and edits.
	groups [sections][]group

	candidates []candidate
	names      names

	effort *effort.Budget  // of all of it
	asked  map[string]bool // stems of Input.Instructions
	terms  terms
	// requested are the stems of what the person wrote.
	requested map[string]bool
}

// request is what is known of a user message: its identifiers, and whether it is the text of
// a slash command, which the user did not write, or of numbered answers.
type request struct {
	idents           []mention
	command, answers bool
}

// group is an entry made of pieces, some of which may be chosen.
type group struct {
	label   string // in front of the pieces; empty for the assistant's words
	turn    int
	sources []thread.ID
	places  []place // of each piece
	idents  []int32 // in the label
	// path is the file that the label names. If the list of files names it too, the label
	// shows only the end of it.
	path string
}

// candidate is one thing that may be taken into the summary.
type candidate struct {
	section section
	dead    bool // out of date, said again later, or not asked for
	base    float32
	entry   int    // index among the entries, or the groups, of the section
	piece   int    // index among the pieces of the group; -1 for a plain entry
	at      int    // position of its message in the span, for recency and order
	text    string // of a piece; plain entries are rendered by selection
	idents  []int32
	terms   []int32 // words (see terms)
}

// builder fills a pool from the facts of messages.
type builder struct {
	*pool
	in       *Input
	read     func(*thread.Message) *facts // with a cache
	messages []thread.Message             // of the span
	facts    []*facts                     // of each of them
	tasks    taskList
	before   []summary.Step     // the plan of the previous summary
	recaps   map[thread.ID]bool // the agent's own summaries: whether the log holds what they sum up
	calls    map[string]asking
	fileAt   map[string]int
	based    map[string][]string // paths in the ledger by file name
	outcomes map[outcomeKey]int  // the newest outcome
	latest   []int               // the candidate of each outcome
	failing  map[string][]int    // failed attempts that did not succeed later, by work.Call.Same
	flags    map[string]bool     // tools of which a failure was flagged
	origins  map[originKey]origin
	uses     map[originKey]int // how often each origin is asked or changed
	replied  []bool            // by message: the user's next message repeats what was asked
	agreed   []bool            // by message: the user's next message answers it, and means nothing without it
	picked   []byte            // by message: the letter or digit of the option that it picks, or 0
	expanded []bool            // by message: it is the text of the slash command before it
	progress map[progressKey]progress
	seen     map[seenText]struct{} // texts taken, so that nothing is said twice
	entries  [sections]int         // how many plain entries have a candidate
}

// outcomeKey is what a call asked for.
type outcomeKey struct{ tool, input string }

// newPool collects what the messages and the previous summary hold.
func newPool(ctx context.Context, in *Input, of func(*thread.Message) *facts) *pool {
	span, unfolded := spanOf(in), *in
	unfolded.Messages = hosted.Unfold(in.Messages)
	in = &unfolded
	b := &builder{
		pool: &pool{task: -1, effort: effort.New(ctx, in.bytes())}, in: in, read: of, messages: in.Messages, calls: map[string]asking{}, fileAt: map[string]int{},
		outcomes: map[outcomeKey]int{}, origins: map[originKey]origin{}, uses: map[originKey]int{}, based: map[string][]string{},
		flags: map[string]bool{}, failing: map[string][]int{}, progress: map[progressKey]progress{},
	}
	var left pieceLimit
	b.facts, left = readSpan(in, of)
	b.omitted = left.omitted(b.facts)
	pieces, users, outcomes := 0, 0, 0
	for _, f := range b.facts {
		b.countOrigins(f)
		if f.user != "" {
			users++
		}
		pieces += len(f.said)
		if f.result != nil {
			pieces += len(f.result.idLines)
			switch f.result.source {
			case inRead, inChange, inList: // the list of files tells it
			default:
				outcomes++
			}
		}
	}
	for i := range in.Context {
		b.countOrigins(of(&in.Context[i]))
	}
	b.findAnswers()
	b.findCommandTexts()
	b.seen = make(map[seenText]struct{}, pieces) // most of them; growing would hash all texts again
	b.names.learn(b.effort, in, b.facts, of)
	b.candidates = make([]candidate, 0, 256+pieces+outcomes)
	b.ToolOutcomes, b.latest = make([]summary.ToolOutcome, 0, outcomes), make([]int, 0, outcomes)
	b.Requests, b.requests = make([]summary.Item, 0, users), make([]request, 0, users)
	if in.Previous != nil {
		b.previous(in.Previous)
	}
	b.together, b.standing = in.Together, in.StandingTokens
	b.Span, b.asked, b.requested = span, stemsOf(in.Instructions), map[string]bool{}
	log, ofLog := b.logged()
	b.recaps = loggedRecaps(log, b.read)
	for i := range log {
		maps.Copy(b.requested, stemsOf(ofLog(&log[i]).user))
	}
	for i, f := range b.facts {
		if !b.effort.Live(messageEffort) {
			return b.pool // it is dropped
		}
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
			b.call(i, m, &f.calls[c])
		}
		if f.result != nil {
			b.result(i, m, f.result)
		}
	}
	b.stands = linked(b.effort, in.left(b.sentences()), in)
	b.later = b.newerTaskShown()
	b.elsewhere()
	if !in.Continued {
		b.addWork()
	}
	b.applyLater()
	b.finish()
	return b.pool
}

// findAnswers looks for each message at the user message after it.
func (b *builder) findAnswers() {
	b.replied, b.agreed, b.picked = make([]bool, len(b.facts)), make([]bool, len(b.facts)), make([]byte, len(b.facts))
	for i, next := len(b.facts)-1, ""; i >= 0; i-- {
		b.replied[i] = isTask(next) && !answers(next)
		b.picked[i] = picks(next)
		b.agreed[i] = answers(next) || b.picked[i] != 0 || next != "" && !isTask(next) && !strings.HasSuffix(next, "?")
		if b.messages[i].StartsTurn() {
			next = b.facts[i].user
		}
	}
}

// findCommandTexts looks for the texts of slash commands that follow their command as a
// message of their own, as Claude Code keeps them.
func (b *builder) findCommandTexts() {
	b.expanded = make([]bool, len(b.facts))
	log, _ := b.logged()
	i := 0 // in the span
	for k := range log {
		for i > 0 && i < len(b.messages) && b.messages[i].ID != "" && b.messages[i].ID == b.messages[i-1].ID {
			i++ // a result that was unfolded
		}
		if i < len(b.messages) && log[k].ID == b.messages[i].ID {
			b.expanded[i] = k > 0 && log[k].Role == thread.User && log[k-1].Role == thread.User && b.read(&log[k-1]).command
			i++
		}
	}
}

// logged returns the log, or the span where there is none, and a function that reads its messages in
// their order. Most of the log is the span: its messages are not looked up again.
func (b *builder) logged() (log []thread.Message, of func(*thread.Message) *facts) {
	log, next := b.in.Log, 0
	if log == nil {
		log = b.messages
	}
	return log, func(m *thread.Message) *facts {
		if next < len(b.messages) && same(m, &b.messages[next]) {
			next++
			return b.facts[next-1]
		}
		return b.read(m)
	}
}

// addWork adds the state of the work at the end of the log. The assistant's announcement
// of its next step is left out if the prompt shows what it did.
func (b *builder) addWork() {
	in := b.in
	var before state.Work
	log, of := b.logged()
	if in.Log == nil && in.Previous != nil {
		before = in.Previous.Work
	}
	b.Work = work.Fold(b.effort, before, log, func(m *thread.Message) work.Message { return of(m).work() })
	b.Work.Again = in.Restated
	if slices.ContainsFunc(in.Context, func(m thread.Message) bool { return m.Role == thread.Assistant }) {
		b.Work.Next = state.Seen{}
	}
}

// same reports whether two messages are one and the same, not only equal.
func same(a, b *thread.Message) bool {
	return a.ID == b.ID && a.Role == b.Role && a.Kind == b.Kind && len(a.Parts) > 0 && len(a.Parts) == len(b.Parts) && &a.Parts[0] == &b.Parts[0]
}

// elsewhere notes of which turns of the span the prompt shows messages: the user's above the summary or below it, and
// what the model said between the span's messages. There a reader meets them after newer ones.
func (b *builder) elsewhere() {
	shown := b.in.shown()
	for i := range shown {
		m, first, last := &shown[i], b.Span.FirstTurn, b.Span.LastTurn
		if !m.StartsTurn() {
			first, last = first+1, last-1
		}
		if by := m.Author(); (by == thread.ByPerson || by == thread.ByModel) && max(1, first) <= m.Turn && m.Turn <= last && !slices.Contains(b.Elsewhere[max(0, len(b.Elsewhere)-1):], m.Turn) {
			b.Elsewhere = append(b.Elsewhere, m.Turn)
		}
	}
}

// newerTaskShown reports whether the prompt shows a newer task than those of the span.
func (b *builder) newerTaskShown() bool {
	turn := 0
	if b.task >= 0 {
		turn = b.Requests[b.task].Turn
	}
	newer := func(m *thread.Message) bool {
		return m.StartsTurn() && (m.Turn == 0 || m.Turn > turn) && isTask(injected.UserWords(m))
	}
	return slices.ContainsFunc(b.in.Context, func(m thread.Message) bool { return newer(&m) }) ||
		slices.ContainsFunc(b.in.Shown, func(m thread.Message) bool { return newer(&m) })
}

// spanOf is the span that the summary stands for, with that of the previous summary.
func spanOf(in *Input) thread.Span {
	s := thread.Span{MessageIDs: slices.Grow([]thread.ID(nil), len(in.Messages))}
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

// entry adds the candidate of the next plain entry of a section.
func (b *builder) entry(sec section, at int, base float32, idents []mention) *candidate {
	b.entries[sec]++
	return b.add(candidate{section: sec, entry: b.entries[sec] - 1, piece: -1, at: at, base: base, idents: b.names.known(idents)})
}

// piece adds a piece of the message at a position to a group, and its candidate. The group must become the next of
// its section.
func (b *builder) piece(sec section, g *group, at int, base float32, p piece) *candidate {
	c := candidate{section: sec, entry: len(b.groups[sec]), piece: len(g.places), at: at, base: base, text: p.text, idents: b.names.ofPiece(at, &p)}
	g.places = append(g.places, p.place)
	return b.add(c)
}

func (b *builder) add(c candidate) *candidate {
	c.dead = b.in.State && c.section != secPlan && c.section != secOpen && c.section != secArtifact
	b.candidates = append(b.candidates, c)
	return &b.candidates[len(b.candidates)-1]
}

// unseen reports whether a text is new, and marks it as seen.
func (b *builder) unseen(kind seenKind, text string) bool {
	n := len(b.seen)
	b.seen[seenText{kind, text}] = struct{}{}
	return len(b.seen) > n
}

// seenText is a text that is in the pool; texts of different kinds may be equal.
type seenText struct {
	kind seenKind
	text string
}

type seenKind uint8

const (
	seenRequest seenKind = iota
	seenDecision
	seenFailure
	seenOpenItem
	seenArtifact
	seenWords // of the assistant
	seenLine  // of an output, an edit or a recap
)

func (b *builder) call(i int, m *thread.Message, c *callFacts) {
	b.calls[c.ID] = asking{c, m, i}
	if c.Class != toolclass.Todo {
		return
	}
	b.tasks.change(m, c)
	if c.proposed != "" {
		b.document(i, m, "proposed plan", paragraphs(nil, c.proposed))
	}
}

// maxLabel bounds the label of a group, in bytes.
const maxLabel = 110

// snippet adds pieces of the message at i as a group of lines of output.
func (b *builder) snippet(i int, m *thread.Message, c *callFacts, label string, pieces []piece, base float32) {
	g := group{label: clip.Brief(label, maxLabel), turn: m.Turn, sources: []thread.ID{m.ID}}
	if c != nil {
		g.path = c.path()
		g.idents = b.names.known(slices.DeleteFunc(slices.Clone(c.inputIdents), func(x mention) bool { return !strings.Contains(g.label, x.norm) }))
	}
	g.places = make([]place, 0, len(pieces))
	for _, p := range pieces {
		if b.unseen(seenLine, p.text) {
			b.piece(secSnippet, &g, i, base*(1+p.score), p)
		}
	}
	if len(g.places) > 0 {
		b.groups[secSnippet] = append(b.groups[secSnippet], g)
	}
}

// label names a result for the group of its lines.
func label(c *callFacts, tool string, failed bool) string {
	switch {
	case c == nil:
		return tool
	case c.Class == toolclass.Read && len(c.Files) > 0 && failed: // the lines are none of the file
		return "failed " + c.Name + " " + c.Files[0].Path
	case c.Class == toolclass.Read && len(c.Files) > 0:
		return c.Files[0].Path
	}
	return c.Name + " " + c.Input
}

// path is the file that a call is about; empty if there are several or none.
func (c *callFacts) path() string {
	if len(c.Files) != 1 {
		return ""
	}
	return c.Files[0].Path
}

// finish adds what is complete only at the end: the plan, the files.
func (b *builder) finish() {
	b.addPlan()
	b.CurrentPlan = folded(b.CurrentPlan, b.tasks.turn, b.in.Log)
	for i := range b.CurrentPlan {
		base := float32(10)
		if b.CurrentPlan[i].Status == "completed" {
			base = 2.5
		}
		b.entry(secPlan, len(b.messages), base, nil)
	}
	if len(b.Files) == 0 {
		return
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
		base := float32(1.05)
		if f.Changed() && !work.Temporary(f.Path) {
			base = 3
		}
		b.entry(secFile, at, base, mentions(nil, f.Path))
	}
}
