package summarize

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

type todo struct{ text, status string }

// readTodo reads the list, or the change of one task, that a todo tool was given.
func (f *callFacts) readTodo(args gjson.Result) {
	name := toolclass.Normal(f.Name)
	switch name {
	case "taskcreate":
		f.newTask = true
		f.todos = []todo{{rawjson.FirstText(args, "subject", "title", "description"), "pending"}}
		return
	case "taskupdate":
		f.todoID = rawjson.FirstText(args, "taskId", "task_id", "id")
		f.todos = []todo{{rawjson.FirstText(args, "subject", "title"), args.Get("status").String()}}
		return
	case "exitplanmode":
		f.proposed = args.Get("plan").Str
		return
	}
	for _, k := range []string{"todos", "plan", "todoList", "todo_list", "task_list", "tasks", "items"} {
		v := args.Get(k)
		if v.Type == gjson.String {
			// A checklist in Markdown, or a list encoded twice.
			if rawjson.Valid(v.Str) && gjson.Parse(v.Str).IsArray() {
				v = gjson.Parse(v.Str)
			} else {
				f.todos = checklist(v.Str)
				return
			}
		}
		if !v.IsArray() {
			continue
		}
		v.ForEach(func(_, e gjson.Result) bool {
			if e.Type == gjson.String {
				f.todos = append(f.todos, todo{text: e.Str})
				return true
			}
			if t := rawjson.FirstText(e, "content", "step", "text", "title", "description", "task", "name", "subject"); t != "" {
				f.todos = append(f.todos, todo{t, rawjson.FirstText(e, "status", "state")})
			}
			return true
		})
		return
	}
}

// checklist reads "[x] done", "[ ] open" and "[-] running" lines.
func checklist(s string) []todo {
	var out []todo
	for line := range strings.Lines(s) {
		line = strings.TrimLeft(strings.TrimSpace(line), "-* ")
		if status := boxes[line[:min(3, len(line))]]; status != "" {
			out = append(out, todo{strings.TrimSpace(line[3:]), status})
		}
	}
	return out
}

var boxes = map[string]string{"[ ]": "pending", "[x]": "completed", "[X]": "completed", "[-]": "in_progress", "[~]": "in_progress"}

// taskStatus reads the rows "#3 [pending] Write the test" of a printed task list; nil if
// there is none.
func taskStatus(s string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(s) {
		id, rest, ok := strings.Cut(strings.TrimSpace(line), " [")
		status, _, closed := strings.Cut(rest, "] ")
		if ok && closed && strings.HasPrefix(id, "#") {
			all[strings.Trim(id, "#.")] = status
		}
	}
	if len(all) == 0 && !strings.HasPrefix(s, "No tasks found") {
		return nil
	}
	return all
}

type task struct {
	step summary.Step
	gone bool
}

// tasks is the list that an agent keeps by single calls.
type tasks struct {
	all  []task
	byID map[string]int  // the position of each that is not gone
	told map[string]bool // the ids that a result told
}

// callMark and the id of the call stand for the id of a new task until the result tells it.
const callMark = "call:"

// open lists the tasks that are not gone.
func (l *tasks) open() (steps []summary.Step) {
	for _, t := range l.all {
		if !t.gone {
			steps = append(steps, t.step)
		}
	}
	return steps
}

func (l *tasks) add(id string, step summary.Step) {
	if l.byID == nil {
		l.byID, l.told = map[string]int{}, map[string]bool{}
	}
	l.byID[id], l.all = len(l.all), append(l.all, task{step: step})
}

// find returns the task of an id; nil if there is none.
func (l *tasks) find(id string) *task {
	if i, ok := l.byID[id]; ok {
		return &l.all[i]
	}
	return nil
}

// remove removes the tasks of which a result told the id, without those to keep.
func (l *tasks) remove(keep map[string]string) {
	for id := range l.told {
		if keep[id] == "" {
			l.find(id).gone = true
			delete(l.byID, id)
			delete(l.told, id)
		}
	}
}

func (b *builder) todo(m *thread.Message, c *callFacts) {
	source := []thread.ID{m.ID}
	switch {
	case c.newTask:
		b.tasks.add(callMark+c.ID, summary.Step{Text: clip.Brief(c.todos[0].text, maxSentence), Status: c.todos[0].status, Sources: source})
	case c.todoID != "":
		if t := b.tasks.find(c.todoID); t != nil {
			if s := c.todos[0].status; s != "" {
				t.step.Status = s
			}
			if s := c.todos[0].text; s != "" {
				t.step.Text = clip.Brief(s, maxSentence)
			}
			t.step.Sources = append(t.step.Sources, m.ID)
		}
	case len(c.todos) > 0:
		b.CurrentPlan = b.CurrentPlan[:0:0]
		for _, t := range c.todos {
			b.CurrentPlan = append(b.CurrentPlan, summary.Step{Text: clip.Brief(t.text, maxSentence), Status: t.status, Sources: source})
		}
		b.listed = true
	}
}

// updateTasks brings the agent's list of tasks up to the end of the log. If another summary
// follows, the list stands there.
func (b *builder) updateTasks() {
	in := b.in
	calls := map[string]*callFacts{}
	for i := range in.Context {
		m := &in.Context[i]
		f := b.read(m)
		for n := range f.calls {
			if c := &f.calls[n]; c.Class == toolclass.Todo {
				calls[c.ID] = c
				b.todo(m, c)
			}
		}
		if f.result == nil {
			continue
		}
		if c := calls[f.result.CallID]; c != nil {
			b.identifyTask(c, f.result)
			b.readTaskList(f.result)
		}
	}
	if in.Continued && len(calls) > 0 {
		b.tasks, b.CurrentPlan, b.listed = tasks{}, nil, false
	}
}

// addProposedSteps adds to the agent's own list the steps that a model read out of the
// span. Older steps of the previous summary have given way to the list.
func (b *builder) addProposedSteps() {
	inSpan := map[thread.ID]bool{}
	for i := range b.messages {
		inSpan[b.messages[i].ID] = true
	}
	listed := map[string]bool{}
	for _, s := range b.CurrentPlan {
		listed[normalized(s.Text)] = true
	}
	for _, x := range b.before {
		text := normalized(x.Text)
		if x.Status != "completed" && slices.ContainsFunc(x.Sources, func(id thread.ID) bool { return inSpan[id] }) && !listed[text] {
			listed[text], b.CurrentPlan = true, append(b.CurrentPlan, x)
		}
	}
}

// identifyTask gives a new task the id that the result tells.
func (b *builder) identifyTask(c *callFacts, r *resultFacts) {
	if !c.newTask || r.taskID == "" {
		return
	}
	if b.tasks.find(r.taskID) != nil { // numbers begin anew in a new list
		b.tasks.remove(nil)
	}
	if i, ok := b.tasks.byID[callMark+c.ID]; ok && !strings.HasPrefix(r.taskID, callMark) {
		delete(b.tasks.byID, callMark+c.ID)
		b.tasks.byID[r.taskID], b.tasks.told[r.taskID] = i, true
	}
}

// readTaskList takes over the status of all tasks from a printed list: other agents may have
// changed it.
func (b *builder) readTaskList(r *resultFacts) {
	if r.tasks == nil {
		return
	}
	b.tasks.remove(r.tasks)
	for id, status := range r.tasks {
		if t := b.tasks.find(id); t != nil && status != "" {
			t.step.Status = status
		}
	}
}
