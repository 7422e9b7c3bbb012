package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

type task struct {
	id   string
	step summary.Step
}

// callMark stands before the id of the call that made a task, until its result
// tells the id of the task.
const callMark = "call:"

func (b *builder) todo(m *thread.Message, c *callFacts) {
	source := []thread.ID{m.ID}
	switch {
	case c.newTask:
		// The id stands in the result; until then the call's id names it.
		b.tasks = append(b.tasks, task{callMark + c.id, summary.Step{Text: clip.Brief(c.todos[0].text, maxSentence), Status: c.todos[0].status, Sources: source}})
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
				t.step.Text = clip.Brief(s, maxSentence)
			}
			t.step.Sources = append(slices.Clip(t.step.Sources), m.ID)
		}
	case len(c.todos) > 0:
		b.CurrentPlan = b.CurrentPlan[:0:0]
		for _, t := range c.todos {
			b.CurrentPlan = append(b.CurrentPlan, summary.Step{Text: clip.Brief(t.text, maxSentence), Status: t.status, Sources: source})
		}
		b.listed = true
	}
}

// catchUp takes over how far the agent's list of tasks is at the end of the log. Where
// another summary follows, the list stands there.
func (b *builder) catchUp(in *Input, of func(*thread.Message) *facts) {
	calls := map[string]*callFacts{}
	for i := range in.Context {
		m := &in.Context[i]
		f := of(m)
		for n := range f.calls {
			if c := &f.calls[n]; c.class == toolpolicy.Todo {
				calls[c.id] = c
				b.todo(m, c)
			}
		}
		if f.result == nil {
			continue
		}
		if c := calls[f.result.callID]; c != nil {
			b.nameTask(c, f.result)
			b.seeTasks(f.result)
		}
	}
	if in.Continued && len(calls) > 0 {
		b.tasks, b.CurrentPlan, b.listed = nil, nil, false
	}
}

// planned adds to the agent's own list what somebody who read all of the span says is
// planned beside it. Steps of before the span have given way to the list.
func (b *builder) planned() {
	inSpan := map[thread.ID]bool{}
	for i := range b.messages {
		inSpan[b.messages[i].ID] = true
	}
	for _, x := range b.before {
		same := func(s summary.Step) bool { return plainly(s.Text) == plainly(x.Text) }
		if x.Status != "completed" && slices.ContainsFunc(x.Sources, func(id thread.ID) bool { return inSpan[id] }) && !slices.ContainsFunc(b.CurrentPlan, same) {
			b.CurrentPlan = append(b.CurrentPlan, x)
		}
	}
}

// filed is the path under which a file stands in the ledger. A path that ends in
// all of another, which has folders and no root, is taken for the same file, if it
// is the only one.
func (b *builder) filed(p string) string {
	if _, ok := b.fileAt[p]; ok || !strings.Contains(p, "/") {
		return p
	}
	base := p[strings.LastIndexByte(p, '/')+1:]
	same := ""
	for _, q := range b.based[base] {
		if !b.endsIn(p, q) && !b.endsIn(q, p) {
			continue
		}
		if same != "" {
			same = ""
			break
		}
		same = q
	}
	switch {
	case same == "":
		b.based[base] = append(b.based[base], p)
		return p
	case len(p) > len(same): // now the whole path is known
		at := b.fileAt[same]
		b.Files[at].Path, b.fileAt[p] = p, at
		delete(b.fileAt, same)
		if text, ok := b.small[same]; ok {
			b.small[p] = text
		}
		list := b.based[base]
		list[slices.Index(list, same)] = p
		return p
	}
	return same
}

// endsIn reports whether a path with a root ends in another without, which has
// folders.
func (b *builder) endsIn(whole, part string) bool {
	return whole[0] == '/' && part[0] != '/' && part[0] != '~' && part[0] != '.' && strings.Contains(part, "/") && strings.HasSuffix(whole, "/"+part)
}

// touch writes one operation into the ledger, and says as what.
func (b *builder) touch(op fileOp, m *thread.Message) string {
	at, ok := b.fileAt[op.path]
	if !ok {
		at = len(b.Files)
		b.fileAt[op.path] = at
		b.Files = append(b.Files, summary.File{Path: op.path})
	}
	f := &b.Files[at]
	name := op.op
	if name == "created" && ok && !slices.Contains(f.Operations, "deleted") {
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
	if op.op != "read" || !f.Changed() {
		f.Turn = m.Turn
	}
	if op.op != "read" {
		delete(b.small, op.path)
		f.Note = strings.Join(slices.DeleteFunc(strings.Split(f.Note, ", "), func(p string) bool { return strings.HasPrefix(p, holds) }), ", ")
	}
	if op.note != "" {
		f.Note = addNote(f.Note, op.note)
	}
	if n := len(f.Sources); n == 0 || f.Sources[n-1] != m.ID {
		f.Sources = append(f.Sources, m.ID)
	}
	return name
}

func opOrder(op string) int { return strings.Index("read created edited deleted", op) }

// holds stands before what a file of next to nothing holds, and maxHeld bounds that,
// in bytes: it takes hardly more than saying that it was read.
const (
	holds   = "holds "
	maxHeld = 60
)

// held notes what a file holds that was read whole and is so small.
func (b *builder) held(path string, r *resultFacts) {
	if r.lines <= 4 && r.text != "" {
		b.small[path] = r.text
	}
}

// addNote keeps the newest notes within a line.
func addNote(old, note string) string {
	note = clip.Brief(note, maxHeld+len(holds))
	parts := strings.Split(old, ", ")
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == note || p == "" })
	parts = append(parts, note)
	return strings.Join(parts[max(0, len(parts)-2):], ", ")
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
