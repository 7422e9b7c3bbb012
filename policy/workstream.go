package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/cut"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Workstream is the system of seed D: everything but the last messages becomes
// one replacement summary in a system message, and what was decided, asked and
// promised is merged into a structured state with limits (D1–D10). The zero
// value holds the seed's constants and works without a model.
//
// The summary stands in the system's role, as the seed has it, and is made from
// what anybody said in the conversation. Containment: only what user and
// assistant said is summarized, and of tools only those on the allow-list (D4);
// every entry is written so that it cannot begin a line, a heading or a role of
// its own; of a model's answer only what stands on the messages is taken (see
// Trust); what the user asked for first and last and the rules are added word for
// word under THE USER'S WORDS; a model's delta cannot pin anything. Where that is
// not enough, set Role to thread.User.
//
// A model that fails leaves the thread as it is: Plan returns the error, and the
// next turn asks again. Only when the provider has refused the request already
// (Situation.Forced), since the agent could not go on otherwise, or when nothing of
// the answer stands on the messages or it was cut off, is the summary made by rule
// instead.
type Workstream struct {
	// Model writes summary and delta. Nil: both are made by rule.
	Model llm.Generator

	// Trust says how much of what the model writes is taken; empty is TrustChecked.
	Trust Trust
	// ContextSize is the model's window in tokens: by default Situation.Window, or
	// else 200,000. Share, OutputReserve and SafetyMargin make the threshold;
	// defaults 0.7, 32,000 and 8,000 (D1).
	ContextSize                 int
	Share                       float64
	OutputReserve, SafetyMargin int
	// Tail is how many of the newest messages stay verbatim; default 6 (D3).
	Tail int
	// ToolNames and ToolPrefixes are the tools whose calls and results are part
	// of the transcript. Nil is the seed's list; empty is none (D4).
	ToolNames, ToolPrefixes []string
	// ChunkChars is the largest transcript of one request, in characters;
	// default 120,000. RollupTokens is the largest summary, in tokens; default
	// 80,000 (D6).
	ChunkChars, RollupTokens int
	// Limits bound the state; the zero value is the seed's table (D7).
	Limits state.Limits
	// Role is who says the summary; default thread.System (D9).
	Role thread.Role
	// ShowState adds the merged state behind the summary. The seed keeps it as
	// data only.
	ShowState bool
}

const (
	workstreamWindow  = 200_000
	workstreamShare   = 0.7
	workstreamOutput  = 32_000
	workstreamSafety  = 8_000
	workstreamTail    = 6
	workstreamChunk   = 120_000
	workstreamRollup  = 80_000
	workstreamHeader  = "Compacted context summary:"
	charsPerToken     = 3 // seed D, "Assessment"
	leastChunk        = 2_000
	workstreamLeastBy = 500 // tokens that a summary made by rule may always take
)

// Name returns "workstream".
func (Workstream) Name() string { return "workstream" }

// marks returns the threshold min(share × context, context − output − safety)
// (D1) and the size above which no answer fits any more, in tokens. In a window
// that is not larger than the reserves the second term of the threshold would
// make every turn compact; only the share counts there.
func (w Workstream) marks(s *Situation) (threshold, hard int) {
	window := or0(w.ContextSize, or0(s.Window, workstreamWindow))
	// The small number keeps 0.7 × 200,000 at 140,000 whatever the rounding.
	threshold = int(float64(window)*or(w.Share, workstreamShare) + 1e-6)
	hard = window - or0(w.OutputReserve, workstreamOutput) - or0(w.SafetyMargin, workstreamSafety)
	if hard <= 0 {
		hard = threshold
	}
	if s.Budget > 0 {
		hard = min(hard, s.Budget)
	}
	return min(threshold, hard), hard
}

// Due reports whether the conversation has reached the threshold, where a turn
// has ended (D2): where the newest message is not the result of a tool, and no call
// waits for one. Inside a turn the thread is let be until no answer would
// fit, since that turn would end with an error of the provider.
func (w Workstream) Due(s *Situation) (bool, string) {
	threshold, hard := w.marks(s)
	estimate := w.estimate(s)
	mark, where := threshold, "the turn has ended"
	if s.turnGoesOn() {
		mark, where = hard, "the turn goes on"
	}
	if estimate < mark {
		return false, ""
	}
	return true, fmt.Sprintf("summary and live messages take about %d tokens, the mark is %d; %s", estimate, mark, where)
}

// turnGoesOn reports whether the agent is in the middle of a turn: a tool has just
// answered, or a call still waits.
func (s *Situation) turnGoesOn() bool {
	n := s.Thread.Len()
	if n == 0 {
		return false
	}
	last := uncopied.At(s.Thread, n-1)
	return last.Role == thread.Tool || len(last.Calls()) > 0
}

// estimate is the seed's: characters of the summary and the live messages,
// divided by three and rounded up. System and tools are not counted.
func (w Workstream) estimate(s *Situation) int {
	actions := plan.Actions{}
	if s.Current != nil {
		actions = s.Current.Actions()
	}
	shown := map[plan.Ref]bool{}
	chars := 0
	for _, m := range uncopied.All(s.Thread) {
		ref := actions[m.ID]
		switch {
		case ref.Action == plan.Include:
			chars += charsOf(m)
		case ref.Action == plan.Clear || !shown[ref]:
			shown[ref] = true
			for _, stand := range s.Profile.Replacement(*m, s.Current.Record(ref), false) {
				chars += charsOf(&stand)
			}
		}
	}
	return tokensOf(chars)
}

func tokensOf(chars int) int { return (chars + charsPerToken - 1) / charsPerToken }

// charsOf counts what a message holds in characters, media as what stands in
// the log for them.
func charsOf(m *thread.Message) int {
	n := 0
	var count func(parts []thread.Part)
	count = func(parts []thread.Part) {
		for _, p := range parts {
			switch p := p.(type) {
			case thread.Text:
				n += utf8.RuneCountInString(p.Text)
			case thread.Reasoning:
				n += utf8.RuneCountInString(p.Text)
			case thread.ToolCall:
				n += utf8.RuneCountInString(p.Name) + utf8.RuneCountInString(p.Arguments)
			case thread.ToolResult:
				count(p.Content)
			case thread.Media:
				n += len(p.Data) + utf8.RuneCountInString(p.Text) + len(p.URL) + len(p.FileID)
			case thread.Opaque:
				n += utf8.RuneCountInString(p.Text)
			}
		}
	}
	count(m.Parts)
	return n
}

// Plan makes one record of everything before the tail: the summary text, the
// last compacted message (the last of its span) and the merged state change
// together or not at all (D8). System messages of the log stay as they are.
func (w Workstream) Plan(ctx context.Context, s *Situation) (*Fitted, error) {
	prev, from := w.previous(s)
	at := w.boundary(s, from)
	var fresh []thread.Message
	var ids []thread.ID
	for i, m := range uncopied.Messages(s.Thread)[:at] {
		if m.Role == thread.System && m.Kind == thread.Plain {
			continue
		}
		ids = append(ids, m.ID)
		if i >= from {
			fresh = append(fresh, m)
		}
	}
	if len(fresh) == 0 {
		return nil, fmt.Errorf("policy workstream: no message stands between the last summary and the tail: %w", ErrNothing)
	}
	span, err := thread.NewSpan(s.Thread, ids...)
	if err != nil {
		return nil, fmt.Errorf("policy workstream: %w", err)
	}
	model := &asker{s: s, model: w.Model, trust: w.Trust}
	next, failure, err := w.compact(ctx, model, prev, fresh, uncopied.Messages(s.Thread)[at:])
	if err != nil {
		return nil, fmt.Errorf("policy workstream: %w", err)
	}
	next.summary.Span = span

	p := s.Draft(w.Name())
	record := plan.Summarization{
		Span: span, Summary: next.summary, State: &next.state, Stand: w.stand(next),
		Origin: plan.Origin{Strategy: w.Name(), Reason: fmt.Sprintf("everything before the last %d messages", s.Thread.Len()-at)},
	}
	for _, said := range record.Stand {
		record.SummaryTokens += s.Counter.Text(said.Text)
	}
	record.TokensAfter = record.SummaryTokens
	for _, id := range ids {
		i, _ := s.Thread.Index(id)
		record.TokensBefore += s.Changed[i]
	}
	p.Add(record)
	f, err := s.Render(p)
	if err != nil {
		return nil, fmt.Errorf("policy workstream: %w", err)
	}
	p.CompactedTokens, f.Tail = f.Tokens, at
	f.Summaries = model.reports(byCode, failure)
	return f, nil
}

// workstreamNotes is what a compaction knows: the text, the same as structure,
// and the state.
type workstreamNotes struct {
	text    string
	summary summary.Summary
	state   state.State
}

// previous returns what the record in force holds, and the first position after
// it. A plan of another policy is passed over: the log has everything.
func (w Workstream) previous(s *Situation) (workstreamNotes, int) {
	if s.Current == nil {
		return workstreamNotes{}, 0
	}
	for _, r := range s.Current.Summarizations {
		if r.Strategy != w.Name() || r.State == nil || len(r.Stand) == 0 {
			continue
		}
		if last, ok := s.Thread.Index(r.Span.Last()); ok {
			text := strings.TrimSpace(strings.TrimPrefix(r.Stand[0].Text, workstreamHeader))
			return workstreamNotes{text, r.Summary, *r.State}, last + 1
		}
	}
	return workstreamNotes{}, 0
}

// boundary is where the tail begins. Where a forced compaction would find
// nothing before it, or was not enough the last time, the tail is halved.
func (w Workstream) boundary(s *Situation, from int) int {
	points := cut.Legal(s.Thread, s.Pairs())
	n := or0(w.Tail, workstreamTail)
	for range s.Harder - 1 {
		n = max(1, n/2)
	}
	for {
		at := cut.LastMessages{N: n}.Cut(points, nil).Index
		if at > from || !s.Forced || n <= 1 {
			return max(at, from)
		}
		n /= 2
	}
}

// stand is the system message (D9), and the state behind it where that is asked
// for.
func (w Workstream) stand(n workstreamNotes) []plan.Said {
	role := w.Role
	if role == "" {
		role = thread.System
	}
	text := workstreamHeader + "\n\n" + n.text
	if w.ShowState && !n.state.Empty() {
		text += "\n\nWORKSTREAM STATE:\n" + strings.TrimSuffix(n.state.Render(), "\n")
	}
	return []plan.Said{{Role: role, Text: text}}
}

// compact makes the notes that follow prev. The failure is why they are made by
// rule where there is a model, or nil.
func (w Workstream) compact(ctx context.Context, model *asker, prev workstreamNotes, fresh, tail []thread.Message) (next workstreamNotes, failure, err error) {
	if w.Model != nil {
		next, failure = w.byModel(ctx, model, prev, fresh, tail)
		// What was cut off once is cut off at each step.
		rejected := errors.Is(failure, summarize.Ungrounded) || errors.Is(failure, llm.ErrTruncated)
		if failure == nil || ctx.Err() != nil || !model.s.Forced && !rejected {
			return next, nil, failure
		}
	}
	next, err = w.byRule(ctx, model, prev, fresh, tail)
	return next, failure, err
}

// allowed reports whether a tool's calls and results are part of the transcript.
func (w Workstream) allowed(tool string) bool {
	names, prefixes := w.ToolNames, w.ToolPrefixes
	if names == nil {
		names = []string{"userQuestions", "proceedInOnboarding"}
	}
	if prefixes == nil {
		prefixes = []string{"linear"}
	}
	return slices.Contains(names, tool) ||
		slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(tool, p) })
}
