package summarize

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// lastSaid reports whether the assistant message at i is the last with text of
// its turn.
func (b *builder) lastSaid(i int) bool {
	for j := i + 1; j < len(b.facts); j++ {
		switch {
		case b.messages[j].StartsTurn():
			return true
		case len(b.facts[j].said) > 0:
			return false
		}
	}
	return true
}

// narration reports whether a line only announces what stands beside it.
func narration(s string) bool {
	return announcing(s) || s[0] == '#' || strings.HasSuffix(strings.TrimRight(s, "*"), ":") && !listItem(s) || strings.HasPrefix(s, "**") && strings.HasSuffix(s, "**")
}

// leadsOn reports whether a piece says only what will be done.
func leadsOn(s string) bool {
	return s[0] != '#' && strings.HasSuffix(s, ":") && !listItem(s) && !strings.Contains(s, "\n")
}

// What a piece of the assistant's words is worth by itself.
const (
	wordsClosing   = 3 // the first and the last of a turn's last message: outcome and what is left
	wordsFinal     = 2 // the rest of that message
	wordsOpening   = 3 // the first of a message on the way: what was just found, or why it failed
	wordsOnTheWay  = 1.8
	wordsAnnounced = 0.02 // only leads to what stands beside it
	wordsAsked     = 0.5  // a question that the user's next message tells
	wordsCode      = 0.3
	wordsLongCode  = 0.02
	// wordsAgreed multiplies the worth of what the user answered, as with "yes, do that":
	// what was agreed stands there alone.
	wordsAgreed = 1.5
	// wordsOffered is what an option is worth that the user chose among: "B" says nothing
	// without the others.
	wordsOffered = 5
	// toldBefore is what is left of words that a failed attempt quotes.
	toldBefore = 0.02
	// fullWords is the length, in bytes, below which a piece is worth less: a few words
	// say little.
	fullWords = 60
	// telling is added for a finding, a choice, a cause or a failure.
	telling = 1.2
)

// assistant adds what the assistant said in the message at i.
func (b *builder) assistant(i int, m *thread.Message, f *facts) {
	final := b.lastSaid(i)
	g := group{turn: m.Turn, sources: []thread.ID{m.ID}}
	age := b.age(i)
	for n, p := range f.said {
		if !p.says() || heading(p.text) && len(p.idents) == 0 || announcing(p.text) && !final && p.cues&reasonCue == 0 || !b.once('c', p.text) {
			continue
		}
		base := float32(wordsOnTheWay)
		switch {
		case p.code && len(p.text) > 120:
			base = wordsCode
		case p.code:
			base = wordsLongCode
		case narration(p.text) && (!final || leadsOn(p.text)):
			base = wordsAnnounced
		case p.text[len(p.text)-1] == '?' && b.replied[i]:
			base = wordsAsked
		case final && (n == 0 || n == len(f.said)-1):
			base = wordsClosing
		case final:
			base = wordsFinal
		case n == 0:
			base = wordsOpening
		}
		if p.cues&(decisionCue|choiceCue|failureCue) != 0 && base > wordsAnnounced {
			base += telling
		}
		if _, told := b.seen[said{'m', p.text}]; told {
			base *= toldBefore
		}
		base *= min(1, float32(len(p.text))/fullWords)
		switch {
		case p.cues&choiceCue != 0 && len(p.text) > 40 && (p.cues&reasonCue != 0 || !narration(p.text)) && !strings.Contains(p.text, "\n"):
			b.decision(i, m, p)
		case final && p.cues&openCue != 0 && len(p.text) > 20 && len(p.text) < maxSentence && !leadsIn(p.text) && b.lastTurn(i):
			b.OpenItems = append(b.OpenItems, summary.OpenItem{Description: p.text, Priority: summary.Medium, Turn: m.Turn, Sources: []thread.ID{m.ID}})
			b.entry(secOpen, i, 4, p.idents)
		default:
			switch {
			case final && b.agreed[i] && offers(p.text):
				base = wordsOffered * min(1, float32(len(p.text))/fullWords)
			case final && b.agreed[i]:
				base *= wordsAgreed
			}
			b.piece(secSaid, &g, i, base*age, p).terms = b.terms.add(i, p.terms)
		}
	}
	b.groups[secSaid] = append(b.groups[secSaid], g)
}

// offers reports whether a piece holds an item of a list, perhaps below its heading.
func offers(s string) bool { return listItem(s[strings.LastIndexByte(s, '\n')+1:]) }

// reportWorth is what a piece of a sub-agent's report is worth by itself.
const reportWorth = 1.5

// report takes what a sub-agent answered, behind what it was asked for. It reports once:
// no call brings the same words again.
func (b *builder) report(i int, m *thread.Message, c *callFacts, r *resultFacts) {
	asked := c.input
	if rest, ok := strings.CutPrefix(asked, "description="); ok {
		asked, _, _ = strings.Cut(rest, " prompt=")
	}
	g := group{label: clip.Brief(asked, maxLabel), turn: m.Turn, sources: []thread.ID{m.ID}}
	if len(r.report) == 1 && len(r.report[0].text) < fullWords {
		return // it tells that something was started, and nothing more
	}
	for n, p := range r.report {
		if strings.HasPrefix(p.text, "agentId: ") || !p.says() || heading(p.text) && len(p.idents) == 0 || !b.once('t', p.text) {
			continue
		}
		base := float32(reportWorth) * b.age(i) * min(1, float32(len(p.text))/fullWords)
		switch {
		case p.code:
			base *= wordsCode
		case narration(p.text):
			base *= wordsAnnounced
		case n == 0 || p.cues&(decisionCue|choiceCue|failureCue) != 0:
			base += telling
		}
		b.piece(secReport, &g, i, base, p).terms = b.terms.add(i, p.terms)
	}
	b.groups[secReport] = append(b.groups[secReport], g)
}

// recap takes what a summary of the agent's own says, as lines that may be chosen.
func (b *builder) recap(i int, m *thread.Message, f *facts) {
	g := group{label: "the agent's earlier summary", turn: m.Turn, sources: []thread.ID{m.ID}}
	past := b.stepsAfter(i) > freshSteps
	weight := float32(recapWorth)
	if b.logged[m.ID] {
		weight = recapLogged
	}
	passed := false // below a heading of what was to be done then
	for _, p := range f.recap {
		if heading(p.text) {
			passed = past && toDo(p.text)
			if len(p.idents) == 0 {
				continue // it says nothing without what stands below it
			}
		}
		if passed || len(p.text) < 4 || b.quoted(p.text) || !b.once('t', p.text) {
			continue
		}
		base := weight * b.age(i) * min(1, float32(len(p.text))/60)
		if p.code || narration(p.text) {
			base *= 0.2
		}
		b.piece(secFact, &g, i, base, p)
	}
	b.groups[secFact] = append(b.groups[secFact], g)
	for _, a := range f.artifacts {
		if b.once('a', a.id) {
			b.Artifacts = append(b.Artifacts, summary.ArtifactReference{ArtifactID: a.id, Description: a.description, Turn: m.Turn, Sources: []thread.ID{m.ID}})
			b.entry(secArtifact, i, 6, nil)
		}
	}
}

// What a line of the agent's earlier summary is worth, and where the log holds what it
// sums up: then the log says it, and also what became of it.
const (
	recapWorth  = 1.2
	recapLogged = 0.05
)

// loggedRecaps are the summaries of the agent's own whose messages the log holds.
func loggedRecaps(log []thread.Message) map[thread.ID]bool {
	all := map[thread.ID]bool{}
	steps := 0
	for i := range log {
		switch m := &log[i]; {
		case m.Kind == thread.Recap:
			all[m.ID] = steps > freshSteps
			steps = 0
		case m.Role == thread.Assistant:
			steps++
		}
	}
	return all
}

// freshSteps is how many steps after a summary of the agent's own what it says of
// the present state and of the next steps still holds.
const freshSteps = 3

// stepsAfter counts the steps of the agent after the message at i, up to a few.
func (b *builder) stepsAfter(i int) int {
	n := 0
	for j := i + 1; j < len(b.messages) && n <= freshSteps; j++ {
		if b.messages[j].Role == thread.Assistant {
			n++
		}
	}
	return n
}

// heading reports whether a line of a summary is a heading of its own.
func heading(s string) bool {
	if len(s) > 80 {
		return false
	}
	digits := strings.TrimLeft(s, "0123456789")
	return s[0] == '#' || len(digits) < len(s) && strings.HasPrefix(digits, ". ") && s[len(s)-1] == ':' || strings.HasPrefix(s, "**") && strings.HasSuffix(strings.TrimSuffix(s, ":"), "**")
}

// quoted reports whether a line only repeats a message of the user's that stands
// among the requests.
func (b *builder) quoted(s string) bool {
	s = strings.Trim(unmarked(s), "\"“”' ")
	_, is := b.seen[said{'u', s}]
	return is
}
