package summarize

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Verified keeps of Inner's summary only what the messages support. What code can say itself
// (the user's words, constraints, files, calls with their outcome and key fields,
// identifiers) is made by code, so Inner can neither drop nor alter it. Every other item
// must name a message of the span, or of the previous summary, as its source, and pass the rules of
// check.go: text from tools never becomes an instruction, and what is said of the user was said.
//
// This decides whether something was said, not whether it is true. The opposite of what was
// said in the same words ("touch the schema" for "never touch the schema"), an invented
// wish made of words that the user used together, and a number of something else in the
// span all pass. So does, in other languages than English, whatever is said about the user
// without a quotation. The user's own words stand beside it in the summary.
//
// An item that fails is dropped, counted and shown in the report. The whole answer is
// rejected, with a *RejectedError, if nothing of it is left or if it is larger than what it
// replaces.
//
// Inner is asked without a budget; Verified fits the summary into it. Safe for concurrent
// use, not to be copied after first use.
type Verified struct {
	Inner Summarizer
	// Extractive makes what code can say, and counts tokens. Nil means a new one.
	Extractive *Extractive

	own Extractive
}

var _ Summarizer = (*Verified)(nil)

const (
	// maxItem bounds a proposed item, in bytes: a longer one is a copy of something.
	maxItem = 800
	// maxItems bounds the number of items.
	maxItems = 1_000
)

// Summarize implements Summarizer. The error is that of Inner or Extractive, or a
// *RejectedError.
func (v *Verified) Summarize(ctx context.Context, in Input) (Result, error) {
	code := cmp.Or(v.Extractive, &v.own)
	ask := in.Untold()
	if len(ask.Messages) == 0 && len(in.Messages) > 0 {
		return code.Summarize(ctx, in)
	}
	ask.Budget = 0
	answer, err := v.Inner.Summarize(ctx, ask)
	if err == nil && len(answer.Sections()) == 0 && len(in.Messages) > 0 {
		err = answer.Report.failed(&RejectedError{Reason: Empty})
	}
	if err != nil {
		return Result{}, err
	}
	known := in
	known.Previous = ask.Previous
	e := evidenceOf(ctx, &known)
	p := newPool(ctx, &known, code.reading(ctx))
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	kept, report := e.checkItems(&answer.Summary, p)
	report = answer.Report.With(report)
	if err := e.judge(kept, &report); err != nil {
		return Result{}, report.failed(err)
	}
	out, err := code.Complete(ctx, in, Result{Summary: kept, Outdated: answer.Outdated})
	out.Report = report
	return out, err
}

// evidenceOf returns the evidence of an input.
func evidenceOf(ctx context.Context, in *Input) *evidence {
	before := earlier{beside: in.UserBeside(), log: Asked(in.Instructions, in.InstructionsBy)}
	p := in.Previous
	if p == nil {
		return newEvidence(ctx, in.Messages, before)
	}
	before.text, before.user = p.Render(), []string{p.CurrentTask}
	before.said = summary.Summary{
		CurrentTask: p.CurrentTask, Requests: p.Requests, Constraints: p.Constraints, CurrentPlan: p.CurrentPlan,
		OpenItems: p.OpenItems, Decisions: p.Decisions, Conclusions: p.Conclusions,
	}.Render()
	for _, it := range slices.Concat(p.Requests, p.Constraints) {
		before.user = append(before.user, it.Text)
	}
	e := newEvidence(ctx, in.Messages, before)
	e.before = isAmong(p.Span.MessageIDs)
	return e
}

// Asked returns Input.Instructions as a message of whoever they are from, since a model that was
// given them may repeat them; nil if they are empty.
func Asked(instructions string, by thread.Role) []thread.Message {
	if strings.TrimSpace(instructions) == "" {
		return nil
	}
	return []thread.Message{thread.NewMessage(cmp.Or(by, thread.User), instructions)}
}

// judge rejects an answer as a whole.
func (e *evidence) judge(kept summary.Summary, report *Report) error {
	if report.Proposed == 0 {
		return nil
	}
	var texts strings.Builder
	without(&kept, func(text string, _ []thread.ID) bool {
		texts.WriteString(text + "\n")
		return false
	})
	reject := func(reason Reason, detail string) error { return &RejectedError{Reason: reason, Detail: detail} }
	switch {
	case report.Dropped[faultPlaceholder] == report.Proposed:
		return reject(placeholders, fmt.Sprintf("%d items", report.Proposed))
	case texts.Len() > e.size:
		return reject(Inflated, fmt.Sprintf("%d bytes for %d", texts.Len(), e.size))
	case report.Kept == 0:
		return reject(Ungrounded, fmt.Sprintf("%d items", report.Proposed))
	case !e.isAbout(texts.String()):
		return reject(Ungrounded, "the items name nothing of the messages")
	}
	return nil
}

// ownTexts are the texts that code says itself: they need no check.
func (p *pool) ownTexts() map[string]bool {
	own := map[string]bool{}
	for i := range p.candidates {
		own[p.candidates[i].text] = true
	}
	for _, g := range p.groups[secFact] {
		own[g.label+":"] = true
	}
	for _, x := range p.CurrentPlan {
		own[x.Text+" "+x.Status] = true
	}
	rest := p.Summary
	rest.CurrentPlan = nil // a step may come with another status
	without(&rest, func(text string, _ []thread.ID) bool {
		own[text], own[whyFailed(text)] = true, true
		return false
	})
	return own
}

// checkItems checks the items of an answer that code would not say itself, and returns those that
// the messages support.
func (e *evidence) checkItems(s *summary.Summary, p *pool) (kept summary.Summary, report Report) {
	known := p.ownTexts()
	// check takes an item with its rationale, context or status. Turn and time are those of
	// its first source, whatever was said.
	check := func(s section, key, text, extra string, sources []thread.ID) (it summary.Item, at time.Time, ok bool) {
		whole := text
		if s != secPlan { // the status of a step is one of our words
			whole = strings.TrimRight(text+" "+extra, " ")
		}
		if known[key] || whole == "" {
			return it, at, false
		}
		it = summary.Item{Text: text, Sources: make([]thread.ID, 0, len(sources))}
		for _, id := range sources {
			n, inSpan := e.at[id]
			if !inSpan && !e.before(id) {
				continue
			}
			it.Sources = append(it.Sources, id)
			if inSpan && it.Turn == 0 {
				it.Turn, at = e.messages[n].Turn, e.messages[n].Time
			}
		}
		cause := ""
		switch {
		case report.Proposed >= maxItems, len(whole) > maxItem:
			cause = faultLimit
		case placeholder(text):
			cause = faultPlaceholder
		case len(it.Sources) == 0:
			cause = faultSource
		default:
			cause = e.fault(statement{text: whole, todo: s == secPlan || s == secDecision || s == secOpen})
		}
		return it, at, report.take(whole, cause)
	}
	for _, it := range s.Facts {
		for line := range strings.SplitSeq(it.Text, "\n") {
			line = strings.TrimPrefix(line, gap)
			if it, _, ok := check(secFact, line, oneLine(line), "", it.Sources); ok {
				kept.Facts = append(kept.Facts, it)
			}
		}
	}
	for _, it := range s.FailedAttempts {
		if it, _, ok := check(secFailed, whyFailed(it.Text), oneLine(it.Text), "", it.Sources); ok {
			kept.FailedAttempts = append(kept.FailedAttempts, it)
		}
	}
	for _, d := range s.Decisions {
		why := oneLine(d.Rationale)
		if it, at, ok := check(secDecision, d.Decision, oneLine(d.Decision), why, d.Sources); ok {
			kept.Decisions = append(kept.Decisions, summary.Decision{Decision: it.Text, Rationale: why, Turn: it.Turn, Time: at, Sources: it.Sources})
		}
	}
	for _, x := range s.CurrentPlan {
		if it, _, ok := check(secPlan, x.Text+" "+x.Status, oneLine(x.Text), x.Status, x.Sources); ok {
			if !slices.Contains([]string{"pending", "in_progress", "completed"}, x.Status) {
				x.Status = ""
			}
			kept.CurrentPlan = append(kept.CurrentPlan, summary.Step{Text: it.Text, Status: x.Status, Sources: it.Sources})
		}
	}
	for _, o := range s.OpenItems {
		context := oneLine(o.Context)
		if it, _, ok := check(secOpen, o.Description, oneLine(o.Description), context, o.Sources); ok {
			if o.Priority != summary.High && o.Priority != summary.Low {
				o.Priority = summary.Medium
			}
			kept.OpenItems = append(kept.OpenItems, summary.OpenItem{Description: it.Text, Context: context, Priority: o.Priority, Turn: it.Turn, Sources: it.Sources})
		}
	}
	return kept, report
}
