package summarize

import (
	"slices"
	"strings"

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
	secOutcome
	secFact
	secOpen
	secArtifact
	secSnippet
	sections
)

// pool is all that a summary could say: entries of each section, and candidates
// that point to them.
type pool struct {
	requests    []summary.Item // in full; trimmed when the budget is known
	task        int            // index of the request that is the current task, or -1
	oldTask     string         // the task of the previous summary, where the span has none
	constraints []summary.Item
	plan        []summary.Step
	files       []summary.File
	decisions   []summary.Decision
	failed      []summary.Item
	outcomes    []summary.ToolOutcome
	open        []summary.OpenItem
	artifacts   []summary.ArtifactReference
	said        []group // assistant messages
	recaps      []group // lines of earlier summaries
	snippets    []group // lines of tool output, of edits and of arguments

	candidates []candidate
	names      names
	span       thread.Span
}

// group is an entry made of pieces, some of which may be chosen.
type group struct {
	label   string // in front of the pieces; empty for what people said
	turn    int
	sources []thread.ID
	pieces  []string
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
	dead    bool // a later candidate says the same, newer
}

// builder fills a pool from the facts of messages.
type builder struct {
	*pool
	messages []thread.Message
	facts    []*facts
	tasks    []task // of a task list kept by single calls
	calls    map[string]callRef
	fileAt   map[string]int
	outcomes map[string]int    // by tool and input, the newest
	latest   []int             // per outcome, its candidate
	seen     map[said]struct{} // texts taken, so that nothing is said twice
	idents   []int32           // storage for candidates
}

type callRef struct{ message, call int }

type task struct {
	id   string
	step summary.Step
}

// newPool collects what the messages and the previous summary hold.
func newPool(in *Input, of func(*thread.Message) *facts) *pool {
	b := &builder{
		pool: &pool{task: -1}, messages: in.Messages, calls: map[string]callRef{}, fileAt: map[string]int{},
		outcomes: map[string]int{}, seen: make(map[said]struct{}, 1024),
	}
	b.facts = make([]*facts, len(in.Messages))
	for i := range in.Messages {
		b.facts[i] = of(&in.Messages[i])
	}
	mentions := b.names.learn(b.facts, in.Context, of)
	b.idents = make([]int32, 0, mentions)
	b.candidates = make([]candidate, 0, 256+mentions/3)
	if in.Previous != nil {
		b.previous(in.Previous)
	}
	b.span = spanOf(in)
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
	b.finish()
	return b.pool
}

func spanOf(in *Input) thread.Span {
	var s thread.Span
	for i := range in.Messages {
		s.MessageIDs = append(s.MessageIDs, in.Messages[i].ID)
	}
	if n := len(in.Messages); n > 0 {
		s.FirstTurn, s.LastTurn = in.Messages[0].Turn, in.Messages[n-1].Turn
	}
	return s
}

// add appends a candidate.
func (b *builder) add(c candidate, idents []string) {
	from := len(b.idents)
	for _, s := range idents {
		if id, ok := b.names.id[s]; ok {
			b.idents = append(b.idents, id)
		}
	}
	c.idents = b.idents[from:len(b.idents):len(b.idents)]
	b.candidates = append(b.candidates, c)
}

// once reports whether a text is new, and marks it as taken.
func (b *builder) once(kind byte, text string) bool {
	n := len(b.seen)
	b.seen[said{kind, text}] = struct{}{}
	return len(b.seen) > n
}

// said is a text of one kind: u user message, r rule, d decision, f failed
// attempt, o open item, a artifact, c assistant's words, t tool output.
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

// previous takes over the items of an earlier summary; at -1 they are older
// than all of the span.
func (b *builder) previous(s *summary.Summary) {
	b.oldTask = s.CurrentTask
	b.requests = append(b.requests, s.Requests...)
	for _, it := range s.Requests {
		b.once('u', it.Text)
	}
	for _, it := range s.Constraints {
		if b.once('r', it.Text) {
			b.constraints = append(b.constraints, it)
			b.add(candidate{section: secConstraint, entry: len(b.constraints) - 1, piece: -1, at: -1, base: ruleBase(it.Text) + 2}, nil)
		}
	}
	b.plan = slices.Clone(s.CurrentPlan)
	for _, f := range s.Files {
		b.fileAt[f.Path] = len(b.files)
		f.Operations, f.Sources = slices.Clone(f.Operations), slices.Clone(f.Sources)
		b.files = append(b.files, f)
	}
	for _, d := range s.Decisions {
		if b.once('d', d.Decision) {
			b.decisions = append(b.decisions, d)
			b.add(candidate{section: secDecision, entry: len(b.decisions) - 1, piece: -1, at: -1, base: 3}, identifiers(d.Decision))
		}
	}
	for _, it := range s.FailedAttempts {
		if b.once('f', it.Text) {
			b.failed = append(b.failed, it)
			b.add(candidate{section: secFailed, entry: len(b.failed) - 1, piece: -1, at: -1, base: 1.5}, identifiers(it.Text))
		}
	}
	for _, o := range s.ToolOutcomes {
		b.outcomes[o.Tool+"\x00"+o.Input] = len(b.pool.outcomes)
		b.pool.outcomes = append(b.pool.outcomes, o)
		b.latest = append(b.latest, len(b.candidates))
		b.add(candidate{section: secOutcome, entry: len(b.pool.outcomes) - 1, piece: -1, at: -1, base: 0.6}, identifiers(o.Input))
	}
	for _, o := range s.OpenItems {
		if b.once('o', o.Description) {
			b.open = append(b.open, o)
			b.add(candidate{section: secOpen, entry: len(b.open) - 1, piece: -1, at: -1, base: 1.5}, nil)
		}
	}
	for _, a := range s.Artifacts {
		if b.once('a', a.ArtifactID) {
			b.pool.artifacts = append(b.pool.artifacts, a)
			b.add(candidate{section: secArtifact, entry: len(b.pool.artifacts) - 1, piece: -1, at: -1, base: 6}, nil)
		}
	}
	b.previousGroups(&b.recaps, secFact, s.Facts, 't', 1)
	b.previousGroups(&b.said, secSaid, s.Conclusions, 'c', 1)
	b.previousGroups(&b.snippets, secSnippet, s.Identifiers, 't', 0.2)
}

// previousGroups takes over items that were made of pieces, as pieces again.
func (b *builder) previousGroups(groups *[]group, sec section, items []summary.Item, kind byte, base float32) {
	for _, it := range items {
		g := group{turn: it.Turn, sources: it.Sources}
		lines := strings.Split(it.Text, "\n")
		if sec != secSaid && len(lines) > 1 && strings.HasSuffix(lines[0], ":") {
			g.label = strings.TrimSuffix(lines[0], ":")
			lines = lines[1:]
		}
		entry := len(*groups)
		if sec == secFact {
			entry = -1 - entry
		}
		for _, line := range lines {
			if line == "" || !b.once(kind, line) {
				continue
			}
			b.add(candidate{section: sec, entry: entry, piece: len(g.pieces), at: -1, base: base, text: line}, identifiers(line))
			g.pieces = append(g.pieces, line)
		}
		*groups = append(*groups, g)
	}
}

// ruleBase is the value of a rule by how surely it is one.
func ruleBase(s string) float32 {
	if cues, _ := cuesOf(s); cues&ruleCue != 0 {
		return 6
	}
	return 2
}

// substantial reports whether a user message can stand as the task: not a bare
// "yes", "go on" or "thanks".
func substantial(s string) bool { return len(s) >= 40 || strings.Count(s, " ") >= 6 }

func (b *builder) user(i int, m *thread.Message, f *facts) {
	if b.once('u', f.user) {
		b.requests = append(b.requests, summary.Item{Text: f.user, Turn: m.Turn, Sources: []thread.ID{m.ID}})
		if b.task < 0 || substantial(f.user) || !substantial(b.requests[b.task].Text) {
			b.task = len(b.requests) - 1
		}
	}
	for _, r := range f.rules {
		// A short message is its own rule; it stands in full among the requests,
		// but only here is it safe from being trimmed later.
		if !b.once('r', r.text) {
			continue
		}
		b.constraints = append(b.constraints, summary.Item{Text: r.text, Turn: m.Turn, Sources: []thread.ID{m.ID}})
		b.add(candidate{section: secConstraint, entry: len(b.constraints) - 1, piece: -1, at: i, base: ruleBase(r.text) * (0.5 + b.age(i)/2)}, r.idents)
	}
}

func (b *builder) recap(i int, m *thread.Message, f *facts) {
	g := group{label: "the agent's earlier summary", turn: m.Turn, sources: []thread.ID{m.ID}}
	for _, p := range f.recap {
		if len(p.text) < 4 || !b.once('t', p.text) {
			continue
		}
		base := 1.2 * b.age(i) * min(1, float32(len(p.text))/60)
		if p.code || narration(p.text) {
			base *= 0.2
		}
		b.add(candidate{section: secFact, entry: -1 - len(b.recaps), piece: len(g.pieces), at: i, base: base, text: p.text}, p.idents)
		g.pieces = append(g.pieces, p.text)
	}
	b.recaps = append(b.recaps, g)
	for _, a := range f.artifacts {
		if b.once('a', a.id) {
			b.pool.artifacts = append(b.pool.artifacts, summary.ArtifactReference{ArtifactID: a.id, Description: a.description, Turn: m.Turn, Sources: []thread.ID{m.ID}})
			b.add(candidate{section: secArtifact, entry: len(b.pool.artifacts) - 1, piece: -1, at: i, base: 6}, nil)
		}
	}
}

// lastSaid reports whether the assistant message at i is the last with text of
// its turn.
func (b *builder) lastSaid(i int) bool {
	for j := i + 1; j < len(b.facts); j++ {
		switch {
		case b.messages[j].StartsTurn():
			return true
		case len(b.facts[j].said) > 0:
			return false
		}
	}
	return true
}

// narration reports whether a line only announces what stands beside it.
func narration(s string) bool {
	return s[0] == '#' || s[len(s)-1] == ':' || strings.HasPrefix(s, "Now ") || strings.HasPrefix(s, "Let me ")
}

func (b *builder) assistant(i int, m *thread.Message, f *facts) {
	final := b.lastSaid(i)
	g := group{turn: m.Turn, sources: []thread.ID{m.ID}}
	age := b.age(i)
	for n, p := range f.said {
		if len(p.text) < 4 || p.code && (len(p.text) < 12 || len(p.idents) == 0) || !b.once('c', p.text) {
			continue
		}
		base := float32(0.5)
		switch {
		case p.code:
			base = 0.08
		case final && (n == 0 || n == len(f.said)-1):
			base = 3
		case final:
			base = 1.4
		case n == 0:
			base = 0.8
		}
		if narration(p.text) {
			base = 0.3
		}
		if p.cues&decisionCue != 0 {
			base += 1
		}
		if p.cues&(openCue|failureCue) != 0 {
			base += 0.5
		}
		// A few words say little; without this the shortest lines would win.
		base *= min(1, float32(len(p.text))/60)
		if p.cues&decisionCue != 0 && p.cues&reasonCue != 0 && len(p.text) > 40 {
			// A choice with its reason is a decision of its own.
			b.decision(i, m, p)
			continue
		}
		if final && p.cues&openCue != 0 && len(p.text) > 20 && len(p.text) < maxSentence && b.lastTurn(i) {
			b.open = append(b.open, summary.OpenItem{Description: p.text, Priority: summary.Medium, Turn: m.Turn, Sources: []thread.ID{m.ID}})
			b.add(candidate{section: secOpen, entry: len(b.open) - 1, piece: -1, at: i, base: 4}, p.idents)
			continue
		}
		b.add(candidate{section: secSaid, entry: len(b.said), piece: len(g.pieces), at: i, base: base * age, text: p.text}, p.idents)
		g.pieces = append(g.pieces, p.text)
	}
	b.said = append(b.said, g)
}

// lastTurn reports whether no later turn begins after i.
func (b *builder) lastTurn(i int) bool {
	return b.messages[i].Turn == b.messages[len(b.messages)-1].Turn
}

func (b *builder) decision(i int, m *thread.Message, p piece) {
	d := summary.Decision{Decision: p.text, Turn: m.Turn, Time: m.Time, Sources: []thread.ID{m.ID}}
	if p.reason > 20 && p.reason < len(p.text) && strings.HasPrefix(strings.ToLower(p.text[p.reason:]), "because ") {
		d.Decision = strings.TrimRight(p.text[:p.reason], " ,")
		d.Rationale = p.text[p.reason+len("because "):]
	}
	b.decisions = append(b.decisions, d)
	b.add(candidate{section: secDecision, entry: len(b.decisions) - 1, piece: -1, at: i, base: 3 * b.age(i)}, p.idents)
}

func (b *builder) call(i, n int, m *thread.Message, c *callFacts) {
	b.calls[c.id] = callRef{i, n}
	switch c.class {
	case toolpolicy.Todo:
		b.todo(m, c)
		if c.planText != "" {
			g := group{label: "proposed plan", turn: m.Turn, sources: []thread.ID{m.ID}}
			for _, p := range lines(c.planText, maxSentence) {
				b.add(candidate{section: secSaid, entry: len(b.said), piece: len(g.pieces), at: i, base: 0.8 * b.age(i), text: p.text}, p.idents)
				g.pieces = append(g.pieces, p.text)
			}
			b.said = append(b.said, g)
		}
		return
	case toolpolicy.Edit, toolpolicy.Write:
		b.snippet(i, m, c.name+" "+c.input, c.changed, 0.15)
	}
}

// snippet adds the pieces of one message as a group of the last section.
func (b *builder) snippet(i int, m *thread.Message, label string, pieces []piece, base float32) {
	g := group{label: clip(label, 110), turn: m.Turn, sources: []thread.ID{m.ID}}
	age := b.age(i)
	for _, p := range pieces {
		if !b.once('t', p.text) {
			continue
		}
		b.add(candidate{section: secSnippet, entry: len(b.snippets), piece: len(g.pieces), at: i, base: base * (1 + p.score) * age, text: p.text}, p.idents)
		g.pieces = append(g.pieces, p.text)
	}
	if len(g.pieces) > 0 {
		b.snippets = append(b.snippets, g)
	}
}

func (b *builder) todo(m *thread.Message, c *callFacts) {
	source := []thread.ID{m.ID}
	switch {
	case c.newTask:
		// The id stands in the result; until then the call's id names it.
		b.tasks = append(b.tasks, task{"call:" + c.id, summary.Step{Text: clip(c.todos[0].text, maxSentence), Status: c.todos[0].status, Sources: source}})
	case c.todoID != "":
		for i := range b.tasks {
			t := &b.tasks[i]
			if t.id != c.todoID {
				continue
			}
			if s := c.todos[0].status; s != "" {
				t.step.Status = s
			}
			if s := c.todos[0].text; s != "" {
				t.step.Text = clip(s, maxSentence)
			}
			t.step.Sources = append(slices.Clip(t.step.Sources), m.ID)
		}
	case len(c.todos) > 0:
		b.plan = b.plan[:0:0]
		for _, t := range c.todos {
			b.plan = append(b.plan, summary.Step{Text: clip(t.text, maxSentence), Status: t.status, Sources: source})
		}
	}
}

// touch writes one operation into the ledger.
func (b *builder) touch(op fileOp, m *thread.Message) {
	at, ok := b.fileAt[op.path]
	if !ok {
		at = len(b.files)
		b.fileAt[op.path] = at
		b.files = append(b.files, summary.File{Path: op.path})
	}
	f := &b.files[at]
	name := op.op
	if name == "created" && ok && !slices.Contains(f.Operations, "created") {
		name = "edited" // it was there before: a write over it
	}
	if name != "deleted" {
		// "deleted" says that the file is gone; it is there again.
		f.Operations = slices.DeleteFunc(f.Operations, func(op string) bool { return op == "deleted" })
	}
	if !slices.Contains(f.Operations, name) {
		f.Operations = append(f.Operations, name)
		slices.SortFunc(f.Operations, func(a, b string) int { return opOrder(a) - opOrder(b) })
	}
	f.Turn = m.Turn
	if op.note != "" {
		f.Note = addNote(f.Note, op.note)
	}
	if n := len(f.Sources); n == 0 || f.Sources[n-1] != m.ID {
		f.Sources = append(f.Sources, m.ID)
	}
}

func opOrder(op string) int { return strings.Index("read created edited deleted", op) }

// addNote keeps the newest notes within a line.
func addNote(old, note string) string {
	note = clip(note, 60)
	parts := strings.Split(old, ", ")
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == note || p == "" })
	parts = append(parts, note)
	return strings.Join(parts[max(0, len(parts)-4):], ", ")
}

// finish turns the ledger and the plan, which are known only at the end, into
// candidates.
func (b *builder) finish() {
	if len(b.tasks) > 0 {
		b.plan = b.plan[:0:0]
		for _, t := range b.tasks {
			if t.step.Status != "deleted" {
				b.plan = append(b.plan, t.step)
			}
		}
	}
	for i := range b.plan {
		base := float32(5)
		if b.plan[i].Status == "completed" {
			base = 2.5
		}
		b.add(candidate{section: secPlan, entry: i, piece: -1, at: len(b.messages), base: base}, nil)
	}
	position := make(map[thread.ID]int, len(b.messages))
	for i := range b.messages {
		position[b.messages[i].ID] = i
	}
	for i := range b.files {
		f := &b.files[i]
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
		b.add(candidate{section: secFile, entry: i, piece: -1, at: at, base: base * b.age(at)}, identifiers(f.Path))
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
