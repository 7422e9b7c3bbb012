// Package web is the page that shows a conversation: what was said, what the model gets,
// and which record of the plan made the difference. The page is an HTML file with a
// style sheet and a script, served by the daemon or written with its data into one file;
// it loads nothing from anywhere else.
package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/describe"
	"github.com/palimpsest-ai/palimpsest/internal/glyph"
	"github.com/palimpsest-ai/palimpsest/internal/notes"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Input is what a view is made of.
type Input struct {
	Thread *thread.Thread
	// Result is the thread under the plan that the view shows.
	Result *palimpsest.Result
	// Version is that of the plan; 0 for none.
	Version int
	// Counter counts system prompt and tools.
	Counter *token.Counter
	// Plans are those that were in force, the oldest first, each with the result for the
	// whole thread.
	Plans []PlanResult
	// Model has the prices; the zero value has none.
	Model token.Model
	// Title, Agent, Command, Budget, Window and Marks are as in view.View.
	Title, Agent, Command string
	Budget, Window        int
	Marks                 []view.Mark
	// CompactsAt and Side are as in view.View.
	CompactsAt int
	Side       []view.Side
	// UnstoredTokens is the size of system prompt and tools when nothing else is known of
	// them; 0 when Result has them.
	UnstoredTokens int
	// MaxTextBytes bounds the texts of all messages together; 0 leaves them out, for a page
	// that asks for each.
	MaxTextBytes int
}

// PlanResult is the version of a plan with its result.
type PlanResult struct {
	Version int
	Result  *palimpsest.Result
}

// Render renders a thread under a plan as a view shows it, with what the plan pins; nil hides nothing.
func Render(c *palimpsest.Compactor, p *plan.Plan, q palimpsest.Request) (*palimpsest.Result, error) {
	res, err := c.Render(p, q)
	if err != nil {
		return nil, err
	}
	res.Plan = cmp.Or(p, &plan.Plan{})
	for _, id := range res.Plan.Pinned {
		if i, ok := q.Thread.Index(id); ok {
			res.Pinned = append(res.Pinned, i)
		}
	}
	return res, nil
}

// labelLength is the length of a message's label, in characters.
const labelLength = 140

// label is a text as it stands in a list.
func label(text string) string { return glyph.Visible(clip.Line(text, labelLength)) }

// View makes a view. It is a pure function.
func View(s Input) *view.View {
	v := &view.View{
		ThreadID: s.Thread.ID(), Title: s.Title, Agent: s.Agent, Version: s.Thread.Version(), PlanVersion: s.Version,
		Policy: s.Result.Plan.Policy, Model: s.Model.Name, Counter: s.Counter.Name(),
		Before: s.Result.Before, After: s.Result.After, Fixed: s.Result.Fixed, Budget: s.Budget, Window: s.Window, Command: s.Command,
		CompactsAt: s.CompactsAt,
		Messages:   []view.Message{}, Prompt: []view.Part{}, Records: []view.Record{}, Marks: append([]view.Mark{}, s.Marks...),
	}
	if v.Model == "" && s.Result.Prompt != nil {
		v.Model = s.Result.Prompt.Model
	}
	at := map[plan.Ref]int{{}: -1}
	for _, ref := range s.Result.Plan.Refs() {
		at[ref] = len(v.Records)
		v.Records = append(v.Records, viewRecord(s.Thread, s.Result.Plan, ref))
	}
	actions, pairs := s.Result.Plan.Actions(), thread.Pair(s.Thread)
	limit := textLimit(s)
	for i, m := range s.Thread.All() {
		line := view.Message{
			ID: m.ID, Role: describe.Speaker(m), Turn: m.Turn, Time: m.Time, Tokens: s.Result.Sizes[i],
			Label: label(describe.MessageAt(s.Thread, pairs, i)), Record: at[actions[m.ID]],
		}
		if r, ok := m.Result(); ok {
			line.Tool, line.Failed = glyph.Visible(r.Tool), r.Outcome == thread.Failure
		}
		if line.Record >= 0 {
			v.Records[line.Record].Last = i
		}
		if limit > 0 {
			line.Text, line.Cut = clipText(Text(m), limit)
		}
		if v.Title == "" && m.StartsTurn() {
			v.Title = line.Label
		}
		v.Messages = append(v.Messages, line)
	}
	for _, i := range s.Result.Pinned {
		v.Messages[i].Pinned = true
	}
	for _, n := range notes.Fold(s.Thread.Messages()) {
		v.Notes = append(v.Notes, glyph.Visible(n.String()))
	}
	for _, side := range s.Side {
		v.Side = append(v.Side, view.Side{Title: label(side.Title), Messages: side.Messages})
	}
	v.Title, v.Model = glyph.Visible(v.Title), glyph.Visible(v.Model)
	v.Prompt = promptParts(s, at, limit)
	v.Plans, v.Steps, v.Cached = history(s)
	return v
}

func viewRecord(t *thread.Thread, p *plan.Plan, ref plan.Ref) view.Record {
	r := p.Record(ref)
	span, made := r.Covers(), r.Made()
	first, _ := t.Index(span.First())
	out := view.Record{
		Path: ref.String(), Action: ref.Action, Strategy: made.Strategy, Reason: made.Reason, Before: made.TokensBefore, After: made.TokensAfter,
		Messages: span.Len(), First: first, Last: first, FirstTurn: span.FirstTurn, LastTurn: span.LastTurn,
	}
	if e, ok := r.(plan.Externalization); ok {
		out.Artifact = e.ArtifactID
	}
	return out
}

func promptParts(s Input, at map[plan.Ref]int, limit int) []view.Part {
	var out []view.Part
	p := s.Result.Prompt
	add := func(part view.Part, text string) {
		part.Label = label(text)
		if limit > 0 {
			part.Text, part.Cut = clipText(text, limit)
		}
		out = append(out, part)
	}
	if s.UnstoredTokens > 0 {
		add(view.Part{Role: "system", Tokens: s.UnstoredTokens, From: -1, Record: -1}, unstoredText)
	}
	if text := systemText(p.System); text != "" {
		add(view.Part{Role: "system", Tokens: s.Counter.System(p.System), From: -1, Record: -1}, text)
	}
	if text := toolsText(p.Tools); text != "" {
		add(view.Part{Role: "tools", Tokens: s.Counter.Tools(p.Tools), From: -1, Record: -1}, text)
	}
	for n := range p.Messages {
		m, origin := &p.Messages[n], s.Result.Manifest.Messages[n]
		part := view.Part{Role: describe.Speaker(m), Tokens: s.Result.PromptSizes[n], From: -1, Record: at[origin.Record]}
		if i, ok := s.Thread.Index(origin.ID); ok && origin.ID != "" {
			part.From = i
		}
		if part.Record < 0 && !origin.Synthetic && part.From >= 0 {
			out = append(out, part)
			continue
		}
		add(part, Text(m))
	}
	return out
}

// unstoredText stands for a system prompt and tools of which only the size is known.
const unstoredText = "System prompt and tools. Only their size is kept; their text comes again with the next request."

// PartText is the whole text of the part at a position of View.Prompt.
func PartText(s Input, position int) (string, bool) {
	r, head := s.Result, ""
	if s.UnstoredTokens > 0 {
		head = unstoredText
	}
	for _, text := range []string{head, systemText(r.Prompt.System), toolsText(r.Prompt.Tools)} {
		if text == "" {
			continue
		}
		if position == 0 {
			return text, true
		}
		position--
	}
	if position < 0 || position >= len(r.Prompt.Messages) {
		return "", false
	}
	return Text(&r.Prompt.Messages[position]), true
}

func systemText(blocks []prompt.System) string {
	var texts []string
	for _, b := range blocks {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n\n")
}

func toolsText(tools []prompt.Tool) string {
	var b strings.Builder
	for _, t := range tools {
		fmt.Fprintf(&b, "%s\n%s\n\n", t.Name, t.Description)
	}
	return strings.TrimSpace(b.String())
}

// Text is a message for people: its texts, reasoning, calls and results, in order.
func Text(m *thread.Message) string {
	var pieces []string
	add := func(text string) {
		if text = strings.Trim(text, "\n"); strings.TrimSpace(text) != "" {
			pieces = append(pieces, text)
		}
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.Reasoning:
			if p.Text != "" {
				add("[thinking]\n" + p.Text)
			}
		case thread.ToolCall:
			add("→ " + p.Name + "\n" + p.Arguments)
		case thread.ToolResult:
			for _, piece := range p.Content {
				add(partText(piece))
			}
			if len(p.Content) == 0 {
				add(p.Structured)
			}
		default:
			add(partText(p))
		}
	}
	return strings.Join(pieces, "\n\n")
}

func partText(p thread.Part) string {
	switch p := p.(type) {
	case thread.Text:
		return p.Text
	case thread.Media:
		if p.Text != "" {
			return p.Text
		}
		return strings.TrimSpace(fmt.Sprintf("[%s %s %s]", p.Type, p.MIME, p.Name))
	case thread.Opaque:
		if p.Text == "" {
			return "[" + p.Kind + "]"
		}
		return p.Text
	}
	return ""
}

// The bounds of one text, in bytes.
const (
	maxTextBytes = 24_000
	minTextBytes = 200
)

// textLimit is how many bytes of each text to keep, so that all together stay within
// MaxTextBytes; 0 for no texts.
func textLimit(s Input) int {
	if s.MaxTextBytes <= 0 {
		return 0
	}
	var lengths []int
	for _, m := range s.Thread.All() {
		lengths = append(lengths, len(Text(m)))
	}
	for i := range s.Result.Prompt.Messages {
		if o := s.Result.Manifest.Messages[i]; o.Synthetic || o.Record.Action != plan.Include {
			lengths = append(lengths, len(Text(&s.Result.Prompt.Messages[i])))
		}
	}
	slices.Sort(lengths)
	left := s.MaxTextBytes
	for i, n := range lengths { // short texts stay whole, long ones share the rest
		if share := left / (len(lengths) - i); n > share {
			return min(max(share, minTextBytes), maxTextBytes)
		}
		left -= n
	}
	return maxTextBytes
}

func clipText(text string, limit int) (string, bool) {
	if len(text) <= limit {
		return text, false
	}
	return clip.Middle(text, limit), true
}
