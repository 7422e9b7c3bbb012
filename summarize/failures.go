package summarize

import (
	"path"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/shell"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

const (
	// The base value of a failed command, and of a failed edit.
	attemptWorth = 2.5
	missWorth    = 0.4
	// saidWorth is the base value of a rejected call with the user's words, of which at most
	// maxSaid bytes are shown.
	saidWorth = 6
	maxSaid   = 400
)

// failure adds a failed attempt: the call, and why it failed.
func (b *builder) failure(i int, m, asked *thread.Message, c *callFacts, r *resultFacts) {
	if r.DeniedByUser {
		why, worth := "the user did not allow it", float32(missWorth)
		if words := m.Said(); words != "" {
			why, worth = "the user said: "+clip.Brief(oneLine(words), maxSaid), saidWorth
		}
		b.attempt(i, m, asked, c, attempt{}, why, worth, mentions(nil, m.Said()))
		return
	}
	lines, idents := reason(r)
	if lines == "" || c.onlyPrints {
		return // a search that found nothing
	}
	worth := float32(attemptWorth)
	switch c.Class {
	case toolclass.Shell, toolclass.Other:
	case toolclass.Edit, toolclass.Write:
		worth = missWorth
	default:
		return // it was looked for elsewhere
	}
	b.attempt(i, m, asked, c, attempt{call: c.Same(), outcome: len(b.ToolOutcomes) - 1}, lines, worth, slices.Concat(c.inputIdents, idents))
}

// attempt adds a call and why it failed, once.
func (b *builder) attempt(i int, m, asked *thread.Message, c *callFacts, a attempt, why string, worth float32, idents []mention) {
	text := c.Name + " " + clip.Brief(c.Input, 120) + " => " + why
	if !b.unseen(seenFailure, text) {
		return
	}
	b.attempts[len(b.FailedAttempts)] = a
	b.FailedAttempts = append(b.FailedAttempts, summary.Item{Text: text, Turn: m.Turn, Sources: []thread.ID{asked.ID, m.ID}})
	b.entry(secFailed, i, worth*b.age(i), idents)
}

// attempt is what tells whether a call that failed succeeded later.
type attempt struct {
	call    string // work.Call.Same
	outcome int    // its place in the list of calls
}

// thenWorked is what the text of an attempt says besides why it failed, with the turn.
const thenWorked = " | it succeeded later"

// whyFailed is the part of an attempt's text that is the same in every summary.
func whyFailed(text string) string {
	why, _, _ := strings.Cut(text, thenWorked)
	return why
}

// prosePath reports whether a file holds a text for people.
func prosePath(name string) bool {
	return slices.Contains([]string{".md", ".mdx", ".rst", ".txt"}, path.Ext(name))
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

// maxReason bounds the line that says why a call failed, in bytes.
const maxReason = 300

// placed begins a finding of a compiler, a linter or a test: "a/b.go:12:3: ", "src/a.ts(12,3): ".
var placed = lazyregexp.New(`^[^\s:(]*\.[^\s:(]+[:(]\d+(?:[:,]\d+)?\)?: `)

// reason returns the line that says why a call failed: one that names a position in a file, or the first
// that reports an error.
func reason(r *resultFacts) (string, []mention) {
	switch {
	case r.Stopped != "": // what it had printed does not say why
		return r.Stopped, nil
	case r.Claim != "":
		return r.Claim, nil
	case r.ownError() != "":
		return clip.Brief(r.ownError(), maxReason), mentions(nil, r.ownError())
	}
	for _, list := range [...][]piece{r.errorLines, r.idLines} {
		for n := range list {
			if p := &list[n]; placed().MatchString(p.text) {
				return clip.Brief(p.text, maxReason), p.idents
			}
		}
	}
	for n := range r.errorLines {
		if p := &r.errorLines[n]; !shell.StatusLine(p.text) {
			return clip.Brief(p.text, maxReason), p.idents
		}
	}
	for _, line := range []string{r.First, r.last} {
		if line != "" && !shell.StatusLine(line) && line != "(no output)" {
			return clip.Brief(line, maxReason), nil
		}
	}
	return "", nil
}
