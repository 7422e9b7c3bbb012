package injected

import (
	"cmp"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Passage is a piece of the text of a message that has one author.
type Passage struct {
	Author thread.Author
	Text   string
}

// Passages divides the text of a message by who wrote it, in order. Only what is ByPerson is the person's
// word. What a program passes on in the user's name is divided by its form, which can only take a text
// from the person; a tool's result by its Said.
func Passages(m *thread.Message) (all []Passage) {
	by := m.Author()
	if by == thread.ByPerson {
		for _, part := range userPassages(m) {
			all = append(all, part...)
		}
		return all
	}
	for _, part := range m.Parts {
		switch p := part.(type) {
		case thread.ToolCall:
			all = append(all, Passage{by, p.Arguments})
		case thread.ToolResult:
			all = append(all, resultPassages(by, p)...)
		default:
			all = append(all, passage(by, part)...)
		}
	}
	return all
}

// passage is the text of a part; of whoever made its message, if nothing says otherwise.
func passage(by thread.Author, part thread.Part) []Passage {
	text := ""
	switch p := part.(type) {
	case thread.Text:
		text = p.Text
	case thread.Reasoning:
		text = p.Text
	case thread.Media:
		text = p.Text
	case thread.Opaque:
		text = p.Text
	}
	if text == "" {
		return nil
	}
	return []Passage{{cmp.Or(hosted.Author(part), by), text}}
}

// resultPassages divides the content of a result at the places of what the user said.
func resultPassages(by thread.Author, r thread.ToolResult) (all []Passage) {
	text, at := r.Text(), 0
	for _, said := range r.Said {
		from, to := said.From, min(said.To, len(text))
		if from < at || from >= to { // nobody noted where it stands
			all = append(all, Passage{thread.ByPerson, said.Text})
			continue
		}
		all = append(all, Passage{by, text[at:from]}, Passage{thread.ByPerson, said.Text})
		at = to
	}
	return append(all, Passage{by, text[at:]})
}

// UserWords returns what a person certainly wrote in a user message, without what a harness put
// around it. It is empty for all other messages.
func UserWords(m *thread.Message) string {
	if !m.StartsTurn() {
		return ""
	}
	var words []string
	for _, part := range userPassages(m) {
		if text := wordsIn(part); text != "" {
			words = append(words, text)
		}
	}
	return strings.Join(words, "\n")
}

// wordsIn is what the person wrote in a text.
func wordsIn(passages []Passage) string {
	if len(passages) == 1 && passages[0].Author == thread.ByPerson {
		return strings.TrimSpace(passages[0].Text)
	}
	var b strings.Builder
	for _, p := range passages {
		if p.Author == thread.ByPerson {
			b.WriteString(p.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// MessageKind returns the kind of a user message from its texts, as TextKind does from one: Plain if it
// has anything but text, and Recap if it is a summary of ours. The output of an action of the assistant
// is Injected, whatever it contains. before is the previous message, or nil.
func MessageKind(m, before *thread.Message) thread.Kind {
	switch {
	case isObservation(m, before) && (userAnswer(m) == "" || actsOtherwise(before)):
		return thread.Injected
	case isObservation(m, before):
		return thread.Plain
	case ownformat.IsSummary(m):
		return thread.Recap
	}
	var all []Passage
	for n, part := range userPassages(m) {
		if _, text := m.Parts[n].(thread.Text); !text {
			return thread.Plain
		}
		all = append(all, part...)
	}
	return kindOf(all)
}

// kindOf is the kind of a message in the user's name with these passages.
func kindOf(passages []Passage) thread.Kind {
	by := map[thread.Author]bool{}
	for _, p := range passages {
		if strings.TrimSpace(p.Text) != "" {
			by[p.Author] = true
		}
	}
	switch {
	case by[thread.ByPerson] || len(by) == 0:
		return thread.Plain
	case by[thread.ByCompaction]:
		return thread.Recap
	case by[thread.ByAgent]:
		return thread.Relayed
	case by[thread.ByAttachment]:
		return thread.Attached
	}
	return thread.Injected
}

// mentionedFiles begins what Gemini CLI and its kin put behind the words of a person who mentioned files:
// all of it, in parts of their own or in the same text.
const mentionedFiles = "\n--- Content from referenced files ---"

// userPassages are those of each part of a message in the user's name.
func userPassages(m *thread.Message) [][]Passage {
	all := make([][]Passage, len(m.Parts))
	if isObservation(m, nil) {
		answer := userAnswer(m)
		for n, part := range m.Parts {
			all[n] = passage(thread.ByTool, part)
			if t, ok := part.(thread.Text); ok && answer != "" {
				if before, behind, holds := cutLast(t.Text, answer); holds {
					all[n], answer = []Passage{{thread.ByTool, before}, {thread.ByPerson, answer}, {thread.ByTool, behind}}, ""
				}
			}
		}
		return all
	}
	by := thread.ByPerson
	for n, part := range m.Parts {
		t, ok := part.(thread.Text)
		if !ok || by == thread.ByAttachment {
			all[n] = passage(thread.ByAttachment, part)
			continue
		}
		words := t.Text
		if strings.HasPrefix(words, mentionedFiles[1:]) {
			words, by = "", thread.ByAttachment
		} else if at := strings.Index(words, mentionedFiles); at >= 0 {
			words, by = words[:at], thread.ByAttachment
		}
		all[n] = textPassages(words)
		if rest := t.Text[len(words):]; rest != "" {
			all[n] = append(all[n], Passage{by, rest})
		}
	}
	return all
}

// cutLast is strings.Cut at the last place.
func cutLast(text, at string) (before, behind string, ok bool) {
	i := strings.LastIndex(text, at)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(at):], true
}

// textPassages divides a text in the user's name by its form.
func textPassages(text string) []Passage {
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return nil
	case hasAnyPrefix(trimmed, recapOpenings):
		return []Passage{{thread.ByCompaction, text}}
	case looksLikeObservation(trimmed):
		return []Passage{{thread.ByTool, text}}
	}
	if from, to := steering(trimmed); to > 0 {
		return []Passage{{thread.ByHarness, trimmed[:from]}, {thread.ByPerson, trimmed[from:to]}, {thread.ByHarness, trimmed[to:]}}
	}
	var all []Passage
	add := func(by thread.Author, text string) {
		if text != "" {
			all = append(all, Passage{by, text})
		}
	}
	front, by := leadingBlock(trimmed)
	add(by, trimmed[:front])
	rest, at := trimmed[front:], 0
	for _, w := range wrapperSpans(rest) {
		add(thread.ByPerson, rest[at:max(at, w.from)])
		add(w.by, rest[max(at, w.from):max(at, w.to)])
		at = max(at, w.to)
	}
	add(thread.ByPerson, rest[at:])
	words := wordsIn(all)
	if front, by := leadingBlock(words); front > 0 { // behind reminders
		all, words = takeWords(all, by, front), strings.TrimSpace(words[front:])
	}
	switch {
	case words == "":
		return takeWords(all, thread.ByHarness, len(text))
	case hasAnyPrefix(words, recapOpenings):
		return takeWords(all, thread.ByCompaction, len(text))
	case hasAnyPrefix(words, injectedOpenings), injectedForms().MatchString(words), looksLikeObservation(words):
		return takeWords(all, thread.ByHarness, len(text))
	}
	return all
}

// takeWords gives the first of the person's words to another author, so many bytes of them behind the white
// space in front.
func takeWords(all []Passage, by thread.Author, left int) (out []Passage) {
	begun := false
	for _, p := range all {
		if p.Author != thread.ByPerson || left <= 0 {
			out = append(out, p)
			continue
		}
		white := 0
		if !begun {
			white = len(p.Text) - len(strings.TrimLeft(p.Text, " \t\r\n"))
			begun = white < len(p.Text)
		}
		n := min(len(p.Text), white+left)
		out, left = append(out, Passage{by, p.Text[:n]}), left-(n-white)
		if n < len(p.Text) {
			out = append(out, Passage{thread.ByPerson, p.Text[n:]})
		}
	}
	return out
}
