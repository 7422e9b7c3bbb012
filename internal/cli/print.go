package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/plan"
)

// tell writes the report; of the records people are shown at most so many.
func (r *report) tell(w io.Writer, c *cobra.Command, most int) error {
	return tell(w, c, r, func(p *printer) { r.print(p, most) })
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// print writes the report; of the records at most so many, largest first.
func (r *report) print(p *printer, most int) {
	r.Input.print(p)
	counter := r.Counter
	if !r.Exact {
		counter += fmt.Sprintf(" (estimate, ± %.0f %%)", 100*r.Band)
	}
	p.line("policy %s · for %s", r.Policy, r.To)
	p.text("counted with %s%s", counter, r.counting)

	p.heading("tokens")
	var rows [][]string
	row := func(name string, before, after int, left string) {
		if before != 0 || after != 0 {
			rows = append(rows, []string{name, number(before), number(after), left})
		}
	}
	row("whole request", r.Before, r.After, percent(r.After, r.Before))
	row("  system prompt", r.System, r.System, "")
	row("  tool definitions", r.Tools, r.Tools, "")
	for _, s := range r.Roles {
		row("  "+s.Name, s.Before, s.After, percent(s.After, s.Before))
	}
	row("  framing, repairs", r.Framing.Before, r.Framing.After, "")
	p.table([]string{"", ">before", ">after", ">left"}, rows)
	if r.Budget > 0 {
		p.line("budget %s, %s of it used", number(r.Budget), percent(r.After, r.Budget))
	}
	if r.Savings != nil {
		p.line("input price of one request: $%.4f before, $%.4f after (uncached)", r.Savings.Before, r.Savings.After)
		if r.Savings.Step > 0 {
			p.line("in the provider's cache: $%.4f less for each further request, which pays for the new prefix after %.0f of them", r.Savings.Step, math.Ceil(r.Savings.Steps))
		}
	}
	r.Summaries.print(p)
	p.firstRows("results by tool", []string{"tool", ">calls", ">before", ">after"}, eachOf(r.ByTool, func(t toolShare) []string {
		return []string{toolName(t.Name), number(t.Calls), number(t.Before), number(t.After)}
	}), manyTools, "more tool")
	r.printRecords(p, most)
	p.section("kept as it is", []string{"role", ">turn", ">tokens", "text"}, eachOf(r.Pinned, func(pin pinnedRow) []string {
		return []string{string(pin.Role), fmt.Sprint(pin.Turn), number(pin.Tokens), pin.Text}
	}))
	if len(r.Repairs)+len(r.Notes) > 0 || r.Output != "" || r.Plan != "" || r.Store != "" || r.Session != nil {
		p.line("")
	}
	for n, repair := range r.Repairs {
		if n == fewLines {
			p.line("put right: and %s (--json lists all)", plural(len(r.Repairs)-n, "more place"))
			break
		}
		p.text("put right: %s (message %s)", repair.What, repair.ID)
	}
	for _, note := range r.Notes {
		p.text("note: %s", note)
	}
	for _, place := range []struct{ what, path string }{{"prompt", r.Output}, {"plan", r.Plan}, {"removed content", r.Store}} {
		if place.path != "" {
			p.line("%s: %s", place.what, place.path)
		}
	}
	r.Session.print(p)
}

func (s source) print(p *printer) {
	p.text("%s · %s · %s · %s · %s", shorten(s.File, 60), s.Format, plural(s.Messages, "message"), plural(s.Turns, "turn"), plural(s.ToolCalls, "tool call"))
	if s.Compactions > 0 {
		p.line("the agent itself compacted %s", plural(s.Compactions, "time"))
	}
	if s.Side > 0 {
		p.line("beside it %s, of sub-agents or of branches that were left: not counted", plural(s.Side, "side chain"))
	}
	for n, w := range s.Warnings {
		if n == fewLines {
			p.line("warning: and %d more", len(s.Warnings)-n)
			break
		}
		p.text("warning: %s", w)
	}
}

// fewLines bounds lists of warnings and repairs.
const fewLines = 5

// manyTools bounds the table by tool.
const manyTools = 12

// toolName is a tool's name in a table. Results of the old function calls, or
// without a call, may have none.
func toolName(name string) string {
	if name == "" {
		return "(no name)"
	}
	return shorten(name, 40)
}

func (r *report) printRecords(p *printer, most int) {
	if len(r.Records) == 0 {
		p.line("\nnothing had to be changed")
		return
	}
	count := map[plan.Action]int{}
	for _, record := range r.Records {
		count[record.Action]++
	}
	summary := ""
	for _, action := range []plan.Action{plan.Summarize, plan.Externalize, plan.Clear, plan.Drop} {
		if count[action] > 0 {
			summary += fmt.Sprintf(" · %s %d", action, count[action])
		}
	}
	p.heading(fmt.Sprintf("%s%s", plural(len(r.Records), "record"), summary))
	p.table([]string{"action", ">turn", ">before", ">after", "~what", "why"}, eachOf(r.Records[:min(most, len(r.Records))], func(record recordRow) []string {
		turns := fmt.Sprint(record.First)
		if record.Last != record.First {
			turns = fmt.Sprintf("%d-%d", record.First, record.Last)
		}
		return []string{record.Action.String(), turns, number(record.Before), number(record.After), record.What, record.Reason}
	}))
	if more := len(r.Records) - most; more > 0 {
		p.line("and %s (`palimpsest plan` lists all)", plural(more, "more record"))
	}
}
