package emulate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/text"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// replacement is a text that stands for a whole conversation: a summary of the older part, and
// the newest messages word for word.
type replacement struct {
	text string
	// summary is of all messages, for the next compaction: the newest are then left in text
	// only.
	summary summary.Summary
	before  int // the tokens of the conversation
	tokens  int // those of text
}

// The text may take an eighth of the conversation, within bounds: enough for the task and the
// findings, and no more than a long answer. A third of that is for the newest messages.
const (
	replacementShare               = 8
	minReplacement, maxReplacement = 2_000, 16_000
	newestShare                    = 3
	shortestPart                   = 200 // bytes that are left of a shortened message
)

// makeReplacement makes the text that stands for all messages of a request; instructions are the client's,
// for the summary. An earlier such text is a Recap among the messages, and m.Previous its summary.
//
// The text quotes tools. Give it the user's role in a request, never a higher one.
func (n messages) makeReplacement(ctx context.Context, m *native.Messages, instructions string) (replacement, error) {
	p, err := decodedPrompt(m.Body())
	if err != nil {
		return replacement{}, err
	}
	_, counter, err := n.Model(m.Model)
	if err != nil {
		return replacement{}, err
	}
	previous := m.Previous
	log, err := thread.New("native").Append(p.Messages...)
	if err != nil {
		return replacement{}, err
	}
	messages := log.Messages()
	if previous != nil {
		messages = slices.Clone(messages)
		for i := range messages {
			messages[i].Turn += previous.Span.LastTurn // turns go on being counted
		}
	}
	var out replacement
	for i := range messages {
		out.before += counter.Message(&messages[i])
	}
	room := min(max(out.before/replacementShare, minReplacement), maxReplacement)
	keep := cut.LastTokens{N: room / newestShare, SplitTurns: true}
	at := keep.Cut(cut.Legal(log, thread.Pair(log)), func(i int) int { return counter.Message(&messages[i]) })
	for i := at; i < len(messages); i++ {
		if messages[i].Kind == thread.Recap {
			at = i + 1 // a summary is not quoted word for word
		}
	}
	older, newest := messages[:at], messages[at:]
	said := verbatimText(newest, room/newestShare, counter)
	if previous != nil {
		older = slices.DeleteFunc(slices.Clone(older), func(m thread.Message) bool { return m.Kind == thread.Recap })
	}
	code := &summarize.Extractive{Counter: counter.Text}
	maker := n.Summarizer
	if maker == nil || len(older) == 0 {
		maker = code
	}
	var texts []string
	if len(older) > 0 || previous != nil {
		made, err := maker.Summarize(ctx, summarize.Input{
			Messages: older, Previous: previous, Context: newest,
			Budget: max(room-counter.Text(said), minReplacement/2), Instructions: strings.TrimSpace(instructions), Answers: n.Answers,
		})
		if err != nil {
			return replacement{}, fmt.Errorf("summary: %w", err)
		}
		if made.Report.By != "" {
			event.Emit(ctx, n.Events, made.Report.Event())
		}
		out.summary = made.Summary
		texts = append(texts, out.summary.Render())
		previous = &out.summary
	}
	if said != "" {
		texts = append(texts, "The newest messages, as they were:\n\n"+said)
		made, err := code.Summarize(ctx, summarize.Input{Messages: newest, Previous: previous, Budget: room + room/newestShare})
		if err != nil {
			return replacement{}, fmt.Errorf("summary of the newest: %w", err)
		}
		out.summary = made.Summary
	}
	out.text = strings.Join(texts, "\n\n")
	out.tokens = counter.Text(out.text)
	return out, nil
}

// verbatimText writes messages as text of at most room tokens: long ones are shortened in their
// middle, and reasoning is left out.
func verbatimText(messages []thread.Message, room int, counter *token.Counter) string {
	for limit := room * 4; ; limit /= 2 {
		var short []thread.Message
		for _, m := range messages {
			if m.Parts = shortenParts(m.Parts, limit); len(m.Parts) > 0 {
				short = append(short, m)
			}
		}
		if len(short) == 0 {
			return ""
		}
		said := string(text.Encode(&prompt.Prompt{Messages: short}))
		if limit <= shortestPart || counter.Text(said) <= room {
			return said
		}
	}
}

// shortenParts cuts the texts of a message to limit bytes each.
func shortenParts(parts []thread.Part, limit int) []thread.Part {
	var out []thread.Part
	for _, part := range parts {
		switch p := part.(type) {
		case thread.Text:
			p.Text = clip.Middle(p.Text, limit)
			part = p
		case thread.ToolCall:
			if len(p.Arguments) > limit {
				p.Arguments = rawjson.Quote(clip.Middle(p.Arguments, limit))
			}
			part = p
		case thread.ToolResult:
			p.Content = shortenParts(p.Content, limit)
			part = p
		case thread.Reasoning:
			continue
		}
		out = append(out, part)
	}
	return out
}
