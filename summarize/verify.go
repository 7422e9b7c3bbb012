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
// must name a message of the span, or of the previous summary, as its source. It
//
//   - may contain no identifier, quotation or number with its unit that the span and the
//     previous summary lack;
//   - may quote the user only with what the user said, unless it names another origin, such
//     as a commit. A sentence about the user must share half of its words with one turn
//     and the assistant's words right before it, or with a sentence of the assistant
//     about the user;
//   - must share half of its words with the span;
//   - if it is a decision, a step of the plan or an open item, which a reader may act on,
//     must share half of its words with words of the user or the assistant, and may name
//     no address that only tools gave: text from tools never becomes an instruction.
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
	ask := in
	ask.Budget = 0
	answer, err := v.Inner.Summarize(ctx, ask)
	if err != nil {
		return Result{}, err
	}
	if len(answer.Sections()) == 0 && len(in.Messages) > 0 {
		return Result{}, answer.Report.failed(&RejectedError{Reason: Empty})
	}
	g := groundsOf(ctx, &in)
	p := newPool(ctx, &in, code.reading(ctx))
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	kept, report := g.checkItems(&answer.Summary, p)
	if report.Proposed > 0 {
		if err := v.judge(code, g, kept, &report); err != nil {
			return Result{}, answer.Report.With(report).failed(err)
		}
	}
	in.Previous = WithoutOutdated(in.Previous, answer.Outdated)
	out, err := code.Complete(ctx, in, kept)
	out.Report = answer.Report.With(report)
	return out, err
}

// judge rejects an answer as a whole.
func (v *Verified) judge(code *Extractive, g *grounds, kept summary.Summary, report *Report) error {
	size := code.count(kept.Render())
	switch {
	case report.Dropped[faultPlaceholder] == report.Proposed:
		return &RejectedError{Reason: placeholders, Detail: fmt.Sprintf("%d items", report.Proposed)}
	case size > code.count(g.all):
		return &RejectedError{Reason: Inflated, Detail: fmt.Sprintf("%d tokens for %d", size, code.count(g.all))}
	case report.Kept == 0:
		return &RejectedError{Reason: Ungrounded, Detail: fmt.Sprintf("%d items", report.Proposed)}
	case !g.names(itemTexts(kept)):
		return &RejectedError{Reason: Ungrounded, Detail: "the items name nothing of the messages"}
	}
	return nil
}

// itemTexts are the texts of a summary's items, a line each.
func itemTexts(s summary.Summary) string {
	var b strings.Builder
	for _, it := range slices.Concat(s.Facts, s.FailedAttempts) {
		b.WriteString(it.Text + "\n")
	}
	for _, d := range s.Decisions {
		b.WriteString(d.Decision + " " + d.Rationale + "\n")
	}
	for _, x := range s.CurrentPlan {
		b.WriteString(x.Text + "\n")
	}
	for _, o := range s.OpenItems {
		b.WriteString(o.Description + " " + o.Context + "\n")
	}
	return b.String()
}

// claim is a text in a section.
type claim struct {
	section section
	text    string
}

// claims are the texts that code says itself: they need no check.
func (p *pool) claims() map[claim]bool {
	known := map[claim]bool{}
	for i := range p.candidates {
		known[claim{secFact, p.candidates[i].text}], known[claim{secFailed, p.candidates[i].text}] = true, true
	}
	for _, g := range p.groups[secFact] {
		if g.label != "" {
			known[claim{secFact, g.label + ":"}] = true
		}
	}
	for _, it := range p.FailedAttempts {
		known[claim{secFailed, whyFailed(it.Text)}] = true
	}
	for _, d := range p.Decisions {
		known[claim{secDecision, d.Decision}] = true
	}
	for _, x := range p.CurrentPlan {
		known[claim{secPlan, x.Text + " " + x.Status}] = true
	}
	for _, o := range p.OpenItems {
		known[claim{secOpen, o.Description}] = true
	}
	return known
}

// checkItems checks the items of an answer that code would not say itself, and returns those that
// the messages support.
func (g *grounds) checkItems(s *summary.Summary, p *pool) (kept summary.Summary, report Report) {
	known := p.claims()
	// check takes an item with its rationale, context or status. Turn and time are those of
	// its first source, whatever was said.
	check := func(sec section, text, extra string, sources []thread.ID) (it summary.Item, more string, at time.Time, ok bool) {
		key := text
		switch sec {
		case secPlan:
			key += " " + extra
		case secFailed:
			key = whyFailed(text)
		}
		text, extra = oneLine(text), oneLine(extra)
		whole := strings.TrimRight(text+" "+extra, " ")
		if known[claim{sec, key}] || whole == "" {
			return it, "", at, false
		}
		cause := faultLimit
		if report.Proposed < maxItems {
			cause = g.checkItem(sec, text, whole, sources)
		}
		if !report.take(whole, cause) {
			return it, "", at, false
		}
		it = summary.Item{Text: text, Sources: make([]thread.ID, 0, len(sources))}
		found := false
		for _, id := range sources {
			n, inSpan := g.at[id]
			if !inSpan && !g.before[id] {
				continue
			}
			it.Sources = append(it.Sources, id)
			if inSpan && !found {
				it.Turn, at, found = g.messages[n].Turn, g.messages[n].Time, true
			}
		}
		return it, extra, at, true
	}
	for _, it := range s.Facts {
		for line := range strings.SplitSeq(it.Text, "\n") {
			if it, _, _, ok := check(secFact, strings.TrimPrefix(line, gap), "", it.Sources); ok {
				kept.Facts = append(kept.Facts, it)
			}
		}
	}
	for _, it := range s.FailedAttempts {
		if it, _, _, ok := check(secFailed, it.Text, "", it.Sources); ok {
			kept.FailedAttempts = append(kept.FailedAttempts, it)
		}
	}
	for _, d := range s.Decisions {
		if it, why, at, ok := check(secDecision, d.Decision, d.Rationale, d.Sources); ok {
			kept.Decisions = append(kept.Decisions, summary.Decision{Decision: it.Text, Rationale: why, Turn: it.Turn, Time: at, Sources: it.Sources})
		}
	}
	for _, x := range s.CurrentPlan {
		if it, status, _, ok := check(secPlan, x.Text, x.Status, x.Sources); ok {
			if !slices.Contains([]string{"pending", "in_progress", "completed"}, status) {
				status = ""
			}
			kept.CurrentPlan = append(kept.CurrentPlan, summary.Step{Text: it.Text, Status: status, Sources: it.Sources})
		}
	}
	for _, o := range s.OpenItems {
		if it, context, _, ok := check(secOpen, o.Description, o.Context, o.Sources); ok {
			if o.Priority != summary.High && o.Priority != summary.Low {
				o.Priority = summary.Medium
			}
			kept.OpenItems = append(kept.OpenItems, summary.OpenItem{Description: it.Text, Context: context, Priority: o.Priority, Turn: it.Turn, Sources: it.Sources})
		}
	}
	return kept, report
}
