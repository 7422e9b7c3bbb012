package policy

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Workstream is seed D: everything but the last messages becomes one replacement summary
// in a system message, and what was decided, asked and promised is merged into a
// structured state with limits. The zero value has the seed's constants and works without
// a model.
//
// The summary has the system's role, as in the seed, but is made from what anybody said in
// the conversation. To contain that, only what user and assistant said is summarized, and
// of tools only those on the allow-list; no entry can begin a line, a heading or a role of
// its own; of a model's answer only sentences that the messages back are used (see Trust);
// what the user said and the rules are added word for word under THE USER'S WORDS; and a
// model's delta cannot pin anything. Where that is not enough, set Role to thread.User.
//
// When a model fails, Plan returns the error, the thread stays as it is, and the next turn
// asks again. The summary is made by rule instead when the thread cannot stay (mustCompact),
// in the last attempt of a job, when nothing of the answer could be used, and when it was cut off.
type Workstream struct {
	// Model writes summary and delta. Nil: both are made by rule.
	Model llm.Generator

	// Trust says how much of the model's text is used; empty is TrustChecked.
	Trust Trust
	// ContextSize is the model's window in tokens; default Situation.Window, else 200,000.
	// Share, OutputReserve and SafetyMargin make the threshold; defaults 0.7, 32,000 and
	// 8,000.
	ContextSize   int     `file:"trigger.context_size" unit:"tokens" range:"1.." words:"auto=0" about:"the context window; auto: the model's, or else 200000"`
	Share         float64 `file:"trigger.share" unit:"ratio" range:"0.001..1" about:"share of the window at which the thread is compacted"`
	OutputReserve int     `file:"trigger.output_reserve" unit:"tokens" range:"1.." about:"kept free for the answer"`
	SafetyMargin  int     `file:"trigger.safety_margin" unit:"tokens" range:"1.." about:"kept free for errors of the estimate"`
	// Tail is how many of the newest messages stay verbatim; default 6.
	Tail int `file:"cut.tail" unit:"messages" range:"1.." about:"how many of the newest messages stay"`
	// ToolNames and ToolPrefixes are the tools whose calls and results are part of the
	// transcript. Nil is the seed's list; empty is none.
	ToolNames    []string `file:"transcript.tool_names" about:"tools that are part of what is summarized"`
	ToolPrefixes []string `file:"transcript.tool_prefixes" about:"as tool_names, by the beginning of the name"`
	// ChunkChars is the largest transcript of one request, in characters; default 120,000.
	// RollupTokens is the largest summary, in tokens; default 80,000.
	ChunkChars   int `file:"transcript.chunk_chars" unit:"characters" range:"2000.." about:"the largest transcript of one request"`
	RollupTokens int `file:"summary.rollup_tokens" unit:"tokens" range:"1.." about:"bound on the summary; above it, it is rolled up"`
	// Limits bound the state; the zero value is the seed's table.
	Limits state.Limits
	// Role is the role of the summary; default thread.System.
	Role thread.Role `file:"summary.role" about:"who says the summary"`
	// ShowState shows the merged state after the summary. The seed keeps it as data only.
	ShowState bool `file:"summary.show_state" about:"show the state behind the summary"`
}

// Name returns "workstream".
func (Workstream) Name() string { return "workstream" }

// Defaults returns the policy with the defaults filled in that do not depend on the step,
// for display. It decides the same.
func (w Workstream) Defaults() Workstream {
	w.Share, w.OutputReserve, w.SafetyMargin = cmp.Or(w.Share, 0.7), cmp.Or(w.OutputReserve, 32_000), cmp.Or(w.SafetyMargin, 8_000)
	w.Tail, w.ChunkChars, w.RollupTokens = cmp.Or(w.Tail, 6), cmp.Or(w.ChunkChars, 120_000), cmp.Or(w.RollupTokens, 80_000)
	w.Role = cmp.Or(w.Role, thread.System)
	if w.ToolNames == nil {
		w.ToolNames = []string{"userQuestions", "proceedInOnboarding"}
	}
	if w.ToolPrefixes == nil {
		w.ToolPrefixes = []string{"linear"}
	}
	w.Limits = w.Limits.Defaults()
	return w
}

const (
	workstreamWindow = 200_000
	workstreamHeader = "Compacted context summary:"
	stateHeader      = "WORKSTREAM STATE:"
	charsPerToken    = 3   // seed D, "Assessment"
	minRuleTokens    = 500 // tokens that a summary made by rule may always take
	onlyCallsNote    = "(tool calls only; nothing was said)"
)

// workstreamTask is the model's task; workstreamRollupTask replaces it when the
// summary itself is too long; workstreamForm is the schema of both answers.
var (
	//go:embed prompts/workstream.txt
	workstreamTask string
	//go:embed prompts/workstream.rollup.txt
	workstreamRollupTask string
	//go:embed prompts/workstream.user.txt
	workstreamUser string
	//go:embed prompts/workstream.schema.json
	workstreamForm string

	workstreamSchema = &llm.Schema{
		Name: "context_compaction", Description: "The replacement summary and the changes of the state.", JSON: strings.TrimSpace(workstreamForm),
	}
)

// marks returns the threshold min(share × context, context − output − safety), and the
// size above which no answer fits any more, in tokens. In a window that is not larger than
// the reserves, the second term would make every turn compact; only the share counts
// there.
func (w Workstream) marks(s *Situation) (threshold, hard int) {
	w = w.Defaults()
	window := cmp.Or(w.ContextSize, s.Window, workstreamWindow)
	// The small number keeps 0.7 × 200,000 at 140,000 whatever the rounding.
	threshold = int(float64(window)*w.Share + 1e-6)
	hard = window - w.OutputReserve - w.SafetyMargin
	if hard <= 0 {
		hard = threshold
	}
	if s.Budget > 0 {
		hard = min(hard, s.Budget)
	}
	return min(threshold, hard), hard
}

// Limit is the window without the reserves for answer and errors; in a window that is no
// larger than these, the threshold.
func (w Workstream) Limit(s *Situation) int {
	_, hard := w.marks(s)
	return hard
}

// DueSoon is Due: the seed compacts in a job at the end of the turn.
func (w Workstream) DueSoon(s *Situation) (bool, string) { return w.Due(s) }

// WaitsForJobs is true: requests wait while the thread is compacted.
func (Workstream) WaitsForJobs() bool { return true }

// Due reports whether the conversation has reached the threshold at the end of a turn: the
// newest message is no tool result, and no call waits for one. Within a turn the thread is
// compacted only once no answer would fit any more, since the turn would end with an error
// then.
func (w Workstream) Due(s *Situation) (bool, string) {
	threshold, hard := w.marks(s)
	estimate := w.estimate(s)
	mark, where := threshold, "the turn has ended"
	if isMidTurn(s) {
		mark, where = hard, "the turn goes on"
	}
	if estimate < mark {
		return false, ""
	}
	return true, fmt.Sprintf("summary and live messages take about %d tokens, over %d; %s", estimate, mark, where)
}

// isMidTurn reports whether the agent is in the middle of a turn: a tool has just
// answered, or a call of the newest answer still waits.
func isMidTurn(s *Situation) bool {
	// A message of the user's may come while calls of the newest answer still wait.
	for i := s.Thread.Len() - 1; i >= 0; i-- {
		switch m := s.Thread.At(i); {
		case m.Role == thread.Tool && i == s.Thread.Len()-1:
			return true
		case m.Role == thread.Assistant:
			return len(m.Calls()) > 0 && len(s.Pairs().Missing(i)) > 0
		}
	}
	return false
}

// estimate is the seed's: characters of the summary and the live messages, divided by
// three and rounded up. System and tools are not counted. The seed does not speak of images
// and the like: they count what the model reads of them, since their base64 is no text.
func (w Workstream) estimate(s *Situation) int {
	actions := s.Current.Actions()
	shown := map[plan.Ref]bool{}
	chars := 0
	for _, m := range s.Thread.All() {
		ref := actions[m.ID]
		switch {
		case ref.Action == plan.Include:
			chars += charsOf(s, m)
		case ref.Action == plan.Clear || !shown[ref]:
			shown[ref] = true
			for _, stand := range s.Profile.Replacement(*m, s.Current.Record(ref), false) {
				chars += charsOf(s, &stand)
			}
		}
	}
	return tokensOf(chars)
}

func tokensOf(chars int) int { return (chars + charsPerToken - 1) / charsPerToken }

// charsOf counts the characters of a message, media as the characters of as many tokens.
func charsOf(s *Situation, m *thread.Message) int {
	return partsSize(m.Parts, utf8.RuneCountInString, func(part *thread.Media) int {
		if part.Text != "" {
			return utf8.RuneCountInString(part.Text)
		}
		return charsPerToken * s.Counter.Message(&thread.Message{Role: m.Role, Parts: []thread.Part{*part}})
	})
}

// Plan makes one record of everything before the tail, so that summary text, span and
// merged state change together or not at all. System messages of the log, and messages
// that the user has pinned, stay as they are.
func (w Workstream) Plan(ctx context.Context, now *Situation) (f *Fitted, err error) {
	defer namePolicy(w.Name(), &err)
	w = w.Defaults()
	s := newHistory(now)
	current, from := s.currentSummary(w.Name(), func(r *plan.Summarization) bool { return r.State != nil && len(r.Stand) > 0 })
	at := w.tailStart(now, from)
	step := &workstreamStep{policy: w, summaryModel: summaryModel{situation: s, model: w.Model, trust: w.Trust}, tail: s.Thread.Messages()[at:]}
	defer step.reportFailure(&err)
	if current != nil {
		step.prev = workstreamNotes{notesText(current.Stand[0].Text), current.Summary, *current.State}
	}
	span, fresh, err := s.spanBefore(current, at)
	switch {
	case len(fresh) == 0:
		return nil, fmt.Errorf("there is no message between the last summary and the tail: %w", ErrNothing)
	case err != nil:
		return nil, err
	}
	step.newMessages = fresh
	step.judge(ctx, summarize.Input{Messages: fresh, Previous: &step.prev.summary})
	next, failure, err := writeOrFallback(ctx, w.Model,
		func() (workstreamNotes, error) { return step.byModel(ctx) },
		func(error) (workstreamNotes, error) { return step.byRule(ctx) },
		func(failure error) bool { // an answer that was cut off once is cut off at each step
			last := s.Attempt > 0 && s.Attempt >= s.Attempts // of a job
			return !last && !now.mustCompact(w.Limit(now)) && !errors.Is(failure, llm.ErrTruncated)
		})
	if err != nil {
		return nil, err
	}
	next.summary.Span = span
	record := s.newSummarization(w.Name(), fmt.Sprintf("everything before the last %d messages", s.Thread.Len()-at), span, plan.Replacement{Role: w.Role, Text: withStanding(w.summaryText(next), &next.summary)})
	record.Summary, record.State = next.summary, &next.state
	p := s.Draft(w.Name())
	p.Add(record)
	f, err = s.renderCounted(p)
	if err != nil {
		return nil, err
	}
	f.Tail, f.Summaries = at, step.reports(extractiveName, failure)
	return f, nil
}

// tailStart is where the tail begins. Where a forced compaction would find nothing before
// it, or was not enough the last time, the tail is halved.
func (w Workstream) tailStart(s *Situation, from int) int {
	points := cut.Legal(s.Thread, s.Pairs())
	n := w.Tail
	for range s.Refusals - 1 {
		n = max(1, n/2)
	}
	for {
		at := cut.LastMessages{N: n}.Cut(points, nil)
		if at > from || !s.Forced || n <= 1 {
			return max(at, from)
		}
		n /= 2
	}
}

// summaryText is the text of the system message, with the state after it if ShowState is
// set.
func (w Workstream) summaryText(n workstreamNotes) string {
	text := workstreamHeader + "\n\n" + n.text
	if w.ShowState && !n.state.Empty() {
		text += "\n\n" + stateHeader + "\n" + strings.TrimSuffix(n.state.Render(), "\n")
	}
	return text
}

// notesText is the text of the notes that summaryText has shown. The state is kept as
// data, and what it was must not pass for what it is.
func notesText(shown string) string {
	text, _, _ := strings.Cut(strings.TrimPrefix(shown, workstreamHeader), "\n"+stateHeader+"\n")
	return strings.TrimSpace(text)
}
