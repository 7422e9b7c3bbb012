package strategy

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/jsonrows"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Externalize takes large tool results out of the prompt: a pointer and a short summary
// take the result's place, and the call keeps its answer. Results that must not be
// cleared, because nobody knows whether their tool would give the same again, are
// externalized whatever their size, as soon as that saves anything. Results with media
// are left to other rungs, since an artifact holds only text.
type Externalize struct {
	// Threshold is the size in tokens from which a result is externalized, where its tool
	// declares none; 0 is 1,000.
	Threshold int
	// Large takes only results in the protected tail that are so large that nothing else
	// would fit beside them.
	Large bool

	full bool // room is left over: all of it is used
}

// What stays of an externalized result is a tenth of it, within these bounds, in tokens.
const (
	minStub, maxStub = 40, 220
	// minGain is what a pointer must free, in tokens: whoever needs the output pays for a call to read it back.
	minGain = 200
	// stubFrame is about what the pointer itself takes.
	stubFrame = 60
	// bytesPerToken turns the room of an excerpt into bytes; the result is counted
	// afterwards.
	bytesPerToken = 4
	// oversize is the share of the room from which even a message in the protected tail is
	// externalized, oversizeStub what may stay of it; tightSize and tightStub count where
	// only the last step is protected.
	oversize, oversizeStub = 0.2, 0.2
	tightSize, tightStub   = 0.15, 0.15
	// attachedStub is the most that stays of what the user attached, in tokens.
	attachedStub = 1_500
)

// Name returns "externalize".
func (Externalize) Name() string { return "externalize" }

// Aggressiveness makes it the first rung.
func (Externalize) Aggressiveness() int { return externalizeRung }

// Analyze proposes results one by one: superseded ones first, then the oldest, and last
// what in the protected tail is so large that nothing else would fit beside it.
func (s Externalize) Analyze(v *View) []Proposal {
	proposals := v.results(s.Name(), func(i int, tool string) (keep int, reason string) {
		if s.Large {
			return -1, ""
		}
		threshold := v.Tools.Threshold(tool, s.Threshold)
		size := v.now[i]
		stub := min(max(size/10, minStub), maxStub)
		switch {
		case v.cover[i] >= 0 || size < stub+stubFrame+minGain || !v.storable(i):
			return -1, ""
		case size >= threshold:
			return stub + stubFrame, "over the threshold of " + clip.Number(threshold) + " tokens"
		case v.messages[i].Role == thread.Tool && !v.clearable(i):
			return stub + stubFrame, "not to be cleared, can be read back"
		}
		return -1, ""
	})
	large, stub := v.oversized()
	if s.Large {
		most := v.evenShare()
		large, stub = min(large, most), min(stub, most)
	}
	for i := v.Tail; i < len(v.messages); i++ {
		size := v.now[i]
		if size <= large || !v.output(i) || !v.storable(i) || !v.Shrinkable(i) || v.cover[i] >= 0 {
			continue
		}
		keep := max(stub, minStub+stubFrame)
		if v.messages[i].Kind == thread.Attached {
			keep = min(keep, attachedStub)
		}
		if keep >= size {
			continue
		}
		proposals = append(proposals, Proposal{
			Strategy: s.Name(), Span: v.span([]int{i}), EstimatedTokensFreed: size - keep, Room: keep,
			Reason: "too large where all messages may take " + clip.Number(v.Room) + " tokens",
		})
	}
	return proposals
}

// Execute makes the pointer and a summary of the result.
func (s Externalize) Execute(ctx context.Context, v *View, p Proposal) (Executed, error) {
	at := v.positions(p.Span)
	i := at[0]
	record, text := v.external(i, s.Name(), p.Reason)
	size := max(p.Room-stubFrame, minStub) * bytesPerToken
	for range 4 {
		record.Summary = v.stub(ctx, i, text, size, s)
		record.TokensAfter, _ = v.cost(record, at)
		if record.TokensAfter <= p.Room {
			break
		}
		size = size * 95 * p.Room / (100 * record.TokensAfter)
	}
	if record.TokensAfter >= record.TokensBefore {
		return Executed{}, fmt.Errorf("strategy.Externalize: message %s: the pointer takes %d tokens and the output %d: %w", v.messages[i].ID, record.TokensAfter, record.TokensBefore, ErrNoGain)
	}
	return Executed{Record: record}, nil
}

// external is the pointer to the output at i, without a summary, and the output's text.
func (v *View) external(i int, strategy, reason string) (plan.Externalization, string) {
	source, text := outputOf(&v.messages[i])
	at := []int{i}
	return plan.Externalization{
		Span:          v.span(at),
		ArtifactID:    v.Name(v.Thread.ID(), text),
		RehydrateHint: "read if you need the full output of " + source + v.subject(i),
		Origin:        v.origin(strategy, reason, at),
	}, text
}

// Fill uses room that is left to show more of what was externalized, the newest first, and
// superseded results last.
func (s Externalize) Fill(ctx context.Context, v *View) {
	for _, stale := range []bool{false, true} {
		for i := len(v.messages) - 1; i >= 0 && -v.Over() > v.Room/fillShare; i-- {
			if v.cover[i] >= v.inForce && (v.superseded[i] != "") == stale {
				s.widen(ctx, v, v.cover[i])
			}
		}
	}
}

// mostShown is how much of an output its pointer may show, in percent: with more, pointer
// and excerpt would be no smaller than the output.
const mostShown = 90

// widen gives the room that is left to one record.
func (s Externalize) widen(ctx context.Context, v *View, n int) {
	short, ok := v.records[n].(plan.Externalization)
	if !ok || short.Span.Len() != 1 {
		return
	}
	room := short.TokensAfter - v.Over()
	at := v.positions(short.Span)[0]
	size := v.Sizes[at]
	switch {
	case size <= room:
		v.undo(n) // there is room for all of it
		return
	case v.messages[at].Kind == thread.Attached:
		return
	}
	if room = min(room, size*mostShown/100, size-minGain); room <= short.TokensAfter {
		return
	}
	s.full = true
	wide, err := s.Execute(ctx, v, Proposal{Span: short.Span, Reason: short.Reason, Room: room})
	if err == nil && wide.Record.Made().TokensAfter <= room {
		v.apply(wide.Record)
	}
}

// stub summarizes one output: outcome, key fields, and an excerpt of at most that many
// bytes: its beginning and its end or, for Large, the lines that a later step most likely
// needs.
func (v *View) stub(ctx context.Context, i int, text string, excerpt int, s Externalize) summary.Summary {
	choose := s.Large
	m := &v.messages[i]
	ids := []thread.ID{m.ID}
	text = strings.TrimSpace(text)
	if rows := jsonrows.Lines(effort.New(ctx, 0), text, !choose); rows != nil {
		text = strings.Join(rows, "\n")
	}
	out := summary.Summary{Span: v.span([]int{i})}
	if r, ok := m.Result(); ok {
		fields := v.keyFields(i)
		failure, _ := fields["error"].(string)
		delete(fields, "error")
		if text != "" {
			delete(fields, "lines") // the excerpt says how much is left out
		}
		if len(text) <= excerpt || choose {
			delete(fields, "result") // all of it follows, or what matters
		}
		// That a call succeeded is said by the call that stands before it.
		if len(fields) > 0 || failure != "" || text == "" || r.Outcome != thread.Success && r.Outcome != "" {
			out.ToolOutcomes = []summary.ToolOutcome{{Tool: r.Tool, Outcome: r.Outcome, KeyFields: fields, Error: failure, Turn: m.Turn, Sources: ids}}
		}
	}
	if text != "" {
		short := headAndDefinitions
		if choose {
			var beside string
			if v.inPlace(i) {
				beside = plainText.Replace(v.call(i).Arguments)
			}
			short = func(text string, n int) string { return v.chosen(ctx).Shorten(text, beside, n, s.full) }
		}
		out.Facts = []summary.Item{v.fact(i, short(text, excerpt))}
	}
	return out
}

// plainText undoes the most frequent escapes of JSON, since only the words count.
var plainText = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`)

// chosen makes, once, what chooses lines.
func (v *View) chosen(ctx context.Context) *summarize.Excerpts {
	if v.excerpts == nil {
		e, ok := v.Summarizer.(*summarize.Extractive)
		if !ok {
			e = &summarize.Extractive{}
		}
		v.excerpts = e.Excerpts(ctx, v.messages)
	}
	return v.excerpts
}

// headAndDefinitions keeps about n bytes of a text: its beginning and the later lines that define
// something or, where there are none, its beginning and its end. Later steps name what was
// defined more often than what happened to come last.
func headAndDefinitions(text string, n int) string {
	if len(text) <= n {
		return text
	}
	var found []string
	room := int(float64(n) * definedShare)
	from := n - room
	for at := from + 1 + strings.IndexByte(text[from:], '\n'); at > from && at < len(text) && room > 0; {
		end := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i
		}
		if line := strings.TrimSpace(text[at:end]); len(line) <= maxDefinition && len(line) < room && summarize.Defines(line) {
			found = append(found, line)
			room -= len(line) + len("\n… ")
		}
		at = end + 1
	}
	if len(found) == 0 {
		return clip.Middle(text, n)
	}
	head := from + room
	if i := strings.LastIndexByte(text[:head], '\n'); i > head/2 {
		head = i
	}
	defined := strings.Join(found, "\n… ")
	return text[:head] + "\n" + clip.OmittedNote(utf8.RuneCountInString(text[head:])-utf8.RuneCountInString(defined)) + "\n… " + defined
}

// definedShare is the part of a shortened text that may go to lines that define something,
// as a ratio; maxDefinition bounds such a line, in bytes.
const (
	definedShare  = 0.7
	maxDefinition = 160
)

// fact is a text that message i says.
func (v *View) fact(i int, text string) summary.Item {
	m := &v.messages[i]
	return summary.Item{Text: text, Turn: m.Turn, Sources: []thread.ID{m.ID}}
}
