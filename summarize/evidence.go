package summarize

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// voices say who may be quoted with a passage.
type voices uint8

const (
	byAnybody voices = 0
	byPeople  voices = 1 // the user or the assistant
	byUser    voices = 2 // the user; also what an earlier summary tells
)

// passage is a text of the messages by one author.
type passage struct {
	text   string
	by     voices
	talk   [2]int32 // the turns that it belongs to; 0 is none
	folded string   // for quotations, once it was needed
}

// posting says which passages hold a word, in order, and who said it.
type posting struct {
	in []int32
	by voices
}

// evidence is what messages say, and who said it, by word. Statements are compared with all of it, not
// with their sources.
type evidence struct {
	messages []thread.Message
	at       map[thread.ID]int
	before   func(thread.ID) bool // whether it is a message of the previous summary
	passages []passage
	words    map[string]*posting // by stem, and by number: "#250", and "#250 ms" with its unit
	size     int                 // of all texts, in bytes
	talks    int32               // the last talk
	turn     int32               // the talk of the turn that is read
	lastSaid int                 // the passage that the assistant said last
	effort   *effort.Budget      // of the checks; what it does not allow does not pass
}

const (
	// checkEffort is how many times more the checks of statements may take than other analyses: a
	// summary has some hundred names, and each is looked for in much of the text.
	checkEffort = 4
	// stemming is about what finding the words of a text takes for each byte of it, and comparing
	// what looking one up takes, in units of effort. Of bytes that are only looked
	// for, so many as searching take one unit.
	stemming, comparing, searching = 16, 16, 8
	// messageEffort is about what a message takes at least.
	messageEffort = 1 << 10
)

// earlier is what came before the messages of a span, or stands between them.
type earlier struct {
	text string   // a summary, which was checked when it was made
	said string   // the words of the user and the assistant in it
	user []string // the words of the user in it
	// log are earlier messages: only words of the user and the assistant count.
	log []thread.Message
	// beside are the user's messages outside of the span that stand before each of its messages.
	beside [][]thread.Message
}

// newEvidence reads the messages of a span and what came before it.
func newEvidence(ctx context.Context, messages []thread.Message, before earlier) *evidence {
	e := &evidence{messages: messages, at: make(map[thread.ID]int, len(messages)), before: isAmong(nil), words: map[string]*posting{}, lastSaid: -1}
	e.effort, e.turn = effort.New(ctx, 0), e.newTalk()
	e.add(before.text, byAnybody, 0)
	e.add(before.said, byPeople, 0)
	for _, text := range before.user {
		e.add(text, byUser, e.newTalk())
	}
	for i := range before.log {
		e.speech(&before.log[i])
	}
	for i := range messages {
		if len(before.beside) > 0 {
			for k := range before.beside[i] {
				e.speech(&before.beside[i][k])
			}
		}
		e.at[messages[i].ID] = i
		e.message(&messages[i])
	}
	return e
}

func (e *evidence) newTalk() int32 { e.talks++; return e.talks }

// add adds a passage, and its words to the index.
func (e *evidence) add(text string, by voices, talk int32) {
	if text == "" || !e.effort.Live(stemming*len(text)) {
		return
	}
	e.effort.Allow(checkEffort * len(text))
	n := int32(len(e.passages))
	e.passages = append(e.passages, passage{text: text, by: by, talk: [2]int32{talk}})
	e.size += len(text) + 1
	note := func(word string) bool {
		p := e.words[word]
		if p == nil {
			p = &posting{}
			e.words[strings.Clone(word)] = p
		}
		if p.by |= by; len(p.in) == 0 || p.in[len(p.in)-1] != n {
			p.in = append(p.in, n)
		}
		return true
	}
	stems(text)(note)
	numbers(text, func(x number) {
		if note("#" + x.value); x.unit != "" {
			note("#" + x.value + " " + x.unit)
		}
	})
}

// speech adds what the user or the assistant says in a message, and returns it.
func (e *evidence) speech(m *thread.Message) string {
	words, said := injected.UserWords(m), m.Said()
	switch {
	case m.Author() == thread.ByModel:
		words, e.lastSaid = m.Text(), len(e.passages)
		e.add(words, byPeople, e.turn)
	case m.StartsTurn() && !ownformat.ShowsContent(m):
		e.turn = e.newTalk()
		if e.lastSaid >= 0 && e.lastSaid < len(e.passages) { // it may be what the user answers
			e.passages[e.lastSaid].talk[1] = e.turn
		}
		e.add(words, byPeople|byUser, e.turn)
	case said != "":
		e.add(said, byPeople|byUser, e.turn)
	default:
		e.add(words, byPeople, 0)
	}
	return strings.TrimSpace(words)
}

// message adds all text of a message but its reasoning. Arguments are included as they stand and with
// their strings unescaped. Text that a harness wrote in the user's name is nobody's words.
func (e *evidence) message(m *thread.Message) {
	words := e.speech(m)
	for _, p := range m.Parts {
		text, by := "", byAnybody
		switch p := p.(type) {
		case thread.Text:
			switch {
			case m.Author() == thread.ByModel:
			case m.Kind == thread.Recap:
				text, by = p.Text, byUser
			case strings.TrimSpace(p.Text) != words:
				text = p.Text
			}
		case thread.ToolCall:
			text, by = p.Name+" "+p.Arguments+"\n"+unescaped(p.Arguments), byPeople
		case thread.ToolResult:
			text = p.Tool + " " + string(p.Outcome) + " " + p.Text() + "\n" + p.Structured + "\n"
			if doc, err := json.Marshal(p.KeyFields); len(p.KeyFields) > 0 && err == nil {
				text += string(doc) + "\n" + unescaped(string(doc))
			}
		case thread.Media:
			text = p.Name + " " + p.Text
		case thread.Opaque:
			text = p.Text
		}
		e.add(text, by, 0)
	}
}

// unescaped lists the strings and numbers of a JSON document, a line each.
func unescaped(doc string) string {
	var b strings.Builder
	if rawjson.Valid(doc) {
		collect(nil, gjson.Parse(doc), rawjson.MaxDepth, "", func(_, s string) { b.WriteString(s + "\n") })
	}
	return b.String()
}

// find reports whether a passage by such a voice holds a text, as holds says. Only passages with the
// rarest of its words are looked at; all of them if it has none, or where words may be cut.
func (e *evidence) find(text string, by voices, cut bool, holds func(*passage) bool) bool {
	var rarest *posting
	for w := range stems(text) {
		p := e.words[w]
		switch {
		case cut:
		case p == nil:
			return false
		case rarest == nil || len(p.in) < len(rarest.in):
			rarest = p
		}
	}
	look := func(p *passage) bool {
		return (by == byAnybody || p.by&by != 0) && e.effort.Spend(comparing+len(p.text)/searching) && holds(p)
	}
	if rarest != nil {
		return slices.ContainsFunc(rarest.in, func(i int32) bool { return look(&e.passages[i]) })
	}
	for i := range e.passages {
		if look(&e.passages[i]) {
			return true
		}
	}
	return false
}

// wrote reports whether a passage by such a voice holds a text as it stands.
func (e *evidence) wrote(text string, by voices) bool {
	return e.find(text, by, true, func(p *passage) bool { return strings.Contains(p.text, text) })
}

// has reports whether a passage by such a voice holds a word as a whole: build-12 is not in build-123.
// The beginning of a hash counts as the hash.
func (e *evidence) has(word string, by voices) bool {
	hash := len(word) >= 7 && strings.Trim(word, "0123456789abcdef") == ""
	return word != "" && e.find(word, by, hash, func(p *passage) bool { return standsIn(p.text, word, hash) })
}

func standsIn(text, word string, hash bool) bool {
	for from := 0; ; from++ {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		from += i
		end := from + len(word)
		before := from == 0 || !scan.WordByte(text[from-1]) || !scan.WordByte(word[0])
		if before && (end == len(text) || hash || !scan.WordByte(text[end]) && !goesOn(text[end:])) {
			return true
		}
	}
}

// goesOn reports whether an identifier goes on after a dot or a dash.
func goesOn(rest string) bool {
	return len(rest) > 1 && (rest[0] == '.' || rest[0] == '-') && scan.WordByte(rest[1])
}

// said reports whether a quotation stands in a passage by such a voice, word for word; of one with
// omissions ("…", or text in brackets) all pieces, which are of two words at least.
func (e *evidence) said(quotation string, by voices) bool {
	in := func(piece string) bool {
		folded := fold(piece)
		return e.find(piece, by, false, func(p *passage) bool {
			if p.folded == "" {
				p.folded = fold(p.text)
			}
			return strings.Contains(p.folded, folded)
		})
	}
	if in(quotation) {
		return true
	}
	pieces := 0
	for piece := range strings.FieldsFuncSeq(omissions.Replace(quotation), func(r rune) bool { return r == 0 }) {
		if piece = strings.TrimSpace(piece); piece == "" || piece[0] == 1 {
			continue
		}
		if strings.Count(fold(piece), " ") < 3 || !in(piece) {
			return false
		}
		pieces++
	}
	return pieces > 0
}

// omissions marks what is left out of a quotation, and \x01 what takes its place.
var omissions = strings.NewReplacer("...", "\x00", "…", "\x00", "[", "\x00\x01", "]", "\x00")

// fold writes a text for the comparison of quotations: its words in lower case, with one space around
// each.
func fold(s string) string {
	b := make([]rune, 1, len(s)+2)
	b[0] = ' '
	for _, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			b = append(b, unicode.ToLower(r))
		case r != '\'' && r != '’' && b[len(b)-1] != ' ': // don't, don’t and dont
			b = append(b, ' ')
		}
	}
	if b[len(b)-1] != ' ' {
		b = append(b, ' ')
	}
	return string(b)
}

// share counts the stems of a text, and those that such a voice used.
func (e *evidence) share(text string, by voices) (found, total int) {
	for w := range stems(text) {
		total++
		if p := e.words[w]; p != nil && p.by&by == by {
			found++
		}
	}
	return found, total
}

// together reports whether half of the words of a text stand in one turn, with the assistant's words
// right before it.
func (e *evidence) together(text string) bool {
	found, total := map[int32]int{}, 0
	for w := range stems(text) {
		total++
		p := e.words[w]
		if p == nil || !e.effort.Spend(comparing*(1+len(p.in))) {
			continue
		}
		in := map[int32]bool{}
		for _, i := range p.in {
			for _, talk := range e.passages[i].talk {
				if talk > 0 && !in[talk] {
					in[talk] = true
					found[talk]++
				}
			}
		}
	}
	for _, n := range found {
		if 2*n >= total {
			return true
		}
	}
	return total == 0
}
