package policy

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// splitHeading stands above the summary of the beginning of a turn (C6).
const splitHeading = "Turn Context (split turn)"

//go:embed prompts/timeline.summary.txt
var summaryTask string

//go:embed prompts/timeline.prefix.txt
var prefixTask string

const (
	// timelineChunk is the largest transcript of one request, in characters, and
	// timelineResult how much of one result stands in it, in bytes.
	timelineChunk  = 60_000
	timelineResult = 2_000
	// leastTimeline is what a summary may always take, in tokens.
	leastTimeline = 40
)

// blockText is what the agent sees of a summary block.
func blockText(r *plan.Range) string {
	text := "[" + r.Type + " " + r.Path + "]\n" + r.Text
	if r.Text == "" {
		text = "[" + r.Type + " " + r.Path + "]"
	}
	return joinContext(text, r.TurnContext)
}

// joinContext puts the summary of a split turn behind a text.
func joinContext(text, turnContext string) string {
	if turnContext == "" {
		return text
	}
	return strings.TrimLeft(text+"\n\n"+splitHeading+"\n"+turnContext, "\n")
}

// timelineWriter makes the texts of one compaction.
type timelineWriter struct {
	Timeline
	ctx context.Context
	asker
	// failure is why the rule took the model's place, the first time.
	failure error
}

// write summarizes the messages from position i up to j on top of what is known,
// in at most limit tokens and in no more than what is known and half of the
// messages take: a summary that is longer than what it stands for helps nobody.
// The model reads them piece by piece, each time with the summary so far; when
// it fails the rule takes its place.
func (w *timelineWriter) write(task string, limit int, known string, i, j int) (string, error) {
	messages := uncopied.Messages(w.s.Thread)[i:j]
	room := w.s.Counter.Text(known)
	for k := i; k < j; k++ {
		room += w.s.Changed[k] / 2
	}
	limit = min(limit, max(room, leastTimeline))
	if len(messages) == 0 {
		return w.clip(known, limit), nil
	}
	if w.Model != nil {
		text, err := w.byModel(task, limit, known, messages)
		if err == nil {
			return text, nil
		}
		if err := w.ctx.Err(); err != nil {
			return "", err
		}
		w.failure = cmp.Or(w.failure, err)
	}
	budget := limit
	if known != "" {
		known = w.clip(known, limit/2)
		budget -= w.s.Counter.Text(known) + 2
	}
	sum, err := w.structured(summary.Summary{}, messages, budget)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(sum.Render())
	if known != "" {
		text = known + "\n" + text
	}
	return w.clip(text, limit), nil
}

func (w *timelineWriter) byModel(task string, limit int, known string, messages []thread.Message) (string, error) {
	chunks := chunked(timelineTranscript(messages), timelineChunk)
	for len(chunks) > 0 {
		ask := "<previous-summary>" + inTag(known) + "</previous-summary>\n<blocks>\n" + inTag(chunks[0]) + "\n</blocks>" + w.s.asked()
		text, err := w.asker.text(w.ctx, prompt.System{Text: strings.ReplaceAll(task, "{{limit}}", strconv.Itoa(limit)), Role: "system"}, ask, nil)
		if llm.IsOverflow(err) && len(chunks[0]) > leastChunk {
			chunks = append(chunked([]string{chunks[0]}, len(chunks[0])/2+1), chunks[1:]...)
			continue
		}
		if err == nil {
			text, err = w.taken(w.check(messages, known), text)
		}
		if err != nil {
			return "", err
		}
		known, chunks = w.clip(neutralLines(text), limit), chunks[1:]
	}
	return known, nil
}

// withUser adds what the user asked for and the rules that a text does not hold, at
// most half of the limit, and what code found where the model's text lost
// something.
func (w *timelineWriter) withUser(r *plan.Range, sum *summary.Summary, at, limit int) string {
	text := joined(r.Text, r.TurnContext)
	block := w.clip(userBlock(text, w.s.requests(at, min(limit, requestRoom(w.maximum(w.s)))), sum.Constraints), limit/2)
	if block == "" {
		return r.Text
	}
	said := w.clip(r.Text, limit-w.s.Counter.Text(block)-2)
	more := w.filled(text, sum)
	return joined(block, said, w.clip(more, limit-w.s.Counter.Text(block)-w.s.Counter.Text(said)-4))
}

// neutralLines writes a model's text so that none of its lines passes for a
// block, a heading or a role of ours.
func neutralLines(text string) string {
	entries := neutralEntries([]string{strings.ReplaceAll(text, splitHeading, "Turn context")})
	if len(entries) == 0 {
		return ""
	}
	return strings.ReplaceAll(strings.TrimPrefix(entries[0], "- "), "\n  ", "\n")
}

// clip cuts a text to limit tokens, at the end of a line or a sentence where it
// can.
func (w timelineWriter) clip(text string, limit int) string {
	for w.s.Counter.Text(text) > limit && text != "" {
		most := len(text) * 9 / 10
		whole := clip.Sentences(text, most)
		if len(whole) < len(text)/2 {
			whole = text[:clip.Boundary(text, most)]
		}
		text = strings.TrimSpace(whole)
	}
	return text
}

// structured is the summary by rule. Where not even the task fits, it is empty.
func (w *timelineWriter) structured(known summary.Summary, messages []thread.Message, budget int) (summary.Summary, error) {
	summarizer := w.s.Summarizer
	if summarizer == nil {
		summarizer = &summarize.Extractive{Counter: w.s.Counter.Text}
	}
	in := summarize.Input{Messages: messages, Budget: max(budget, 1), Answers: w.s.Answers, Instructions: w.s.Instructions}
	if len(known.Span.MessageIDs) > 0 {
		in.Previous = &known
	}
	sum, err := w.summarized(summarizer.Summarize(w.ctx, in))
	if errors.Is(err, summarize.ErrBudget) {
		return summary.Summary{}, nil
	}
	return sum, err
}

// timelineTranscript writes messages as blocks, numbered, lines after the first
// indented. Long results are shortened in the middle.
func timelineTranscript(messages []thread.Message) []string {
	var out []string
	add := func(kind, text string) {
		if text = strings.TrimSpace(text); text != "" {
			out = append(out, strconv.Itoa(len(out)+1)+". ["+kind+"] "+strings.ReplaceAll(text, "\n", "\n   "))
		}
	}
	calling := -1
	for _, b := range blocksOf(messages, 0, make([]int, len(messages))) {
		m := &messages[b.at]
		switch b.kind {
		case blockTurn:
			add(b.kind, turnID(m.Turn))
		case blockResult:
			r, _ := m.Result()
			add(b.kind, r.Tool+" ("+string(r.Outcome)+"): "+clip.Middle(r.Text(), timelineResult))
		case blockCall:
			if b.at == calling {
				break // all calls of a message are written with the first
			}
			calling = b.at
			for _, c := range m.Calls() {
				add(b.kind, c.Name+" "+clip.Middle(c.Arguments, timelineResult))
			}
		default:
			add(b.kind, m.Text())
		}
	}
	return out
}
