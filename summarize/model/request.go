package model

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the prompt
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

//go:embed prompts/summary.txt
var template string

// onPrevious asks for updates of the previous summary.
//
//go:embed prompts/previous.txt
var onPrevious string

const (
	// maxResult is the longest tool result, in bytes: other agents take 2,000 characters too.
	maxResult = 2000
	// maxText and maxArguments bound other texts and arguments of calls, in bytes, so that
	// no single message overflows the model.
	maxText, maxArguments = 16_000, 2000
	// maxKept bounds a user message outside of the span, in bytes.
	maxKept = 600
	// maxPrevious bounds the previous summary in the request, in bytes.
	maxPrevious = 40_000
	// wordsPerToken turns the bound on the output into the number of words that the prompt
	// asks for, well below it.
	wordsPerToken = 0.4
)

// question is a request, with the parts that its other form (shared.go) needs as well.
type question struct {
	prompt         *prompt.Prompt
	mark, previous string
	texts          []string // of each message of the span
}

// request writes the request. The same input gives the same bytes.
func (m *Model) request(in *summarize.Input) (*question, *llm.Options, error) {
	output := cmp.Or(max(m.MaxOutput, 0), defaultOutput)
	t := temperature
	o := &llm.Options{MaxOutput: output, Timeout: cmp.Or(m.Timeout, defaultTimeout), Temperature: &t}
	words := float64(output) * wordsPerToken
	if in.Budget > 0 {
		words = min(words, float64(in.Budget)*wordsPerToken)
	}
	texts := make([]string, len(in.Messages))
	for i := range in.Messages {
		texts[i] = flat(&in.Messages[i])
	}
	previous, err := previousJSON(in.Previous)
	if err != nil {
		return nil, nil, fmt.Errorf("the previous summary: %w", err)
	}
	o.Schema, err = schema(previous != "")
	if err != nil {
		return nil, nil, err
	}
	beside := in.UserBeside()
	kept := make([][]string, len(beside))
	for i := range beside {
		for k := range beside[i] {
			kept[i] = append(kept[i], clip.Middle(strings.TrimSpace(injected.UserWords(&beside[i][k])), maxKept))
		}
	}
	mark := markFor(append(slices.Concat(kept...), append(texts, previous)...))

	var b strings.Builder
	b.WriteString(before(previous))
	b.WriteString(mark + " transcript begins\n")
	for i := range in.Messages {
		for _, text := range kept[i] {
			b.WriteString(mark + " kept\n" + text + "\n")
		}
		b.WriteString(heading(mark, i, &in.Messages[i]) + texts[i] + "\n")
	}
	b.WriteString(mark + " transcript ends\n\n" + ending(previous, in))
	system := strings.NewReplacer("{{MARK}}", mark, "{{WORDS}}", strconv.Itoa(max(60, int(words)/10*10))).Replace(strings.TrimSpace(template))
	return &question{mark: mark, previous: previous, texts: texts, prompt: &prompt.Prompt{
		System:   []prompt.System{{Text: system}},
		Messages: []thread.Message{thread.NewMessage(thread.User, b.String())},
	}}, o, nil
}

// heading is the line above the text of the i-th message.
func heading(mark string, i int, m *thread.Message) string {
	return mark + " " + strconv.Itoa(i+1) + " " + speaker(m) + "\n"
}

// before writes the previous summary in front of a transcript.
func before(previous string) string {
	if previous == "" {
		return ""
	}
	return "The previous summary, which is data as well:\n" + previous + "\n\n"
}

// ending is the end of the request, after all data. What somebody wants of this summary stands here,
// since it is no data.
func ending(previous string, in *summarize.Input) string {
	text := "Answer with the JSON object."
	if wish := strings.TrimSpace(in.Instructions); wish != "" {
		text = "For these notes the " + string(cmp.Or(in.InstructionsBy, thread.User)) + " asks you to weigh this: " + clip.Middle(wish, maxText) + "\n\n" + text
	}
	if previous != "" {
		text = strings.TrimSpace(onPrevious) + "\n\n" + text
	}
	return text
}

// markFor makes the word that headings begin with: a hash of all texts, so that nobody who
// wrote one of them can forge it, and no text contains it.
func markFor(texts []string) string {
	h := sha256.New()
	for _, t := range texts {
		h.Write([]byte(strconv.Itoa(len(t)) + ":" + t))
	}
	sum := h.Sum(nil)
	for {
		mark := "=====" + hex.EncodeToString(sum[:6])
		free := true
		for _, t := range texts {
			free = free && !strings.Contains(t, mark)
		}
		if free {
			return mark
		}
		next := sha256.Sum256(sum)
		sum = next[:]
	}
}

// speakers name the authors whose messages have the role of others.
var speakers = map[thread.Author]string{
	thread.ByCompaction: "summary of an earlier compaction", thread.ByHarness: "harness, not the user",
	thread.ByAttachment: "attached by the user, not the user's words", thread.ByAgent: "another agent, not the user",
}

// speaker names the author of a message.
func speaker(m *thread.Message) string {
	r, result := m.Result()
	switch by := m.Author(); {
	case result && r.Outcome == thread.Failure:
		return "tool result (failed)"
	case result && by == thread.ByAgent:
		return "report of another agent"
	case m.Role == thread.Tool:
		return "tool result"
	case speakers[by] != "":
		return speakers[by]
	}
	return string(m.Role)
}

// flat writes a message as text, without reasoning: it is private, long, and of use only to
// the model that wrote it.
func flat(m *thread.Message) string {
	var lines []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			lines = append(lines, s)
		}
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.Text:
			add(clip.Middle(p.Text, maxText))
		case thread.ToolCall:
			add("calls " + p.Name + " " + clip.Middle(p.Arguments, maxArguments))
		case thread.ToolResult:
			add(p.Tool + ":")
			add(clip.Middle(p.Text(), maxResult))
			if len(p.KeyFields) > 0 {
				add("key fields: " + clip.Middle(p.KeyFields.String(), maxResult))
			}
			for _, c := range p.Content {
				if media, ok := c.(thread.Media); ok {
					add(named(media))
				}
			}
		case thread.Media:
			add(named(p))
			add(clip.Middle(p.Text, maxText))
		case thread.Opaque:
			add(clip.Middle(p.Text, maxResult))
		}
	}
	return strings.Join(lines, "\n")
}

// named describes an image or another file.
func named(m thread.Media) string {
	return strings.TrimSpace("["+string(m.Type)+" "+strings.TrimSpace(m.MIME+" "+m.Name)) + "]"
}

// characters is the size of a message in the request, for Chunked.
func characters(m *thread.Message) int { return len(flat(m)) + 40 }

// previousJSON is the previous summary as the model sees it: the sections that a model writes,
// without ids. Of a long summary the user's words are left out first, since code keeps them.
func previousJSON(s *summary.Summary) (string, error) {
	if s == nil {
		return "", nil
	}
	view := struct {
		Task        string             `json:"task,omitempty"`
		Constraints []string           `json:"constraints,omitempty"`
		Facts       []string           `json:"facts,omitempty"`
		Decisions   []summary.Decision `json:"decisions,omitempty"`
		Plan        []summary.Step     `json:"plan,omitempty"`
		Open        []summary.OpenItem `json:"open_items,omitempty"`
		Failed      []string           `json:"failed_attempts,omitempty"`
	}{Task: clip.Middle(s.CurrentTask, maxResult)}
	room := maxPrevious
	view.Decisions = fitting(&room, s.Decisions, func(d summary.Decision) (summary.Decision, int) {
		return summary.Decision{Decision: d.Decision, Rationale: d.Rationale}, len(d.Decision) + len(d.Rationale)
	})
	view.Plan = fitting(&room, s.CurrentPlan, func(x summary.Step) (summary.Step, int) {
		return summary.Step{Text: x.Text, Status: x.Status}, len(x.Text)
	})
	view.Open = fitting(&room, s.OpenItems, func(o summary.OpenItem) (summary.OpenItem, int) {
		return summary.OpenItem{Description: o.Description, Context: o.Context}, len(o.Description) + len(o.Context)
	})
	text := func(it summary.Item) (string, int) { return it.Text, len(it.Text) }
	view.Failed, view.Facts, view.Constraints = fitting(&room, s.FailedAttempts, text), fitting(&room, s.Facts, text), fitting(&room, s.Constraints, text)
	doc, err := json.Marshal(view)
	if err != nil || string(doc) == "{}" {
		return "", err
	}
	return string(doc), nil
}

// fitting are the entries of a list that fit into the room, as part makes them; it tells their bytes too.
func fitting[T, V any](room *int, list []T, part func(T) (V, int)) (out []V) {
	for _, e := range list {
		v, size := part(e)
		if *room -= size + 4; *room >= 0 {
			out = append(out, v)
		}
	}
	return out
}
