package summarize

import (
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize/internal/work"
	"github.com/palimpsest-ai/palimpsest/thread"
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
	var c *callFacts
	var asked *thread.Message
	if ref, ok := b.calls[r.CallID]; ok {
		c = &b.facts[ref.message].calls[ref.call]
		asked = &b.messages[ref.message]
		if len(answersIn(m)) > 0 {
			return
		}
	}
	class := toolclass.ClassOf(r.tool)
	if c != nil {
		class = c.Class
	}
	outcome := judge(r, c, class)
	if c != nil {
		if class == toolclass.Todo {
			b.identifyTask(c, r)
			b.readTaskList(r)
			return
		}
		did, _ := c.Did(&r.Result)
		files := slices.Clone(did)
		for n := range files {
			op := &files[n]
			op.Path = b.ledgerPath(op.Path)
			if r.FileExisted && op.Op == "created" {
				op.Op = "edited"
			}
			op.Op = b.touch(*op, asked)
		}
		b.recordEdit(i, asked, c, files)
	}
	b.outcome(i, m, asked, c, r, class, outcome)

	if c != nil && len(r.report) > 0 {
		if len(r.report) > 1 || len(r.report[0].text) >= fullWords { // else only a note that something was started
			asked := c.Input
			if rest, ok := strings.CutPrefix(asked, "description="); ok {
				asked, _, _ = strings.Cut(rest, " prompt=")
			}
			b.report(i, m, asked, r.report)
		}
		return
	}
	base := float32(0.1)
	switch class {
	case toolclass.Agent, toolclass.Question, toolclass.Web, toolclass.Fetch:
		base = 0.35 // cannot be had again
	case toolclass.List, toolclass.Poll:
		base = 0.04
	}
	if r.records {
		base = max(base, recordBase)
	}
	b.addLines(i, m, c, r, class, outcome == thread.Failure, base)
}

// attachedBase is the base value of a line that the user attached.
const attachedBase = 0.35

// changedBase is the base value of a line that an edit wrote.
const changedBase = 0.15

// recordBase is the base value of a record of a JSON document.
const recordBase = 0.4

// judge decides how a call ended: by the provider's flag or the exit code, else by what the
// output proves. Files and pages that were only printed prove nothing.
func judge(r *resultFacts, c *callFacts, class toolclass.Class) thread.Outcome {
	exit := r.Exit()
	switch {
	case (class == toolclass.Edit || class == toolclass.Write) && r.Edited():
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
	case class == toolclass.Edit || class == toolclass.Write:
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
func (b *builder) outcome(i int, m, asked *thread.Message, c *callFacts, r *resultFacts, class toolclass.Class, ended thread.Outcome) {
	if r.Canceled {
		return // it says nothing of the call, which is asked again if it matters
	}
	o := summary.ToolOutcome{Tool: r.tool, Outcome: ended, Turn: m.Turn, Sources: []thread.ID{m.ID}}
	var idents []mention
	if c != nil {
		o.Tool, o.Input = c.Name, c.Input
		o.Sources = []thread.ID{asked.ID, m.ID}
		idents = append(idents, c.inputIdents...)
	}
	failed := ended != thread.Success
	declared := len(r.fields) > 0
	base := float32(0.5)
	switch class {
	case toolclass.Read, toolclass.Edit, toolclass.Write, toolclass.List, toolclass.Poll, toolclass.Recall:
		if !failed && !declared {
			return
		}
	case toolclass.Shell, toolclass.Agent, toolclass.Other, toolclass.Question:
		base = 0.9
	}
	if failed {
		base = 1.6
		text, more := errorText(r)
		o.Error = text
		idents = append(idents, more...)
	}
	fields := thread.Fields{}
	if exit := r.Exit(); exit > 0 {
		fields["exit_code"] = exit
	}
	switch class {
	case toolclass.Search, toolclass.Web:
		if r.lines > 0 && !failed {
			fields["lines"] = r.lines
		}
	case toolclass.Shell, toolclass.Other, toolclass.Question:
		if !failed && r.last != "" && len(r.last) <= 110 && (r.lines <= 3 || sumsUp(r.last)) {
			name := "output"
			if r.lines > 1 {
				name = "last"
			}
			fields[name] = clip.Brief(r.last, 110)
			idents = append(idents, mentions(nil, r.last)...)
		} else if line := b.answer(m, asked, c, r); !failed && line != "" {
			fields["output"] = line
			idents = append(idents, mentions(nil, line)...)
		}
	}

	if declared {
		// What a tool declared must survive, and says more than what was found.
		base = max(base, 1.2)
		maps.Copy(fields, r.fields)
		for _, v := range r.fields {
			if text, ok := v.(string); ok {
				idents = append(idents, mentions(nil, text)...)
			}
		}
	}

	key := outcomeKey{o.Tool, o.Input}
	if at, ok := b.outcomes[key]; ok && !strings.Contains(o.Input, "…") {
		// Run again: the newest outcome counts. Two that were cut may differ in the rest.
		b.candidates[b.latest[at]].dead = true
	}
	if len(fields) > 0 {
		o.KeyFields = fields
	}
	b.outcomes[key] = len(b.ToolOutcomes)
	b.ToolOutcomes = append(b.ToolOutcomes, o)
	b.worked = append(b.worked, b.proved(c, r, ended))
	b.flags[r.tool] = b.flags[r.tool] || r.Outcome == thread.Failure
	b.latest = append(b.latest, len(b.candidates))
	b.entry(secOutcome, i, base*b.age(i), idents)

	if c != nil && (ended == thread.Failure || r.Stopped != "") {
		b.failure(i, m, asked, c, r)
	}
}

// answer is the line of a result that answers the call, as it is kept when the result is
// cleared (toolclass.KeyFields).
func (b *builder) answer(m, asked *thread.Message, c *callFacts, r *resultFacts) string {
	if c == nil || r.records {
		return ""
	}
	result, _ := m.Result()
	call, _ := asked.Parts[c.at].(thread.ToolCall)
	return toolclass.Answer(call, result)
}

// sumsUp reports whether the last line of a long output sums it up, and so tells more than another
// line. It says nothing of how the command went.
func sumsUp(line string) bool {
	line = strings.ToLower(line)
	for _, w := range [...]string{"ok", "pass", "success", "done", "complete", "built", "finished", "total", "warning", "error", "fail", "commit"} {
		if strings.Contains(line, w) {
			return true
		}
	}
	return false
}

// noteLaterSuccess adds to failed attempts that the same call succeeded later.
func (b *builder) noteLaterSuccess() {
	if len(b.attempts) == 0 {
		return
	}
	worked := map[string][]int{} // the successes of a call
	for at, call := range b.worked {
		if call != "" {
			worked[call] = append(worked[call], at)
		}
	}
	for n, a := range b.attempts {
		if later, _ := slices.BinarySearch(worked[a.call], a.outcome+1); a.call != "" && later < len(worked[a.call]) {
			a.again, a.works = b.ToolOutcomes[worked[a.call][later]].Turn, true
			b.FailedAttempts[n].Text = a.text(nil)
		}
	}
}

// proved returns what a call is the same as (work.Call.Same), if its result proves that it
// succeeded, else "".
func (b *builder) proved(c *callFacts, r *resultFacts, ended thread.Outcome) string {
	if c == nil || ended != thread.Success || c.Class == toolclass.Shell && !c.Succeeded(&r.Result, b.flags[c.Name]) {
		return ""
	}
	return c.Same()
}
