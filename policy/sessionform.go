package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
)

// sessionForm is the form of a summary of seed B (B6).
type sessionForm struct {
	round   int
	task    string
	chained bool // it goes on from the summary of an earlier round
	// latest is what the user asked for last, where that is hidden.
	latest []summary.Item
}

// sessionSections are the sections in their order.
var sessionSections = []string{
	"Original Task", "Completed Work", "Key Technical Decisions", "Current State", "Pending Work", "Errors & Resolutions",
}

const (
	sessionHeading = "Session Summary"
	// pendingHeading tells that what follows may be acted on.
	pendingHeading = "### Pending Work\n"
	chainedNote    = "This summary incorporates context from"
	workTable      = "| File/Component | Action | Description |\n|----------------|--------|-------------|"
)

// write joins heading and sections. Sections without a body are left out, and
// the task is always there.
func (f sessionForm) write(bodies []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s (Compaction Round %d)\n", sessionHeading, f.round)
	for n, body := range bodies {
		if body = strings.Trim(body, "\n"); body != "" {
			fmt.Fprintf(&b, "\n### %s\n%s\n", sessionSections[n], body)
		}
	}
	if f.chained {
		fmt.Fprintf(&b, "\n%s %d previous compaction rounds.", chainedNote, max(1, f.round-1))
	}
	return strings.TrimRight(b.String(), "\n")
}

// answered puts a model's answer into the form: the heading with the right
// round, the sections in their order at their level, and the task word for word
// in place of whatever the model wrote there. Nothing else of the answer is lost:
// text before the first section, and sections that nobody asked for, stay with the section
// above them. Of all that only what can be taken is; a section of which nothing is
// left is what code has for it, and rules that the user set and the answer lost are
// added.
func (f sessionForm) answered(model *asker, g *summarize.Grounds, answer string, sum *summary.Summary) (string, error) {
	bodies := make([]strings.Builder, len(sessionSections))
	var lead strings.Builder
	into := &lead
	for line := range strings.Lines(unfenced(answer)) {
		title := strings.TrimSpace(line)
		heading := strings.HasPrefix(title, "#")
		title = strings.Trim(title, "#* ")
		switch n := slices.IndexFunc(sessionSections, func(s string) bool { return strings.EqualFold(s, title) }); {
		case heading && n >= 0:
			into = &bodies[n]
		case heading && strings.HasPrefix(title, sessionHeading), strings.HasPrefix(title, chainedNote):
		default:
			into.WriteString(line)
		}
	}
	texts := make([]string, len(bodies))
	var rejected error
	taken := false
	for n := range bodies {
		body := bodies[n].String()
		if n == 3 {
			body = joined(lead.String(), body)
		}
		if n == 0 || strings.TrimSpace(body) == "" {
			continue // the task is put in by code
		}
		if n == 4 {
			body = pendingHeading + body
		}
		text, err := model.taken(g, body)
		if err != nil {
			rejected = err
			texts[n] = f.bodies(sum)[n]
			continue
		}
		taken = true
		texts[n] = strings.TrimPrefix(text, `\`+pendingHeading)
	}
	if !taken {
		return "", cmp.Or[error](rejected, &summarize.RejectedError{Reason: summarize.Empty})
	}
	texts[0] = f.task
	texts[3] = joined(strings.Join(unsaid(strings.Join(texts, "\n"), f.latest), "\n"), texts[3])
	texts[2] = strings.TrimLeft(texts[2]+"\n"+strings.Join(unsaid(strings.Join(texts, "\n"), sum.Constraints), "\n"), "\n")
	return f.write(texts), nil
}

// unfenced takes an answer out of a code block around the whole of it.
func unfenced(s string) string {
	s = strings.TrimSpace(s)
	if opening, rest, ok := strings.Cut(s, "\n"); ok && strings.HasPrefix(opening, "```") && strings.HasSuffix(rest, "\n```") {
		return strings.TrimSuffix(rest, "```")
	}
	return s
}

// extracted writes what code found into the form. What it quotes of tools and
// of messages is made harmless by package summary, except the task itself.
func (f sessionForm) extracted(sum *summary.Summary) string { return f.write(f.bodies(sum)) }

// bodies are the sections as code writes them.
func (f sessionForm) bodies(sum *summary.Summary) []string {
	work := workTable
	for _, file := range sum.Files {
		work += row(file.Path, strings.Join(file.Operations, ", "), file.Note)
	}
	for _, o := range sum.ToolOutcomes {
		work += row(o.Tool, string(o.Outcome), strings.TrimSpace(o.Input+" "+o.Error))
	}
	if work == workTable {
		work = ""
	}

	current := ""
	pending := entriesOf(summary.Summary{OpenItems: sum.OpenItems})
	for _, step := range sum.CurrentPlan {
		switch step.Status {
		case "completed", "done", "cancelled":
			continue
		case "in_progress":
			current = step.Text
		}
		pending = append(pending, "- "+harmless(step.Text))
	}
	for n, item := range pending {
		pending[n] = "- [ ] " + strings.TrimPrefix(item, "- ")
	}
	if current == "" && sum.CurrentTask != f.task {
		current = sum.CurrentTask
	}
	var state []string
	if current != "" {
		state = append(state, "- Working on: "+harmless(current))
	}
	said := sum.Conclusions
	if n := len(said); n > 0 {
		state = append(state, "- Last completed: "+harmless(said[n-1].Text))
		said = said[:n-1]
	}
	state = append(state, summary.Lines(slices.Concat(said, sum.Facts, sum.Identifiers), false)...)
	state = append(state, entriesOf(summary.Summary{Artifacts: sum.Artifacts})...)

	requests := slices.DeleteFunc(slices.Clone(sum.Requests), func(i summary.Item) bool { return i.Text == f.task || i.Text == sum.CurrentTask })
	return []string{
		f.task,
		work,
		strings.Join(slices.Concat(entriesOf(summary.Summary{Decisions: sum.Decisions}), summary.Lines(slices.Concat(sum.Constraints, requests), true)), "\n"),
		strings.Join(state, "\n"),
		strings.Join(pending, "\n"),
		strings.Join(summary.Lines(sum.FailedAttempts, false), "\n"),
	}
}

// entriesOf renders the items of summaries that hold one section each.
func entriesOf(parts ...summary.Summary) []string {
	var entries []string
	for _, part := range parts {
		for _, section := range part.Sections() {
			entries = append(entries, section.Entries...)
		}
	}
	return entries
}

// harmless is a text as package summary writes it inside an item.
func harmless(text string) string {
	return strings.TrimPrefix(summary.Lines([]summary.Item{{Text: text}}, false)[0], "- ")
}

// row is a line of the table.
func row(cells ...string) string {
	var b strings.Builder
	b.WriteString("\n|")
	for _, cell := range cells {
		cell = strings.Join(strings.Fields(harmless(cell)), " ")
		b.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
	}
	return b.String()
}
