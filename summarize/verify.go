package summarize

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Verified lets of Inner's summary only pass what stands on the messages. What
// code can say itself (the user's words, constraints, files, calls with their
// outcome and key fields, identifiers) is made by code anew, so Inner can
// neither drop nor alter it. Of the rest each item must name a message of the
// span, or of the previous summary, as its source, and
//
//   - hold no identifier, no quotation and no number with its unit that the span
//     and the previous summary do not hold;
//   - quote as the user's only what the user said, unless it names what else the
//     quotation is from, such as a commit; and where a sentence speaks of the user,
//     share half of its words with what was said in one turn and by the assistant
//     right before it, or with a sentence of the assistant's about the user;
//   - share half of its words with the span;
//   - as a decision, a step of the plan or an open item, which a reader may act on,
//     share half of them with words of the user or the assistant, and name no
//     address that only tools gave: text from tools never becomes an instruction.
//
// That decides whether something was said, not whether it is true: the opposite of
// what was said in its words ("touch the schema" for "never touch the schema"),
// an invented wish of words that the user did say together, and a number that
// belongs to something else in the span come through, as does in another language
// than English whatever speaks of the user without a quotation. What the user
// said stands beside it, word for word.
//
// An item that fails is dropped, counted and shown in the report. An answer as a
// whole is rejected, with a *RejectedError, when nothing of it is left, or when it
// is larger than what it replaces.
//
// Inner is asked without a budget; Verified fits the summary into it. Safe for
// concurrent use, not to be copied after the first.
type Verified struct {
	Inner Summarizer
	// Extractive makes what code can say, and counts. Nil stands for a new one.
	Extractive *Extractive

	own Extractive
}

var _ Summarizer = (*Verified)(nil)

const (
	// maxItem bounds a proposed item, in bytes: longer ones are copies.
	maxItem = 800
	// maxItems bounds how many items are taken.
	maxItems = 1_000
)

// Summarize implements Summarizer. Beside those of Inner and of Extractive its
// error is a *RejectedError.
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
	g := groundsOf(&in)
	claims := newPool(&in, code.reading(ctx)).news(&answer.Summary)
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	kept, report := g.take(claims)
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
		return &RejectedError{Reason: Placeholder, Detail: fmt.Sprintf("%d items", report.Proposed)}
	case size > code.count(g.all):
		return &RejectedError{Reason: Inflated, Detail: fmt.Sprintf("%d tokens for %d", size, code.count(g.all))}
	case report.Kept == 0:
		return &RejectedError{Reason: Ungrounded, Detail: fmt.Sprintf("%d items", report.Proposed)}
	}
	return nil
}

// claim is an item that code did not make.
type claim struct {
	section section
	text    string // all of it that can be true or false
	item    summary.Item
	extra   string // rationale, context or status
	high    summary.Priority
}

// news lists what of an answer code would not say.
func (p *pool) news(s *summary.Summary) []claim {
	type said struct {
		section section
		text    string
	}
	known := map[said]bool{}
	for i := range p.candidates {
		known[said{secFact, p.candidates[i].text}], known[said{secFailed, p.candidates[i].text}] = true, true
	}
	for _, it := range p.FailedAttempts {
		known[said{secFailed, it.Text}] = true
	}
	for _, d := range p.Decisions {
		known[said{secDecision, d.Decision}] = true
	}
	for _, x := range p.CurrentPlan {
		known[said{secPlan, x.Text + " " + x.Status}] = true
	}
	for _, o := range p.OpenItems {
		known[said{secOpen, o.Description}] = true
	}
	var out []claim
	add := func(sec section, it summary.Item, extra string, high summary.Priority) {
		if known[said{sec, it.Text}] {
			return
		}
		it.Text, extra = oneLine(it.Text), oneLine(extra)
		if text := strings.TrimRight(it.Text+" "+extra, " "); text != "" {
			out = append(out, claim{sec, text, it, extra, high})
		}
	}
	for _, it := range s.Facts {
		for line := range strings.SplitSeq(it.Text, "\n") {
			if line = strings.TrimPrefix(line, gap); !p.labels(line) {
				add(secFact, summary.Item{Text: line, Sources: it.Sources}, "", "")
			}
		}
	}
	for _, it := range s.FailedAttempts {
		add(secFailed, it, "", "")
	}
	for _, d := range s.Decisions {
		add(secDecision, summary.Item{Text: d.Decision, Sources: d.Sources}, d.Rationale, "")
	}
	for _, x := range s.CurrentPlan {
		if !known[said{secPlan, x.Text + " " + x.Status}] {
			add(secPlan, summary.Item{Text: x.Text, Sources: x.Sources}, x.Status, "")
		}
	}
	for _, o := range s.OpenItems {
		add(secOpen, summary.Item{Text: o.Description, Sources: o.Sources}, o.Context, o.Priority)
	}
	return out
}

// labels reports whether a line is the label of a group that code made.
func (p *pool) labels(line string) bool {
	return slices.ContainsFunc(p.groups[secFact], func(g group) bool { return g.label != "" && line == g.label+":" })
}

// take checks the claims, drops those that fail, and makes items of the rest.
func (g *grounds) take(claims []claim) (summary.Summary, Report) {
	var out summary.Summary
	var report Report
	for i := range claims {
		c := &claims[i]
		cause := faultLimit
		if i < maxItems {
			cause = g.item(c)
		}
		if !report.take(c.text, cause) {
			continue
		}
		// Turn and time are those of the source, whatever was said.
		var first *thread.Message
		sources := make([]thread.ID, 0, len(c.item.Sources))
		for _, id := range c.item.Sources {
			at, inSpan := g.at[id]
			if !inSpan && !g.before[id] {
				continue
			}
			sources = append(sources, id)
			if inSpan && first == nil {
				first = &g.messages[at]
			}
		}
		it := summary.Item{Text: c.item.Text, Sources: sources}
		d := summary.Decision{Decision: it.Text, Rationale: c.extra, Sources: sources}
		if first != nil {
			it.Turn, d.Turn, d.Time = first.Turn, first.Turn, first.Time
		}
		switch c.section {
		case secFact:
			out.Facts = append(out.Facts, it)
		case secFailed:
			out.FailedAttempts = append(out.FailedAttempts, it)
		case secDecision:
			out.Decisions = append(out.Decisions, d)
		case secPlan:
			if !slices.Contains([]string{"pending", "in_progress", "completed"}, c.extra) {
				c.extra = ""
			}
			out.CurrentPlan = append(out.CurrentPlan, summary.Step{Text: it.Text, Status: c.extra, Sources: sources})
		case secOpen:
			if c.high != summary.High && c.high != summary.Low {
				c.high = summary.Medium
			}
			out.OpenItems = append(out.OpenItems, summary.OpenItem{
				Description: it.Text, Context: c.extra, Priority: c.high, Turn: it.Turn, Sources: sources})
		}
	}
	return out, report
}
