package summarize

import (
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

const (
	// The base value of a failed command, of a failed edit that was mended, and of another
	// failed call, which mostly named what does not exist.
	attemptWorth = 1.75
	editWorth    = 0.7
	missWorth    = 0.28
	// saidWorth is the base value of a rejected call with the user's words, of which at most
	// maxSaid bytes are shown.
	saidWorth = 4.2
	maxSaid   = 400
	// maxMending is how many edits after a failure are shown with it; they and the assistant's
	// words are looked for in the next nextMessages messages of the turn.
	maxMending   = 2
	nextMessages = 60
	// maxThenSaid is how much is quoted of what the assistant said next, in bytes.
	maxThenSaid = 200
	// programStatus begins a line that says only how a program ended which another ran.
	programStatus = "exit status "
)

// attempt is a failed attempt, in its parts.
type attempt struct {
	why   string // the call, and the lines that say why it failed
	said  string // what the assistant said next; may be empty
	mends []repair
}

// repair is an edit that came after a failure.
type repair struct {
	file   string // the end of its path
	source thread.ID
}

// failure adds a failed attempt: the call, why it failed, and what the agent said and changed
// next, or what the user said who did not allow it.
func (b *builder) failure(x *exchange) {
	c, a := x.call, &attempt{why: x.call.Name + " " + clip.Brief(x.call.Input, 120) + " => "}
	if x.result.DeniedByUser {
		why, worth := "the user did not allow it", float32(missWorth)
		words := x.told.Said()
		if words != "" {
			why, worth = "the user said: "+clip.Brief(oneLine(words), maxSaid), saidWorth
		}
		a.why += why
		b.attempt(x, a, "", worth, x.sources(), mentions(nil, words))
		return
	}
	why, idents := x.result.why(" ; ")
	if why == "" || c.onlyPrints {
		return // a search that found nothing
	}
	a.why += why
	a.mends = b.repairs(x, why)
	operates, sources := c.Class == toolclass.Shell || c.Class == toolclass.Other, x.sources()
	idents = slices.Concat(c.inputIdents, idents)
	if j := b.saidNext(x.at); j >= 0 {
		said := b.facts[j].said[0]
		switch {
		case !announces(said.text):
			a.said, idents = said.text, append(idents, said.idents...)
		case c.Class == toolclass.Read || c.Class == toolclass.List:
			return // the agent looked for it elsewhere
		}
		sources = append(sources, b.messages[j].ID)
	} else if len(a.mends) == 0 && !operates {
		return // the agent ignored it
	}
	for _, e := range a.mends {
		sources = append(sources, e.source)
	}
	worth := float32(editWorth)
	switch {
	case operates:
		worth = attemptWorth
	case len(a.mends) == 0:
		worth = missWorth
	}
	b.attempt(x, a, c.Same(), worth, sources, idents)
}

// attempt adds a failed attempt that is new; same is what it is the same call as (work.Call.Same).
func (b *builder) attempt(x *exchange, a *attempt, same string, worth float32, sources []thread.ID, idents []mention) {
	if !b.unseen(seenFailure, a.why) {
		return
	}
	b.remember(same)
	b.FailedAttempts = append(b.FailedAttempts, summary.Item{Text: a.text(), Turn: x.told.Turn, Sources: sources})
	b.entry(secFailed, x.at, worth, idents)
}

// remember notes the next failed attempt, which a later success of the same call is told with.
func (b *builder) remember(same string) {
	if same != "" {
		b.failing[same] = append(b.failing[same], len(b.FailedAttempts))
	}
}

// noteSuccess adds to failed attempts that the same call succeeded later, if the result proves it.
func (b *builder) noteSuccess(x *exchange) {
	if x.call == nil || x.ended != thread.Success {
		return
	}
	same := x.call.Same()
	if len(b.failing[same]) == 0 || x.class == toolclass.Shell && !x.call.Succeeded(&x.result.Result, b.flags[x.call.Name]) {
		return
	}
	for _, n := range b.failing[same] {
		b.FailedAttempts[n].Text += thenWorked + ", in turn " + strconv.Itoa(x.told.Turn)
	}
	delete(b.failing, same)
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

// text is the attempt on one line.
func (a *attempt) text() string {
	s := a.why
	if a.said != "" {
		s += thenSaid + clip.Brief(a.said, maxThenSaid)
	}
	for _, e := range a.mends {
		edit := thenEdited + e.file
		s = strings.TrimSuffix(s, edit) + edit // the same file twice is told once
	}
	return s
}

// next yields the next messages of the turn.
func (b *builder) next(i int) iter.Seq2[int, *facts] {
	return func(yield func(int, *facts) bool) {
		for j := i + 1; j < min(len(b.facts), i+nextMessages) && !b.messages[j].StartsTurn() && yield(j, b.facts[j]); j++ {
		}
	}
}

// saidNext returns the position of the assistant's next message in the turn of i; -1 if it has
// no text.
func (b *builder) saidNext(i int) int {
	for j, f := range b.next(i) {
		if b.messages[j].Role == thread.Assistant {
			if len(f.said) > 0 {
				return j
			}
			break
		}
	}
	return -1
}

// repairs returns the first edits after a failed check, until the same command runs again,
// without those of documents that it does not name; after a failed edit the next one of the file.
// What a later turn edits may be for something else.
func (b *builder) repairs(x *exchange, why string) (all []repair) {
	c := x.call
	edit := changesFile(c.Class) && c.path() != ""
	if !c.Checks() && !edit {
		return nil
	}
	for j, f := range b.next(x.at) {
		for n := range f.calls {
			e := &f.calls[n]
			switch {
			case !edit && e.Same() == c.Same() && e.Same() != "":
				return all
			case !changesFile(e.Class) || e.path() == "":
			case !edit && prosePath(e.path()) && !strings.Contains(why, path.Base(e.path())):
			case edit && e.path() != c.path(), !b.mended(j, e):
			default:
				all = append(all, repair{lastParts(e.path()), b.messages[j].ID})
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
	for _, f := range b.next(j) {
		if r := f.result; r != nil && r.CallID == c.ID {
			return judge(r, c, c.Class) == thread.Success
		}
	}
	return false
}

// How much is shown of why something failed, in bytes: of all lines, and of each.
const (
	maxReason     = 300
	maxReasonLine = 160
)

// why joins the lines that say best why a call failed: what the harness, or a tool for files, says of it
// itself, else the lines that report an error most clearly, and in which file.
func (r *resultFacts) why(between string) (text string, idents []mention) {
	switch own := r.ownError(); {
	case r.Stopped != "": // what it had printed does not say why
		return r.Stopped, nil
	case r.Claim != "":
		return r.Claim, nil
	case own != "":
		return clip.Brief(own, maxReasonLine), mentions(nil, own)
	}
	best, size := float32(1), 0
	for n := range r.idLines {
		best = max(best, r.telltale(&r.idLines[n]))
	}
	var lines []string
	for n := range r.idLines {
		p := &r.idLines[n]
		if r.telltale(p) < best || strings.HasPrefix(p.text, programStatus) {
			continue
		}
		line := clip.Brief(p.text, maxReasonLine)
		if slices.Contains(lines, line) {
			continue
		}
		if size += len(line); len(lines) > 0 && size > maxReason {
			break
		}
		lines, idents = append(lines, line), append(idents, p.idents...)
	}
	if len(lines) > 0 {
		return strings.Join(lines, between), idents
	}
	for n := range r.idLines {
		if p := &r.idLines[n]; filePosition(p.text) > 0 {
			return clip.Brief(p.text, maxReasonLine), p.idents
		}
	}
	for _, line := range []string{r.First, r.Last} {
		if line != "" && !strings.HasPrefix(line, programStatus) {
			return clip.Brief(line, maxReasonLine), nil
		}
	}
	return "", nil
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

// telltale says how much a line explains a failure, 0 for nothing: it reports an error, or a compiler or a linter
// names a column of a file, often without an error; more if it names a position in a file.
func (r *resultFacts) telltale(p *piece) float32 {
	score := min(p.score, 2)
	position := 0
	if score > 0 || !r.quotes() && p.window == 0 {
		position = filePosition(p.text)
	}
	if score == 0 && position == 2 {
		score = 1
	}
	if score > 0 && position > 0 {
		score += 2
	}
	return score
}

// filePosition reports whether a line begins with a position in a file: 1 for a line of it, "a/b.go:12: ",
// 2 for a column too, "a/b.go:12:3: " or "src/a.ts(12,3): ", 0 for none. The name that a runner of tasks writes in
// front of it, "[lint] ", does not count.
func filePosition(s string) int {
	if task, rest, ok := strings.Cut(s, "] "); ok && s[0] == '[' && !strings.Contains(task, " ") {
		s = rest
	}
	at := strings.IndexAny(s, ":(")
	if at <= 2 || at+1 == len(s) || !scan.IsDigit(s[at+1]) || strings.IndexByte(s[:at], '.') <= 0 || strings.ContainsAny(s[:at], " \t") {
		return 0
	}
	rest := strings.TrimLeft(s[at+1:], "0123456789")
	if rest == "" || rest[0] != ':' && rest[0] != ',' {
		return 1
	}
	if end := strings.TrimLeft(rest[1:], "0123456789"); end != "" && len(end) < len(rest)-1 && (end[0] == ':' || end[0] == ')') {
		return 2
	}
	return 1
}
