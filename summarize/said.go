package summarize

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// lastText reports whether no later assistant message of the turn has text, here or in the prompt below.
func (b *builder) lastText(i int) bool {
	for j := i + 1; j < len(b.facts); j++ {
		switch {
		case b.messages[j].StartsTurn():
			return true
		case len(b.facts[j].said) > 0:
			return false
		}
	}
	return !slices.ContainsFunc(b.in.Context, func(m thread.Message) bool {
		return m.Turn == b.messages[i].Turn && m.Author() == thread.ByModel && m.Text() != ""
	})
}

// The base value of a piece of the assistant's words.
const (
	wordsQuoted    = 6   // of the user, in a summary of ours: there may be a rule in them, and the log no longer has them
	wordsClosing   = 2.1 // the first and the last piece of a turn's last message: outcome, open ends
	wordsOnTheWay  = 1.3
	wordsAnnounced = 0.02 // an announcement of what follows, or what could follow any conversation
	wordsAsked     = 0.35 // a question whose content the user's answer repeats
	wordsCode      = 0.1  // code, or a tree
	// wordsOffered is for an option that the user chose among: the answer "B" says nothing
	// without them.
	wordsOffered = 3.5
	// wordsPicked is for the option that the user chose by its letter or its number.
	wordsPicked = 7
	// maxShort is how many bytes of a message say whether it is idle.
	maxShort = 120
	// fullWords is the length, in bytes, below which a piece is worth less.
	fullWords = 60
)

// assistant adds what the assistant said in the message at i.
func (b *builder) assistant(i int, m *thread.Message, f *facts) {
	final := b.lastText(i)
	g := group{turn: m.Turn, sources: []thread.ID{m.ID}}
	for n, p := range f.said {
		if !p.substantial() || heading(p.text) && len(p.idents) == 0 || announcing(p.text) && !final && !p.tellsWhy() || !b.unseen(seenWords, p.text) {
			continue
		}
		base := float32(wordsOnTheWay)
		switch {
		case p.saysNothing():
			base = wordsAnnounced
		case p.code:
			base = wordsCode
		case narration(p.text) && (!final || leadsOn(p.text)) && !p.tellsWhy():
			base = wordsAnnounced
		case p.text[len(p.text)-1] == '?' && b.replied[i]:
			base = wordsAsked
		case final && (n == 0 || n == len(f.said)-1):
			base = wordsClosing
		}
		base *= min(1, float32(len(p.text))/fullWords)
		switch {
		case final && b.picked[i] != 0 && labelled(p.text, b.picked[i]):
			base = wordsPicked
		case final && b.agreed[i] && offers(p.text):
			base = wordsOffered * min(1, float32(len(p.text))/fullWords)
		}
		b.piece(secSaid, &g, i, base, p).terms = b.terms.add(i, p.terms)
		b.outdateProgress(i, p.text)
	}
	b.groups[secSaid] = append(b.groups[secSaid], g)
}

// outdateProgress leaves out what the message at i reports again with other figures, "Step 3 of 40", from the third time in
// a turn on.
func (b *builder) outdateProgress(i int, text string) {
	key := progressKey{b.messages[i].Turn, strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return '#'
		}
		return r
	}, text)}
	if len(text) > maxProgress || key.text == text {
		return
	}
	r := b.progress[key]
	if r.times++; r.times >= 3 && b.candidates[r.newest[0]].at < i {
		for _, k := range r.newest {
			b.candidates[k].dead = true
		}
		r.newest = nil
	}
	r.newest = append(r.newest, len(b.candidates)-1)
	b.progress[key] = r
}

// progressKey is what is said in a turn, with its figures masked; words of more than maxProgress bytes are no report.
type progressKey struct {
	turn int
	text string
}

// progress is how often it was said, and the candidates that are not outdated.
type progress struct {
	times  int
	newest []int
}

const maxProgress = 120

// document adds a text that the assistant wrote in the message at i: a plan that it put before the user, its
// own summary.
func (b *builder) document(i int, m *thread.Message, label string, text []piece) {
	g := group{label: label, turn: m.Turn, sources: []thread.ID{m.ID}}
	for _, p := range text {
		if !p.substantial() || !b.unseen(seenWords, p.text) {
			continue
		}
		base := float32(wordsOnTheWay)
		switch {
		case p.code: // it comes last
			base, p.idents = wordsCode, nil
		case label == ownformat.EarlierSummary && ownformat.QuotesUser(p.text):
			base = wordsQuoted
		case strings.HasSuffix(p.text, `?"`): // of the user, which was answered
			base = wordsAsked
		case strings.Contains(p.text, "\n"): // the heading of others
			base = wordsClosing
		}
		b.piece(secSaid, &g, i, base, p).terms = b.terms.add(i, p.terms)
	}
	b.groups[secSaid] = append(b.groups[secSaid], g)
}

// offers reports whether a piece holds an item of a list, perhaps below its heading.
func offers(s string) bool { return listItem(lastLine(s)) }

// lastLine is the last line of a piece.
func lastLine(s string) string { return strings.TrimPrefix(s[strings.LastIndexByte(s, '\n')+1:], gap) }

// reportWorth is the base value of a piece of a sub-agent's report.
const reportWorth = 1.05

// report adds what another agent wrote, labelled with its task. It cannot be had again: no
// later call repeats it.
func (b *builder) report(i int, m *thread.Message, asked string, report []piece) {
	g := group{label: clip.Brief(asked, maxLabel), turn: m.Turn, sources: []thread.ID{m.ID}}
	for _, p := range report {
		if strings.HasPrefix(p.text, "agentId: ") || !p.substantial() || heading(p.text) && len(p.idents) == 0 || !b.unseen(seenLine, p.text) {
			continue
		}
		base := reportWorth * min(1, float32(len(p.text))/fullWords)
		b.piece(secReport, &g, i, base, p).terms = b.terms.add(i, p.terms)
	}
	b.groups[secReport] = append(b.groups[secReport], g)
}

// isTask reports whether a user message can be the task: not a bare "yes", "go on" or
// "thanks".
func isTask(s string) bool { return len(s) >= 40 || strings.Count(s, " ") >= 6 }

// answerWords open a message that answers what was asked or offered before.
var answerWords = scan.WordSet("yes yeah yep yup no nope nah ok okay sure right correct exactly agreed fine sounds both neither option")

// answers reports whether a user message begins like an answer to the assistant.
func answers(s string) bool {
	first := strings.ToLower(strings.Trim(scan.FirstWord(s), ",.;:!?-—()#"))
	return answerWords[first] || len(first) == 1 && scan.IsDigit(first[0])
}

// picks is the letter or the digit by which a user message names one of several options, 0 if it
// names none: "I think B, nested in the options".
func picks(s string) byte {
	i, last := 0, ""
	for w := range strings.FieldsSeq(s) {
		if bare := strings.Trim(w, ".,:;!?()*"); len(bare) == 1 {
			c := bare[0]
			if c >= 'B' && c <= 'H' || c == 'A' && (i > 0 || len(w) == len(strings.TrimSpace(s)) || w != bare) || scan.IsDigit(c) && (i == 0 || strings.EqualFold(last, "option")) {
				return c
			}
		}
		if i, last = i+1, w; i == optionWords {
			break
		}
	}
	return 0
}

// labelled reports whether a piece is the option of that letter or digit: "| **B. Nested** | …",
// "Option B: …", "2. …".
func labelled(s string, label byte) bool {
	s = strings.TrimPrefix(strings.TrimLeft(lastLine(s), "|*-#( "), "Option ")
	return len(s) > 2 && s[0] == label && (strings.IndexByte(".):*|", s[1]) >= 0 || strings.HasPrefix(s[1:], " — ") || strings.HasPrefix(s[1:], " | "))
}

// optionWords is within how many words of a message an option is named.
const optionWords = 8

func (b *builder) user(i int, m *thread.Message, f *facts) {
	command := f.command || b.expanded[i]
	if b.unseen(seenRequest, f.user) && (len(b.Requests) == 0 || !idle(f.user) || asksBefore(b.facts, i)) {
		b.Requests = append(b.Requests, summary.Item{Text: f.user, Turn: m.Turn, Sources: []thread.ID{m.ID}})
		b.requests = append(b.requests, request{f.idents, command, numbered.MatchString(f.user)})
		// The text of a slash command says little about what this user is after.
		if b.task < 0 || isTask(f.user) && !command || b.requests[b.task].command || !isTask(b.Requests[b.task].Text) {
			b.task = len(b.Requests) - 1
		}
	}
}

// asksBefore reports whether what the assistant said last before the user message at i ends in a question.
func asksBefore(all []*facts, i int) bool {
	for i--; i >= 0 && all[i].user == "" && len(all[i].said) == 0; i-- {
	}
	return i >= 0 && len(all[i].said) > 0 && strings.HasSuffix(all[i].said[len(all[i].said)-1].text, "?")
}

// numbered begins a message of several answers.
var numbered = regexp.MustCompile(`^1[.)] .*\n\s*2[.)] `)

// idleWords say nothing of a task.
var idleWords = scan.WordSet("ok okay yo hi hello hey thanks thank you thx so much very cool great good nice wow perfect awesome amazing excellent well done job work please continue go on ahead proceed keep going")

// idle reports whether a text greets, thanks, or only wants the work to go on.
func idle(s string) bool {
	words := strings.FieldsFunc(strings.ToLower(s[:min(len(s), maxShort)]), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return !idleWords[w] })
}

// saysNothing reports whether a piece could follow any conversation, as thanks and offers of help do.
func (p *piece) saysNothing() bool {
	return len(p.idents) == 0 && !slices.ContainsFunc(p.terms, func(w string) bool { return !emptyWords()[w] })
}

// substantial reports whether a piece of the assistant's words is long enough to be of use.
func (p *piece) substantial() bool {
	return len(p.text) >= 4 && (!p.code || len(p.text) >= 12 && len(p.idents) > 0)
}
