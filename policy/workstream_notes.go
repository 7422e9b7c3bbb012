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

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// workstreamNotes are the results of a compaction: the summary as text and as structure,
// and the state.
type workstreamNotes struct {
	text    string
	summary summary.Summary
	state   state.State
}

// workstreamStep is one compaction.
type workstreamStep struct {
	policy Workstream
	summaryModel
	prev workstreamNotes
	// newMessages go into the notes, tail stays.
	newMessages, tail []thread.Message
}

// isAllowedTool reports whether a tool's calls and results are part of the transcript.
func (w Workstream) isAllowedTool(tool string) bool {
	w = w.Defaults()
	return slices.Contains(w.ToolNames, tool) ||
		slices.ContainsFunc(w.ToolPrefixes, func(p string) bool { return strings.HasPrefix(tool, p) })
}

// workstreamAnswer is the model's structured answer.
type workstreamAnswer struct {
	Summary workstreamSections `json:"summary"`
	Delta   state.Delta        `json:"state_delta"`
}

// byModel gives the transcript to the model, chunk by chunk, each with the summary and the
// state of the last.
func (w *workstreamStep) byModel(ctx context.Context) (workstreamNotes, error) {
	next := w.prev
	ask := func(task, chunk string) error {
		answer, err := w.askModel(ctx, task, next, chunk)
		if err == nil {
			next, err = w.applyAnswer(ctx, next, answer)
		}
		return err
	}
	chunks := chunkEntries(w.policy.transcript(w.newMessages), w.policy.ChunkChars)
	if len(chunks) == 0 && next.text == "" {
		chunks = []string{onlyCallsNote}
	}
	err := askInPieces(chunks, splitChunk, func(chunk string) error { return ask(workstreamTask, chunk) })
	if err == nil && tokensOf(utf8.RuneCountInString(next.text)) > w.policy.RollupTokens {
		err = ask(workstreamRollupTask, "")
	}
	if err != nil {
		return workstreamNotes{}, err
	}
	return w.addUserWords(ctx, next)
}

// askModel sends one request. An answer with an empty summary is an error, since it would
// replace everything.
func (w *workstreamStep) askModel(ctx context.Context, task string, n workstreamNotes, messages string) (*workstreamAnswer, error) {
	known, err := json.Marshal(n.state)
	if err != nil {
		return nil, fmt.Errorf("write the state: %w", err)
	}
	user := fillTemplate(strings.TrimSpace(workstreamUser), "{{previous}}", escapeTags(n.text), "{{state}}", escapeTags(string(known)), "{{messages}}", escapeTags(messages))
	reply, err := w.generate(ctx, prompt.System{Text: task, Role: "system"}, user+w.situation.instructionBlock(), &llm.Options{Schema: workstreamSchema})
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
		a.Summary = a.Summary.trimTo(w.policy.RollupTokens)
	}
	return &a, nil
}

// applyAnswer replaces the notes by what can be used of the answer. A constraint in the user's
// own words is pinned, any other only taken from a model that is trusted; what the model pinned
// does not count. The
// model reads few tools, but all messages may back a statement.
func (w *workstreamStep) applyAnswer(ctx context.Context, n workstreamNotes, a *workstreamAnswer) (workstreamNotes, error) {
	g := w.newGrounds(ctx, w.newMessages, n.text)
	d := a.Delta.Unpinned()
	said := saidByUser(ctx, w.newMessages)
	for i := range d.ActiveConstraints.Set {
		it := &d.ActiveConstraints.Set[i]
		it.Pinned = said(it.Text)
	}
	d.ActiveConstraints.Set = slices.DeleteFunc(d.ActiveConstraints.Set, func(it state.Item) bool { return g != nil && !it.Pinned })
	for _, c := range []*state.Change{&d.KeyDecisions, &d.Tasks, &d.OpenQuestions, &d.Risks, &d.Artifacts, &d.AgentContributions} {
		c.Set = slices.DeleteFunc(c.Set, func(it state.Item) bool { return g != nil && !g.Holds(it.Text) })
	}
	wrote := a.Summary
	sections := workstreamSections{
		KeyFacts:         w.acceptEntries(g, wrote.KeyFacts, false),
		ConversationFlow: w.acceptEntries(g, wrote.ConversationFlow, false),
		OpenThreads:      w.acceptEntries(g, wrote.OpenThreads, true),
	}
	if sections.text() == "" {
		return workstreamNotes{}, &summarize.RejectedError{Reason: summarize.Ungrounded}
	}
	if err := isAbout(g, strings.Join(slices.Concat(sections.KeyFacts, sections.ConversationFlow, sections.OpenThreads), "\n")); err != nil {
		return workstreamNotes{}, err
	}
	return workstreamNotes{text: sections.text(), summary: sections.toSummary(), state: n.state.Apply(d, w.policy.Limits)}, nil
}

// addUserWords adds the user's task and rules, word for word: to the text where it lacks
// them, and to the state.
func (w *workstreamStep) addUserWords(ctx context.Context, next workstreamNotes) (workstreamNotes, error) {
	s := w.situation
	in := summarize.Input{Messages: w.policy.extractAllowed(w.newMessages), Budget: 1 << 30, StandingTokens: standingRoom(s.PromptTokens), Stands: w.judged.Stands, Changes: w.judged.Changes, Previous: &summary.Summary{CurrentTask: w.prev.summary.CurrentTask, Constraints: w.prev.summary.Constraints, Stated: w.prev.summary.Stated}}
	sum, err := (&summarize.Extractive{Counter: s.Counter.Text}).Summarize(ctx, in)
	if err != nil {
		return workstreamNotes{}, err
	}
	next.summary.CurrentTask, next.summary.Constraints, next.summary.Stated = sum.CurrentTask, sum.Constraints, sum.Stated
	var delta state.Delta
	words, items := w.userWords()
	for _, it := range likelyConstraints(&sum.Summary) {
		items = append(items, it)
		words = append(words, it)
		delta.ActiveConstraints.Set = append(delta.ActiveConstraints.Set, state.Item{Text: it.Text, By: "user", Pinned: true})
	}
	next.state = next.state.Apply(delta, w.policy.Limits)
	next.text = w.policy.boundWithUser(next.text, words, items)
	if more := joinBlocks(next.text, w.entriesFromLog(next.text, &sum.Summary)); tokensOf(utf8.RuneCountInString(more)) <= w.policy.RollupTokens {
		next.text = more
	}
	return next, nil
}

// userWords is what the user said before the tail, and of that the first and the last
// request.
func (w *workstreamStep) userWords() (all, requests []summary.Item) {
	end, most := w.situation.Thread.Len()-len(w.tail), maxRequestBytes(w.policy.Limit(w.situation.Situation))
	return w.situation.userRequests(end, most, userWordsBudget(min(w.policy.Limit(w.situation.Situation), w.policy.RollupTokens))), w.situation.userRequests(end, most, 0)
}

// minQuoteBytes is how long a text must be to count as a quotation, in bytes.
const minQuoteBytes = 12

// saidByUser returns what reports whether a text stands in a message of the user's; a text for
// which there is no more effort left does not.
func saidByUser(ctx context.Context, messages []thread.Message) func(text string) bool {
	var said []string
	size := 0
	for i := range messages {
		if text := foldText(injected.UserWords(&messages[i])); text != "" {
			said, size = append(said, text), size+len(text)
		}
	}
	look := effort.New(ctx, size)
	return func(text string) bool {
		text = strings.TrimRight(foldText(text), ".!")
		return len(text) >= minQuoteBytes && slices.ContainsFunc(said, func(s string) bool { return look.Spend(1+len(s)/8) && strings.Contains(s, text) })
	}
}

// transcript writes what is extracted of the messages, numbered. Lines after the first are
// indented, so that no message can pass for two.
func (w Workstream) transcript(messages []thread.Message) []string {
	var entries []string
	for _, m := range w.extractAllowed(messages) {
		who := string(m.Role)
		switch m.Author() {
		case thread.ByHarness:
			who += " (added by the program)"
		case thread.ByAttachment:
			who += " (material that was attached)"
		case thread.ByAgent:
			who += " (another agent)"
		case thread.ByCompaction:
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

// byRule makes summary and delta without a model, from the user's and the assistant's
// words and the allowed tools.
func (w *workstreamStep) byRule(ctx context.Context) (workstreamNotes, error) {
	threshold, _ := w.policy.marks(w.situation.Situation)
	in := summarize.Input{Messages: w.policy.extractAllowed(w.newMessages), Context: w.tail, Budget: min(w.policy.RollupTokens, max(threshold/4, minRuleTokens))}
	if w.prev.text != "" {
		in.Previous = &w.prev.summary
	}
	sum, err := w.summarizeStructured(ctx, in)
	if err != nil {
		return workstreamNotes{}, err
	}
	text := cmp.Or(sectionsOf(&sum).text(), "KEY FACTS:\n- Only tool calls came before; nothing was said.")
	said, items := w.userWords()
	return workstreamNotes{
		text: w.policy.boundWithUser(text, said, items), summary: sum, state: w.prev.state.Apply(deltaOf(&sum), w.policy.Limits),
	}, nil
}

// extractAllowed leaves out reasoning and the tools that are not allowed, but for results that hold
// words of the user's. Messages keep their ids and turns, and results name their tool.
func (w Workstream) extractAllowed(messages []thread.Message) []thread.Message {
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
				if w.isAllowedTool(p.Name) {
					parts = append(parts, p)
				}
			case thread.ToolResult:
				if p.Tool = cmp.Or(p.Tool, tools[p.CallID]); w.isAllowedTool(p.Tool) || len(p.Said) > 0 {
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
