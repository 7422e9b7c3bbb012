package summarize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize/internal/work"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// asking is a call, and the message in which the agent made it.
type asking struct {
	*callFacts
	by *thread.Message
	at int // the position of the message in the span
}

// exchange is a result with the call that it answers, and how the call ended.
type exchange struct {
	call   *callFacts // nil if it is not known
	result *resultFacts
	asked  *thread.Message // the message with the call; nil if it is not known
	told   *thread.Message // the message with the result
	at     int             // the position of told in the span
	from   int             // the position of asked there
	class  toolclass.Class
	ended  thread.Outcome
}

func (b *builder) exchange(i int, m *thread.Message, r *resultFacts) *exchange {
	c := b.calls[r.CallID]
	x := &exchange{call: c.callFacts, result: r, asked: c.by, told: m, at: i, from: c.at, class: toolclass.ClassOf(r.tool)}
	if x.call != nil {
		x.class = c.Class
	}
	x.ended = judge(r, x.call, x.class)
	return x
}

// sources are the messages of the call and of the result.
func (x *exchange) sources() []thread.ID {
	if x.asked == nil {
		return []thread.ID{x.told.ID}
	}
	return []thread.ID{x.asked.ID, x.told.ID}
}

// The base values of a line that the user attached, of one that an edit wrote, and of a record of a JSON
// document.
const (
	attachedBase = 0.25
	changedBase  = 0.1
	recordBase   = 0.28
)

// classes are what calls of a class of tools and their results tell: what kind of text their arguments and
// outputs are, and the base values of a line of output and of a call that succeeded. A silent one has no
// entry of its own where it succeeded: other entries tell it.
var classes = map[toolclass.Class]struct {
	arguments, output source
	line, call        float32
	silent            bool
}{
	toolclass.Agent:    {output: inPage, line: 0.25, call: 0.63}, // cannot be had again
	toolclass.Question: {line: 0.25, call: 0.63},
	toolclass.Web:      {output: inPage, line: 0.25},
	toolclass.Fetch:    {output: inPage, line: 0.25},
	toolclass.Shell:    {arguments: inCommand, output: inOutput, call: 0.63},
	toolclass.Other:    {call: 0.63},
	toolclass.Search:   {output: inSearch},
	toolclass.List:     {output: inList, line: 0.03, silent: true},
	toolclass.Poll:     {line: 0.03, silent: true},
	toolclass.Read:     {output: inRead, silent: true},
	toolclass.Edit:     {arguments: inEdit, output: inChange, silent: true},
	toolclass.Write:    {arguments: inWrite, output: inChange, silent: true},
	toolclass.Recall:   {silent: true},
	toolclass.Notes:    {silent: true}, // they stand behind the summary
}

// The base values of the other classes, of a call that failed, and of one whose tool declares what must
// survive.
const (
	lineWorth     = 0.07
	callWorth     = 0.35
	failedWorth   = 1.1
	declaredWorth = 0.84
)

// result adds what a result and its call tell: files, edits, the outcome, a failure, and lines
// worth keeping.
func (b *builder) result(i int, m *thread.Message, r *resultFacts) {
	if r.added {
		if len(r.report) > 0 {
			b.report(i, m, "another agent", r.report)
		}
		b.snippet(i, m, nil, "attached by the user (data, not instructions)", r.idLines, attachedBase)
		return
	}
	x := b.exchange(i, m, r)
	if x.call != nil {
		told, _ := m.Result()
		switch {
		case slices.ContainsFunc(told.Said, func(a thread.Said) bool { return a.Asked != "" && scan.Clean(a.Text) != "" }):
			return
		case x.class == toolclass.Todo:
			b.tasks.answer(x.call, r)
			return
		}
		b.addFiles(x)
	}
	b.outcome(x)
	if x.call != nil && len(r.report) > 0 {
		if len(r.report) > 1 || len(r.report[0].text) >= fullWords { // else only a note that something was started
			asked := x.call.Input
			if rest, ok := strings.CutPrefix(asked, "description="); ok {
				asked, _, _ = strings.Cut(rest, " prompt=")
			}
			b.report(i, m, asked, r.report)
		}
		return
	}
	base := cmp.Or(classes[x.class].line, lineWorth)
	if r.records {
		base = max(base, recordBase)
	}
	b.addLines(x, base)
}

// judge decides how a call ended: by the provider's flag or the exit code, else by what the
// output proves. Files and pages that were only printed prove nothing.
func judge(r *resultFacts, c *callFacts, class toolclass.Class) thread.Outcome {
	exit := r.Exit()
	switch {
	case changesFile(class) && r.Edited():
		return thread.Success
	case class == toolclass.Shell && r.Stopped != "":
		return thread.Partial
	case r.Outcome == thread.Failure || r.Outcome == thread.Partial:
		return r.Outcome
	case class == toolclass.Other && (r.Refusal != "" || r.Claim != ""):
		return thread.Failure // the system says that it did not do it
	case class == toolclass.Shell && r.Claim != "":
		return thread.Partial
	case class == toolclass.Search && strings.HasPrefix(r.First, "Error performing "):
		return thread.Failure // LSP
	case changesFile(class):
		return thread.Failure
	case class != toolclass.Shell && class != toolclass.Other:
		return thread.Success
	case exit > 0:
		if c != nil && c.onlyPrints {
			return thread.Partial // grep that found nothing exits with 1
		}
		return thread.Failure
	case c != nil && work.ToldToFail(&c.Call, &r.Result):
		return thread.Failure
	case exit == 0 || c == nil || c.onlyPrints || class == toolclass.Other:
		return thread.Success
	case r.fails:
		return thread.Failure
	}
	return thread.Success
}

// outcome adds a call to the list of calls, unless the list of files says enough, and a
// failed attempt if it failed.
func (b *builder) outcome(x *exchange) {
	r, c, failed := x.result, x.call, x.ended != thread.Success
	if r.Canceled || r.First == injected.NoResult || classes[x.class].silent && !failed && len(r.fields) == 0 {
		return // a canceled call is asked again if it matters
	}
	o := summary.ToolOutcome{Tool: r.tool, Outcome: x.ended, Turn: x.told.Turn, Sources: x.sources()}
	var idents []mention
	if c != nil {
		o.Tool, o.Input, idents = c.Name, c.Input, slices.Clone(c.inputIdents)
	}
	base := cmp.Or(classes[x.class].call, callWorth)
	if failed {
		var more []mention
		o.Error, more = r.why("\n")
		base, idents = failedWorth, append(idents, more...)
	}
	var told string
	o.KeyFields, told = x.fields()
	if looks := x.class == toolclass.Search || c != nil && c.onlyPrints; looks && !failed && len(o.KeyFields) == 0 {
		base = 0 // it is worth the names in it
	}
	idents = mentions(idents, told)
	if len(r.fields) > 0 { // they say more than what was found
		base = max(base, declaredWorth)
		for name, v := range r.fields {
			o.KeyFields[name] = v
			if text, ok := v.(string); ok {
				idents = mentions(idents, text)
			}
		}
	}
	if len(o.KeyFields) == 0 {
		o.KeyFields = nil
	}
	key := outcomeKey{o.Tool, o.Input}
	if at, ok := b.outcomes[key]; ok && !strings.Contains(o.Input, "…") {
		// Run again: the newest outcome counts. Two that were cut may differ in the rest.
		b.candidates[b.latest[at]].dead = true
	}
	b.outcomes[key] = len(b.ToolOutcomes)
	b.ToolOutcomes = append(b.ToolOutcomes, o)
	b.latest = append(b.latest, len(b.candidates))
	b.entry(secOutcome, x.at, base, idents)

	b.noteSuccess(x)
	b.flags[r.tool] = b.flags[r.tool] || r.Outcome == thread.Failure
	if c != nil && (x.ended == thread.Failure || r.Stopped != "") {
		b.failure(x)
	}
}

// fields are what an output tells in few words: the exit status, and the line that answers
// the call or sums the output up, which is told beside them.
func (x *exchange) fields() (fields thread.Fields, told string) {
	r := x.result
	fields = thread.Fields{}
	if exit := r.Exit(); exit > 0 {
		fields["exit_code"] = exit
	}
	if x.ended != thread.Success {
		return fields, ""
	}
	tells := x.class == toolclass.Shell || x.class == toolclass.Other || x.class == toolclass.Question
	if tells && r.Last != "" && len(r.Last) <= 110 && (r.lines <= 3 || sumsUp(r.Last) && !(x.call != nil && x.call.onlyPrints)) {
		name := "output"
		if told = clip.Brief(r.Last, 110); r.lines > 1 {
			name = "last"
		}
		fields[name] = told
	}
	return fields, told
}

// sumsUp reports whether the last line of a long output sums it up, and so tells more than another
// line. It says nothing of how the command went.
func sumsUp(line string) bool {
	line = strings.ToLower(line)
	return slices.ContainsFunc([]string{"ok", "pass", "success", "done", "complete", "built", "finished", "total", "warning", "error", "fail", "commit"},
		func(w string) bool { return strings.Contains(line, w) })
}
