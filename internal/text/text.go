// Package text writes a prompt as plain text for people to read, search and compare. It
// is not a wire format: nothing reads it back.
//
// The text is a list of blocks, each under a heading:
//
//	=== system
//	=== tool NAME
//	=== user (turn 3)
//	=== assistant
//	==> reasoning
//	==> text
//	==> call NAME CALL_ID
//	==> result NAME CALL_ID (failure)
//
// A line of content that looks like a heading, or like a line in brackets that stands for
// media, gets a backslash in front (one more, if it begins with backslashes). Removing
// one backslash from such lines gives the content back. Markdown headings and rules are
// left alone.
package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Encode writes a prompt as text in UTF-8. The same prompt always gives the same bytes.
// All text is in it; media and sealed reasoning become a one-line note.
func Encode(p *prompt.Prompt) []byte {
	w := &writer{}
	for _, s := range p.System {
		w.heading("=== system")
		w.content(s.Text)
	}
	for _, t := range p.Tools {
		w.heading("=== tool " + quoteLabel(t.Name))
		w.content(t.Description)
		w.content(t.Schema)
	}
	for i := range p.Messages {
		w.message(&p.Messages[i])
	}
	return w.b
}

type writer struct{ b []byte }

// heading begins a block, with an empty line before it.
func (w *writer) heading(line string) {
	if len(w.b) > 0 {
		w.b = append(w.b, '\n')
	}
	w.line(line)
}

func (w *writer) line(line string) { w.b = append(append(w.b, line...), '\n') }

// content writes text under the heading, and ends its last line.
func (w *writer) content(text string) {
	if text == "" {
		return
	}
	w.b = appendEscaped(w.b, text)
	if !strings.HasSuffix(text, "\n") {
		w.b = append(w.b, '\n')
	}
}

func (w *writer) message(m *thread.Message) {
	if m.Role != thread.Tool {
		w.heading("=== " + quoteLabel(string(m.Role)) + headingDetails(m))
	}
	open := m.Role != thread.Tool // text may follow under the current heading
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.ToolCall:
			w.heading("==> call " + quoteLabel(part.Name) + " " + quoteLabel(part.ID))
			w.content(part.Arguments)
			open = false
		case thread.ToolResult:
			w.result(part)
			open = false
		case thread.Reasoning:
			if part.Text == "" {
				open = w.openBlock(open)
				w.line("[reasoning sealed]")
				continue
			}
			w.heading("==> reasoning")
			w.content(part.Text)
			open = false
		default:
			open = w.openBlock(open)
			w.part(part)
		}
	}
}

// openBlock begins a block for text that follows one of another kind.
func (w *writer) openBlock(open bool) bool {
	if !open {
		w.heading("==> text")
	}
	return true
}

// kindNotes are the kinds of messages that are told.
var kindNotes = map[thread.Kind]string{thread.Injected: "injected", thread.Recap: "recap", thread.Attached: "attached", thread.Relayed: "relayed"}

// headingDetails returns the participant's name, the turn and the kind, if known.
func headingDetails(m *thread.Message) string {
	name := ""
	if m.Name != "" {
		name = " " + quoteLabel(m.Name)
	}
	var notes []string
	if m.Turn > 0 && m.Role == thread.User && m.Kind == thread.Plain {
		notes = append(notes, "turn "+strconv.Itoa(m.Turn))
	}
	if note := kindNotes[m.Kind]; note != "" {
		notes = append(notes, note)
	}
	if len(notes) == 0 {
		return name
	}
	return name + " (" + strings.Join(notes, ", ") + ")"
}

func (w *writer) result(r thread.ToolResult) {
	heading := "==> result " + quoteLabel(r.Tool) + " " + quoteLabel(r.CallID)
	if r.Outcome != "" && r.Outcome != thread.Success { // most formats tell no success
		heading += " (" + string(r.Outcome) + ")"
	}
	w.heading(heading)
	for _, part := range r.Content {
		w.part(part)
	}
}

// part writes text, or a line that stands for media and opaque parts.
func (w *writer) part(part thread.Part) {
	switch part := part.(type) {
	case thread.Text:
		w.content(part.Text)
	case thread.Media:
		w.line("[" + strings.Join(mediaDetails(part), " ") + "]")
		w.content(part.Text)
	case thread.Opaque:
		w.line("[opaque " + quoteLabel(part.Kind) + "]")
		w.content(part.Text)
	}
}

// mediaDetails describes media: class, MIME type, name, and size or address.
func mediaDetails(m thread.Media) []string {
	words := []string{string(m.Type)}
	if m.Type == "" {
		words[0] = string(thread.File)
	}
	for _, s := range []string{m.MIME, m.Name} {
		if s != "" {
			words = append(words, quoteLabel(s))
		}
	}
	switch {
	case m.Data != "":
		words = append(words, Size(decodedLen(m.Data)))
	case strings.HasPrefix(m.URL, "data:"):
		_, data, _ := strings.Cut(m.URL, ",")
		words = append(words, Size(decodedLen(data)))
	case m.URL != "":
		words = append(words, quoteLabel(m.URL))
	case m.FileID != "":
		words = append(words, quoteLabel(m.FileID))
	}
	return words
}

// decodedLen returns the length of base64 data after decoding.
func decodedLen(base64 string) int {
	return len(strings.TrimRight(base64, "=")) * 3 / 4
}

// Size writes a number of bytes; 1 KB is 1024 of them, rounded to the nearest.
func Size(n int) string {
	const kb = 1 << 10
	switch {
	case n < kb:
		return strconv.Itoa(n) + " B"
	case n < kb*kb:
		return strconv.Itoa((n+kb/2)/kb) + " KB"
	}
	return strconv.FormatFloat(float64(n)/(kb*kb), 'f', 1, 64) + " MB"
}

// quoteLabel makes a name fit for a heading: it quotes one that is empty, or holds space
// or unprintable characters.
func quoteLabel(s string) string {
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError }
	if s == "" || strings.HasPrefix(s, `"`) || strings.ContainsFunc(s, odd) {
		return strconv.QuoteToGraphic(s)
	}
	return s
}

// appendEscaped writes content with a backslash before every line that looks like a
// marker. Invalid UTF-8 becomes the replacement character.
func appendEscaped(b []byte, text string) []byte {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for text != "" {
		if isMarkerLine(text) {
			b = append(b, '\\')
		}
		n, width := lineBreak(text)
		b = append(b, text[:n+width]...)
		text = text[n+width:]
	}
	return b
}

// lineBreak finds the end of the first line and the width of its break. It knows every
// character that an editor may show as a line break.
func lineBreak(text string) (at, width int) {
	for i, r := range text {
		switch r {
		case '\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
			return i, utf8.RuneLen(r)
		}
	}
	return len(text), 0
}

// isMarkerLine reports whether a line, without backslashes before it, looks like a heading
// or like a line that stands for media.
func isMarkerLine(line string) bool {
	line = strings.TrimLeft(line, `\`)
	if strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "==> ") {
		return true
	}
	if !strings.HasPrefix(line, "[") {
		return false
	}
	for _, word := range []string{"image", "document", "audio", "video", "file", "opaque", "reasoning"} {
		if rest, ok := strings.CutPrefix(line[1:], word); ok && (strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "]")) {
			return true
		}
	}
	return false
}
