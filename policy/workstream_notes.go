package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// workstreamNotes is what a compaction knows: the text, the same as structure,
// and the state.
type workstreamNotes struct {
	text    string
	summary summary.Summary
	state   state.State
}

// workstreamStep is what one compaction is made of.
type workstreamStep struct {
	Workstream
	asker
	prev workstreamNotes
	// fresh are the messages that go into the notes, and tail those that stay.
	fresh, tail []thread.Message
}

// allowed reports whether a tool's calls and results are part of the transcript.
func (w Workstream) allowed(tool string) bool {
	w = w.Defaults()
	return slices.Contains(w.ToolNames, tool) ||
		slices.ContainsFunc(w.ToolPrefixes, func(p string) bool { return strings.HasPrefix(tool, p) })
}

// workstreamAnswer is the structured answer (D5).
type workstreamAnswer struct {
	Summary workstreamSections `json:"summary"`
	Delta   state.Delta        `json:"state_delta"`
}

// byModel gives the transcript to the model, chunk by chunk, each with the
// summary and the state of the last (D6).
func (w *workstreamStep) byModel(ctx context.Context) (workstreamNotes, error) {
	next := w.prev
	ask := func(task, chunk string) error {
		answer, err := w.ask(ctx, task, next, chunk)
		if err == nil {
			next, err = w.merge(next, answer)
		}
		return err
	}
	chunks := chunked(w.transcript(w.fresh), w.ChunkChars)
	if len(chunks) == 0 && next.text == "" {
		chunks = []string{onlyCalls}
	}
	err := inPieces(chunks, halved, func(chunk string) error { return ask(workstreamTask, chunk) })
	if err == nil && tokensOf(utf8.RuneCountInString(next.text)) > w.RollupTokens {
		err = ask(workstreamRollupTask, "")
	}
	if err != nil {
		return workstreamNotes{}, err
	}
	return w.withUser(ctx, next)
}

// ask sends one request. An answer with an empty summary is an error: it would
// take the place of everything.
func (w *workstreamStep) ask(ctx context.Context, task string, n workstreamNotes, messages string) (*workstreamAnswer, error) {
	known, err := json.Marshal(n.state)
	if err != nil {
		return nil, fmt.Errorf("write the state: %w", err)
	}
	user := fill(strings.TrimSpace(workstreamUser), "{{previous}}", inTag(n.text), "{{state}}", inTag(string(known)), "{{messages}}", inTag(messages))
	reply, err := w.generate(ctx, prompt.System{Text: task, Role: "system"}, user+w.s.instructions(), &llm.Options{Schema: workstreamSchema})
	if err != nil {
		return nil, err
	}
	var a workstreamAnswer
	if err := json.Unmarshal([]byte(reply.JSON), &a); err != nil {
		return nil, &llm.APIError{Kind: llm.ErrResponse, Message: "the answer is no summary and delta", RequestID: reply.RequestID, Err: err}
	}
	if a.Summary.text() == "" {
		return nil, &llm.APIError{Kind: llm.ErrResponse, Message: "the answer has an empty summary", RequestID: reply.RequestID}
	}
	if messages == "" { // a rollup
		a.Summary = a.Summary.within(w.RollupTokens)
	}
	return &a, nil
}

// merge puts the answer in the place of the notes, as far as it can be taken. A
// constraint is the user's when the user said it in these words, and pinned then;
// whatever the model pinned does not count.
//
// What the model reads leaves out most tools (D4), but a statement stands on all
// messages.
func (w *workstreamStep) merge(n workstreamNotes, a *workstreamAnswer) (workstreamNotes, error) {
	g := w.check(w.fresh, n.text)
	d := a.Delta.Unpinned()
	d.ActiveConstraints.Set = slices.DeleteFunc(d.ActiveConstraints.Set, func(it state.Item) bool { return !saidByUser(w.fresh, it.Text) })
	for i := range d.ActiveConstraints.Set {
		d.ActiveConstraints.Set[i].Pinned = true
	}
	for _, c := range []*state.Change{&d.KeyDecisions, &d.Tasks, &d.OpenQuestions, &d.Risks, &d.Artifacts, &d.AgentContributions} {
		c.Set = slices.DeleteFunc(c.Set, func(it state.Item) bool { return g != nil && !g.Holds(it.Text) })
	}
	said := a.Summary
	sections := workstreamSections{
		KeyFacts:         w.entries(g, said.KeyFacts, false),
		ConversationFlow: w.entries(g, said.ConversationFlow, false),
		OpenThreads:      w.entries(g, said.OpenThreads, true),
	}
	if sections.text() == "" {
		return workstreamNotes{}, &summarize.RejectedError{Reason: summarize.Ungrounded}
	}
	return workstreamNotes{text: sections.text(), summary: sections.structured(), state: n.state.ApplyWithin(d, w.Limits)}, nil
}

// withUser adds the user's task and rules, word for word, which no model is left
// to keep: to the facts where they do not stand there, and to the state.
func (w *workstreamStep) withUser(ctx context.Context, next workstreamNotes) (workstreamNotes, error) {
	s := w.s
	in := summarize.Input{Messages: w.extracted(w.fresh), Previous: &summary.Summary{CurrentTask: w.prev.summary.CurrentTask, Constraints: w.prev.summary.Constraints}}
	sum, err := (&summarize.Extractive{Counter: s.Counter.Text}).Summarize(ctx, in)
	if err != nil {
		return workstreamNotes{}, err
	}
	next.summary.CurrentTask, next.summary.Constraints = sum.CurrentTask, sum.Constraints
	var delta state.Delta
	words, items := w.words()
	for _, it := range sum.Constraints {
		items = append(items, it)
		words = append(words, it)
		delta.ActiveConstraints.Set = append(delta.ActiveConstraints.Set, state.Item{Text: it.Text, By: "user", Pinned: true})
	}
	next.state = next.state.ApplyWithin(delta, w.Limits)
	next.text = w.bounded(next.text, words, items)
	if more := joined(next.text, w.filled(next.text, &sum.Summary)); tokensOf(utf8.RuneCountInString(more)) <= w.RollupTokens {
		next.text = more
	}
	return next, nil
}

// words is what the user said before the tail, and of that the first request and the last.
func (w *workstreamStep) words() (all, requests []summary.Item) {
	end, most := w.s.Thread.Len()-len(w.tail), requestRoom(w.Limit(w.s))
	return w.s.requests(end, most, wordsRoom(min(w.Limit(w.s), w.RollupTokens))), w.s.requests(end, most, 0)
}

// leastQuote is how long a text must be to count as a quotation, in bytes.
const leastQuote = 12

func saidByUser(messages []thread.Message, text string) bool {
	text = strings.TrimRight(folded(text), ".!")
	for i := range messages {
		if m := &messages[i]; len(text) >= leastQuote && strings.Contains(folded(injected.UserWords(m)), text) {
			return true
		}
	}
	return false
}

// transcript writes what is extracted of the messages (D4), numbered. Lines
// after the first are indented, so that no message can pass for two.
func (w Workstream) transcript(messages []thread.Message) []string {
	var entries []string
	for _, m := range w.extracted(messages) {
		who := string(m.Role)
		switch m.Kind {
		case thread.Injected:
			who += " (added by the program)"
		case thread.Recap:
			who += " (an earlier summary)"
		}
		var texts []string
		for _, p := range m.Parts {
			switch p := p.(type) {
			case thread.Text:
				if text := strings.TrimSpace(p.Text); text != "" {
					texts = append(texts, who+": "+text)
				}
			case thread.ToolCall:
				texts = append(texts, "tool call "+p.Name+": "+p.Arguments)
			case thread.ToolResult:
				text := "tool result " + p.Tool
				if p.Outcome != "" && p.Outcome != thread.Success {
					text += " (" + string(p.Outcome) + ")"
				}
				texts = append(texts, text+": "+p.Text())
			}
		}
		if len(texts) > 0 {
			entries = append(entries, strconv.Itoa(len(entries)+1)+". "+strings.ReplaceAll(strings.Join(texts, "\n"), "\n", "\n   "))
		}
	}
	return entries
}

// byRule makes summary and delta without a model, from the structured summary
// of what may be extracted (D4): the user's and the assistant's words, and the
// allowed tools.
func (w *workstreamStep) byRule(ctx context.Context) (workstreamNotes, error) {
	threshold, _ := w.marks(w.s)
	in := summarize.Input{Messages: w.extracted(w.fresh), Context: w.tail, Budget: min(w.RollupTokens, max(threshold/4, workstreamLeastBy))}
	if w.prev.text != "" {
		in.Previous = &w.prev.summary
	}
	sum, err := w.summarized(ctx, in)
	if err != nil {
		return workstreamNotes{}, err
	}
	text := cmp.Or(sectionsOf(&sum).text(), "KEY FACTS:\n- Only tool calls came before; nothing was said.")
	said, items := w.words()
	return workstreamNotes{
		text: w.bounded(text, said, items), summary: sum, state: w.prev.state.ApplyWithin(deltaOf(&sum), w.Limits),
	}, nil
}

// extracted leaves out reasoning and the tools that are not allowed. Messages
// keep their ids and turns, and results have the name of their tool.
func (w Workstream) extracted(messages []thread.Message) []thread.Message {
	tools := map[string]string{}
	var out []thread.Message
	for _, m := range messages {
		var parts []thread.Part
		for _, p := range m.Parts {
			switch p := p.(type) {
			case thread.Text:
				parts = append(parts, p)
			case thread.ToolCall:
				tools[p.ID] = p.Name
				if w.allowed(p.Name) {
					parts = append(parts, p)
				}
			case thread.ToolResult:
				if p.Tool = cmp.Or(p.Tool, tools[p.CallID]); w.allowed(p.Tool) {
					parts = append(parts, p)
				}
			}
		}
		if len(parts) > 0 {
			m.Parts, m.Frame, m.Index = parts, nil, 0
			out = append(out, m)
		}
	}
	return out
}
