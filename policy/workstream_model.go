package policy

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// workstreamTask is what the model is told to do, workstreamRollupTask stands in
// its place when the summary itself is too long.
var (
	//go:embed prompts/workstream.txt
	workstreamTask string
	//go:embed prompts/workstream.rollup.txt
	workstreamRollupTask string
)

var workstreamSchema = func() *llm.Schema {
	const text = `{"type":"string"}`
	const texts = `{"type":"array","items":` + text + `}`
	const item = `{"type":"object","properties":{"text":` + text + `,"status":` + text + `,"by":` + text + `},"required":["text","status","by"],"additionalProperties":false}`
	const change = `{"type":"object","properties":{"set":{"type":"array","items":` + item + `},"remove":` + texts + `},"required":["set","remove"],"additionalProperties":false}`
	names := []string{"key_decisions", "active_constraints", "tasks", "open_questions", "risks", "artifacts", "agent_contributions"}
	changes := `"` + strings.Join(names, `":`+change+`,"`) + `":` + change
	return &llm.Schema{
		Name: "context_compaction", Description: "The replacement summary and the changes of the state.",
		JSON: `{"type":"object","properties":{"summary":{"type":"object","properties":{"key_facts":` + texts + `,"conversation_flow":` + texts +
			`,"open_threads":` + texts + `},"required":["key_facts","conversation_flow","open_threads"],"additionalProperties":false},` +
			`"state_delta":{"type":"object","properties":{` + changes + `},"required":["` + strings.Join(names, `","`) + `"],"additionalProperties":false}},` +
			`"required":["summary","state_delta"],"additionalProperties":false}`,
	}
}()

// workstreamAnswer is the structured answer (D5).
type workstreamAnswer struct {
	Summary workstreamSections `json:"summary"`
	Delta   state.Delta        `json:"state_delta"`
}

// workstreamSections are the seed's three sections.
type workstreamSections struct {
	KeyFacts         []string `json:"key_facts"`
	ConversationFlow []string `json:"conversation_flow"`
	OpenThreads      []string `json:"open_threads"`
}

// text writes the sections under the seed's headings, empty ones left out.
func (s workstreamSections) text() string {
	var b strings.Builder
	for _, section := range []struct {
		heading string
		entries []string
	}{{"KEY FACTS", s.KeyFacts}, {"CONVERSATION FLOW", s.ConversationFlow}, {"OPEN THREADS", s.OpenThreads}} {
		entries := neutralEntries(section.entries)
		if len(entries) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(section.heading + ":\n" + strings.Join(entries, "\n"))
	}
	return b.String()
}

// neutralEntries writes texts as entries of a list, with nothing in them that
// could pass for a heading, a role or a marker (see package summary).
func neutralEntries(texts []string) []string {
	var items []summary.Item
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			items = append(items, summary.Item{Text: t})
		}
	}
	return summary.Lines(items, false)
}

// within leaves out entries until the text takes at most limit tokens: first
// the oldest of the flow, then the oldest open threads and facts.
func (s workstreamSections) within(limit int) workstreamSections {
	for _, list := range []*[]string{&s.ConversationFlow, &s.OpenThreads, &s.KeyFacts} {
		for len(*list) > 0 && tokensOf(utf8.RuneCountInString(s.text())) > limit {
			*list = (*list)[max(1, len(*list)/8):]
		}
	}
	return s
}

func (s workstreamSections) structured() summary.Summary {
	var out summary.Summary
	for _, t := range s.KeyFacts {
		out.Facts = append(out.Facts, summary.Item{Text: t})
	}
	for _, t := range s.ConversationFlow {
		out.Conclusions = append(out.Conclusions, summary.Item{Text: t})
	}
	for _, t := range s.OpenThreads {
		out.OpenItems = append(out.OpenItems, summary.OpenItem{Description: t})
	}
	return out
}

// byModel gives the transcript to the model, chunk by chunk, each with the
// summary and the state of the last (D6).
func (w Workstream) byModel(ctx context.Context, model *asker, prev workstreamNotes, fresh, tail []thread.Message) (workstreamNotes, error) {
	next := prev
	chunks := chunked(w.transcript(fresh), or0(w.ChunkChars, workstreamChunk))
	if len(chunks) == 0 && next.text == "" {
		chunks = []string{"(tool calls only; nothing was said)"}
	}
	for len(chunks) > 0 {
		answer, err := w.ask(ctx, model, workstreamTask, next, chunks[0])
		if llm.IsOverflow(err) && len(chunks[0]) > leastChunk {
			// The model's window is smaller than the chunk: try with halves.
			chunks = append(chunked([]string{chunks[0]}, utf8.RuneCountInString(chunks[0])/2+1), chunks[1:]...)
			continue
		}
		if err != nil {
			return workstreamNotes{}, err
		}
		chunks = chunks[1:]
		if next, err = w.merge(model, next, answer, fresh); err != nil {
			return workstreamNotes{}, err
		}
	}
	limit := or0(w.RollupTokens, workstreamRollup)
	if tokensOf(utf8.RuneCountInString(next.text)) > limit {
		answer, err := w.ask(ctx, model, workstreamRollupTask, next, "")
		if err != nil {
			return workstreamNotes{}, err
		}
		answer.Summary = answer.Summary.within(limit)
		if next, err = w.merge(model, next, answer, fresh); err != nil {
			return workstreamNotes{}, err
		}
	}
	return w.withUser(ctx, model, prev, next, fresh, tail)
}

// ask sends one request. An answer with an empty summary is an error: it would
// take the place of everything.
func (w Workstream) ask(ctx context.Context, model *asker, task string, n workstreamNotes, messages string) (*workstreamAnswer, error) {
	known, err := json.Marshal(n.state)
	if err != nil {
		return nil, fmt.Errorf("write the state: %w", err)
	}
	reply, err := model.generate(ctx, &prompt.Prompt{
		System:   []prompt.System{{Text: strings.TrimSpace(task), Role: "system"}},
		Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: compactionInput(n.text, string(known), messages) + model.s.asked()}}}},
	}, &llm.Options{Schema: workstreamSchema})
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
	return &a, nil
}

// compactionInput is the seed's form of the request (D5).
func compactionInput(previous, known, messages string) string {
	return "<context-compaction-input>\n<previous-summary>" + inTag(previous) + "</previous-summary>\n<existing-workstream-state>" + inTag(known) +
		"</existing-workstream-state>\n<new-messages>" + inTag(messages) + "</new-messages>\n</context-compaction-input>"
}

// inputTag finds whatever a reader could take for one of our tags.
var inputTag = regexp.MustCompile(`(?i)<(\s*/?\s*(?:context-compaction-input|previous-summary|existing-workstream-state|new-messages|new-entries|blocks))`)

// inTag writes content so that it opens and closes none of the tags; all else
// stays as it was said.
func inTag(content string) string { return inputTag.ReplaceAllString(content, "&lt;$1") }

// transcript writes what is extracted of the messages (D4), numbered. Lines
// after the first are indented, so that no message can pass for two.
func (w Workstream) transcript(messages []thread.Message) []string {
	var entries []string
	tools := map[string]string{}
	for i := range messages {
		m := &messages[i]
		for _, c := range m.Calls() {
			tools[c.ID] = c.Name
		}
		if text := w.extract(m, tools); text != "" {
			entries = append(entries, strconv.Itoa(len(entries)+1)+". "+strings.ReplaceAll(text, "\n", "\n   "))
		}
	}
	return entries
}

// extract writes one message: its text, and the calls and results of allowed
// tools; nothing of the model's reasoning.
func (w Workstream) extract(m *thread.Message, tools map[string]string) string {
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
			if w.allowed(p.Name) {
				texts = append(texts, "tool call "+p.Name+": "+p.Arguments)
			}
		case thread.ToolResult:
			name := p.Tool
			if name == "" {
				name = tools[p.CallID]
			}
			if !w.allowed(name) {
				continue
			}
			text := "tool result " + name
			if p.Outcome != "" && p.Outcome != thread.Success {
				text += " (" + string(p.Outcome) + ")"
			}
			texts = append(texts, text+": "+p.Text())
		}
	}
	return strings.Join(texts, "\n")
}

// chunked joins entries to chunks of at most limit characters. An entry that is
// longer is cut, between characters as readers see them.
func chunked(entries []string, limit int) []string {
	var chunks []string
	var b strings.Builder
	size := 0
	flush := func() {
		if size > 0 {
			chunks = append(chunks, b.String())
		}
		b.Reset()
		size = 0
	}
	for _, e := range entries {
		n := utf8.RuneCountInString(e)
		if size > 0 && size+1+n > limit {
			flush()
		}
		for n > limit {
			at := clip.Boundary(e, limit) // bytes, so never more characters
			if at == 0 {
				at = len(e)
			}
			chunks = append(chunks, e[:at])
			e = e[at:]
			n = utf8.RuneCountInString(e)
		}
		if n == 0 {
			continue
		}
		if size > 0 {
			b.WriteByte('\n')
			size++
		}
		b.WriteString(e)
		size += n
	}
	flush()
	return chunks
}
