package policy

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Timeline is seed C: a hard ceiling. Above 0.9 of the maximum, or when the provider
// refused the request, everything between the last summary and a cut point becomes a new
// summary block. The zero value has the seed's constants and works without a model.
//
// The visible part begins with the latest summary. The log keeps all blocks, so the seed's
// rule for loading needs no deletion. The new summary replaces the old one, whose text is
// given to the model: to the seed's letter, "between the last summary and the cut", the
// older turns would be forgotten at the second compaction.
//
// The seed uses a model's text as it comes. Here only sentences that the messages back are
// used (see Trust); what the user said and the rules are added word for word, within the
// same limit.
//
// When a model fails, the summary is made by rule, for a ceiling must hold. The only
// errors are those of the context, and ErrNothing.
type Timeline struct {
	// Model writes the summaries. Nil: they are made by rule.
	Model llm.Generator
	// Trust says how much of the model's text is used; empty is TrustChecked.
	Trust Trust
	// MaxTokens bounds the request; default Situation.Budget, or what Situation.Window
	// leaves beside the answer. Share of it is the trigger; default 0.9.
	MaxTokens int     `file:"trigger.max_tokens" unit:"tokens" range:"1.." words:"auto=0" about:"the largest request; auto: the budget, or what the window leaves beside the answer"`
	Share     float64 `file:"trigger.share" unit:"ratio" range:"0.001..1" about:"share of max_tokens above which the thread is compacted"`
	// KeepRecent is the budget of recent tokens. The seed gives no figure; the default is
	// 20,000, and at most three tenths of the maximum.
	KeepRecent int `file:"cut.keep_recent" unit:"tokens" range:"1.." words:"auto=0" about:"how much of the newest part stays; auto: 20000, at most a third of the mark"`
	// SummaryTokens and PrefixTokens bound the summary of whole turns and that of the
	// beginning of a split turn; defaults 800 and 400.
	SummaryTokens int `file:"summary.tokens" unit:"tokens" range:"1.." about:"bound on the summary of whole turns"`
	PrefixTokens  int `file:"summary.prefix_tokens" unit:"tokens" range:"1.." about:"bound on the summary of the beginning of a split turn"`
	// TTL is the age at which blocks are replaced by placeholders: tool results, long
	// arguments of calls, and what the model said at the end of a turn, except for its
	// newest words. The user's words and the notes of a harness stay. 0 is the life of the
	// provider's cache (Situation.CacheLife), negative hides none. Messages without a time
	// have no age.
	TTL time.Duration `file:"expire.ttl" unit:"duration" range:"1s..8760h" words:"auto=0 off=-1" about:"the age at which blocks are hidden; auto: the life of the provider's cache, as far as it is known"`
	// CacheOffset is how many rounds follow the second cache point, CacheMinRounds the
	// fewest rounds with which there is one; defaults 4 and 5.
	CacheOffset    int `file:"cache_points.offset" unit:"rounds" range:"1.." about:"how many rounds stand behind the second cache point"`
	CacheMinRounds int `file:"cache_points.min_rounds" unit:"rounds" range:"1.." words:"auto=0" about:"the fewest rounds with a second cache point; auto: offset + 1"`
}

// Name returns "timeline".
func (Timeline) Name() string { return "timeline" }

// Defaults returns the policy with the defaults filled in that do not depend on the step,
// for display. It decides the same.
func (l Timeline) Defaults() Timeline {
	l.Share, l.CacheOffset = cmp.Or(l.Share, 0.9), cmp.Or(l.CacheOffset, 4)
	l.SummaryTokens, l.PrefixTokens = cmp.Or(l.SummaryTokens, 800), cmp.Or(l.PrefixTokens, 400)
	return l
}

const (
	timelineKeep = 20_000
	hiddenReason = "older than the cache"
	// splitHeading is the heading of the summary of the beginning of a turn.
	splitHeading = "Turn Context (split turn)"
	// timelineChunk is the largest transcript of one request, in characters, and
	// timelineResult how much of one result it contains, in bytes.
	timelineChunk  = 60_000
	timelineResult = 2_000
	// minTimelineTokens is what a summary may always take, in tokens.
	minTimelineTokens = 40
)

//go:embed prompts/timeline.summary.txt
var summaryTask string

//go:embed prompts/timeline.prefix.txt
var prefixTask string

//go:embed prompts/timeline.user.txt
var timelineUser string

// Limit is MaxTokens, or what the step leaves where that is less or MaxTokens is not set.
func (l Timeline) Limit(s *Situation) int { return smallerLimit(l.MaxTokens, s.Limit()) }

// CacheRule puts cache marks at the end of the turn before, at the end of round N−4, and
// at the tail.
func (l Timeline) CacheRule() *plan.CacheRule {
	l = l.Defaults()
	return &plan.CacheRule{Offset: l.CacheOffset, MinRounds: cmp.Or(l.CacheMinRounds, l.CacheOffset+1)}
}

// Due reports whether the request is over its share of the maximum, or whether blocks have
// expired together with the cache: hiding them costs no cached prefix then, as it would at
// any other time.
func (l Timeline) Due(s *Situation) (bool, string) {
	if most := l.Limit(s); most > 0 && float64(s.PromptTokens) > float64(most)*l.Defaults().Share {
		return true, fmt.Sprintf("the request takes %d tokens of at most %d", s.PromptTokens, most)
	}
	if l.isCacheExpired(s) && len(l.expiredPlaceholders(newHistory(s), 0)) > 0 {
		return true, "blocks are " + hiddenReason
	}
	return false, ""
}

// Plan prunes first and compacts when that was not enough, or when it is forced. The plan
// holds the latest summary, the hidden results after it, and the rule for cache points.
func (l Timeline) Plan(ctx context.Context, now *Situation) (f *Fitted, err error) {
	defer namePolicy(l.Name(), &err)
	l = l.Defaults()
	s := newHistory(now)
	prev, from := s.currentSummary(l.Name(), func(r *plan.Summarization) bool { return r.Range != nil })
	pruned := l.expiredPlaceholders(s, from)
	f, err = s.renderCounted(l.draftPlan(now, prev, from, pruned))
	if err != nil {
		return nil, err
	}
	most := l.Limit(now)
	limit := int(float64(most) * l.Share)
	if !s.Forced && (most <= 0 || f.Tokens <= limit) {
		if len(pruned) == 0 {
			return nil, fmt.Errorf("the request takes %s tokens, and up to %s nothing is due: %w", clip.Number(f.Tokens), clip.Number(limit), ErrNothing)
		}
		return f, nil
	}
	blocks, at := l.cutPoint(s, f, from, limit)
	if at <= from {
		if f.Tokens < s.PromptTokens {
			return f, nil
		}
		return nil, fmt.Errorf("there is no cut point between the last summary and the newest blocks: %w", ErrNothing)
	}
	w := &timelineWriter{policy: l, prunedPlan: f.Plan, summaryModel: summaryModel{situation: s, model: l.Model, trust: l.Trust}}
	defer w.reportFailure(&err)
	record, err := w.newRecord(ctx, prev, blocks, from, at)
	if err != nil {
		return nil, err
	}
	f, err = s.renderCounted(l.draftPlan(now, record, at, slices.DeleteFunc(pruned, func(r plan.Clearing) bool { i, _ := s.Thread.Index(r.Span.First()); return i < at })))
	if err != nil {
		return nil, err
	}
	if f.Tokens >= s.PromptTokens {
		return nil, fmt.Errorf("the request would take %s tokens, it takes %s now: %w", clip.Number(f.Tokens), clip.Number(s.PromptTokens), ErrNothing)
	}
	f.Tail, f.Summaries = at, w.reports(extractiveName, w.failure)
	return f, nil
}

// draftPlan is a plan with a summary block, what is hidden from a position on, and the
// cache rule.
func (l Timeline) draftPlan(s *Situation, record *plan.Summarization, from int, pruned []plan.Clearing) *plan.Plan {
	p := s.Draft(l.Name())
	p.Cache = l.CacheRule()
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
	for _, r := range pruned {
		p.Add(r)
	}
	return p
}

// cutPoint chooses the first message of the retained window. The seed's rules give a
// block; where it lies inside a message, between a call and its results or among parallel
// calls, no provider would accept the window, so it begins earlier. It keeps less where
// the result would not get below the mark.
func (l Timeline) cutPoint(s *history, f *Fitted, from, limit int) (blocks []block, at int) {
	shown := slices.Clone(s.ChangedSizes) // hidden blocks count as what stands for them
	for n, o := range f.Manifest.Messages {
		if i, ok := s.Thread.Index(o.ID); ok && i >= from && o.Record.Action == plan.Clear {
			shown[i] = f.Sizes[n]
		}
	}
	blocks = blocksOf(s.Thread.Messages(), from, shown)
	points := cut.Legal(s.Thread, s.Pairs())
	keep := cmp.Or(l.KeepRecent, timelineKeep)
	if l.KeepRecent == 0 && limit > 0 {
		keep = min(keep, limit/3)
	}
	if s.Forced {
		limit = min(cmp.Or(limit, s.PromptTokens), s.PromptTokens*3/4)
		keep = min(keep, limit/2) >> min(max(s.Refusals-1, 0), 16)
	}
	fixed := s.Fixed + l.SummaryTokens + l.PrefixTokens
	at = from
	for ; ; keep /= 2 {
		index, ok := cutIndex(blocks, max(keep, 1))
		if !ok {
			return blocks, from
		}
		i := blocks[index].position
		for i > from && !points.Legal(i) {
			i--
		}
		at = max(at, i)
		size := fixed
		for k := range shown {
			if k >= at || s.pinned[k] {
				size += shown[k]
			}
		}
		if keep <= 1 || at > from && size <= limit {
			return blocks, at
		}
	}
}

// timelineWriter writes the texts of one compaction.
type timelineWriter struct {
	policy Timeline
	summaryModel
	// prunedPlan is the plan before the compaction, with the newly hidden blocks.
	prunedPlan *plan.Plan
	// failure is the model's first one.
	failure error
}

// newRecord makes the summary block of everything before at.
func (w *timelineWriter) newRecord(ctx context.Context, prev *plan.Summarization, blocks []block, from, at int) (*plan.Summarization, error) {
	s := w.situation
	messages := s.Thread.Messages()
	history, split := at, ""
	if at < len(messages) && !messages[at].StartsTurn() {
		first := slices.IndexFunc(blocks, func(b block) bool { return b.position == at })
		history = from // the turn may have begun before the last summary
		if n := turnStart(blocks, first); n >= 0 {
			history = blocks[n].position
		}
		split = turnID(messages[at].Turn)
	}
	span, fresh, err := s.spanBefore(prev, at)
	if err != nil {
		return nil, fmt.Errorf("what is before the cut: %w: %w", err, ErrNothing)
	}
	turns := []string{}
	for _, id := range span.MessageIDs {
		i, _ := s.Thread.Index(id)
		if id := turnID(messages[i].Turn); id != split && !slices.Contains(turns[max(0, len(turns)-1):], id) {
			turns = append(turns, id)
		}
	}
	next := &plan.Range{
		Type: blockSummary, Path: "su:" + cmp.Or(split, turnID(messages[at-1].Turn)) + "." + blockSummary, CoveredTurns: turns, SplitTurn: split,
	}
	var known summary.Summary
	before := ""
	if prev != nil {
		known, next.Text, before = prev.Summary, prev.Range.Text, prev.Range.TurnContext
	}
	w.judge(ctx, summarize.Input{Messages: fresh, Previous: &known})
	// What was pinned at the last compaction, and is no more, goes with the whole turns.
	whole := len(fresh)
	for whole > 0 && positionOf(s.Thread, &fresh[whole-1]) >= history {
		whole--
	}
	sameTurn := split != "" && prev != nil && prev.Range.SplitTurn == split
	if !sameTurn { // the turn that was split the last time is whole now
		next.Text, before = joinContext(next.Text, before), ""
	}
	// Without a model, items are taken over from the summary before, and a split turn is read from its beginning.
	var older summary.Summary
	turn := fresh[whole:]
	if w.policy.Model == nil {
		older = known
		if sameTurn {
			before, turn = "", nil
			for _, id := range span.MessageIDs {
				if i, _ := s.Thread.Index(id); turnID(messages[i].Turn) == split {
					turn = append(turn, messages[i])
				}
			}
		}
	}
	if !sameTurn || whole > 0 {
		next.Text, err = w.summarizeRange(ctx, summaryTask, w.policy.SummaryTokens, next.Text, fresh[:whole], older)
	}
	if err == nil && split != "" {
		next.TurnContext, err = w.summarizeRange(ctx, prefixTask, w.policy.PrefixTokens, before, turn, summary.Summary{})
	}
	if err != nil {
		return nil, err
	}
	if w.policy.Model == nil && split != "" {
		// A turn of a few words has no room for a summary by rule.
		next.TurnContext = w.addRequests(next, next.TurnContext, &summary.Summary{}, at, w.policy.PrefixTokens, 0)
	}
	sum, err := w.structuredSummary(ctx, known, fresh, w.policy.SummaryTokens)
	if err != nil {
		return nil, err
	}
	sum.Span = span
	if w.policy.Model != nil {
		next.Text = w.addRequests(next, next.Text, &sum, at, w.policy.SummaryTokens, w.policy.SummaryTokens/2-20)
	}
	next.Digest = w.digest(prev, &sum, from, at)
	why := "over the share of the maximum"
	if s.Forced {
		why = "forced"
	}
	record := s.newSummarization(w.policy.Name(), why, span, plan.Replacement{Text: withStanding(blockText(next), &sum)})
	record.Range, record.Summary = next, sum
	return &record, nil
}

// summarizeRange summarizes messages on top of what is known, in at most limit tokens and
// in no more than what is known and half of the messages take. The model reads them piece
// by piece, each time with the summary so far; when it fails, the rule takes over.
func (w *timelineWriter) summarizeRange(ctx context.Context, task string, limit int, known string, messages []thread.Message, older summary.Summary) (string, error) {
	room := w.situation.Counter.Text(known)
	for k := range messages {
		room += w.situation.ChangedSizes[positionOf(w.situation.Thread, &messages[k])] / 2
	}
	limit = min(limit, max(room, minTimelineTokens))
	if len(messages) == 0 {
		return w.situation.clipText(known, limit), nil
	}
	text, failure, err := writeOrFallback(ctx, w.policy.Model,
		func() (string, error) { return w.summarizeByModel(ctx, task, limit, known, messages) },
		func(error) (string, error) { return w.summarizeByRule(ctx, limit, known, messages, older) }, nil)
	w.failure = cmp.Or(w.failure, failure)
	return text, err
}

// summarizeByRule summarizes messages by code, on top of older: what code told before. Beside what a model wrote
// before, of which there are no items, that takes half of the room.
func (w *timelineWriter) summarizeByRule(ctx context.Context, limit int, known string, messages []thread.Message, older summary.Summary) (string, error) {
	budget := limit
	switch {
	case older.Span.Len() > 0:
		known = ""
	case known != "":
		known = w.situation.clipText(known, limit/2)
		budget -= w.situation.Counter.Text(known) + 2
	}
	sum, err := w.structuredSummary(ctx, older, messages, budget)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(sum.Render())
	if known != "" {
		text = known + "\n" + text
	}
	return w.situation.clipText(text, limit), nil
}

func (w *timelineWriter) summarizeByModel(ctx context.Context, task string, limit int, known string, messages []thread.Message) (string, error) {
	system := prompt.System{Text: fillTemplate(task, "{{limit}}", strconv.Itoa(limit)), Role: "system"}
	g := w.newGrounds(ctx, messages, known) // what a piece adds to the known stands in the messages
	err := askInPieces(chunkEntries(timelineTranscript(messages), timelineChunk), splitChunk, func(chunk string) error {
		user := fillTemplate(strings.TrimSpace(timelineUser), "{{previous}}", escapeTags(known), "{{blocks}}", escapeTags(chunk))
		text, err := w.generateText(ctx, system, user+w.situation.instructionBlock(), nil)
		if err == nil {
			text, err = w.acceptWhole(g, text)
		}
		if err == nil {
			known = w.clipAndReport(neutralizeLines(text), limit)
		}
		return err
	})
	return known, err
}

// addRequests adds to a text of r the user's words that neither text of r has, as many as fit the room beside the first
// and the latest request, in at most half of the limit; and what code found where something of a model was rejected.
func (w *timelineWriter) addRequests(r *plan.Range, text string, sum *summary.Summary, at, limit, room int) string {
	s, shown := w.situation, joinBlocks(r.Text, r.TurnContext)
	said := s.userRequests(at, min(limit, maxRequestBytes(w.policy.Limit(s.Situation))), room)
	block := s.clipText(userBlock(userHeading, shown, said), limit/2)
	if block == "" {
		return text
	}
	left := limit - s.Counter.Text(block)
	text = s.clipText(text, left-2)
	more := w.entriesFromLog(shown, sum)
	return joinBlocks(block, text, s.clipText(more, left-s.Counter.Text(text)-4))
}

// structuredSummary is the summary by rule. Where not even the task fits, it is empty.
func (w *timelineWriter) structuredSummary(ctx context.Context, known summary.Summary, messages []thread.Message, budget int) (summary.Summary, error) {
	in := summarize.Input{Messages: messages, Budget: max(budget, 1)}
	if len(known.Span.MessageIDs) > 0 {
		in.Previous = &known
	}
	sum, err := w.summarizeStructured(ctx, in)
	if errors.Is(err, summarize.ErrBudget) {
		return summary.Summary{}, nil
	}
	return sum, err
}
