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

// ruleBase is the value of a rule by how surely it is one. What may be a rule is worth
// so little that a short one does not take the room of a sure one.
func ruleBase(s string) float32 {
	if cues, _ := cuesOf(s); cues&ruleCue != 0 {
		return 6
	}
	return 1
}

// substantial reports whether a user message can stand as the task: not a bare
// "yes", "go on" or "thanks".
func substantial(s string) bool { return len(s) >= 40 || strings.Count(s, " ") >= 6 }

// answerWords open a message that answers what was asked or offered before.
var answerWords = set("yes yeah yep yup no nope nah ok okay sure right correct exactly agreed fine sounds both neither option")

// answers reports whether a user message opens as an answer: what it is about stands in
// the assistant's words before it.
func answers(s string) bool {
	first := strings.ToLower(strings.Trim(firstWord(s), ",.;:!?-—()#"))
	return answerWords[first] || len(first) == 1 && isDigit(first[0])
}

// picks reports whether a user message names one of several options by its letter or its
// number: "I think B, nested in the options".
func picks(s string) bool {
	words := strings.Fields(s)
	for i, w := range words[:min(len(words), optionWords)] {
		bare := strings.Trim(w, ".,:;!?()*")
		if len(bare) != 1 {
			continue
		}
		switch c := bare[0]; {
		case c >= 'B' && c <= 'H', c == 'A' && (i > 0 || len(words) == 1 || w != bare):
			return true
		case isDigit(c) && (i == 0 || strings.EqualFold(words[i-1], "option")):
			return true
		}
	}
	return false
}

// optionWords is within how many words of a message an option is named.
const optionWords = 8

func (b *builder) user(i int, m *thread.Message, f *facts) {
	if b.once('u', f.user) {
		b.Requests = append(b.Requests, summary.Item{Text: f.user, Turn: m.Turn, Sources: []thread.ID{m.ID}})
		b.requests = append(b.requests, request{f.idents, f.typed})
		// What a command stands for says little of what this user is after.
		if b.task < 0 || substantial(f.user) && !f.typed || b.requests[b.task].command || !substantial(b.Requests[b.task].Text) {
			b.task = len(b.Requests) - 1
		}
	}
	for _, r := range f.rules {
		// A short message can be its own rule; it stands in full among the requests,
		// but only here is it safe from being trimmed later.
		if !b.once('r', r.text) {
			continue
		}
		b.Constraints = append(b.Constraints, summary.Item{Text: r.text, Turn: m.Turn, Sources: []thread.ID{m.ID}})
		b.stated = append(b.stated, rule{f.user, r.cues&ruleCue == 0})
		b.entry(secConstraint, i, ruleBase(r.text)*(0.5+b.age(i)/2), r.idents)
	}
}

// lastTurn reports whether no later turn begins after i.
func (b *builder) lastTurn(i int) bool {
	return b.messages[i].Turn == b.messages[len(b.messages)-1].Turn
}

func (b *builder) decision(i int, m *thread.Message, p piece) {
	d := summary.Decision{Decision: p.text, Turn: m.Turn, Time: m.Time, Sources: []thread.ID{m.ID}}
	if p.reason > 20 && p.reason < len(p.text) && strings.HasPrefix(strings.ToLower(p.text[p.reason:]), "because ") {
		d.Decision = strings.TrimRight(p.text[:p.reason], " ,")
		d.Rationale = p.text[p.reason+len("because "):]
	}
	b.Decisions = append(b.Decisions, d)
	c := b.entry(secDecision, i, 3*b.age(i), p.idents)
	if p.cues&choiceCue != 0 {
		// What was chosen holds until something else is, however old it is.
		c.choice, c.base = true, 3*(0.5+b.age(i)/2)
	}
}

// says reports whether a piece of what an assistant said is long enough to be told.
func (p *piece) says() bool {
	return len(p.text) >= 4 && (!p.code || len(p.text) >= 12 && len(p.idents) > 0)
}
