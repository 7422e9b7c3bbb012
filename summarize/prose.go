package summarize

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Grounds checks prose that a model wrote about messages by the rules of Verified, for
// summaries that are no lists of items. Make it with NewGrounds; it is for one goroutine.
type Grounds struct{ e *evidence }

// NewGrounds reads the messages that a text is about. before is an earlier text that was
// checked when it was made; of log only the words of the user and the assistant count. Where the
// checks are more work than the messages are worth, and once ctx is done, statements do not pass.
func NewGrounds(ctx context.Context, messages []thread.Message, before string, log ...thread.Message) *Grounds {
	return &Grounds{newEvidence(ctx, messages, earlier{text: before, log: log})}
}

// Prose is a text after the checks.
type Prose struct {
	// Text is the text without the sentences that the messages do not support. Headings
	// with something below them and the form of lists and tables stay; a gap in a block of
	// code is marked.
	Text string
	// Report counts the sentences, and lists those that are left out.
	Report Report
}

// Prose checks a text sentence by sentence; rows of tables and lines of code count as one.
// The error is a *RejectedError: nothing is left, or the text is longer than the messages.
// The report is complete in either case.
func (g *Grounds) Prose(text string) (Prose, error) {
	p := proseReader{e: g.e}
	lines := append(strings.Split(text, "\n"), "")
	for i, line := range lines[:len(lines)-1] {
		p.line(strings.TrimRight(line, " \t\r"), lines[i+1])
	}
	out := Prose{Text: strings.Trim(strings.Join(p.kept, "\n"), "\n"), Report: p.report}
	switch {
	case len(text) > g.e.size:
		return out, &RejectedError{Reason: Inflated}
	case p.report.Kept == 0:
		return out, &RejectedError{Reason: Ungrounded}
	}
	return out, nil
}

// Entries checks each entry of a list as one sentence; todo says that a reader may act on
// them.
func (g *Grounds) Entries(entries []string, todo bool) (kept []string, report Report) {
	for _, e := range entries {
		if strings.TrimSpace(e) != "" && report.take(e, g.e.fault(statement{text: bare(e), todo: todo})) {
			kept = append(kept, e)
		}
	}
	return kept, report
}

// Holds reports whether a statement that a reader may act on passes.
func (g *Grounds) Holds(text string) bool {
	return strings.TrimSpace(text) != "" && g.e.fault(statement{text: bare(text), todo: true}) == ""
}

// Names reports whether a text shows that it is about the messages. A refusal does not, however it is
// worded.
func (g *Grounds) Names(text string) bool { return g.e.isAbout(text) }

// proseReader reads a text line by line.
type proseReader struct {
	e      *evidence
	report Report
	kept   []string
	above  []title // the titles above the next line, outermost first
	blank  bool    // a blank line precedes the next
	code   bool    // inside a block of code
	table  bool    // inside a table
}

// title is a line that only says what follows: a heading, the head of a table,
// the opening of a block of code.
type title struct {
	line              string
	level             int
	todo, user, shown bool
}

// The levels of titles that are no headings.
const (
	tableLevel = 1000 + iota
	codeLevel
)

// codeGap stands where lines of a block of code were left out.
const codeGap = "[…]"

func (p *proseReader) line(line, next string) {
	body, text := bare(line), strings.TrimSpace(line)
	row := strings.HasPrefix(text, "|")
	if p.table && !row {
		p.below(tableLevel)
	}
	inTable := p.table && row
	p.table = row && !p.code
	switch {
	case strings.HasPrefix(text, "```"):
		p.fence(line, strings.TrimLeft(text, "`"))
	case p.code:
		if body == "" || p.report.take(line, p.codeFault(line)) {
			p.keep(line)
		} else if len(p.kept) == 0 || p.kept[len(p.kept)-1] != codeGap {
			p.keep(codeGap)
		}
	case inTable && ruler(line):
		if head := p.top(); head.level == tableLevel && !head.shown {
			head.line += "\n" + line
		} else {
			p.kept = append(p.kept, line)
		}
	case body == "" || ruler(line):
		p.blank = true
	case row && !inTable && strings.Contains(next, "-") && ruler(next):
		p.title(line, tableLevel, body)
	case isHeading(line, body):
		p.title(line, levelOf(line), body)
	default:
		if said := p.said(line); said != "" {
			p.keep(said)
		}
	}
}

// fence opens or closes a block of code; about is what stands behind the marks.
func (p *proseReader) fence(line, about string) {
	marks := strings.TrimSuffix(line, about)
	if p.code = !p.code; p.code {
		if about != "" && !p.report.take(about, p.codeFault(about)) {
			about = ""
		}
		p.title(marks+about, codeLevel, "")
	} else if p.top().shown {
		p.kept = append(p.kept, marks)
	}
}

// codeFault says why a line of a block of code cannot be taken, or "". What reads like prose there is
// checked like other sentences, unless the user or the assistant wrote the same line.
func (p *proseReader) codeFault(line string) string {
	text := bare(line)
	if readsLikeProse(line) && !p.e.wrote(strings.TrimSpace(line), byPeople) {
		return p.e.fault(statement{text: text, todo: p.top().todo, user: p.top().user})
	}
	return p.e.fault(statement{text: line, code: true})
}

// readsLikeProse reports whether a line of a block of code is mostly words.
func readsLikeProse(line string) bool {
	words, all := 0, 0
	for w := range strings.FieldsSeq(line) {
		all++
		if w = strings.Trim(w, ".,:;!?\"'“”‘’()[]{}*_`"); w != "" && !strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' && r != '-' }) {
			words++
		}
	}
	return words >= leastProse && 4*words >= 3*all || words == leastProse-1 && words == all || strings.ContainsFunc(line, wide)
}

// leastProse is from how many words on a line of which a quarter is none is read as a sentence.
const leastProse = 4

// top is the innermost title, or an empty one.
func (p *proseReader) top() *title {
	if len(p.above) == 0 {
		return &title{}
	}
	return &p.above[len(p.above)-1]
}

// below drops the titles of a level and of deeper ones.
func (p *proseReader) below(level int) {
	for p.top().level >= level {
		p.above = p.above[:len(p.above)-1]
	}
}

// title adds a title; it is shown once something below it is.
func (p *proseReader) title(line string, level int, body string) {
	p.below(level)
	t := title{line: line, level: level, todo: p.top().todo || toDo(body), user: p.top().user || mentionsUser(body) >= 0}
	if cause := p.e.fault(statement{text: body, code: true}); cause != "" {
		p.report.take(body, cause)
		t.shown = true // so that keep never shows it
	}
	p.above = append(p.above, t)
}

// keep keeps a line, and the titles that waited for it.
func (p *proseReader) keep(line string) {
	if p.blank && len(p.kept) > 0 {
		p.kept = append(p.kept, "")
	}
	p.blank = false
	for i := range p.above {
		if t := &p.above[i]; !t.shown {
			p.kept, t.shown = append(p.kept, t.line), true
		}
	}
	p.kept = append(p.kept, line)
}

// said returns a line without the sentences that fail; "" if none is left.
func (p *proseReader) said(line string) string {
	rest, todo := unmarked(line), p.top().todo || strings.Contains(line, "[ ]")
	check := func(piece string) bool {
		text := bare(piece)
		return p.report.take(text, p.e.fault(statement{text: text, todo: todo, user: p.top().user}))
	}
	if strings.HasPrefix(rest, "|") {
		if check(rest) {
			return line
		}
		return ""
	}
	var said []string
	whole := true
	from := -1 // where a quotation of several sentences began
	for s := range scan.Sentences(rest) {
		if from < 0 {
			from = s.From
		}
		piece := rest[from:s.To]
		if p.e.effort.Spend(len(rest)-from) && openQuotation(piece) && openQuotation(rest[s.To:]) {
			continue
		}
		if from = -1; check(piece) {
			said = append(said, piece)
		} else {
			whole = false
		}
	}
	switch {
	case whole:
		return line
	case len(said) == 0:
		return ""
	}
	return line[:len(line)-len(rest)] + strings.Join(said, " ")
}

// openQuotation reports whether a text holds only a part of a quotation.
func openQuotation(s string) bool {
	return strings.Count(s, `"`)%2 == 1 || strings.Count(s, "“") != strings.Count(s, "”") || strings.Count(s, "«") != strings.Count(s, "»")
}

// isHeading reports whether a line only introduces what follows.
func isHeading(line, body string) bool {
	s := strings.TrimSpace(line)
	words := len(strings.Fields(body))
	if strings.HasPrefix(s, "#") {
		return words <= 20
	}
	return words <= 8 && (strings.HasSuffix(body, ":") || strings.HasPrefix(unmarked(s), "**") && strings.HasSuffix(strings.TrimSuffix(s, ":"), "**"))
}

// levelOf is the level of a heading by its marks, or by its indent.
func levelOf(line string) int {
	s := strings.TrimLeft(line, " \t")
	if n := len(s) - len(strings.TrimLeft(s, "#")); n > 0 {
		return n
	}
	return 10 + len(line) - len(s)
}

// unmarked removes the mark of a list or a heading.
func unmarked(line string) string {
	s := strings.TrimLeft(line, " \t#>")
	return s[len(listMark.FindString(s)):]
}

var listMark = regexp.MustCompile(`^(?:[-*] \[ \] |- \[[xX]\] |[-*•] |[0-9]+[.)] |[a-z][.)] )`)

// bare is a line without its form: list mark, table, emphasis.
func bare(line string) string {
	s := unmarked(strings.TrimSpace(line))
	if strings.HasPrefix(s, "|") {
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '|' }), " ")
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "**", "")), " ")
}

// ruler reports whether a line is the rule below the head of a table, or one
// across the page.
func ruler(line string) bool { return strings.Trim(line, "|-: \t=*_") == "" }

// toDo reports whether a reader may act on what stands below a heading.
func toDo(heading string) bool {
	low := strings.ToLower(heading)
	return slices.ContainsFunc([]string{
		"pending", "next", "open", "todo", "remain", "plan", "step", "goal", "task", "current work", "current state", "current status", "in progress",
	}, func(w string) bool { return strings.Contains(low, w) })
}
