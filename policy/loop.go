package policy

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/cut"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Loop is the system of seed E: before each call, when the messages take more
// than 80 % of what the window leaves for them (E1), the older ones become one
// summary and about 40 % of them stay (E5). A summarizer that fails is no
// failure: a note stands in place of the summary, and the loop goes on (E6, E8).
// The zero value is the seed's, without a model.
//
// The seed puts a model's text, whatever it says, into the user's mouth. Here
// only what stands on the messages stays of it (see Trust), and what the user asked
// for first and last and the rules are added word for word; code writes in place of
// what was left out.
type Loop struct {
	// Model writes the summaries. Nil: they are what summarize.Extractive finds.
	Model llm.Generator
	// Timeout bounds the call of the model; 0 is llm.DefaultTimeout.
	Timeout time.Duration
	// Trust says how much of what the model writes is taken; empty is TrustChecked.
	Trust Trust

	// ContextLimit is the model's context window in tokens. 0 takes the window of
	// the step, else 200,000, or 1,000,000 where LongContext is set and the model
	// can: the Sonnet models, and those of token.Models with such a window (E3).
	ContextLimit int
	LongContext  bool
	// MaxOutput is what is kept free for the answer, in tokens; 0 takes what the
	// step says, else 16,384 (E3).
	MaxOutput int
	// Utilization is the share beyond which the thread is compacted, default 0.80
	// (E1). Preserve is the share of the messages that stays, default 0.40 (E5); a
	// provider that refuses the request as too long halves it each time.
	Utilization, Preserve float64
}

const (
	loopShare    = 0.80
	loopPreserve = 0.40
	// extractTokens is what a summary that code writes may take, in tokens.
	extractTokens = 2_000

	summaryMark = "[COMPACT SUMMARY]\n"
	understood  = "Understood."
	noEarlier   = "None."
	// topicHead bounds what a note says of one message, in bytes, topics how many
	// messages it names.
	topicHead, topics = 80, 8
)

//go:embed prompts/loop.system.txt
var loopSystem string

//go:embed prompts/loop.user.txt
var loopUser string

// Name returns "loop".
func (Loop) Name() string { return "loop" }

// Due reports whether the utilization has passed the share (E1).
func (l Loop) Due(s *Situation) (bool, string) {
	entries, err := s.visible()
	if err != nil {
		return false, ""
	}
	b, share := l.budget(s, entries), or(l.Utilization, loopShare)
	if b.Utilization <= share {
		return false, ""
	}
	return true, fmt.Sprintf("the messages take about %d tokens, %.0f %% of what is left for them; the mark is %.0f %%",
		b.MessageTokens, b.Utilization*100, share*100)
}

// Plan puts a summary and a word of assent in place of the older messages (E7).
// It fails only where there is nothing to compact, where the plan in force does
// not hold, and where ctx is done.
func (l Loop) Plan(ctx context.Context, s *Situation) (*Fitted, error) {
	entries, err := s.visible()
	if err != nil {
		return nil, fmt.Errorf("policy loop: %w", err)
	}
	o, err := s.before(entries, l.split(s, entries))
	if err != nil {
		return nil, fmt.Errorf("policy loop: %w", err)
	}
	sum, failure := s.extract(ctx, o, extractTokens)
	text, fallback := sum.Render(), ""
	var rejected error // the model's text, where none of it could be taken
	model := &asker{s: s, model: l.Model, trust: l.Trust}
	if l.Model != nil {
		text, failure = l.ask(ctx, model, o)
		taken, err := "", failure
		if err == nil {
			taken, err = model.taken(model.check(messagesOf(o.entries), o.previous), text)
		}
		switch {
		case failure != nil: // the note stands in its place
		case err != nil: // nothing of it stands on the messages
			text, fallback, rejected = sum.Render(), byCode, err
		default:
			text = joined(taken, userBlock(taken, s.requests(o.end, requestRoom(l.Limit(s))), sum.Constraints), model.filled(taken, &sum))
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("policy loop: %w", err)
	}
	if failure != nil {
		text, fallback = truncationNote(s.Thread, o), "truncation_note"
	}
	why := fmt.Sprintf("%d of %d messages go into the summary", len(o.entries), len(entries))
	f, err := s.replace(l.Name(), o, sum, why,
		plan.Said{Role: thread.User, Text: summaryMark + strings.TrimRight(text, "\n")},
		plan.Said{Role: thread.Assistant, Text: understood})
	if err != nil {
		return nil, fmt.Errorf("policy loop: %w", err)
	}
	f.Summaries = model.reports(fallback, cmp.Or(failure, rejected))
	return f, nil
}

// split is the position in the thread of the first message that stays. It walks
// back from the end over the share of the list that is preserved, and from there
// to the nearest place where no call is parted from its results, the earlier one
// where two are as near. At least the last message stays.
func (l Loop) split(s *Situation, entries []entry) int {
	share := or(l.Preserve, loopPreserve)
	for range s.Harder {
		share /= 2
	}
	at := len(entries) - max(1, int(float64(len(entries))*share))
	legal := cut.Legal(s.Thread, s.Pairs())
	ok := func(n int) bool {
		return n > 0 && n < len(entries) && !entries[n].recap() && legal.Legal(entries[n].at)
	}
	for d := range entries {
		if ok(at - d) {
			return entries[at-d].at
		}
		if ok(at + d) {
			return entries[at+d].at
		}
	}
	return 0
}

// ask has the model write the summary. It reads the messages whole, as the
// seed's does, and in parts where its window is too small for all of them.
func (l Loop) ask(ctx context.Context, model *asker, o *old) (string, error) {
	return inParts(o.entries, strings.TrimPrefix(o.previous, summaryMark), func(entries []entry, previous string) (string, error) {
		if previous == "" {
			previous = noEarlier
		}
		return model.text(ctx, prompt.System{Text: loopSystem},
			strings.NewReplacer("{{previous}}", previous, "{{messages}}", transcript(entries, cuts{})).Replace(loopUser)+model.s.asked(),
			&llm.Options{MaxOutput: l.maxOutput(model.s), Timeout: l.Timeout})
	})
}

// truncationNote stands where no summary could be made (E6). N counts every
// message of the log behind it; what they were about are the beginnings of what
// the user said, the first and the latest.
func truncationNote(t *thread.Thread, o *old) string {
	var about []string
	for i, m := range uncopied.All(t) {
		if i >= o.end || !m.StartsTurn() {
			continue
		}
		line, _, _ := strings.Cut(strings.TrimSpace(m.Text()), "\n")
		if line = strings.Join(strings.Fields(line), " "); line == "" {
			continue
		}
		if at := clip.Boundary(line, topicHead); at < len(line) {
			line = strings.TrimSpace(line[:at]) + "…"
		}
		about = append(about, harmless(line))
	}
	if n := len(about); n > topics {
		about = append([]string{about[0], "…"}, about[n-topics+1:]...)
	}
	if len(about) == 0 {
		about = []string{"work without a word of the user"}
	}
	return fmt.Sprintf("[Context truncated. Earlier conversation contained %d messages about: %s]", o.span.Len(), strings.Join(about, "; "))
}
