package summarize

import (
	"strings"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Grounds tells what of a text that a model wrote stands on messages, by the
// tests of Verified, for formats that are prose and not items. Make it with
// NewGrounds; it is for one goroutine.
type Grounds struct {
	g     *grounds
	every []thread.ID
	// whole are the sentences that the user or the assistant said, folded.
	whole map[string]bool
}

// NewGrounds reads the messages that a text may stand on, and beside them an
// earlier text that was checked already: said is what of it stood on words of
// the user or the assistant, data what stood on tools.
func NewGrounds(messages []thread.Message, said, data string) *Grounds {
	all := make([]thread.Message, 0, len(messages)+2)
	for _, earlier := range []thread.Message{
		{ID: "earlier, said", Role: thread.Assistant, Kind: thread.Recap, Parts: []thread.Part{thread.Text{Text: said}}},
		{ID: "earlier, data", Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Text{Text: data}}},
	} {
		if earlier.Text() != "" {
			all = append(all, earlier)
		}
	}
	all = append(all, messages...)
	g := &Grounds{g: newGrounds(&Input{Messages: all}), whole: map[string]bool{}}
	for i := range all {
		g.every = append(g.every, all[i].ID)
	}
	for line := range strings.Lines(g.g.voice) {
		line = unmarked(line)
		sentences(line, func(p span) {
			if s := line[p.from:p.to]; len(s) >= leastVerbatim {
				g.whole[sentenceKey(s)] = true
			}
		})
	}
	return g
}

// leastVerbatim is how long a sentence must be to be known again, in bytes.
const leastVerbatim = 12

// Said reports whether a text stands on words of the user or the assistant, so
// that a reader may act on it. A whole sentence of theirs always does, also one
// about what somebody wants: it is not invented.
func (g *Grounds) Said(text string) bool {
	return g.whole[sentenceKey(text)] || g.stands(text, secOpen)
}

// sentenceKey is what two sentences have in common that say the same.
func sentenceKey(s string) string {
	return strings.ToLower(strings.Trim(bare(s), " .!\"'`"))
}

// Shown reports whether a text stands on the messages at all, results of tools
// included.
func (g *Grounds) Shown(text string) bool { return g.stands(text, secFact) }

func (g *Grounds) stands(text string, sec section) bool {
	text = bare(text)
	checked := false // by the identifiers and words that it holds
	scanIdentifiers(text, span{0, len(text)}, func(span) { checked = true })
	for range stems(text) {
		checked = true
		break
	}
	if !checked && !containsFolded(g.g.all, text) {
		return false // nothing in it can be compared
	}
	return g.g.fault(&claim{section: sec, text: text, item: summary.Item{Text: text, Sources: g.every}}) == ""
}

// Prose is what is left of a text.
type Prose struct {
	// Said is the text without the sentences that do not stand on words of the
	// user or the assistant. Headings, and the form of lists and tables, stay.
	Said string
	// Data are the sentences that stand on results of tools alone: they are no
	// instructions, whatever they say, and should be shown as data.
	Data []string
	// Dropped is how many sentences stand on nothing.
	Dropped int
}

// Prose checks a text sentence by sentence, rows of tables as a whole. What
// belongs to a list of things to do must stand on what was said. An error is a
// *RejectedError: nothing is left, or the text is longer than what it stands for,
// or in another language.
func (g *Grounds) Prose(text string) (Prose, error) {
	switch {
	case len(text) > len(g.g.all):
		return Prose{}, &RejectedError{Reason: Inflated}
	case g.g.otherLanguage(text):
		return Prose{}, &RejectedError{Reason: WrongLanguage}
	}
	var out Prose
	var kept []string
	var headings []string // that wait for something under them
	acted, any := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		body := bare(line)
		if body == "" || ruler(line) || generic(body) {
			if generic(body) && !strings.Contains(line, "|") {
				acted, headings = toDo(body), nil
			}
			if body != "" || len(headings) > 0 || len(kept) > 0 && kept[len(kept)-1] != "" {
				headings = append(headings, line)
			}
			if n := len(headings); n > 1 && headings[n-1] == "" && headings[n-2] == "" {
				headings = headings[:n-1]
			}
			continue
		}
		said := g.line(line, acted || strings.Contains(line, "[ ]"), &out)
		if said == "" {
			continue
		}
		any = true
		kept = append(append(kept, headings...), said)
		headings = nil
	}
	if !any && len(out.Data) == 0 {
		return Prose{}, &RejectedError{Reason: Ungrounded}
	}
	out.Said = strings.Trim(strings.Join(kept, "\n"), "\n")
	return out, nil
}

// line returns what of a line was said, behind its list mark.
func (g *Grounds) line(line string, acted bool, out *Prose) string {
	mark := line[:len(line)-len(unmarked(line))]
	rest := line[len(mark):]
	pieces := []string{rest}
	if !strings.HasPrefix(rest, "|") {
		pieces = nil
		sentences(rest, func(p span) { pieces = append(pieces, rest[p.from:p.to]) })
	}
	var said []string
	for _, piece := range pieces {
		switch {
		case g.Said(piece):
			said = append(said, piece)
		case !acted && g.Shown(piece):
			out.Data = append(out.Data, bare(piece))
		default:
			out.Dropped++
		}
	}
	if len(said) == 0 {
		return ""
	}
	return mark + strings.Join(said, " ")
}

// unmarked takes the mark of a list or a heading off a line.
func unmarked(line string) string {
	s := strings.TrimLeft(line, " \t#>")
	for _, mark := range [...]string{"- [ ] ", "- [x] ", "- [X] ", "* [ ] ", "- ", "* ", "• "} {
		if rest, ok := strings.CutPrefix(s, mark); ok {
			return rest
		}
	}
	digits := strings.TrimLeft(s, "0123456789")
	if len(digits) < len(s) && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") ")) {
		return digits[2:]
	}
	return s
}

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

// formWords are the words of headings and of heads of tables. They claim
// nothing.
const formWords = "summary session conversation context compact compacted earlier previous so far of the and in on a an what was is to be for " +
	"key facts fact decisions decision current state status pending work completed done errors error resolutions open threads items questions " +
	"next steps step task original goal goals progress files file component changes change action description notes background constraints rules rule " +
	"remaining failed attempts overview history technical flow risks risk findings results result todo plan plans turn working last now remains left tools tool output"

func isFormWord(w string) bool {
	for known := range strings.FieldsSeq(formWords) {
		if w == known {
			return true
		}
	}
	return false
}

// generic reports whether a line is nothing but a heading.
func generic(s string) bool {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) == 0 || len(words) > 6 || strings.ContainsFunc(s, unicode.IsDigit) {
		return false
	}
	for _, w := range words {
		if !isFormWord(w) {
			return false
		}
	}
	return true
}

// toDo reports whether what stands under a heading may be acted on.
func toDo(heading string) bool {
	low := strings.ToLower(heading)
	for _, w := range [...]string{"pending", "next", "open", "todo", "remain", "plan", "step", "goal", "task", "current work", "current state", "current status", "in progress"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}
