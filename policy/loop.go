package policy

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Loop is seed E: before each call, when the messages take more than 80 % of what the
// window leaves for them, the older ones become one summary and about 40 % of them stay. A
// failed summarizer is no failure: a note takes the place of the summary, and the loop
// continues. The zero value is the seed's, without a model.
//
// The seed puts a model's text, whatever it says, into the user's mouth. Here only
// sentences that the messages back are used (see Trust); code adds what the user said and
// the rules, word for word, and fills in for what was rejected.
type Loop struct {
	// Model writes the summaries. Nil: summarize.Extractive does.
	Model llm.Generator
	// Timeout bounds each call of the model; 0 is llm.DefaultTimeout.
	Timeout time.Duration
	// Trust says how much of the model's text is used; empty is TrustChecked.
	Trust Trust

	// ContextLimit is the model's context window in tokens. 0 is 1,000,000 where
	// LongContext is set and the model can (the Sonnet models, and those of token.Models
	// with such a window), else the window of the step, else 200,000.
	ContextLimit int  `file:"trigger.context_limit" unit:"tokens" range:"1.." words:"auto=0" about:"the context window; auto: the model's, or else 200000"`
	LongContext  bool `file:"trigger.long_context" about:"take 1000000 for models that have such a window, whatever the table of models says"`
	// MaxOutput is what is kept free for the answer, in tokens; 0 is what the step says,
	// else 16,384.
	MaxOutput int `file:"trigger.max_output" unit:"tokens" range:"1.." words:"auto=0" about:"kept free for the answer; auto: the model's limit, or else 16384"`
	// Utilization is the share beyond which the thread is compacted, default 0.80.
	// Preserve is the share of the messages that stays, default 0.40; each refusal by the
	// provider halves it.
	Utilization float64 `file:"trigger.utilization" unit:"ratio" range:"0.001..1" about:"share of what the window leaves above which the thread is compacted"`
	Preserve    float64 `file:"cut.preserve" unit:"ratio" range:"0.001..1" about:"share of the messages that stays"`
}

// Name returns "loop".
func (Loop) Name() string { return "loop" }

// Defaults returns the policy with the defaults filled in that do not depend on the step,
// for display. It decides the same.
func (l Loop) Defaults() Loop {
	l.Utilization, l.Preserve = cmp.Or(l.Utilization, 0.80), cmp.Or(l.Preserve, 0.40)
	return l
}

const (
	loopLimit     = 200_000
	loopLongLimit = 1_000_000
	loopOutput    = 16_384
	// loopOverhead is added for each message, in tokens.
	loopOverhead = 4
	// extractTokens bounds a summary that code writes, in tokens.
	extractTokens = 2_000

	summaryMark = "[COMPACT SUMMARY]\n"
	understood  = "Understood."
	noEarlier   = "None."
	// topicHead is how much a note quotes of one message, in bytes; topics is how many it
	// quotes.
	topicHead, topics = 80, 8
)

//go:embed prompts/loop.system.txt
var loopSystem string

//go:embed prompts/loop.user.txt
var loopUser string

// loopBudget is seed E's account of a request, in tokens.
type loopBudget struct {
	ContextLimit    int
	SystemTokens    int // a quarter of the system prompt's bytes
	MessageTokens   int // of each message a quarter of its bytes, and 4
	MaxOutputTokens int
	// Available is what is left beside all of them; it may be negative.
	Available int
	// Utilization is MessageTokens over what the limit leaves beside system and output;
	// infinite where that is nothing.
	Utilization float64
}

func (l Loop) budget(s *Situation, entries []entry) loopBudget {
	b := loopBudget{ContextLimit: l.limit(s), MaxOutputTokens: l.maxOutput(s)}
	system := 0
	for n, block := range cmp.Or(s.SentBase, s.Base).System {
		system += len(block.Text) + min(n, 1) // blocks are joined by newlines
	}
	b.SystemTokens = system / 4
	for i := range entries {
		b.MessageTokens += partsSize(entries[i].Parts, func(s string) int { return len(s) }, nil)/4 + loopOverhead
	}
	room := b.ContextLimit - b.SystemTokens - b.MaxOutputTokens
	b.Available = room - b.MessageTokens
	switch {
	case b.MessageTokens == 0:
	case room > 0:
		b.Utilization = float64(b.MessageTokens) / float64(room)
	default:
		b.Utilization = math.Inf(1)
	}
	return b
}

// Limit is the window without what is kept free for the answer.
func (l Loop) Limit(s *Situation) int { return max(0, l.limit(s)-l.maxOutput(s)) }

// limit is the context window, or less where a budget bounds request and answer.
func (l Loop) limit(s *Situation) int {
	limit := l.ContextWindow(s)
	if s.Budget > 0 {
		limit = min(limit, s.Budget+l.maxOutput(s))
	}
	return limit
}

// ContextWindow is the model's context window. LongContext overrides the table of models.
func (l Loop) ContextWindow(s *Situation) int {
	if l.ContextLimit == 0 && l.LongContext && longContext(s.Base.Model) {
		return loopLongLimit
	}
	return cmp.Or(l.ContextLimit, s.Window, loopLimit)
}

func longContext(model string) bool {
	if strings.Contains(strings.ToLower(model), "sonnet") {
		return true
	}
	m, err := token.Models().Find(model)
	return err == nil && m.Window >= loopLongLimit
}

func (l Loop) maxOutput(s *Situation) int { return cmp.Or(l.MaxOutput, s.Output, loopOutput) }

// Due reports whether the utilization is beyond the share.
func (l Loop) Due(s *Situation) (bool, string) {
	l = l.Defaults()
	entries, err := s.visibleEntries()
	if err != nil {
		return false, ""
	}
	b := l.budget(s, entries)
	if b.Utilization <= l.Utilization {
		return false, ""
	}
	return true, fmt.Sprintf("the messages take about %d tokens, %.0f %% of what is left for them, over %.0f %%",
		b.MessageTokens, b.Utilization*100, l.Utilization*100)
}

// Plan puts a summary and a word of assent in place of the older messages, except for
// those that the user has pinned. It fails only
// where there is nothing to compact, where the plan in force does not hold, and where ctx
// is done.
func (l Loop) Plan(ctx context.Context, now *Situation) (f *Fitted, err error) {
	defer namePolicy(l.Name(), &err)
	s := newHistory(now)
	entries, err := s.visibleEntries()
	if err != nil {
		return nil, err
	}
	unpinned := s.unpinned(entries)
	o, err := s.oldPartBefore(unpinned, l.split(now, unpinned))
	if err != nil {
		return nil, err
	}
	model := &summaryModel{situation: s, model: l.Model, trust: l.Trust}
	defer model.reportFailure(&err)
	sum, extracted := model.extractSummary(ctx, o, extractTokens)
	requests := s.userRequests(o.end, maxRequestBytes(l.Limit(now)), userWordsBudget(l.Limit(now)))
	instead := extractiveName
	text, failure, err := writeOrFallback(ctx, l.Model,
		func() (string, error) {
			answer, err := l.askModel(ctx, model, o)
			if err != nil {
				return "", err
			}
			taken, err := model.acceptWhole(model.newGrounds(ctx, messagesOf(o.entries), o.previous), answer)
			if err != nil {
				return "", err
			}
			return joinBlocks(taken, userBlock(userHeading, taken, requests), model.entriesFromLog(taken, &sum)), nil
		},
		func(failure error) (string, error) {
			if extracted == nil && (failure == nil || isRejected(failure)) {
				return sum.Render(), nil
			}
			instead = "truncation_note"
			note := truncationNote(s.Thread, o)
			return joinBlocks(note, userBlock(userHeading, note, requests)), nil
		}, nil)
	if done := ctx.Err(); done != nil {
		return nil, done
	}
	if err != nil {
		return nil, err
	}
	if l.Model == nil {
		failure = extracted
	}
	why := fmt.Sprintf("%d of %d messages go into the summary", len(o.entries), len(entries))
	f, err = s.planReplacement(l.Name(), o, sum, why,
		plan.Replacement{Role: thread.User, Text: summaryMark + withStanding(strings.TrimRight(text, "\n"), &sum)},
		plan.Replacement{Role: thread.Assistant, Text: understood})
	if err != nil {
		return nil, err
	}
	f.Summaries = model.reports(instead, failure)
	return f, nil
}

// split is the position in the thread of the first message that stays. It walks back from
// the end over the preserved share of the list, and from there to the nearest place where
// no call is parted from its results, the earlier one of two. At least the last message
// stays.
func (l Loop) split(s *Situation, entries []entry) int {
	share := l.Defaults().Preserve
	for range s.Refusals {
		share /= 2
	}
	at := len(entries) - max(1, int(float64(len(entries))*share))
	legal := cut.Legal(s.Thread, s.Pairs())
	ok := func(n int) bool {
		return n > 0 && n < len(entries) && !entries[n].isRecap() && legal.Legal(entries[n].position)
	}
	for d := range entries {
		if ok(at - d) {
			return entries[at-d].position
		}
		if ok(at + d) {
			return entries[at+d].position
		}
	}
	return 0
}

// askModel has the model write the summary. It reads the messages whole, as the seed's
// does, in parts where its window is too small for all.
func (l Loop) askModel(ctx context.Context, model *summaryModel, o *oldPart) (string, error) {
	return summarizeInHalves(o.entries, strings.TrimPrefix(o.previous, summaryMark), func(entries []entry, previous string) (string, error) {
		most := l.maxOutput(model.situation.Situation)
		text, err := model.generateText(ctx, prompt.System{Text: loopSystem},
			fillTemplate(loopUser, "{{previous}}", cmp.Or(previous, noEarlier), "{{messages}}", transcript(entries, cutLimits{}))+model.situation.instructionBlock(),
			&llm.Options{MaxOutput: most, Timeout: l.Timeout})
		return model.clipAndReport(text, most), err
	})
}

// truncationNote takes the place of a summary that could not be made. It counts every
// message of the log that it hides and quotes the beginnings of what the user said, the
// first and the latest.
func truncationNote(t *thread.Thread, o *oldPart) string {
	var about []string
	for i, m := range t.All() {
		if i >= o.end {
			break
		}
		line, _, _ := strings.Cut(injected.UserWords(m), "\n")
		if line = strings.Join(strings.Fields(line), " "); line == "" {
			continue
		}
		about = append(about, neutralText(clip.Short(line, topicHead)))
	}
	if n := len(about); n > topics {
		about = append([]string{about[0], "…"}, about[n-topics+1:]...)
	}
	if len(about) == 0 {
		about = []string{"work without a word of the user"}
	}
	return fmt.Sprintf("[Context truncated. Earlier conversation contained %d messages about: %s]", o.span.Len(), strings.Join(about, "; "))
}
