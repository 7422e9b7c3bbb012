package summarize

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

const (
	// maxBlock is the longest block of code that is one piece, in bytes; a longer one is
	// split into lines.
	maxBlock = 360
	// maxPassage is the longest paragraph that is one piece, in bytes; a longer one is split
	// into sentences.
	maxPassage = 220
	// maxGlued bounds a heading or a line that ends in a colon that is joined with the line
	// below it, in bytes.
	maxGlued = 160
)

// paragraphs splits the assistant's words into pieces that can be read alone: a sentence or a
// line, an item of a list, a row of a table, a short block of code. A heading, or a line that
// ends in a colon, is joined with the line below it.
func paragraphs(work *effort.Budget, s string) []piece {
	var out []piece
	var glued string // a heading that waits for its text
	line := 0        // counts lines with text
	add := func(text string, code bool) {
		p := piece{text: text, reason: -1, code: code, place: place{line: line}}
		switch last := len(out) - 1; {
		case glued != "":
			p.text = strings.TrimSuffix(glued+"\n"+text, "\n")
			glued = ""
		case isLink(text) && last >= 0 && len(out[last].text)+len(text) < maxPassage:
			p.text, p.line = out[last].text+"\n"+text, out[last].line
			out = out[:last]
			line--
		}
		line++
		p.idents, p.terms = mentionsWhile(work, nil, p.text), termsOf(p.text)
		if !code {
			p.cues, p.reason = cuesOf(p.text)
		}
		out = append(out, p)
	}
	passage := func(text string) {
		if len(text) <= maxPassage {
			add(text, isDrawing(text))
			return
		}
		at := line
		number := 0 // the length of "1. " in front of the first sentence
		for p := range scan.Sentences(text) {
			if p.From == 0 && strings.TrimLeft(text[:p.To], "0123456789") == "." {
				number = p.To
				continue
			}
			if number > 0 {
				p.From, number = 0, 0
			}
			n := line - at
			add(text[p.From:p.To], false)
			last := &out[len(out)-1]
			last.place = place{at, n, p.To < len(text)}
		}
		line = at + 1
	}
	open := -1 // where the text of a block of code begins
	for _, p := range scan.Lines(s) {
		if !work.Live(readingByte * (1 + p.To - p.From)) {
			break
		}
		text := s[p.From:p.To]
		_, at := scan.NextLine(s, p.To)
		fence := strings.HasPrefix(text, "```")
		switch {
		case fence && open < 0:
			if item := glued; listItem(item) { // it describes the code
				glued = ""
				add(item, false)
			}
			open = at
		case fence:
			addBlock(strings.TrimRight(s[open:p.From], " \t"), add)
			open = -1
		case open >= 0, text == "", ruler(text):
		case leadsIn(text) && announcedAt(text) == 0, text[0] == '|' && rulerAt(s, at), strings.HasPrefix(text, "**") && len(text) <= maxGlued && listAt(s, at):
			text = strings.TrimLeft(text, "# ")
			if glued != "" { // a heading of headings
				text = glued + "\n" + text
			}
			glued = text
			if len(glued) > 2*maxGlued {
				glued = ""
				line++ // it is left out
			}
		default:
			at := announcedAt(text)
			if at > 0 { // a finding weighs more than the announcement after it
				passage(strings.TrimRight(text[:at], " "))
			}
			if next := text[at:]; at > 0 && leadsIn(next) {
				glued = next
			} else {
				passage(next)
			}
		}
	}
	if glued != "" && open < 0 { // it leads to a call
		add("", false)
	}
	if open >= 0 { // it was never closed
		addBlock(s[open:], add)
	}
	return out
}

// announcedAt is where the last of several sentences of a line begins, if it only announces
// what will be done next; else 0.
func announcedAt(line string) int {
	from, last := 0, 0
	for p := range scan.Sentences(line) {
		from, last = last, p.From
	}
	if last > from && announcing(line[last:]) {
		return last
	}
	return 0
}

// isLink reports whether a line is only an address, which belongs to the line before it.
func isLink(s string) bool {
	s = strings.Trim(s, "<>")
	return (strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")) && !strings.Contains(s, " ")
}

// listItem reports whether a line is an item of a list, or a row of a table.
func listItem(s string) bool {
	if strings.HasPrefix(s, "| ") || strings.HasPrefix(s, "- ") || strings.HasPrefix(s, "* ") || strings.HasPrefix(s, "• ") {
		return true
	}
	n := len(s) - len(strings.TrimLeft(s, "0123456789"))
	return 0 < n && n < 3 && (strings.HasPrefix(s[n:], ". ") || strings.HasPrefix(s[n:], ") "))
}

// rulerAt reports whether the line that begins at a position is the rule below the head of a
// table.
func rulerAt(s string, at int) bool {
	p, _ := scan.NextLine(s, at)
	p = scan.Trim(s, p)
	return p.To > p.From && ruler(s[p.From:p.To])
}

// listAt reports whether the line that begins at a position is an item of a list: a bold line
// above it leads in.
func listAt(s string, at int) bool {
	p, _ := scan.NextLine(s, at)
	p = scan.Trim(s, p)
	return p.To > p.From && s[p.From] != '|' && listItem(s[p.From:p.To])
}

// addBlock adds a block of code, as one piece if it is short.
func addBlock(block string, add func(string, bool)) {
	if block = strings.Trim(block, "\n"); block == "" {
		return
	}
	if len(block) <= maxBlock {
		add(block, true)
		return
	}
	for text := range strings.Lines(block) {
		if text = strings.TrimSpace(text); text != "" {
			add(text, true)
		}
	}
}

// leadsIn reports whether a line says nothing without the next one.
func leadsIn(s string) bool {
	return len(s) <= maxGlued && (heading(s) || strings.HasSuffix(strings.TrimRight(s, "*_ "), ":"))
}
