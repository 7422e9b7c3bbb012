package summarize

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

type todo struct{ text, status, detail string }

// readTodo reads the list, or the change of one task, that a todo tool was given.
func (f *callFacts) readTodo(args gjson.Result) {
	name := toolclass.Normal(f.Name)
	switch name {
	case "taskcreate", "taskupdate":
		t := todo{rawjson.FirstText(args, "subject", "title"), args.Get("status").Str, args.Get("description").Str}
		if f.newTask = name == "taskcreate"; f.newTask {
			t.text, t.status = cmp.Or(t.text, t.detail), "pending"
		} else {
			f.todoID = rawjson.FirstText(args, "taskId", "task_id", "id")
		}
		f.todos = []todo{t}
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
				f.todos = append(f.todos, todo{t, rawjson.FirstText(e, "status", "state"), rawjson.FirstText(e, "description", "details", "notes")})
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
			out = append(out, todo{text: strings.TrimSpace(line[3:]), status: status})
		}
	}
	return out
}

var boxes = map[string]string{"[ ]": "pending", "[x]": "completed", "[X]": "completed", "[-]": "in_progress", "[~]": "in_progress"}

// readTasks reads the id of a new task, "Task #3 created", and the rows "#3 [pending] Write the test" of a
// task list that was printed.
func (f *resultFacts) readTasks(s string) {
	if rest, ok := strings.CutPrefix(f.First, "Task #"); ok {
		f.taskID, _, _ = strings.Cut(rest, " ")
	}
	if toolclass.Normal(f.tool) != "tasklist" {
		return
	}
	all := map[string]string{}
	for line := range strings.Lines(s) {
		id, rest, ok := strings.Cut(strings.TrimSpace(line), " [")
		status, _, closed := strings.Cut(rest, "] ")
		if ok && closed && strings.HasPrefix(id, "#") {
			all[strings.Trim(id, "#.")] = status
		}
	}
	if len(all) > 0 || strings.HasPrefix(s, "No tasks found") {
		f.tasks = all
	}
}

// taskList is the list that an agent keeps, written as a whole or by single calls.
type taskList struct {
	steps []summary.Step // those that are gone have the status "deleted"
	// Of a list kept by single calls: the steps that are not gone by their id, and those of which no result
	// has told the id yet, by the call that made them.
	byID, byCall map[string]int
	turn         int // of the last call that changed it
}

// change applies a call in a message.
func (l *taskList) change(m *thread.Message, c *callFacts) {
	if l.turn = m.Turn; c.todoID != "" {
		if n, ok := l.byID[c.todoID]; ok {
			step, to := &l.steps[n], c.todos[0]
			step.Status, step.Text = cmp.Or(to.status, step.Status), cmp.Or(clip.Brief(to.text, maxSentence), step.Text)
			step.Detail = cmp.Or(clip.Brief(to.detail, maxDetail), step.Detail)
			step.Sources = append(step.Sources, m.ID)
		}
		return
	}
	if c.newTask {
		if l.byCall == nil {
			l.byID, l.byCall = map[string]int{}, map[string]int{}
		}
		l.byCall[c.ID] = len(l.steps)
	} else if len(c.todos) > 0 {
		*l = taskList{turn: m.Turn}
	}
	for _, t := range c.todos {
		l.steps = append(l.steps, summary.Step{Text: clip.Brief(t.text, maxSentence), Status: t.status, Detail: clip.Brief(t.detail, maxDetail), Sources: []thread.ID{m.ID}})
	}
}

// answer gives a new task the id that a result tells, and takes over the status of all tasks from a printed
// list: other agents may have changed it.
func (l *taskList) answer(c *callFacts, r *resultFacts) {
	if n, ok := l.byCall[c.ID]; ok && r.taskID != "" {
		if _, again := l.byID[r.taskID]; again { // numbers begin anew in a new list
			l.remove(nil)
		}
		delete(l.byCall, c.ID)
		l.byID[r.taskID] = n
	}
	if r.tasks == nil {
		return
	}
	l.remove(r.tasks)
	for id, status := range r.tasks {
		if n, ok := l.byID[id]; ok && status != "" {
			l.steps[n].Status = status
		}
	}
}

// remove removes the tasks of which a result told the id, without those to keep.
func (l *taskList) remove(keep map[string]string) {
	for id, n := range l.byID {
		if keep[id] == "" {
			l.steps[n].Status = "deleted"
			delete(l.byID, id)
		}
	}
}

// addPlan makes the agent's own list the plan, with the steps that a model read out of the span. Older
// steps of the previous summary have given way to the list.
func (b *builder) addPlan() {
	if len(b.tasks.steps) == 0 {
		return
	}
	b.CurrentPlan = slices.DeleteFunc(slices.Clone(b.tasks.steps), func(s summary.Step) bool { return s.Status == "deleted" })
	inWork := slices.ContainsFunc(b.CurrentPlan, func(s summary.Step) bool { return s.Status == "in_progress" })
	for i := range b.CurrentPlan {
		s := &b.CurrentPlan[i]
		now := s.Status == "in_progress" || !inWork && s.Status != "completed"
		if inWork = inWork || now; !now || s.Detail == s.Text {
			s.Detail = ""
		}
	}
	inSpan := isAmong(spanOf(&Input{Messages: b.messages}).MessageIDs)
	listed := map[string]bool{}
	for _, s := range b.CurrentPlan {
		listed[normalized(s.Text)] = true
	}
	for _, x := range b.before {
		if text := normalized(x.Text); x.Status != "completed" && !listed[text] && slices.ContainsFunc(x.Sources, inSpan) {
			listed[text], b.CurrentPlan = true, append(b.CurrentPlan, x)
		}
	}
}

// folded makes one step of a plan that was completed, last changed in a turn before the newest of the log.
func folded(plan []summary.Step, changed int, log []thread.Message) []summary.Step {
	if len(plan) < 2 || len(log) == 0 || changed == log[len(log)-1].Turn || slices.ContainsFunc(plan, func(s summary.Step) bool { return s.Status != "completed" }) {
		return plan
	}
	last := plan[len(plan)-1]
	last.Text = fmt.Sprintf("all %d steps, the last: %s", len(plan), last.Text)
	return []summary.Step{last}
}
