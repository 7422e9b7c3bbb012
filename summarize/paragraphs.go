package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

const (
	// maxBlock is the longest block of code that is told, in bytes: single lines of a longer one say nothing.
	maxBlock = 360
	// maxPassage is the longest paragraph that is one piece, in bytes; a longer one is split
	// into sentences.
	maxPassage = 220
	// maxGlued bounds a heading or a line that ends in a colon that is joined with the line
	// below it, in bytes.
	maxGlued = 160
	// wideTable is how many bars the head of a table has that is told with each row: of four columns. In a smaller
	// one the cells tell what they are.
	wideTable = 5
)

// paragraphs splits the assistant's words into pieces that can be read alone: a sentence or a
// line, an item of a list, a row of a table, a short block of code. A heading, or a line that
// ends in a colon, is joined with the line below it, the head of a wide table with each of its rows.
func paragraphs(work *effort.Budget, s string) []piece {
	var out []piece
	var glued string // a heading that waits for its text
	head := ""       // of the table
	line := 0        // counts lines with text
	add := func(text string, code bool) {
		p := piece{text: text, code: code, place: place{line: line}}
		if glued != "" {
			p.text = strings.TrimSuffix(glued+"\n"+text, "\n")
			glued = ""
		}
		line++
		p.idents, p.terms = mentionsWhile(work, nil, p.text), slices.Collect(stems(p.text))
		out = append(out, p)
	}
	passage := func(text string) {
		if row := text[0] == '|'; !row {
			head = ""
		} else if head != "" && glued == "" { // below other rows
			text = head + "\n" + gap + text
		}
		if len(text) <= maxPassage || text[0] == '|' {
			add(text, isDrawing(text))
			return
		}
		at := line
		from := 0 // "1. " goes with the first sentence
		for p := range scan.Sentences(text) {
			if p.From == 0 && strings.TrimLeft(text[:p.To], "0123456789") == "." {
				continue
			}
			if line > at {
				from = p.From
			}
			n := line - at
			add(text[from:p.To], false)
			out[len(out)-1].place = place{at, n, p.To < len(text)}
		}
		line = at + 1
	}
	block := func(text string) {
		switch text = strings.Trim(text, "\n"); {
		case text == "":
		case len(text) <= maxBlock:
			add(text, true)
		default: // it is left out, with what leads to it
			glued = ""
			line++
		}
	}
	open := -1 // where the text of a block of code begins
	for _, p := range textLines(work, s) {
		text := s[p.From:p.To]
		below, at := lineBelow(s, p.To)
		fence := strings.HasPrefix(text, "```")
		switch {
		case fence && open < 0:
			if item := glued; listItem(item) { // it describes the code
				glued = ""
				add(item, false)
			}
			open = at
		case fence:
			block(strings.TrimRight(s[open:p.From], " \t"))
			open = -1
		case open >= 0, ruler(text):
		case leadsIn(text), text[0] == '|' && below != "" && ruler(below), strings.HasPrefix(text, "**") && len(text) <= maxGlued && listItem(below) && below[0] != '|':
			if head = ""; strings.Count(text, "|") >= wideTable && ruler(below) {
				head = text
			}
			if text = strings.TrimLeft(text, "# "); glued != "" { // a heading of headings
				text = glued + "\n" + text
			}
			if glued = text; len(glued) > 2*maxGlued {
				glued = ""
				line++ // it is left out
			}
		default:
			passage(text)
		}
	}
	if glued != "" && open < 0 { // it leads to a call
		add("", false)
	}
	if open >= 0 { // it was never closed
		block(s[open:])
	}
	return out
}

// lineBelow returns the line below that of a position, trimmed, and where it begins.
func lineBelow(s string, at int) (line string, from int) {
	_, from = scan.NextLine(s, at)
	p, _ := scan.NextLine(s, from)
	p = scan.Trim(s, p)
	return s[p.From:p.To], from
}

// listItem reports whether a line is an item of a list, or a row of a table.
func listItem(s string) bool {
	if strings.HasPrefix(s, "| ") || strings.HasPrefix(s, "- ") || strings.HasPrefix(s, "* ") || strings.HasPrefix(s, "• ") {
		return true
	}
	n := len(s) - len(strings.TrimLeft(s, "0123456789"))
	return 0 < n && n < 3 && (strings.HasPrefix(s[n:], ". ") || strings.HasPrefix(s[n:], ") "))
}

// leadsIn reports whether a line says nothing without the next one.
func leadsIn(s string) bool {
	return len(s) <= maxGlued && (heading(s) || strings.HasSuffix(strings.TrimRight(s, "*_ "), ":"))
}
