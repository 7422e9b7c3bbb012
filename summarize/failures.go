package summarize

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

const (
	// The base value of a failed command, of a failed edit that was mended, and of another
	// failed call, which mostly named what does not exist.
	attemptWorth = 2.5
	editWorth    = 1
	missWorth    = 0.4
	// saidWorth is the base value of a rejected call with the user's words, of which at most
	// maxSaid bytes are shown.
	saidWorth = 6
	maxSaid   = 400
	// maxMending is how many edits after a failure are shown with it; they and the assistant's
	// words are looked for in the next nextMessages messages.
	maxMending   = 2
	nextMessages = 60
)

// failure adds a failed attempt: the call, why it failed, and what the agent said and changed
// next.
func (b *builder) failure(i int, m, asked *thread.Message, c *callFacts, r *resultFacts) {
	if r.DeniedByUser {
		b.rejection(i, m, asked, c, r)
		return
	}
	lines, idents := reason(r)
	if lines == "" || c.onlyPrints {
		return // a search that found nothing
	}
	a := attempt{call: c.Same(), outcome: len(b.ToolOutcomes) - 1, why: c.Name + " " + clip.Brief(c.Input, 120) + " => " + lines}
	sources := []thread.ID{asked.ID, m.ID}
	a.mends = b.repairs(i, c, lines)
	idents = slices.Concat(c.inputIdents, idents)
	if j := b.saidNext(i); j >= 0 {
		said := b.facts[j].said[0]
		switch {
		case !announces(said.text):
			a.said = said.text
			b.unseen(seenQuoted, said.text)
			idents = append(idents, said.idents...)
		case c.Class == toolclass.Read || c.Class == toolclass.List:
			return // the agent looked for it elsewhere
		}
		sources = append(sources, b.messages[j].ID)
	} else if len(a.mends) == 0 && c.Class != toolclass.Shell && c.Class != toolclass.Other {
		return // the agent ignored it
	}
	for _, e := range a.mends {
		sources = append(sources, e.source)
	}
	if !b.unseen(seenFailure, a.why) {
		return
	}
	b.attempts[len(b.FailedAttempts)] = &a
	b.FailedAttempts = append(b.FailedAttempts, summary.Item{Text: a.text(nil), Turn: m.Turn, Sources: sources})
	worth := float32(attemptWorth)
	switch {
	case c.Class == toolclass.Shell, c.Class == toolclass.Other:
	case len(a.mends) == 0:
		worth = missWorth
	default:
		worth = editWorth
	}
	b.entry(secFailed, i, worth*b.age(i), idents)
}

// attempt is a failed attempt, in its parts; of one of the previous summary why is all of it.
type attempt struct {
	call    string // work.Call.Same
	outcome int    // its place in the list of calls
	why     string // the call, and the lines that say why it failed
	said    string // what the assistant said next; may be empty
	mends   []repair
	again   int  // the turn in which the same call succeeded later
	works   bool // it did
}

// rejection adds a call that the user did not allow, with what the user said instead.
func (b *builder) rejection(i int, m, asked *thread.Message, c *callFacts, r *resultFacts) {
	why, worth := "the user did not allow it", float32(missWorth)
	var idents []mention
	if words := m.Said(); words != "" {
		why, worth = "the user said: "+clip.Brief(oneLine(words), maxSaid), saidWorth
		idents = mentions(nil, words)
	}
	a := attempt{why: c.Name + " " + clip.Brief(c.Input, 120) + " => " + why}
	if !b.unseen(seenFailure, a.why) {
		return
	}
	b.attempts[len(b.FailedAttempts)] = &a
	b.FailedAttempts = append(b.FailedAttempts, summary.Item{Text: a.why, Turn: m.Turn, Sources: []thread.ID{asked.ID, m.ID}})
	b.entry(secFailed, i, worth*b.age(i), idents)
}

// What the text of an attempt says besides why it failed.
const (
	thenSaid   = " | then the assistant: "
	thenEdited = " | edited next: "
	thenWorked = " | it succeeded later"
)

// whyFailed is the part of an attempt's text that is the same in every summary.
func whyFailed(text string) string {
	for _, mark := range [...]string{thenSaid, thenEdited, thenWorked} {
		text, _, _ = strings.Cut(text, mark)
	}
	return text
}

// text is the attempt on one line, without the words that the story tells in full.
func (a *attempt) text(told map[string]bool) string {
	s := a.why
	if a.said != "" && !told[a.said] {
		s += thenSaid + clip.Brief(a.said, 200)
	}
	for _, e := range a.mends {
		edit := thenEdited + e.file
		if e.from != "" && len(e.from)+len(e.to) <= 2*maxOneChange {
			edit += " " + e.from + " → " + e.to
		}
		s = strings.TrimSuffix(s, edit) + edit // the same file twice, without a line that is short enough, is told once
	}
	if a.works {
		s += thenWorked + ", in turn " + strconv.Itoa(a.again)
	}
	return s
}

// saidNext returns the position of the assistant's next message in the turn of i; -1 if it has
// no text.
func (b *builder) saidNext(i int) int {
	for j := i + 1; j < min(len(b.facts), i+nextMessages) && !b.messages[j].StartsTurn(); j++ {
		if b.messages[j].Role == thread.Assistant {
			if len(b.facts[j].said) > 0 {
				return j
			}
			return -1
		}
	}
	return -1
}

// repair is an edit that came after a failure.
type repair struct {
	file     string // the end of its path
	from, to string // of a change of one line
	source   thread.ID
}

// repairs returns the first edits after a failed check, until the same command runs again,
// without those of documents that it does not name; after a failed edit the next one of the file.
// What a later turn edits may be for something else.
func (b *builder) repairs(i int, c *callFacts, why string) []repair {
	edit := (c.Class == toolclass.Edit || c.Class == toolclass.Write) && c.path() != ""
	if !c.Checks() && !edit {
		return nil
	}
	var all []repair
	for j := i + 1; j < min(len(b.facts), i+nextMessages) && !b.messages[j].StartsTurn(); j++ {
		for n := range b.facts[j].calls {
			e := &b.facts[j].calls[n]
			switch {
			case !edit && e.Same() == c.Same() && e.Same() != "":
				return all
			case e.Class != toolclass.Edit && e.Class != toolclass.Write || e.path() == "":
			case !edit && prosePath(e.path()) && !strings.Contains(why, path.Base(e.path())):
			case edit && e.path() != c.path(), !b.mended(j, e):
			default:
				all = append(all, repair{lastParts(e.path()), e.from, e.to, b.messages[j].ID})
				if edit || len(all) == maxMending {
					return all
				}
			}
		}
	}
	return all
}

// prosePath reports whether a file holds a text for people.
func prosePath(name string) bool {
	return slices.Contains([]string{".md", ".mdx", ".rst", ".txt"}, path.Ext(name))
}

// mended reports whether a call of the message at j succeeded.
func (b *builder) mended(j int, c *callFacts) bool {
	for k := j + 1; k < min(len(b.facts), j+nextMessages); k++ {
		if r := b.facts[k].result; r != nil && r.CallID == c.ID {
			return judge(r, c, c.Class) == thread.Success
		}
		if b.messages[k].StartsTurn() {
			return false
		}
	}
	return false
}

// How much of a failure is shown, in bytes: in the list of calls, and in the story.
const (
	maxErrorText = 420
	maxReason    = 300
)

// errorText joins the most telling lines of a failed output, in their order.
func errorText(r *resultFacts) (string, []mention) {
	if line := r.ownError(); line != "" {
		return clip.Brief(line, maxLine), mentions(nil, line)
	}
	chosen := map[string]bool{}
	size, n := 0, 0
	for score := float32(3); score >= 1; score-- {
		for i := range r.errorLines {
			if p := &r.errorLines[i]; p.score == score && size+len(p.text) <= maxErrorText && n < 6 {
				chosen[p.text] = true
				size, n = size+len(p.text), n+1
			}
		}
	}
	var lines []string
	var idents []mention
	for i := range r.errorLines {
		if p := &r.errorLines[i]; chosen[p.text] {
			delete(chosen, p.text)
			lines, idents = append(lines, p.text), append(idents, p.idents...)
		}
	}
	if len(lines) == 0 {
		for _, l := range []string{r.First, r.last} {
			if l != "" && !slices.Contains(lines, l) {
				lines = append(lines, clip.Brief(l, maxLine))
			}
		}
	} else if r.last != "" && !slices.Contains(lines, r.last) && len(r.last) < 100 {
		lines = append(lines, r.last)
	}
	return strings.Join(lines, "\n"), idents
}

// ownError is what a tool for files says of its own failure, in its first line: the lines below may
// quote the file. It is empty for programs, which print their errors anywhere.
func (r *resultFacts) ownError() string {
	switch toolclass.ClassOf(r.tool) {
	case toolclass.Edit, toolclass.Write, toolclass.Read, toolclass.List:
		return r.First
	}
	return ""
}

// reason returns the lines that say why a call failed, on one line.
func reason(r *resultFacts) (string, []mention) {
	switch {
	case r.Stopped != "": // what it had printed does not say why
		return r.Stopped, nil
	case r.Claim != "":
		return r.Claim, nil
	case r.ownError() != "":
		return clip.Brief(r.ownError(), 160), mentions(nil, r.ownError())
	}
	found := diagnostics(r)
	best := float32(0)
	for _, p := range found {
		best = max(best, telltale(p))
	}
	var lines []string
	var idents []mention
	size := 0
	for _, p := range found {
		if telltale(p) < best || shell.StatusLine(p.text) || slices.Contains(lines, p.text) {
			continue
		}
		text := clip.Brief(p.text, 160)
		if size += len(text); len(lines) > 0 && size > maxReason {
			break
		}
		lines, idents = append(lines, text), append(idents, p.idents...)
	}
	if len(lines) > 0 {
		return strings.Join(lines, " ; "), idents
	}
	for n := range r.idLines {
		if p := &r.idLines[n]; placed(p.text) {
			return clip.Brief(p.text, 160), p.idents
		}
	}
	for _, line := range []string{r.First, r.last} {
		if line != "" && !shell.StatusLine(line) && line != "(no output)" {
			return clip.Brief(line, 140), nil
		}
	}
	return "", nil
}

// diagnostics returns the lines of a failed output that report an error, and those of
// compilers and linters, which name a column of a file but often no error, in order.
func diagnostics(r *resultFacts) []*piece {
	all := make([]*piece, 0, len(r.errorLines))
	for n := range r.errorLines {
		all = append(all, &r.errorLines[n])
	}
	if r.source == inSearch || r.source == inRead {
		return all
	}
	for n := range r.idLines {
		if p := &r.idLines[n]; p.window == 0 && inColumn(p.text) {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b *piece) int { return a.line - b.line })
	return all
}

// telltale says how much a line explains a failure: more if it names a position in a file.
func telltale(p *piece) float32 {
	score := min(p.score, 2)
	if p.score == 0 && inColumn(p.text) {
		score = 1
	}
	if placed(p.text) {
		score += 2
	}
	return score
}

// inColumn reports whether a line begins with a position that has a column: "a/b.go:12:3: ".
func inColumn(s string) bool {
	if !placed(s) {
		return false
	}
	rest := strings.TrimLeft(s[strings.IndexAny(s, ":(")+1:], "0123456789")
	if rest == "" || rest[0] != ':' && rest[0] != ',' {
		return false
	}
	column := strings.TrimLeft(rest[1:], "0123456789")
	return len(column) < len(rest)-1 && column != "" && (column[0] == ':' || column[0] == ')')
}

// placed reports whether a line begins with a position in a file: "a/b.go:12: ".
func placed(s string) bool {
	at := strings.IndexByte(s, ':')
	if open := strings.IndexByte(s, '('); open > 0 && (at < 0 || open < at) {
		at = open // src/a.ts(12,3): error
	}
	return at > 2 && at+1 < len(s) && scan.IsDigit(s[at+1]) && strings.IndexByte(s[:at], '.') > 0 && !strings.ContainsAny(s[:at], " \t")
}
