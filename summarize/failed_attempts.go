package summarize

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

const (
	// attemptWorth is the value of a failed attempt, editWorth that of an edit that the
	// file did not take and another did, and missWorth that of a call that only named
	// what is not there.
	attemptWorth = 2.5
	editWorth    = 1
	missWorth    = 0.4
	// maxMending is how many edits after a failure are told of it, and nextMessages how
	// many messages are looked at for them and for the assistant's words.
	maxMending   = 2
	nextMessages = 60
)

// failure notes what was tried, how it failed, and what the agent said and changed
// next.
func (b *builder) failure(i int, m, asked *thread.Message, c *callFacts, r *resultFacts) {
	lines, idents := reason(r)
	if lines == "" || c.prints {
		return // a search that found nothing
	}
	text := c.name + " " + clip.Brief(c.input, 120) + " => " + lines
	sources := []thread.ID{asked.ID, m.ID}
	idents = slices.Concat(c.asked, idents)
	mends := b.mending(i, c)
	if j := b.saidNext(i); j >= 0 {
		said := b.facts[j].said[0]
		switch {
		case !announces(said.text):
			text += " | then the assistant: " + clip.Brief(said.text, 200)
			b.once('m', said.text)
			idents = append(idents, said.idents...)
		case c.class == toolpolicy.Read || c.class == toolpolicy.List:
			return // what is not there was looked for elsewhere
		}
		sources = append(sources, b.messages[j].ID)
	} else if len(mends) == 0 && c.class != toolpolicy.Shell && c.class != toolpolicy.Other {
		return // the agent passed over it
	}
	for _, e := range mends {
		text += " | edited next: " + e.text
		sources = append(sources, e.from)
	}
	if !b.once('f', text) {
		return
	}
	b.tried[len(b.FailedAttempts)] = core(c.name, c.input)
	b.FailedAttempts = append(b.FailedAttempts, summary.Item{Text: text, Turn: m.Turn, Sources: sources})
	worth := float32(attemptWorth)
	switch {
	case c.class == toolpolicy.Shell, c.class == toolpolicy.Other:
	case len(mends) == 0:
		worth = missWorth
	default:
		worth = editWorth
	}
	b.entry(secFailed, i, worth*b.age(i), idents)
}

// saidNext is the place of the first words of the assistant after the message at i
// in its turn, or -1.
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

// mend is an edit that came after a failure.
type mend struct {
	text string
	from thread.ID
}

// mending are the first edits after a failed command in its turn, up to where the
// same command is run again; after a failed edit, the one of the same file that worked.
func (b *builder) mending(i int, c *callFacts) []mend {
	edit := (c.class == toolpolicy.Edit || c.class == toolpolicy.Write) && c.path() != ""
	if c.class != toolpolicy.Shell && !edit {
		return nil
	}
	var all []mend
	again := core(c.name, c.input)
	for j := i + 1; j < min(len(b.facts), i+nextMessages) && !b.messages[j].StartsTurn(); j++ {
		for n := range b.facts[j].calls {
			e := &b.facts[j].calls[n]
			if !edit && core(e.name, e.input) == again {
				return all
			}
			if edit && e.path() != c.path() {
				continue
			}
			if (e.class == toolpolicy.Edit || e.class == toolpolicy.Write) && e.path() != "" && len(e.hunks) > 0 && b.worked(j, e.id) {
				all = append(all, mend{lastParts(e.path()) + " " + e.hunks[0].brief(), b.messages[j].ID})
				if edit || len(all) == maxMending {
					return all
				}
			}
		}
	}
	return all
}

// worked reports whether a call of the message at j succeeded.
func (b *builder) worked(j int, id string) bool {
	for k := j + 1; k < min(len(b.facts), j+nextMessages); k++ {
		if r := b.facts[k].result; r != nil && r.callID == id {
			return r.outcome != thread.Failure
		}
		if b.messages[k].StartsTurn() {
			return false
		}
	}
	return false
}

// brief tells a hunk on one line.
func (h hunk) brief() string {
	first := func(lines []string) string {
		comment := ""
		for _, line := range lines {
			switch line = strings.TrimSpace(line); {
			case len(line) <= 2:
			case line[0] != '/' && line[0] != '#' && line[0] != '*':
				return clip.Brief(line, maxOneChange)
			case comment == "":
				comment = clip.Brief(line, maxOneChange)
			}
		}
		return comment
	}
	from, to := first(h.minus), first(h.plus)
	switch {
	case to == "":
		return "without: " + from
	case from == "":
		return "with: " + to
	}
	return from + " → " + to
}
