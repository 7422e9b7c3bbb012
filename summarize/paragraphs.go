package summarize

import "strings"

const (
	// maxBlock is a block of code in what the assistant said up to which it stands
	// or goes as a whole, in bytes; of a longer one single lines may be taken.
	maxBlock = 360
	// maxPassage is a paragraph up to which it stands or goes as a whole, in bytes; a
	// longer one is taken by sentences.
	maxPassage = 220
	// maxGlued bounds a heading, or a line that announces what follows, that goes
	// with the line below it, in bytes.
	maxGlued = 160
)

// paragraphs splits what an assistant said into pieces that can be read alone: a
// sentence or a line, an item of a list, a row of a table, a short block of code. A
// heading, or a line that ends in a colon, goes with what stands below it.
func paragraphs(s string) []piece {
	var out []piece
	var glued string // a heading that waits for its text
	var gluedLine int
	add := func(text string, line int, code bool) {
		p := piece{text: text, reason: -1, code: code, place: place{line: line}}
		if glued != "" {
			p.text, p.line = glued+"\n"+text, gluedLine
			glued = ""
		}
		p.idents, p.terms = mentions(nil, p.text), termsOf(p.text)
		if !code {
			p.cues, p.reason = cuesOf(p.text)
		}
		out = append(out, p)
	}
	open, begins := -1, 0 // where the text of a block of code begins, and on which line
	for line, p := range lineSpans(s) {
		text := s[p.from:p.to]
		_, at := nextLine(s, p.to)
		fence := strings.HasPrefix(text, "```")
		switch {
		case fence && open < 0:
			open, begins = at, line+1
		case fence:
			addBlock(strings.TrimRight(s[open:p.from], " \t"), begins, add)
			open = -1
		case open >= 0, text == "", ruler(text):
		case leadsIn(text), text[0] == '|' && rulerAt(s, at):
			text = strings.TrimLeft(text, "# ")
			if glued != "" { // a heading of headings
				text = glued + "\n" + text
			} else {
				gluedLine = line
			}
			glued = text
			if len(glued) > 2*maxGlued {
				glued = ""
			}
		case len(text) <= maxPassage:
			add(text, line, drawn(text))
		default:
			n := 0
			sentences(text, func(p span) {
				add(text[p.from:p.to], line, false)
				last := &out[len(out)-1]
				last.window, last.more = n, p.to < len(text)
				n++
			})
		}
	}
	if open >= 0 { // it was never closed
		addBlock(s[open:], begins, add)
	}
	return out
}

// rulerAt reports whether the line that begins at a place rules off the head of a
// table.
func rulerAt(s string, at int) bool {
	p, _ := nextLine(s, at)
	p = trimSpan(s, p)
	return p.to > p.from && ruler(s[p.from:p.to])
}

// addBlock adds a block of code, in one piece where it is short.
func addBlock(block string, line int, add func(string, int, bool)) {
	if block = strings.Trim(block, "\n"); block == "" {
		return
	}
	if len(block) <= maxBlock {
		add(block, line, true)
		return
	}
	for text := range strings.Lines(block) {
		if text = strings.TrimSpace(text); text != "" {
			add(text, line, true)
		}
		line++
	}
}

// leadsIn reports whether a line says nothing without what follows it.
func leadsIn(s string) bool {
	return len(s) <= maxGlued && (heading(s) || strings.HasSuffix(strings.TrimRight(s, "*_ "), ":"))
}
