package summarize

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Why a sentence of a model is left out, as Report.Dropped counts it.
const (
	faultPlaceholder = "placeholder" // it says that there is nothing to say
	faultSource      = "source"      // it names no message as its source
	faultLimit       = "limit"       // it is too long, or one too many
	faultIdentifier  = "identifier"  // the span lacks a name, path, hash, date or version in it
	faultNumber      = "number"      // the span lacks a number in it, or has it with another unit
	faultQuotation   = "quotation"   // nobody said what it quotes
	faultUser        = "user"        // it claims something about the user that was not said
	faultTool        = "tool"        // a reader may act on it, and only tool results speak of it
	faultWords       = "words"       // the span lacks more than half of its words
)

// grounds are the contents of messages, as statements about them are checked: what stands in
// them, and who said it. A statement is compared with the whole span, not with its source.
type grounds struct {
	messages []thread.Message
	at       map[thread.ID]int
	before   map[thread.ID]bool // messages of the previous summary
	all      string             // everything
	spoken   string             // what the user or the assistant said
	// Texts to look up quotations in, folded: everything, the words of the user and the
	// assistant, and those of the user alone, a message each.
	anybody, people, user []string
	numbers               map[string]bool // each number and, behind a space, the units that it has
	words                 map[string]bool // stems of everything
	spokenWords           map[string]bool // stems of what the user or the assistant said
	// turns are the stems of each turn's words of the user and the assistant, with the
	// assistant's words right before it; aboutUser are those of each sentence about the user.
	turns, aboutUser []map[string]bool

	effort *effort.Budget // of the checks; what it does not allow does not pass
}

// groundsEffort is how many times more the checks of statements may take than other analyses: a
// summary has some hundred names, and each is looked for in all of the text.
const groundsEffort = 4

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

// newGrounds reads the messages of a span and what came before it.
func newGrounds(ctx context.Context, messages []thread.Message, before earlier) *grounds {
	g := &grounds{messages: messages, at: make(map[thread.ID]int, len(messages)), before: map[thread.ID]bool{}, numbers: map[string]bool{}}
	var all, voice strings.Builder
	all.WriteString(before.text + "\n" + before.said + "\n")
	voice.WriteString(before.said + "\n")
	g.addAboutUser(before.said)
	for _, text := range before.user {
		g.user, g.aboutUser = append(g.user, folded(text)), append(g.aboutUser, stemsOf(text))
	}
	g.turns = []map[string]bool{{}}
	size := len(before.text) + len(before.said)
	for _, list := range [...][]thread.Message{before.log, messages} {
		for i := range list {
			size += characters(&list[i])
		}
	}
	g.effort = effort.New(ctx, groundsEffort*size)
	heard := "" // what the assistant said last
	hear := func(m *thread.Message) {
		text := m.Text()
		switch {
		case text == "" && m.Role != thread.Tool, ownformat.ShowsContent(m):
			return
		case m.Kind == thread.Recap:
			g.user = append(g.user, folded(text))
			g.addAboutUser(text)
			return
		case m.StartsTurn():
			text = injected.UserWords(m)
			if !g.effort.Spend(stemming * len(heard)) {
				heard = ""
			}
			g.user, g.turns = append(g.user, folded(text)), append(g.turns, stemsOf(heard))
		case m.Author() == thread.ByModel:
			heard = text
			g.addAboutUser(text)
		default:
			if text = m.Said(); text == "" {
				return
			}
			g.user = append(g.user, folded(text))
		}
		maps.Copy(g.turns[len(g.turns)-1], stemsOf(text))
	}
	read := func(m *thread.Message) {
		text := injected.UserWords(m)
		switch {
		case m.Author() == thread.ByModel:
			text = m.Text()
		case m.Role == thread.Tool:
			text = m.Said()
		}
		if text != "" {
			all.WriteString(text + "\n")
			voice.WriteString(text + "\n")
			hear(m)
		}
	}
	for i := range before.log {
		read(&before.log[i])
	}
	for i := range messages {
		if !g.effort.Live(messageEffort) {
			break
		}
		if len(before.beside) > 0 {
			for k := range before.beside[i] {
				read(&before.beside[i][k])
			}
		}
		m := &messages[i]
		g.at[m.ID] = i
		everything, said := spoken(m)
		all.WriteString(everything)
		voice.WriteString(said)
		hear(m)
	}
	g.all, g.spoken = all.String(), voice.String()
	g.anybody, g.people = []string{folded(g.all)}, append([]string{folded(g.spoken)}, g.user...)
	numbers(g.all, func(n number) { g.numbers[n.value], g.numbers[n.value+" "+n.unit] = true, true })
	g.words, g.spokenWords = stemsOf(g.all), stemsOf(g.spoken)
	return g
}

const (
	// stemming is about what finding the words of a text takes for each byte of it, and comparing
	// what looking one up takes, in units of effort. A byte that is only looked for takes a
	// searching-th of a unit.
	stemming, comparing, searching = 16, 16, 8
	// messageEffort is about what a message takes at least.
	messageEffort = 1 << 10
	// maxStatement bounds a statement that is checked, in bytes.
	maxStatement = 8 << 10
)

// Asked returns Input.Instructions as a user message, since a model that was given them may
// repeat them; nil if they are empty.
func Asked(instructions string) []thread.Message {
	if strings.TrimSpace(instructions) == "" {
		return nil
	}
	return []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: instructions}}}}
}

// groundsOf returns the grounds of an input.
func groundsOf(ctx context.Context, in *Input) *grounds {
	p := in.Previous
	if p == nil {
		return newGrounds(ctx, in.Messages, earlier{beside: in.UserBeside(), log: Asked(in.Instructions)})
	}
	before := earlier{beside: in.UserBeside(), log: Asked(in.Instructions), text: p.Render(), said: summary.Summary{
		CurrentTask: p.CurrentTask, Requests: p.Requests, Constraints: p.Constraints, CurrentPlan: p.CurrentPlan,
		OpenItems: p.OpenItems, Decisions: p.Decisions, Conclusions: p.Conclusions,
	}.Render(), user: []string{p.CurrentTask}}
	for _, it := range slices.Concat(p.Requests, p.Constraints) {
		before.user = append(before.user, it.Text)
	}
	g := newGrounds(ctx, in.Messages, before)
	for _, id := range p.Span.MessageIDs {
		g.before[id] = true
	}
	return g
}

// addAboutUser adds the sentences about the user in a text that is not the user's.
func (g *grounds) addAboutUser(text string) {
	for p := range scan.Sentences(text) {
		if s := text[p.From:p.To]; mentionsUser(s) >= 0 {
			g.user, g.aboutUser = append(g.user, folded(s)), append(g.aboutUser, stemsOf(s))
		}
	}
}

// spoken returns all text of a message but its reasoning, and the part of it that the user or
// the assistant said. Arguments are included as they stand and with their strings unescaped.
// Text that a harness wrote in the user's name is nobody's words.
func spoken(m *thread.Message) (all, voice string) {
	var a, v strings.Builder
	for _, p := range m.Parts {
		switch p := p.(type) {
		case thread.Text:
			a.WriteString(p.Text + "\n")
			if m.Author() == thread.ByModel {
				v.WriteString(p.Text + "\n")
			}
		case thread.ToolCall:
			text := p.Name + " " + p.Arguments + "\n"
			if rawjson.Valid(p.Arguments) {
				text += unescaped(gjson.Parse(p.Arguments))
			}
			a.WriteString(text)
			v.WriteString(text)
		case thread.ToolResult:
			a.WriteString(p.Tool + " " + string(p.Outcome) + " " + p.Text() + "\n" + p.Structured + "\n")
			if len(p.KeyFields) > 0 {
				if doc, err := json.Marshal(p.KeyFields); err == nil {
					a.Write(doc)
					a.WriteString("\n" + unescaped(gjson.ParseBytes(doc)))
				}
			}
		case thread.Media:
			a.WriteString(p.Name + " " + p.Text + "\n")
		case thread.Opaque:
			a.WriteString(p.Text + "\n")
		}
	}
	v.WriteString(injected.UserWords(m) + "\n" + m.Said() + "\n")
	return a.String(), v.String()
}

// unescaped lists the strings of a JSON value, a line each.
func unescaped(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str + "\n"
	}
	var b strings.Builder
	if v.IsObject() || v.IsArray() {
		v.ForEach(func(_, e gjson.Result) bool {
			b.WriteString(unescaped(e))
			return true
		})
	}
	return b.String()
}

// statement is a sentence that a model wrote.
type statement struct {
	text string
	code bool // it stands in a block of code
	todo bool // a reader may act on it: a step, a decision, an open item
	user bool // it stands below a heading about the user
}

// checkItem says why an item cannot be taken, or "". whole is its text with its rationale,
// context or status.
func (g *grounds) checkItem(sec section, text, whole string, sources []thread.ID) string {
	if sec == secPlan {
		whole = text // the status is one of our words
	}
	cited := slices.ContainsFunc(sources, func(id thread.ID) bool {
		_, inSpan := g.at[id]
		return inSpan || g.before[id]
	})
	switch {
	case len(whole) > maxItem:
		return faultLimit
	case placeholder(text):
		return faultPlaceholder
	case !cited:
		return faultSource
	}
	return g.fault(statement{text: whole, todo: sec == secPlan || sec == secDecision || sec == secOpen})
}

// fault says why a statement cannot be taken, or "".
func (g *grounds) fault(s statement) string {
	g.effort.Allow(len(s.text))
	if len(s.text) > maxStatement || !g.effort.Spend(stemming*len(s.text)) {
		return faultLimit
	}
	cause := g.check(s)
	if !g.effort.Spend(0) { // it was broken off
		return faultLimit
	}
	return cause
}

// check is fault, as far as the effort allows.
func (g *grounds) check(s statement) string {
	text := s.text
	inIdentifier := make([]bool, len(text))
	missing, tools, compared := false, false, false
	named := 0 // identifiers count as words
	ident.Extract(text, func(x ident.Ident) {
		switch x.Type {
		case ident.Quoted, ident.Name, ident.Number:
			return
		case ident.ID:
			if measure(x.Surface) {
				return // looked up as a number
			}
		case ident.URL, ident.Email:
			tools = tools || s.todo && !g.occurs(g.spoken, x.Surface)
		}
		compared = true
		named++
		missing = missing || !g.holdsIdentifier(x) && !g.inSentence(text, x)
		for i := x.At; i < x.At+len(x.Surface); i++ {
			inIdentifier[i] = true
		}
	})
	if missing {
		return faultIdentifier
	}
	counted := 0 // the last number of an enumeration: "1 the lexer, 2 the parser"
	numbers(text, func(n number) {
		compared = true
		if n.value == strconv.Itoa(counted+1) && !inIdentifier[n.from] {
			counted++
			if counted > 1 || strings.Contains(text[n.from:], " 2 ") {
				return
			}
		}
		missing = missing || !inIdentifier[n.from] && !g.holdsNumber(n) && !g.isTurn(text[:n.from], n)
	})
	if missing {
		return faultNumber
	}
	if s.code {
		return "" // literals are no quotations, and names no words
	}
	if !g.quotes(text, s.user) {
		return faultQuotation
	}
	whole := text
	text = blanked(text, "`", "`")
	own := unquoted(text)
	for p := range scan.Sentences(own) {
		if mentionsUser(own[p.From:p.To]) >= 0 && !g.saidOfUser(text[p.From:p.To]) && !g.saidOfUser(whole[p.From:p.To]) {
			return faultUser
		}
	}
	for from, to := range between(whole, "`", "`") {
		code := strings.Trim(whole[from:to], "`")
		if readsLikeProse(code) && mentionsUser(code) >= 0 && !g.saidOfUser(code) && !strings.Contains(g.spoken, code) {
			return faultUser
		}
	}
	found, total := shared(g.words, text)
	if total == 0 && !compared { // short words alone
		if short := folded(text); short == " " || !g.effort.Spend(len(g.all)/searching) || !strings.Contains(g.anybody[0], short) {
			return faultWords
		}
	}
	if 2*(found+named) < total+named {
		return faultWords
	}
	if found, total := shared(g.spokenWords, text); tools || s.todo && 2*found < total {
		return faultTool
	}
	return ""
}

// holdsNumber reports whether the span has a number, with its unit if it has one. "1,3" and
// "10:7" may also be two numbers.
func (g *grounds) holdsNumber(n number) bool {
	if g.numbers[n.value] {
		return n.unit == "" || g.numbers[n.value+" "+n.unit]
	}
	parts := strings.FieldsFunc(n.value, func(r rune) bool { return r == ',' || r == ':' })
	for _, p := range parts {
		if !g.numbers[p] {
			return false
		}
	}
	return len(parts) > 1
}

// quotes reports whether everything that a text quotes was said: by the user if the text says
// so, by the user or the assistant below a heading about the user, else by anybody.
func (g *grounds) quotes(text string, toldOfUser bool) bool {
	plain := blanked(text, "`", "`") // quotation marks in code do not count
	user, last := mentionsUser(unquoted(plain)), -1
	for _, q := range quotations(plain) {
		if !g.effort.Spend(comparing * len(plain)) {
			return false
		}
		said := g.anybody
		switch {
		case user >= 0 && user < q.from && !addressed(plain[:user]) && !mentionsOther(plain[user:q.from]) && (last < 0 || joined(plain[last:q.from])):
			said = g.user
		case toldOfUser && !mentionsOther(plain[:q.from]):
			said = g.people
		}
		last = q.from + len(q.text)
		if g.quotedIn(said, text[q.from:last]) {
			continue
		}
		// Quotation marks inside of a quotation ended it too early.
		first, end := strings.IndexByte(plain, '"'), strings.LastIndexByte(plain, '"')
		if first >= end || !g.quotedIn(said, text[first+1:end]) {
			return false
		}
	}
	return true
}

// quotedIn reports whether one of some folded texts holds a quotation.
func (g *grounds) quotedIn(all []string, text string) bool {
	q := parsed(text)
	return slices.ContainsFunc(all, func(said string) bool {
		return g.effort.Spend(comparing+len(said)/searching*(1+len(q.pieces))) && q.in(said)
	})
}

// joined reports whether the text between two quotations makes them words of one speaker.
func joined(s string) bool {
	return !strings.ContainsFunc(strings.NewReplacer(" and ", "", " or ", "", " then ", "").Replace(s), unicode.IsLetter)
}

// saidOfUser reports whether half of the words of a sentence about the user stand together, in
// one of g.turns or g.aboutUser.
func (g *grounds) saidOfUser(text string) bool {
	words := slices.Collect(stems(text))
	half := func(set map[string]bool) bool {
		if !g.effort.Spend(comparing * (1 + len(words))) {
			return false
		}
		found := 0
		for _, w := range words {
			if set[w] {
				found++
			}
		}
		return 2*found >= len(words)
	}
	return slices.ContainsFunc(g.turns, half) || slices.ContainsFunc(g.aboutUser, half)
}

// mentionsUser returns where a text names the user, or -1; the file user.go and the table
// users_old do not. It knows only the English word, that of the role.
func mentionsUser(s string) int {
	for i := 0; i+len("user") <= len(s); i++ {
		if !scan.HasPrefixFold(s[i:], "user") || i > 0 && (scan.WordByte(s[i-1]) || strings.IndexByte("-./$@", s[i-1]) >= 0) {
			continue
		}
		end := i + len("user")
		if scan.HasPrefixFold(s[end:], "s") {
			end++
		}
		if end == len(s) || !scan.WordByte(s[end]) && s[end] != '-' && s[end] != '/' && !goesOn(s[end:]) {
			return i
		}
	}
	return -1
}

// mentionsOther reports whether a text names another origin of the quotation after it.
func mentionsOther(s string) bool {
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		switch w {
		case "I", "my", "My", "assistant", "Assistant", "agent", "Agent", "commit", "todo", "error", "log", "document", "doc":
			return true
		}
	}
	return false
}

// addressed reports whether a text ends in words such as "told the": the user is the listener.
func addressed(s string) bool {
	words := strings.Fields(strings.ToLower(s))
	if n := len(words); n > 0 && words[n-1] == "the" {
		words = words[:n-1]
	}
	return len(words) > 0 && slices.Contains([]string{"to", "tell", "told", "for", "ask", "asked", "offered"}, words[len(words)-1])
}

// isTurn reports whether a number after a text is that of a turn, as requests to models show
// it.
func (g *grounds) isTurn(s string, n number) bool {
	before := strings.TrimRight(s[max(0, len(s)-maxEnumeration):], "0123456789-–, ")
	if !strings.HasSuffix(strings.ToLower(before), "turn") && !strings.HasSuffix(strings.ToLower(before), "turns") {
		return false
	}
	turn, err := strconv.Atoi(n.value)
	return err == nil && len(g.messages) > 0 && turn <= g.messages[len(g.messages)-1].Turn
}

// maxEnumeration is how far before a number "turn" may stand, in bytes: "turns 1, 2 and 3".
const maxEnumeration = 200

// measure reports whether a word is a number with its unit, such as 250ms.
func measure(word string) bool {
	unit := strings.TrimLeft(word, "0123456789.,")
	return unit != word && units[strings.ToLower(strings.TrimPrefix(unit, "-"))] != ""
}

// placeholder reports whether an item says that there is nothing to say.
func placeholder(s string) bool {
	switch strings.ToLower(strings.Trim(s, " \t.!()[]<>*_-–—…:\"'`")) {
	case "", "none", "n/a", "na", "nil", "null", "unknown", "not applicable", "nothing", "empty", "tbd", "todo", "not specified", "none yet", "none identified":
		return true
	}
	return false
}
