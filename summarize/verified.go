package summarize

import (
	"context"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Verified lets of Inner's summary only pass what stands on the messages. What
// code can say itself (the user's words, constraints, files, calls with their
// outcome and key fields, identifiers) is made by code anew, so Inner can
// neither drop nor alter it. Of the rest each item must
//
//   - name a message of the span, or of the previous summary, as its source;
//   - hold no identifier and no quotation that is not in the span or the previous
//     summary, and no number, with its unit, that is not in its sources;
//   - share half of its words with its sources, and not be negated where the
//     sentence it comes from is not, or the other way round;
//   - say nothing of what the user, or another person in charge, wants, said or
//     allowed: their words are there as they said them, so that an invented
//     instruction has no way in;
//   - and as a decision, a step of the plan or an open item, which a reader may
//     act on, stand on words of the user or the assistant: text from tools never
//     becomes an instruction.
//
// An item that fails is dropped. An answer as a whole is rejected, with a
// *RejectedError, when nothing of it is left, when it is larger than what it
// replaces, or in another language than the conversation. A false statement
// made of true words ("passed" for "failed") is beyond these tests.
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
	// maxItems bounds how many items are looked at.
	maxItems = 200
)

// Summarize implements Summarizer. Beside those of Inner and of Extractive its
// error is a *RejectedError.
func (v *Verified) Summarize(ctx context.Context, in Input) (Result, error) {
	code := v.Extractive
	if code == nil {
		code = &v.own
	}
	ask := in
	ask.Budget = 0
	answer, err := v.Inner.Summarize(ctx, ask)
	if err != nil {
		return Result{}, err
	}
	if len(answer.Sections()) == 0 && len(in.Messages) > 0 {
		return Result{}, answer.Report.failed(&RejectedError{Reason: Empty})
	}
	g := newGrounds(&in)
	claims := newPool(&in, code.memo.facts).news(&answer.Summary)
	kept, report := g.take(claims)
	if report.Proposed > 0 {
		if err := v.judge(code, g, claims, kept, &report); err != nil {
			return Result{}, answer.Report.With(report).failed(err)
		}
	}
	out, err := code.Complete(ctx, in, kept)
	out.Report = answer.Report.With(report)
	return out, err
}

// judge rejects an answer as a whole.
func (v *Verified) judge(code *Extractive, g *grounds, claims []claim, kept summary.Summary, report *Report) error {
	var b strings.Builder
	for i := range claims {
		b.WriteString(claims[i].text)
		b.WriteString("\n")
	}
	proposed := b.String()
	size := code.count(kept.Render())
	switch {
	case report.Dropped["placeholder"] == report.Proposed:
		return &RejectedError{Reason: Placeholder, Detail: fmt.Sprintf("%d items", report.Proposed)}
	case size > code.count(g.all):
		return &RejectedError{Reason: Inflated, Detail: fmt.Sprintf("%d tokens for %d", size, code.count(g.all))}
	case g.otherLanguage(proposed):
		return &RejectedError{Reason: WrongLanguage}
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
	known := map[string]bool{}
	for i := range p.candidates {
		if t := p.candidates[i].text; t != "" {
			known[t] = true
		}
	}
	var out []claim
	add := func(c claim) {
		c.item.Text = strings.Join(strings.Fields(c.item.Text), " ")
		c.extra = strings.Join(strings.Fields(c.extra), " ")
		c.text = c.item.Text
		if c.extra != "" {
			c.text += " " + c.extra
		}
		if c.text != "" && len(out) < maxItems {
			out = append(out, c)
		}
	}
	lines := func(sec section, items []summary.Item) {
		for _, it := range items {
			for line := range strings.SplitSeq(it.Text, "\n") {
				line = strings.TrimPrefix(line, gap)
				if !known[line] && !p.labels(line) {
					add(claim{section: sec, item: summary.Item{Text: line, Sources: it.Sources}})
				}
			}
		}
	}
	lines(secFact, s.Facts)
	for _, it := range p.failed {
		known[it.Text] = true
	}
	for _, it := range s.FailedAttempts {
		if !known[it.Text] {
			add(claim{section: secFailed, item: it})
		}
	}
	decided, planned, opened := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, d := range p.decisions {
		decided[d.Decision] = true
	}
	for _, d := range s.Decisions {
		if !decided[d.Decision] {
			add(claim{section: secDecision, item: summary.Item{Text: d.Decision, Sources: d.Sources}, extra: d.Rationale})
		}
	}
	for _, x := range p.plan {
		planned[x.Text] = true
	}
	for _, x := range s.CurrentPlan {
		if !planned[x.Text] {
			add(claim{section: secPlan, item: summary.Item{Text: x.Text, Sources: x.Sources}, extra: x.Status})
		}
	}
	for _, o := range p.open {
		opened[o.Description] = true
	}
	for _, o := range s.OpenItems {
		if !opened[o.Description] {
			add(claim{section: secOpen, item: summary.Item{Text: o.Description, Sources: o.Sources}, extra: o.Context, high: o.Priority})
		}
	}
	return out
}

// labels reports whether a line is the label of a group that code made.
func (p *pool) labels(line string) bool {
	for _, g := range p.recaps {
		if g.label != "" && line == g.label+":" {
			return true
		}
	}
	return false
}

// take checks the claims, drops those that fail, and makes items of the rest.
func (g *grounds) take(claims []claim) (summary.Summary, Report) {
	var out summary.Summary
	report := Report{Proposed: len(claims), Dropped: map[string]int{}}
	for i := range claims {
		c := &claims[i]
		if cause := g.fault(c); cause != "" {
			report.Dropped[cause]++
			continue
		}
		report.Kept++
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
			out.CurrentPlan = append(out.CurrentPlan, summary.Step{Text: it.Text, Status: status(c.extra), Sources: sources})
		case secOpen:
			out.OpenItems = append(out.OpenItems, summary.OpenItem{
				Description: it.Text, Context: c.extra, Priority: priority(c.high), Turn: it.Turn, Sources: sources})
		}
	}
	return out, report
}

func status(s string) string {
	switch s {
	case "pending", "in_progress", "completed":
		return s
	}
	return ""
}

func priority(p summary.Priority) summary.Priority {
	switch p {
	case summary.High, summary.Low:
		return p
	}
	return summary.Medium
}
