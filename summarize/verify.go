package summarize

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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
	for _, list := range kept.Proposed() {
		for _, it := range *list {
			texts.WriteString(it.Text + "\n")
		}
	}
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
	for k, list := range p.Proposed() {
		for _, it := range *list {
			own[proposed[k].key(it, it.Text)], own[proposed[k].key(it, whyFailed(it.Text))] = true, true
		}
	}
	return own
}

// reading says how the items of a list that a model wrote are read.
type reading struct {
	acts     bool     // a reader may act on them
	statuses []string // that they may have; the last is that of others
	stated   bool     // one with another status is another item
}

// proposed are those of the lists of Summary.Proposed.
var proposed = [...]reading{
	{}, {}, {acts: true},
	{acts: true, statuses: []string{"pending", "in_progress", "completed", ""}, stated: true},
	{acts: true, statuses: []string{summary.High, summary.Low, summary.Medium}},
}

// key is the same for items that say the same.
func (r *reading) key(it summary.Item, text string) string {
	if r.stated {
		return text + " " + it.Status
	}
	return text
}

// status is that of an item, or the usual one.
func (r *reading) status(s string) string {
	if n := len(r.statuses); n == 0 || !slices.Contains(r.statuses, s) {
		return strings.Join(r.statuses[max(0, n-1):], "")
	}
	return s
}

// checkItems checks the items of an answer that code would not say itself, each line of a fact for itself,
// and returns those that the messages support.
func (e *evidence) checkItems(s *summary.Summary, p *pool) (kept summary.Summary, report Report) {
	known, into, lines := p.ownTexts(), kept.Proposed(), []summary.Item(nil)
	for _, it := range s.Facts {
		for line := range strings.SplitSeq(it.Text, "\n") {
			it.Text = strings.TrimPrefix(line, gap)
			lines = append(lines, it)
		}
	}
	for k, list := range s.Proposed() {
		r := &proposed[k]
		if list == &s.Facts {
			list = &lines
		}
		for _, it := range *list {
			if known[r.key(it, whyFailed(it.Text))] {
				continue
			}
			if it, whole, cause := e.check(it, r, report.Proposed); whole != "" && report.take(whole, cause) {
				*into[k] = append(*into[k], it)
			}
		}
	}
	return kept, report
}

// check returns an item as it may be kept, all that it says, and why it may not be. Its turn and time are
// those of its first source, whatever was said; before is how many items came before it.
func (e *evidence) check(said summary.Item, r *reading, before int) (it summary.Item, whole, cause string) {
	it = summary.Item{Text: oneLine(said.Text), Detail: oneLine(said.Detail), Status: r.status(said.Status), Sources: make([]thread.ID, 0, len(said.Sources))}
	for _, id := range said.Sources {
		n, inSpan := e.at[id]
		if !inSpan && !e.before(id) {
			continue
		}
		it.Sources = append(it.Sources, id)
		if inSpan && it.Turn == 0 {
			it.Turn, it.Time = e.messages[n].Turn, e.messages[n].Time
		}
	}
	whole = strings.TrimSpace(it.Text + " " + it.Detail)
	switch {
	case before >= maxItems, len(whole) > maxItem:
		return it, whole, faultLimit
	case placeholder(it.Text):
		return it, whole, faultPlaceholder
	case len(it.Sources) == 0:
		return it, whole, faultSource
	}
	return it, whole, e.fault(statement{text: whole, todo: r.acts})
}
