package summarize

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// planFile is a plan that the agent keeps in a Markdown file: headings, and steps with
// boxes ("- [ ] Write the test"). Agents without a tool for tasks keep their plan so.
type planFile struct {
	path    string
	text    string // of the whole file
	own     bool   // the agent wrote it, or ticked boxes in it
	ticked  int    // boxes, of a file that is not its own
	sources []thread.ID
}

// ticked counts the boxes of a text that are ticked.
func ticked(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if !hasBoxes(line) {
			continue
		}
		if m := boxed.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil && boxes[m[1]] == "completed" {
			n++
		}
	}
	return n
}

// hasBoxes reports whether a text has what may be a box; most texts have none.
func hasBoxes(text string) bool {
	for _, box := range [...]string{" [ ]", " [x]", " [X]", " [~]", " [-]"} {
		if strings.Contains(text, box) {
			return true
		}
	}
	return false
}

const (
	// leastBoxes is how many steps with boxes make a file a plan.
	leastBoxes = 3
	// maxPlan bounds a plan of which edits are made again, in bytes.
	maxPlan = 1 << 20
	// mostOpen is how many sections that are not done are listed, and enoughNext how many
	// steps to be done are enough: the sections behind them have a line each.
	mostOpen   = 8
	enoughNext = 5
)

var (
	boxed = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])\s+(\[[ xX~-]\])\s+(\S.*)$`)
	// lineNumber is what file tools write in front of each line.
	lineNumber = regexp.MustCompile(`(?m)^ *\d+(?:→|\t)`)
	titled     = regexp.MustCompile(`^#{1,6}\s+(\S.*?)\s*#*$`)
)

// findPlanFile returns the plan that the agent keeps in a file, as it stands at the end of
// the log, or nil. It is the agent's if the agent wrote the file or ticked boxes in it: a
// list of the project's that it only read or edited is not. The calls must tell the whole
// text: a file that a command or a patch changed counts again once it is read or written
// whole. An agent with a tool for tasks keeps its plan there. A file is not known any more
// once its edits are more work than the log allows.
func findPlanFile(log []thread.Message, of func(*thread.Message) *facts, work *effort.Budget) *planFile {
	type asked struct {
		message *thread.Message
		call    *callFacts
	}
	calls := map[string]asked{}
	known := map[string]*planFile{}
	var last *planFile
	for i := range log {
		m := &log[i]
		f := of(m)
		for n := range f.calls {
			c := &f.calls[n]
			if c.Class == toolclass.Todo {
				return nil // the agent keeps its plan there
			}
			if slices.ContainsFunc(c.Files, func(op shell.FileOp) bool { return isMarkdown(op.Path) }) {
				calls[c.ID] = asked{m, c}
			}
		}
		if f.result == nil {
			continue
		}
		a, ok := calls[f.result.CallID]
		if !ok {
			continue
		}
		if a.call.Class == toolclass.Shell {
			for _, op := range a.call.Files { // it did that, or may have
				if op.Op != "read" {
					delete(known, op.Path)
				}
			}
			continue
		}
		if judge(f.result, a.call, a.call.Class) == thread.Failure {
			continue
		}
		p := a.call.path()
		if p == "" {
			for _, op := range a.call.Files {
				delete(known, op.Path)
			}
			continue
		}
		before := known[p]
		text, written := textAfter(before, f.result, a.call, work)
		boxes := 0
		if text != "" && (before == nil && a.call.Class != toolclass.Write || before != nil && !before.own) {
			if !work.Spend(8 * len(text)) {
				text, written = "", true
			}
			boxes = ticked(text)
		}
		switch {
		case text == "" && written:
			delete(known, p)
		case text != "" && before == nil:
			known[p] = &planFile{path: p, text: text, own: a.call.Class == toolclass.Write, ticked: boxes, sources: []thread.ID{a.message.ID}}
		case text != "":
			before.own = before.own || written && boxes > before.ticked
			before.text, before.ticked = text, boxes
			before.sources = append(before.sources[:1:1], a.message.ID)
		}
		if l := known[p]; written && l != nil && l.own {
			last = l
		}
	}
	if last == nil || known[last.path] != last {
		return nil
	}
	return last
}

func isMarkdown(p string) bool {
	switch path.Ext(p) {
	case ".md", ".mdx", ".markdown":
		return true
	}
	return false
}

// textAfter is the text of a file with boxes after a call, and whether another one may have been
// written; the text is empty where the call does not tell.
func textAfter(before *planFile, r *resultFacts, c *callFacts, work *effort.Budget) (text string, written bool) {
	switch {
	case c.Class == toolclass.Read && !c.part:
		return r.doc, r.doc == "" && r.lines > 2 // it has no boxes any more
	case c.Class != toolclass.Edit && c.Class != toolclass.Write:
		return "", false
	case c.Class == toolclass.Write && len(c.body) == 1 && len(c.old) == 0:
		return c.body[0], true
	case before == nil || len(c.old) != len(c.body):
		return "", true
	}
	text = before.text
	for i, old := range c.old {
		if old == "" || !work.Spend(len(text)/4) {
			return "", true
		}
		n := strings.Count(text, old)
		size := len(text) + n*(len(c.body[i])-len(old))
		if n == 0 || n > 1 && !c.all || size > maxPlan || !work.Spend(size/4) {
			return "", true
		}
		text = strings.ReplaceAll(text, old, c.body[i])
	}
	return text, true
}

// planInFile takes the plan that the agent keeps in a file.
func (b *builder) planInFile() {
	log, of := b.logged()
	l := findPlanFile(log, of, b.effort)
	if l == nil {
		return
	}
	if steps := l.steps(); steps != nil {
		b.CurrentPlan = steps
		b.planFile = l.path
	}
}

// steps lists the plan: the sections that are done, a line each; the steps of those that
// come next; the headings of the sections behind them.
func (l *planFile) steps() []summary.Step {
	type section struct {
		title string
		steps []summary.Step
		done  int
	}
	sections := []section{{}}
	fenced := false
	for line := range strings.Lines(l.text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		if m := titled.FindStringSubmatch(line); m != nil {
			sections = append(sections, section{title: m[1]})
			continue
		}
		m := boxed.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		at := &sections[len(sections)-1]
		step := summary.Step{Text: clip.Brief(m[2], maxSentence), Status: boxes[m[1]], Sources: l.sources}
		if step.Status == "completed" {
			at.done++
		}
		at.steps = append(at.steps, step)
	}
	var out []summary.Step
	all, open, next := 0, 0, 0
	for _, s := range sections {
		all += len(s.steps)
		title := summary.Step{Text: clip.Brief(s.title, maxSentence), Status: "pending", Sources: l.sources}
		switch {
		case len(s.steps) == 0:
			continue
		case s.done == len(s.steps):
			title.Status = "completed"
		default:
			if s.done > 0 {
				title.Status = "in_progress"
			}
			open++
		}
		if s.title != "" && open <= mostOpen {
			out = append(out, title)
		}
		if title.Status != "completed" && next < enoughNext || s.title == "" {
			out = append(out, s.steps...)
			next += len(s.steps) - s.done
		}
	}
	if all < leastBoxes {
		return nil
	}
	return out
}
