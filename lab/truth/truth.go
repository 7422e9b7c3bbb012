// Package truth checks summaries against the log that they were made from: nothing that
// a summary says about the log may be untrue. It shares no code with what makes summaries
// but the reader of command lines.
//
// It reads a rendered summary line by line. One table (forms) has a row for each form of
// line: how it reads, and what must stand in the log if it is true. The log is not played
// back: an index says what was said and printed, by whom, in which turn and by which call. A
// line is false if nothing in the index shows it, or if something later contradicts it; a line
// that has none of the forms is a finding too.
package truth

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Count counts the statements of one form.
type Count struct{ Judged, False int }

// Finding is a statement that is false.
type Finding struct {
	Form      string // the name of its form
	Statement string
	Reason    string
}

// String tells a finding over several lines.
func (f Finding) String() string {
	indent := func(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }
	return fmt.Sprintf("FALSE %s: %s\n    because %s", f.Form, indent(f.Statement), indent(f.Reason))
}

// Report is what a check found. The zero value is that of an empty summary.
type Report struct {
	Counts   map[string]Count // by form
	Findings []Finding
}

// Add adds what another check found.
func (r *Report) Add(other Report) {
	if r.Counts == nil {
		r.Counts = map[string]Count{}
	}
	for k, c := range other.Counts {
		r.Counts[k] = Count{r.Counts[k].Judged + c.Judged, r.Counts[k].False + c.False}
	}
	r.Findings = append(r.Findings, other.Findings...)
}

// String is the table of the counts, by form.
func (r Report) String() string {
	var b strings.Builder
	var all Count
	fmt.Fprintf(&b, "%-40s %8s %8s\n", "form", "judged", "false")
	for _, k := range slices.Sorted(maps.Keys(r.Counts)) {
		c := r.Counts[k]
		fmt.Fprintf(&b, "%-40s %8d %8d\n", k, c.Judged, c.False)
		all = Count{all.Judged + c.Judged, all.False + c.False}
	}
	fmt.Fprintf(&b, "%-40s %8d %8d\n", "all", all.Judged, all.False)
	return b.String()
}

// claim is a statement of a summary that is judged.
type claim struct {
	text  string
	parts map[string]string       // the named parts of its form
	turn  int                     // 0 when none is told
	named []int                   // positions of the messages that it is said to be from, where it names some
	home  string                  // the folder that paths of its section are below
	from  func(text string) []int // the same of any item, by its text
}

// Log is a log that summaries are checked against. It is not safe for concurrent use: what was
// looked up once is kept.
type Log struct {
	span, all *index
	judged    map[string]verdict // by section, line, turn and home
}

// verdict is what was found of a line, while items of these texts are said to be from these messages.
type verdict struct {
	form, reason string
	from         map[string][]int
}

// Read reads a log, which has ids and turns set, as those of a thread. Summaries are of its first
// end messages. Those after them stand beside a summary: only the current task, the plan and the
// state of the work may be taken from there.
func Read(log []thread.Message, end int) *Log {
	end = len(hosted.Unfold(log[:min(max(end, 0), len(log))]))
	log = hosted.Unfold(log) // calls of the provider are calls too
	return &Log{span: newIndex(log[:end]), all: newIndex(log), judged: map[string]verdict{}}
}

// Check judges what a summary says of the log.
func (l *Log) Check(s summary.Summary) Report {
	c := checker{Log: l, report: Report{Counts: map[string]Count{}}}
	c.sources(s)
	c.read(s.Render())
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int { return cmp.Compare(a.Form, b.Form) })
	return c.report
}

// checker reads a summary and collects verdicts.
type checker struct {
	*Log
	report Report
	from   map[string][]int // the messages that items name, by their text
}

func (c *checker) say(form, statement, reason string) {
	n := c.report.Counts[form]
	n.Judged++
	if reason != "" {
		n.False++
		c.report.Findings = append(c.report.Findings, Finding{form, statement, reason})
	}
	c.report.Counts[form] = n
}

// sources judges whether the log has the messages that items name, of the turn that they tell.
func (c *checker) sources(s summary.Summary) {
	c.from = map[string][]int{}
	data, err := json.Marshal(s)
	var doc any
	if err != nil || json.Unmarshal(data, &doc) != nil {
		return
	}
	position := make(map[string]int, len(c.all.log))
	for i := range c.all.log {
		position[string(c.all.log[i].ID)] = i
	}
	var walk func(v any, in *index)
	walk = func(v any, in *index) {
		list, _ := v.([]any)
		for _, x := range list {
			walk(x, in)
		}
		item, _ := v.(map[string]any)
		for name, x := range item {
			if name == "work" || name == "current_plan" {
				walk(x, c.all)
			} else {
				walk(x, in)
			}
		}
		ids, _ := item["sources"].([]any)
		turn, _ := item["turn"].(float64)
		text, _ := item["text"].(string)
		if tool, ok := item["tool"].(string); ok {
			text = strings.TrimSpace(tool + " " + fmt.Sprint(cmp.Or(item["input"], any(""))))
		}
		reason, inTurn := "", turn == 0 || in == c.all
		for _, id := range ids {
			at, ok := position[fmt.Sprint(id)]
			if !ok || at >= len(in.log) {
				reason = fmt.Sprintf("the log up to the end of the span has no message %s", id)
				continue
			}
			inTurn = inTurn || in.log[at].Turn == int(turn)
			c.from[normal(text)] = append(c.from[normal(text)], at)
		}
		if len(ids) > 0 && reason == "" && !inTurn {
			reason = fmt.Sprintf("none of the messages that it names is of turn %d", int(turn))
		}
		if len(ids) > 0 {
			c.say("source", text, reason)
		}
	}
	walk(doc, c.span)
}

var (
	heading  = regexp.MustCompile(`^## ([A-Z][^(,]*?)(?: now)? ?[(,]|^## (Files|Open items)$`)
	storyAt  = regexp.MustCompile(`^turn (\d+)`)
	pathHome = regexp.MustCompile(`(?m)^- paths are below (.*)$`)
	workDir  = regexp.MustCompile(`(?m)^- directory: (.*?)(?: \| .*)?$`)
)

// read judges a rendered summary.
func (c *checker) read(text string) {
	section, turn, home := "", 0, ""
	if m := cmp.Or(matched(pathHome, text), matched(workDir, text)); m != "" {
		home = m
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		deeper := "  "
		switch event, ok := strings.CutPrefix(line, "  "); {
		case i == 0 && line == summary.Header:
			i++
			continue
		case strings.HasPrefix(line, "## "):
			m := heading.FindStringSubmatch(line)
			if i++; m == nil || !slices.ContainsFunc(forms, func(f form) bool { return f.section == m[1]+m[2] }) {
				c.say("unknown form", line, "no section has this heading")
				continue
			}
			section, turn = m[1]+m[2], 0
			continue
		case ok && section == "What happened":
			line, deeper = event, "    "
		default:
			line = strings.TrimPrefix(line, "- ")
		}
		for i++; i < len(lines); i++ {
			rest, ok := strings.CutPrefix(lines[i], deeper)
			if !ok || deeper == "  " && section == "What happened" {
				break
			}
			line += "\n" + rest
		}
		if m := storyAt.FindStringSubmatch(line); section == "What happened" && deeper == "  " {
			if turn = 0; m != nil {
				turn, _ = strconv.Atoi(m[1])
			}
		}
		c.judge(section, line, turn, home)
	}
}

func matched(p *regexp.Regexp, text string) string {
	if m := p.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// judge judges one line, or finds how it was judged before.
func (c *checker) judge(section, line string, turn int, home string) {
	key := fmt.Sprint(section, "\x00", line, "\x00", turn, "\x00", home)
	v, ok := c.judged[key]
	for text, from := range v.from {
		ok = ok && slices.Equal(from, c.from[text])
	}
	if !ok {
		v = c.verdict(section, line, turn, home)
		c.judged[key] = v
	}
	c.say(v.form, line, v.reason)
}

// verdict judges one line by the first form that it has.
func (c *checker) verdict(section, line string, turn int, home string) verdict {
	v := verdict{"unknown form", "no line of this section has this form", map[string][]int{}}
	from := func(text string) []int {
		text = normal(text)
		v.from[text] = c.from[text]
		return c.from[text]
	}
	for _, f := range forms {
		if f.section != section {
			continue
		}
		m := f.like.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		cl := claim{text: line, parts: map[string]string{}, turn: turn, from: from, home: home}
		for i, name := range f.like.SubexpNames() {
			if name != "" && m[i] != "" {
				cl.parts[name] = m[i]
			}
		}
		if n, err := strconv.Atoi(cl.parts["turn"]); err == nil {
			cl.turn = n
		}
		in := c.span
		if f.all {
			in = c.all
		}
		cl.named = from(cl.parts["words"])
		v.form, v.reason = f.name, f.proof(in, cl)
		break
	}
	return v
}
