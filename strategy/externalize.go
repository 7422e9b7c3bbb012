package strategy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/jsonrows"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// Externalize takes large tool results out of the prompt: a pointer and a short summary stay
// in the result's place, and the call keeps its answer. Results that may not be
// cleared, because nothing verifies that their tool would give the same again
// , are externalized whatever their size, as soon as that saves anything.
type Externalize struct {
	// Threshold is the size in tokens from which a result is externalized, where its
	// tool declares none; 0 is 1,000.
	Threshold int
	// Large takes only what in the protected tail is so large that nothing else
	// would fit beside it.
	Large bool

	full bool // room is left over: all of it is used
}

// The bounds of what stays of an externalized result, in tokens: a tenth of it.
const (
	minStub, maxStub = 40, 220
	// stubFrame is what the pointer itself takes, about.
	stubFrame = 60
	// charsPerToken turns the room of an excerpt into bytes; the result is
	// counted afterwards.
	charsPerToken = 4
	// oversize is the share of the room from which even a message in the
	// protected tail is externalized, oversizeStub what may stay of it; where only the
	// last step is protected, tightSize and tightStub.
	oversize, oversizeStub = 0.2, 0.2
	tightSize, tightStub   = 0.15, 0.15
)

// Name returns "externalize".
func (Externalize) Name() string { return "externalize" }

// Aggressiveness makes it the first rung.
func (Externalize) Aggressiveness() int { return externalizeRung }

// Analyze proposes results one by one: what a later step has made out of date
// first, then the oldest, and last what in the protected tail is so large that
// nothing else would fit beside it.
func (s Externalize) Analyze(v *View) []Proposal {
	proposals := v.results(s.Name(), func(i int, tool string) (keep int, reason string) {
		if s.Large {
			return -1, ""
		}
		threshold := v.Tools.Threshold(tool, s.Threshold)
		size := v.now[i]
		stub := min(max(size/10, minStub), maxStub)
		switch {
		case v.cover[i] >= 0 || size <= 2*stub+stubFrame:
			return -1, ""
		case size >= threshold:
			return stub + stubFrame, fmt.Sprintf("over the threshold of %d tokens", threshold)
		case v.messages[i].Role == thread.Tool && !v.clearable(i):
			return stub + stubFrame, "not to be cleared, can be read back"
		}
		return -1, ""
	})
	large, stub := v.part(v.large), v.part(v.stubShare)
	if s.Large {
		most := v.evenShare()
		large, stub = min(large, most), min(stub, most)
	}
	for i := v.Tail; i < len(v.messages); i++ {
		size := v.now[i]
		if !v.output(i) || !v.Shrinkable(i) || v.cover[i] >= 0 || size <= large {
			continue
		}
		keep := max(stub, minStub+stubFrame)
		if keep >= size {
			continue
		}
		proposals = append(proposals, Proposal{
			Strategy: s.Name(), Span: v.span([]int{i}), EstimatedTokensFreed: size - keep, Room: keep,
			Reason: fmt.Sprintf("too large for a prompt of %d tokens", v.Room),
		})
	}
	return proposals
}

// evenShare is the most that each output in the protected tail may take, in tokens, so that
// together they take no more than their part of the room: what is smaller leaves its part
// to the others.
func (v *View) evenShare() int {
	var sizes []int
	room := v.part(v.parts().tail)
	for i := v.Tail; i < len(v.messages); i++ {
		switch {
		case !v.output(i):
		case v.Shrinkable(i) && v.cover[i] < 0:
			sizes = append(sizes, v.now[i])
		default:
			room -= v.now[i]
		}
	}
	slices.Sort(sizes)
	for n, size := range sizes {
		if even := room / (len(sizes) - n); size > even {
			return even
		}
		room -= size
	}
	return v.Room
}

// output reports whether the message at i is output rather than words: a tool
// result, or what a harness put in the user's name.
func (v *View) output(i int) bool {
	m := &v.messages[i]
	return m.Role == thread.Tool || m.Role == thread.User && m.Kind == thread.Injected
}

// Execute makes the pointer and a summary of the result.
func (s Externalize) Execute(_ context.Context, v *View, p Proposal) (Executed, error) {
	at := v.positions(p.Span)
	i := at[0]
	record, text := v.external(i, s.Name(), p.Reason)
	size := max(p.Room-stubFrame, minStub) * charsPerToken
	for range 4 {
		record.Summary = v.stub(i, text, size, s)
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

// external is the pointer to the output at i, with nothing said of it yet, and its
// text.
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

// Fill uses room that is left over to show more of what was externalized, the
// newest first, and what is out of date last.
func (s Externalize) Fill(ctx context.Context, v *View) {
	for _, stale := range []bool{false, true} {
		for i := len(v.messages) - 1; i >= 0 && -v.Over() > v.Room/fillShare; i-- {
			if v.cover[i] >= v.inForce && (v.superseded[i] != "") == stale {
				s.widen(ctx, v, v.cover[i])
			}
		}
	}
}

// mostShown is how much of an output its pointer may show, in percent: with the
// rest of the pointer more would be no smaller than the output.
const mostShown = 90

// widen gives the room that is left over to one record.
func (s Externalize) widen(ctx context.Context, v *View, n int) {
	short, ok := v.records[n].(plan.Externalization)
	if !ok || short.Span.Len() != 1 {
		return
	}
	room := short.TokensAfter - v.Over()
	size := v.Sizes[v.positions(short.Span)[0]]
	if size <= room {
		v.undo(n) // there is room for all of it
		return
	}
	room = min(room, size*mostShown/100)
	s.full = true
	wide, err := s.Execute(ctx, v, Proposal{Span: short.Span, Reason: short.Reason, Room: room})
	if err == nil && wide.Record.Made().TokensAfter <= room {
		v.apply(wide.Record)
	}
}

// stub is what is said of one output: outcome, key fields, and in at most this
// many bytes its beginning and its end, or, where lines are chosen, those of it that
// a later step most likely needs.
func (v *View) stub(i int, text string, excerpt int, s Externalize) summary.Summary {
	choose := s.Large
	m := &v.messages[i]
	ids := []thread.ID{m.ID}
	text = strings.TrimSpace(text)
	if rows := jsonrows.Lines(text, !choose); rows != nil {
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
		short := shorten
		if choose {
			var beside string
			if v.inPlace(i) {
				beside = plainText.Replace(v.call(i).Arguments)
			}
			short = func(text string, n int) string { return v.chosen().Shorten(text, beside, n, s.full) }
		}
		out.Facts = []summary.Item{v.fact(i, short(text, excerpt))}
	}
	return out
}

// plainText takes the most frequent escapes out of JSON: the words are what counts.
var plainText = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`)

// chosen is what chooses lines; it is made when it is first needed.
func (v *View) chosen() *summarize.Excerpts {
	if v.excerpts == nil {
		e, ok := v.Summarizer.(*summarize.Extractive)
		if !ok {
			e = &summarize.Extractive{}
		}
		v.excerpts = e.Excerpts(v.messages)
	}
	return v.excerpts
}

// shorten keeps about n bytes of a text: its beginning and the lines after it that
// define something, or, where there are none, its beginning and its end. What is
// written later names what was defined more often than what happened to stand last.
func shorten(text string, n int) string {
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

// definedShare is the part of a shortened text that may go to lines that define
// something, as a ratio; maxDefinition bounds such a line, in bytes.
const (
	definedShare  = 0.3
	maxDefinition = 160
)

// fact is a text that message i says.
func (v *View) fact(i int, text string) summary.Item {
	m := &v.messages[i]
	return summary.Item{Text: text, Turn: m.Turn, Sources: []thread.ID{m.ID}}
}

// results proposes the outputs before the protected tail that judge accepts,
// superseded ones first and then the oldest. judge returns what would stay of
// an output, in tokens, or a negative number.
func (v *View) results(name string, judge func(i int, tool string) (keep int, reason string)) []Proposal {
	var stale, old []Proposal
	for i := range v.Tail {
		if !v.output(i) || !v.Shrinkable(i) {
			continue
		}
		r, _ := v.messages[i].Result()
		keep, reason := judge(i, r.Tool)
		if keep < 0 || keep >= v.now[i] {
			continue
		}
		p := Proposal{Strategy: name, Span: v.span([]int{i}), EstimatedTokensFreed: v.now[i] - keep, Reason: reason, Room: keep}
		if v.superseded[i] != "" {
			p.Reason = v.superseded[i]
			stale = append(stale, p)
			continue
		}
		old = append(old, p)
	}
	return slices.Concat(stale, old)
}

// clearable holds A7: ephemeral and anchoring results may be cleared, a
// replayable one only while its source verifiably has not changed, a
// non-replayable one never.
func (v *View) clearable(i int) bool {
	r, ok := v.messages[i].Result()
	if !ok {
		return false
	}
	switch v.Tools.Durability(r) {
	case thread.Ephemeral, thread.Anchoring:
		return true
	case thread.Replayable:
		changed, known := v.drifted(i, r)
		// What is expensive could be had again, but at a price.
		return known && !changed && v.Tools.Policy(r.Tool).ReplayCost != toolpolicy.Expensive
	}
	return false
}

// subject is what the call of the result at i was about, in brackets behind a space;
// empty where that is not known.
func (v *View) subject(i int) string {
	if _, ok := v.messages[i].Result(); !ok {
		return ""
	}
	v.keyFields(i)
	var about []string
	for _, name := range []string{"path", "url", "command", "pattern", "description"} {
		if text, ok := v.fields[i][name].(string); ok {
			about = append(about, clip.Line(text, maxSubject))
		}
	}
	if len(about) == 0 {
		return ""
	}
	return " (" + strings.Join(about, ", ") + ")"
}

// maxSubject bounds each part of a subject, in bytes.
const maxSubject = 80

// keyFields are the fields that survive in place of the result at i. What the
// call beside it says anyway is left out.
func (v *View) keyFields(i int) thread.Fields {
	r, _ := v.messages[i].Result()
	call := v.call(i)
	if v.fields[i] == nil {
		v.fields[i] = v.Tools.KeyFields(call, r)
	}
	fields := maps.Clone(v.fields[i])
	if v.inPlace(i) {
		for name, value := range fields {
			if _, declared := r.KeyFields[name]; !declared && said(call, value) {
				delete(fields, name)
			}
		}
	}
	return fields
}
