package policy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/cut"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Timeline is the system of seed C: a hard ceiling. Above 0.9 of the maximum, or
// when the provider refused the request, everything between the last summary and
// a cut point becomes a new summary block (C1–C12). The zero value has the
// seed's constants and works without a model.
//
// What is visible begins with the latest summary; the log keeps all blocks, so
// the seed's rule for loading (C8) needs no deletion. The new summary takes the
// place of the old one, whose text is given to the model: by the seed's letter,
// "between the last summary and the cut", the older turns would be forgotten at
// the second compaction.
//
// The seed takes a model's text as it comes. Here only what stands on the
// messages stays of it (see Trust), and what the user asked for first and last and
// the rules are added word for word, within the same limit.
//
// A model that fails does not matter: the summary is made by rule then, for a
// ceiling must hold. The only errors are those of the context, and ErrNothing.
// Events before and after (C11) are told by the front door.
type Timeline struct {
	// Model writes the summaries. Nil: they are made by rule.
	Model llm.Generator
	// Trust says how much of what the model writes is taken; empty is TrustChecked.
	Trust Trust
	// MaxTokens bounds the request; by default Situation.Budget, or what Situation.Window
	// leaves beside the answer. Share of it is the trigger; default 0.9 (C2).
	MaxTokens int
	Share     float64
	// KeepRecent is the budget of recent tokens. The seed gives no figure; the
	// default is 20,000 and at most three tenths of the maximum.
	KeepRecent int
	// SummaryTokens and PrefixTokens bound the summary of whole turns and that of
	// the beginning of a split turn; defaults 800 and 400 (C7).
	SummaryTokens, PrefixTokens int
	// TTL is the age at which results of tools are hidden behind replacement
	// text (C12). The seed's is that of the provider's cache and gives no figure;
	// 0 hides none. Messages without a time have no age.
	TTL time.Duration
	// CacheOffset is how many rounds stand behind the second cache point,
	// CacheMinRounds the fewest with which there is one; defaults 4 and 5 (C9).
	CacheOffset, CacheMinRounds int
}

const (
	timelineShare  = 0.9
	timelineKeep   = 20_000
	timelineLimit  = 800
	timelinePrefix = 400
	timelineRounds = 4
	hiddenReason   = "older than the cache"
)

// Name returns "timeline".
func (Timeline) Name() string { return "timeline" }

func (l Timeline) maximum(s *Situation) int {
	if l.MaxTokens > 0 {
		return l.MaxTokens
	}
	return s.limit()
}

// Due reports whether system and visible blocks are over the share of the
// maximum (C2), or whether results have outlived a cache that has gone cold:
// hiding them costs no cached prefix then, and would at any other time.
func (l Timeline) Due(s *Situation) (bool, string) {
	if most := l.maximum(s); most > 0 && float64(s.Prompt) > float64(most)*or(l.Share, timelineShare) {
		return true, fmt.Sprintf("the request takes %d tokens of at most %d", s.Prompt, most)
	}
	if l.cold(s) && len(l.stale(s, 0)) > 0 {
		return true, "results are " + hiddenReason
	}
	return false, ""
}

// cold reports whether the model last answered longer ago than the TTL.
func (l Timeline) cold(s *Situation) bool {
	for i := s.Thread.Len() - 1; i >= 0 && l.TTL > 0; i-- {
		if m := uncopied.At(s.Thread, i); m.Role == thread.Assistant {
			return l.old(s, m)
		}
	}
	return false
}

func (l Timeline) old(s *Situation, m *thread.Message) bool {
	return !m.Time.IsZero() && s.Now.Sub(m.Time) > l.TTL
}

// stale returns the positions of the results from a position on that have
// outlived the TTL and are not hidden yet. Results that the model has not
// answered to are not among them.
func (l Timeline) stale(s *Situation, from int) []int {
	if l.TTL <= 0 {
		return nil
	}
	actions := plan.Actions{}
	if s.Current != nil {
		actions = s.Current.Actions()
	}
	var out []int
	answered := false
	for i := s.Thread.Len() - 1; i >= from; i-- {
		m := uncopied.At(s.Thread, i)
		answered = answered || m.Role == thread.Assistant
		if m.Role == thread.Tool && answered && l.old(s, m) && actions[m.ID].Action == plan.Include {
			out = append(out, i)
		}
	}
	slices.Reverse(out)
	return out
}

// Plan prunes first and compacts when that was not enough, or when it is forced
// (C3). The plan holds the latest summary, the hidden results behind it, and the
// rule for cache points.
func (l Timeline) Plan(ctx context.Context, s *Situation) (*Fitted, error) {
	prev, from := l.latest(s)
	pruned := l.stale(s, from)
	p := l.draft(s, prev, from, pruned)
	f, err := s.Render(p)
	if err != nil {
		return nil, fmt.Errorf("policy timeline: %w", err)
	}
	p.CompactedTokens = f.Tokens
	most := l.maximum(s)
	limit := int(float64(most) * or(l.Share, timelineShare))
	if !s.Forced && (most <= 0 || f.Tokens <= limit) {
		if len(pruned) == 0 {
			return nil, fmt.Errorf("policy timeline: the request takes %d tokens, the mark is %d: %w", f.Tokens, limit, ErrNothing)
		}
		return f, nil
	}
	blocks, at := l.cut(s, f, from, limit)
	if at <= from {
		if f.Tokens < s.Prompt {
			return f, nil
		}
		return nil, fmt.Errorf("policy timeline: there is no cut point between the last summary and the newest blocks: %w", ErrNothing)
	}
	w := &timelineWriter{Timeline: l, ctx: ctx, asker: asker{s: s, model: l.Model, trust: l.Trust}}
	record, err := l.summarize(w, prev, blocks, from, at)
	if err != nil {
		return nil, fmt.Errorf("policy timeline: %w", err)
	}
	p = l.draft(s, record, at, slices.DeleteFunc(pruned, func(i int) bool { return i < at }))
	if f, err = s.Render(p); err != nil {
		return nil, fmt.Errorf("policy timeline: %w", err)
	}
	if f.Tokens >= s.Prompt {
		return nil, fmt.Errorf("policy timeline: the request would take %d tokens, it takes %d now: %w", f.Tokens, s.Prompt, ErrNothing)
	}
	p.CompactedTokens, f.Tail = f.Tokens, at
	f.Summaries = w.asker.reports(byCode, w.failure)
	return f, nil
}

// latest is the summary block in force, and the first position after it.
func (l Timeline) latest(s *Situation) (*plan.Summarization, int) {
	if s.Current == nil {
		return nil, 0
	}
	for i := range s.Current.Summarizations {
		r := &s.Current.Summarizations[i]
		if last, ok := s.Thread.Index(r.Span.Last()); ok && r.Strategy == l.Name() && r.Range != nil {
			return r, last + 1
		}
	}
	return nil, 0
}

// draft is a plan with a summary block, what is hidden from a position on, and
// the cache rule.
func (l Timeline) draft(s *Situation, record *plan.Summarization, from int, pruned []int) *plan.Plan {
	p := s.Draft(l.Name())
	offset := or0(l.CacheOffset, timelineRounds)
	p.Cache = &plan.CacheRule{Offset: offset, MinRounds: or0(l.CacheMinRounds, offset+1)}
	if record != nil {
		p.Add(*record)
	}
	if s.Current != nil {
		for _, r := range s.Current.Clearings {
			if i, ok := s.Thread.Index(r.Span.First()); ok && i >= from && r.Strategy == l.Name() {
				p.Add(r)
			}
		}
	}
	for _, i := range pruned {
		m := uncopied.At(s.Thread, i)
		r := plan.Clearing{
			Span: s.Thread.Range(i, i+1), PreservedFields: thread.Fields{"path": resultPath(m), "hidden": hiddenReason},
			Origin: plan.Origin{Strategy: l.Name(), Reason: hiddenReason, TokensBefore: s.Changed[i]},
		}
		r.TokensAfter = s.Count(&s.Profile.Replacement(*m, r, true)[0])
		p.Add(r)
	}
	return p
}

// cut chooses the message that the retained window begins with. The rules of
// the seed give a block; where that lies inside a message, between a call and
// its results or among parallel calls, no provider would take what is retained,
// and the window begins earlier. It keeps less where the result would not get
// below the mark.
func (l Timeline) cut(s *Situation, f *Fitted, from, limit int) (blocks []block, at int) {
	shown := slices.Clone(s.Changed) // hidden blocks count as what stands for them
	for n, o := range f.Manifest.Messages {
		if i, ok := s.Thread.Index(o.ID); ok && i >= from && o.Record.Action == plan.Clear {
			shown[i] = f.Sizes[n]
		}
	}
	blocks = blocksOf(uncopied.Messages(s.Thread), from, shown)
	points := cut.Legal(s.Thread, s.Pairs())
	keep := or0(l.KeepRecent, timelineKeep)
	if l.KeepRecent == 0 && limit > 0 {
		keep = min(keep, limit/3)
	}
	if s.Forced {
		limit = min(or0(limit, s.Prompt), s.Prompt*3/4)
		keep = min(keep, limit/2) >> min(max(s.Harder-1, 0), 16)
	}
	at = from
	for ; ; keep /= 2 {
		index, ok := cutIndex(blocks, max(keep, 1))
		if !ok {
			return blocks, from
		}
		i := blocks[index].at
		for i > from && !points.Legal(i) {
			i--
		}
		if i > at {
			at = i
		}
		size := s.Fixed + or0(l.SummaryTokens, timelineLimit) + or0(l.PrefixTokens, timelinePrefix)
		for k := at; k < len(shown); k++ {
			size += shown[k]
		}
		if keep <= 1 || at > from && size <= limit {
			return blocks, at
		}
	}
}

// summarize makes the summary block of everything before at (C6, C7).
func (l Timeline) summarize(w *timelineWriter, prev *plan.Summarization, blocks []block, from, at int) (record *plan.Summarization, err error) {
	s := w.s
	messages := uncopied.Messages(s.Thread)
	history, split := at, ""
	if !messages[min(at, len(messages)-1)].StartsTurn() && at < len(messages) {
		first := slices.IndexFunc(blocks, func(b block) bool { return b.at == at })
		history = from // the turn may have begun before the last summary
		if n := turnStart(blocks, first); n >= 0 {
			history = blocks[n].at
		}
		split = turnID(messages[at].Turn)
	}
	var ids []thread.ID
	var turns []string
	for i := range messages[:at] {
		m := &messages[i]
		if m.Role == thread.System && m.Kind == thread.Plain {
			continue // instructions are not conversation: they stay
		}
		ids = append(ids, m.ID)
		if id := turnID(m.Turn); id != split && !slices.Contains(turns[max(0, len(turns)-1):], id) {
			turns = append(turns, id)
		}
	}
	span, err := thread.NewSpan(s.Thread, ids...)
	if err != nil {
		return nil, fmt.Errorf("what is before the cut: %w: %w", err, ErrNothing)
	}
	path := "su:" + turnID(messages[at-1].Turn) + "." + blockSummary
	if split != "" {
		path = "su:" + split + "." + blockSummary
	}
	next := &plan.Range{Type: blockSummary, Path: path, CoveredTurns: turns, SplitTurn: split}
	var known summary.Summary
	if prev != nil {
		known = prev.Summary
		next.Text = prev.Range.Text
	}
	before := ""
	if prev != nil {
		before = prev.Range.TurnContext
	}
	if split == "" || prev == nil || prev.Range.SplitTurn != split {
		// The turn that was split the last time is whole now.
		next.Text, err = w.write(summaryTask, or0(l.SummaryTokens, timelineLimit), joinContext(next.Text, before), from, history)
		before = ""
	}
	if err == nil && split != "" {
		next.TurnContext, err = w.write(prefixTask, or0(l.PrefixTokens, timelinePrefix), before, history, at)
	}
	if err != nil {
		return nil, err
	}
	record = &plan.Summarization{
		Span: span, Range: next,
		Origin: plan.Origin{Strategy: l.Name(), Reason: "over the share of the maximum"},
	}
	if s.Forced {
		record.Reason = "forced"
	}
	record.Summary, err = w.structured(known, messages[from:at], or0(l.SummaryTokens, timelineLimit))
	if err != nil {
		return nil, err
	}
	record.Summary.Span = span
	if l.Model != nil {
		next.Text = w.withUser(next, &record.Summary, at, or0(l.SummaryTokens, timelineLimit))
	}
	next.Digest = w.digest(prev, &record.Summary, from, at)
	text := blockText(next)
	record.Stand = []plan.Said{{Text: text}}
	record.SummaryTokens = s.Counter.Text(text)
	record.TokensAfter = record.SummaryTokens
	for _, id := range ids {
		i, _ := s.Thread.Index(id)
		record.TokensBefore += s.Changed[i]
	}
	return record, nil
}
