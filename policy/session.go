package policy

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/cut"
	"github.com/palimpsest-ai/palimpsest/internal/ourform"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Session is the system of seed B: before a step the messages are estimated by
// their characters (B1), and when they reach the threshold (B2) all but the last
// ten become one summary with fixed sections, which each later round takes over
// and goes on with (B5, B9). The zero value is the seed's, without a model.
//
// The system prompt counts as one message whether there is one or not, and is
// never compacted; nor is any message in the system's role.
//
// The seed gives the summary's heading twice: "### Session Summary (Compaction
// Round N)" with sections one level deeper in its prompt, "## Session Summary
// (Compaction Round N)" in its template and where an earlier summary is told by
// its beginning. A summary written as the prompt says would never be found
// again, so the second form holds, in the prompt too, and code puts the heading
// of the answer right. The summary of the round before is found in the plan in force, or, where a
// compacted conversation comes back as input, by its form (thread.Recap).
//
// The seed takes a model's answer as it comes. Here only what stands on the
// messages stays of it (see Trust); a section of which nothing stays is written by
// code, and the user's latest request and rules that the answer lost are added word
// for word.
type Session struct {
	// Model writes the summaries. Nil: code writes them, in the same sections,
	// out of what summarize.Extractive finds.
	Model llm.Generator
	// Timeout bounds the call of the model; 0 is llm.DefaultTimeout.
	Timeout time.Duration
	// Trust says how much of what the model writes is taken; empty is TrustChecked.
	Trust Trust

	// ContextLimit is the model's context window in tokens. 0 takes the window of
	// the step, else the row of the model in a table, else 128,000 (B3).
	ContextLimit int
	// SystemReserve, OutputReserve and SafetyBuffer are what is not for messages,
	// in tokens; defaults 2,000, 4,000 and 5,000. ThresholdPercent is the share of
	// the rest at which the thread is compacted, default 0.80 (B2).
	SystemReserve, OutputReserve, SafetyBuffer int
	ThresholdPercent                           float64
	// Keep is how many of the newest messages stay as they are, default 10; more
	// where fewer would part a result from its call (B4, B5). A provider that
	// refuses the request as too long halves it each time.
	Keep int
}

const (
	// summaryTokens is what the model's answer may take, and what code keeps to
	// where the task leaves it the room; the prompt asks for 800 (B6).
	summaryTokens = 1_000
	// summaryTemperature is low, since a summary reports facts (B6).
	summaryTemperature = 0.3
	// longTask is the size from which the model is not asked to write the task
	// out, since its answer would be cut off: code puts it in. In tokens of B1.
	longTask = 200

	firstRound  = "None - this is the first compaction round."
	unknownTask = "Unknown task"
)

//go:embed prompts/session.system.txt
var sessionSystem string

//go:embed prompts/session.user.txt
var sessionUser string

// Name returns "session".
func (Session) Name() string { return "session" }

// Due reports whether the list has more than keep+1 messages, the system prompt
// counted as one, and its estimate has reached the threshold (B4, B2).
func (p Session) Due(s *Situation) (bool, string) {
	entries, err := s.visible()
	if err != nil || p.short(s, entries) {
		return false, ""
	}
	size, threshold := estimate(s.Base.System, entries), p.threshold(p.limit(s))
	if size < threshold {
		return false, ""
	}
	return true, fmt.Sprintf("the messages take about %d tokens, the threshold is %d", size, threshold)
}

// Plan puts one summary in place of everything but the newest messages. Where
// the model makes none the error says why, and the agent goes on with the
// messages as they are (B10). Only when the provider has refused these as too
// long is the summary written by code instead, since the agent could not go on
// otherwise.
func (p Session) Plan(ctx context.Context, s *Situation) (*Fitted, error) {
	entries, err := s.visible()
	if err != nil {
		return nil, fmt.Errorf("policy session: %w", err)
	}
	if p.short(s, entries) {
		return nil, fmt.Errorf("policy session: %d messages, the newest %d stay: %w", len(entries), p.keep(s), ErrNothing)
	}
	legal := cut.Legal(s.Thread, s.Pairs())
	end := entries[len(entries)-p.keep(s)].at
	for end > 0 && !legal.Legal(end) {
		end--
	}
	o, err := s.before(entries, end)
	if err != nil {
		return nil, fmt.Errorf("policy session: %w", err)
	}
	sum, err := s.extract(ctx, o, summaryTokens)
	if err != nil {
		return nil, fmt.Errorf("policy session: %w", err)
	}
	form := sessionForm{round: s.round(o.previous) + 1, task: task(s.Thread), chained: o.previous != "", latest: s.requests(o.end, requestRoom(p.Limit(s)))}
	text := form.extracted(&sum)
	var failure error
	model := &asker{s: s, model: p.Model, trust: p.Trust}
	if p.Model != nil {
		answer, err := p.ask(ctx, model, o, form)
		if err != nil && (s.Harder == 0 || ctx.Err() != nil) {
			return nil, fmt.Errorf("policy session: summary of round %d: %w", form.round, err)
		}
		if failure = err; failure == nil {
			var taken string
			if taken, failure = form.answered(model, model.check(messagesOf(o.entries), o.previous), answer, &sum); failure == nil {
				text = taken
			}
		}
	}
	why := fmt.Sprintf("round %d: the messages take about %d tokens, %d of them go into the summary",
		form.round, estimate(s.Base.System, entries), len(o.entries))
	f, err := s.replace(p.Name(), o, sum, why, plan.Said{Role: thread.Assistant, Text: text})
	if err != nil {
		return nil, fmt.Errorf("policy session: %w", err)
	}
	f.Summaries = model.reports(byCode, failure)
	return f, nil
}

// keep is how many of the newest messages stay.
func (p Session) keep(s *Situation) int { return max(1, or0(p.Keep, sessionKeep)>>min(s.Harder, 16)) }

// short is B4: with the system prompt the list has not more than keep+1
// messages.
func (p Session) short(s *Situation, entries []entry) bool { return 1+len(entries) <= p.keep(s)+1 }

// ask has the model write the summary, in parts where its window is too small.
func (p Session) ask(ctx context.Context, model *asker, o *old, form sessionForm) (string, error) {
	verbatim := "The user's own request, word for word"
	if quarter(units(form.task)) > longTask {
		verbatim = "Write only: (verbatim). The request is put in here by the program"
	}
	temperature := summaryTemperature
	return inParts(o.entries, o.previous, func(entries []entry, previous string) (string, error) {
		if previous == "" {
			previous = firstRound
		}
		return model.text(ctx, prompt.System{Text: sessionSystem}, strings.NewReplacer(
			"{{previous}}", previous, "{{task}}", form.task, "{{messages}}", transcript(entries, sessionCuts),
			"{{round}}", strconv.Itoa(form.round), "{{verbatim}}", verbatim,
		).Replace(sessionUser)+model.s.asked(), &llm.Options{Temperature: &temperature, MaxOutput: summaryTokens, Timeout: p.Timeout})
	})
}

// round is how many rounds there were: those of this thread, or those that an
// earlier summary says, where it came with the conversation.
func (s *Situation) round(previous string) int {
	said, _ := ourform.Round(previous)
	return max(s.Round, said)
}

// task is what the user asked for first, word for word. The seed looks for it in
// the list, where the first round has hidden it; the log still has it.
func task(t *thread.Thread) string {
	for _, m := range uncopied.All(t) {
		if m.StartsTurn() {
			if text := m.Text(); text != "" {
				return text
			}
		}
	}
	return unknownTask
}
