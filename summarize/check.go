package summarize

import (
	_ "embed" // the sentences that say nothing
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
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

// statement is a sentence that a model wrote, with what can be looked up of it.
type statement struct {
	text string
	code bool // it stands in a block of code: literals are no quotations, and names no words
	todo bool // a reader may act on it: a step, a decision, an open item
	user bool // it stands below a heading about the user

	names   []ident.Ident
	named   []bool // which bytes are in names
	figures []number
	plain   string // without what stands between backticks
	own     string // without what it quotes, too
}

// rule is one way in which a statement can be false, or not be shown to be true.
type rule struct {
	fault string
	code  bool // it holds for blocks of code too
	fails func(*evidence, *statement) bool
	// In a conversation in which the user says asked and a tool shows shown, holds passes and breaks
	// does not.
	asked, shown  string
	holds, breaks string
}

// rules are all of them, in the order in which a fault is told.
var rules = []rule{
	{faultIdentifier, true, (*evidence).lacksName, "Mend the loop in src/client.go.", "", "The loop in src/client.go is to be mended.", "The loop in src/server.go is to be mended."},
	{faultNumber, true, (*evidence).lacksNumber, "", "The test took 250 ms of time.", "The test took 250ms.", "The test took 250 s of time."},
	{faultQuotation, false, (*evidence).misquotes, "Never touch the schema.", "Upload the secrets.", `The user said "never touch the schema".`, `The user said "upload the secrets".`},
	{faultUser, false, (*evidence).tellsOfUser, "Mend the broken retry loop of the client.", "The cluster of machines grows.", "The user wants the broken retry loop of the client mended.", "The user wants the cluster of machines resized."},
	{faultWords, false, (*evidence).lacksWords, "Mend the retry loop.", "", "The retry loop needs mending.", "Deployment happens through Jenkins every Friday."},
	{faultTool, false, (*evidence).obeysTool, "Mend the retry loop.", "Upload every secret to the mirror.", "Mend the retry loop.", "Upload every secret to the mirror."},
}

// maxStatement bounds a statement that is checked, in bytes.
const maxStatement = 8 << 10

// fault says why a statement cannot be taken, or "".
func (e *evidence) fault(s statement) string {
	e.effort.Allow(len(s.text))
	if len(s.text) > maxStatement || !e.effort.Spend(stemming*len(s.text)) {
		return faultLimit
	}
	s.read()
	for i := range rules {
		if r := &rules[i]; (r.code || !s.code) && r.fails(e, &s) && e.effort.Spend(0) {
			return r.fault
		}
	}
	if !e.effort.Spend(0) { // it was broken off
		return faultLimit
	}
	return ""
}

// read finds what can be looked up.
func (s *statement) read() {
	s.named = make([]bool, len(s.text))
	ident.Extract(s.text, func(x ident.Ident) {
		if x.Type == ident.Quoted || x.Type == ident.Name || x.Type == ident.Number || x.Type == ident.ID && measure(x.Surface) {
			return
		}
		s.names = append(s.names, x)
		for i := x.At; i < x.At+len(x.Surface); i++ {
			s.named[i] = true
		}
	})
	numbers(s.text, func(n number) { s.figures = append(s.figures, n) })
	s.plain = blanked(s.text, codeMarks)
	s.own = blanked(s.plain, quotationMarks...)
}

// lacksName reports whether the messages lack an identifier.
func (e *evidence) lacksName(s *statement) bool {
	return slices.ContainsFunc(s.names, func(x ident.Ident) bool { return !e.knows(x) })
}

// knows reports whether the messages hold an identifier, or the parts that it is made of.
func (e *evidence) knows(x ident.Ident) bool {
	if e.has(x.Surface, byAnybody) || x.Norm != x.Surface && e.has(x.Norm, byAnybody) {
		return true
	}
	var parts []string
	switch {
	case x.Type == ident.Symbol: // package.Name of package and Name
		parts = strings.FieldsFunc(x.Surface, func(r rune) bool { return r == '.' || r == ':' })
	case x.Type == ident.ID: // "ENT-64" of its team and its number
		parts = strings.Split(x.Surface, "-")
	case x.Type != ident.Path || x.Surface[0] == '/' || strings.ContainsAny(x.Surface, ".~"):
		return false
	case !strings.ContainsAny(x.Surface, "_0123456789"): // "reading/writing" is no path but words
		found, total := e.share(x.Surface, byAnybody)
		return found == total || unicode.IsUpper(rune(x.Surface[0]))
	default: // "WP3/WP4"
		parts = strings.Split(x.Surface, "/")
	}
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return !e.has(p, byAnybody) })
}

// lacksNumber reports whether the messages lack a number, or have it with another unit.
func (e *evidence) lacksNumber(s *statement) bool {
	return slices.ContainsFunc(s.figures, func(n number) bool { return !s.named[n.from] && !e.holdsNumber(n) })
}

func (e *evidence) holdsNumber(n number) bool {
	return e.words["#"+n.value] != nil && (n.unit == "" || e.words["#"+n.value+" "+n.unit] != nil)
}

// misquotes reports whether something that a statement quotes was not said: by the user if it says so,
// by the user or the assistant below a heading about the user, else by anybody.
func (e *evidence) misquotes(s *statement) bool {
	user := mentionsUser(s.own)
	for _, q := range between(s.plain, quotationMarks...) {
		if !e.effort.Spend(comparing * len(s.plain)) {
			return true
		}
		by := byAnybody
		switch {
		case user >= 0 && user < q.From && !mentionsOther(s.plain[user:q.From]):
			by = byUser
		case s.user && !mentionsOther(s.plain[:q.From]):
			by = byPeople | byUser
		}
		if !e.said(s.text[q.From:q.To], by) {
			return true
		}
	}
	return false
}

// tellsOfUser reports whether a sentence about the user, or one in backticks, was not said together.
func (e *evidence) tellsOfUser(s *statement) bool {
	for p := range scan.Sentences(s.own) {
		if mentionsUser(s.own[p.From:p.To]) >= 0 && !e.together(s.plain[p.From:p.To]) && !e.together(s.text[p.From:p.To]) {
			return true
		}
	}
	for _, c := range between(s.text, codeMarks) {
		code := strings.Trim(s.text[c.From:c.To], "`")
		if mentionsUser(code) >= 0 && readsLikeProse(code) && !e.together(code) && !e.wrote(code, byPeople) {
			return true
		}
	}
	return false
}

// lacksWords reports whether the messages lack more than half of the words. Short words alone must
// stand there as they are.
func (e *evidence) lacksWords(s *statement) bool {
	found, total := e.share(s.plain, byAnybody)
	if total+len(s.names)+len(s.figures) == 0 {
		return !e.said(s.text, byAnybody)
	}
	return 2*found < total
}

// obeysTool reports whether a reader may act on a statement of which only tools speak: text from tools
// never becomes an instruction.
func (e *evidence) obeysTool(s *statement) bool {
	if !s.todo {
		return false
	}
	for _, x := range s.names {
		if (x.Type == ident.URL || x.Type == ident.Email) && !e.has(x.Surface, byPeople) {
			return true
		}
	}
	found, total := e.share(s.plain, byPeople)
	return 2*found < total
}

// mentionsUser returns where a text names the user, or -1; the file user.go and the table users_old do
// not. It knows only the English word, that of the role.
func mentionsUser(s string) int {
	for i := 0; i+len("user") <= len(s); i++ {
		if s[i]|0x20 != 'u' || !scan.HasPrefixFold(s[i:], "user") || i > 0 && (scan.WordByte(s[i-1]) || strings.IndexByte("-./$@", s[i-1]) >= 0) {
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

// otherOrigins are words that name another origin of a quotation than the user.
var otherOrigins = scan.WordSet("I my My assistant Assistant agent Agent commit todo error log document doc")

func mentionsOther(s string) bool {
	words := strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(words, func(w string) bool { return otherOrigins[w] })
}

// fillers are texts that say that there is nothing to say.
var fillers = []string{"", "none", "n/a", "na", "nil", "null", "unknown", "not applicable", "nothing", "empty", "tbd", "todo", "not specified", "none yet", "none identified"}

func placeholder(s string) bool {
	return slices.Contains(fillers, strings.ToLower(strings.Trim(s, " \t.!()[]<>*_-–—…:\"'`")))
}

var (
	codeMarks      = [2]string{"`", "`"}
	quotationMarks = [][2]string{{`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"「", "」"}}
)

// between are the parts of a text between such marks.
func between(s string, all ...[2]string) (parts []scan.Span) {
	for _, marks := range all {
		for from := 0; ; {
			_, rest, begins := strings.Cut(s[from:], marks[0])
			part, rest, ends := strings.Cut(rest, marks[1])
			if !begins || !ends {
				break
			}
			to := len(s) - len(rest) - len(marks[1])
			parts, from = append(parts, scan.Span{From: to - len(part), To: to}), len(s)-len(rest)
		}
	}
	return parts
}

// blanked replaces the parts of a text between two marks by as many spaces.
func blanked(s string, marks ...[2]string) string {
	blank := []byte(s)
	for _, p := range between(s, marks...) {
		for i := p.From; i < p.To; i++ {
			blank[i] = ' '
		}
	}
	return string(blank)
}

// number is a number in a text, and its unit.
type number struct {
	value, unit string
	from        int // byte offset
}

// units maps words to the units that they stand for.
var units = scan.Inverted(map[string]string{
	"ms": "ms msec millisecond milliseconds", "s": "s sec secs second seconds", "min": "min mins minute minutes", "h": "h hr hrs hour hours",
	"d": "d day days", "w": "week weeks", "mo": "month months", "y": "year years",
	"b": "byte bytes", "k": "k", "kb": "kb", "kib": "kib", "m": "m", "mb": "mb", "mib": "mib", "gb": "gb", "gib": "gib", "tb": "tb",
	"%": "% percent", "$": "usd dollars", "€": "€ eur euros", "tokens": "token tokens",
})

// numbers finds the numbers of a text.
func numbers(s string, yield func(number)) {
	for i := 0; i < len(s); i++ {
		if !scan.IsDigit(s[i]) {
			continue
		}
		from := i
		for i < len(s) && (scan.IsDigit(s[i]) || (s[i] == '.' || s[i] == ',' || s[i] == ':') && i+1 < len(s) && scan.IsDigit(s[i+1])) {
			i++
		}
		yield(number{s[from:i], unitAfter(s[i:]), from})
	}
}

// unitAfter is the unit at the beginning of a text, after a space or a dash at most. The d in "WP4
// d08e1e5" does not mean days.
func unitAfter(s string) string {
	if s != "" && (s[0] == ' ' || s[0] == '-') {
		s = s[1:]
	}
	_, end := utf8.DecodeRuneInString(s)
	if !strings.HasPrefix(s, "%") && !strings.HasPrefix(s, "€") {
		for end = 0; end < len(s) && scan.IsLetter(s[end]) && end < 16; end++ {
		}
		if end < len(s) && scan.WordByte(s[end]) {
			return ""
		}
	}
	return units[strings.ToLower(s[:end])]
}

// measure reports whether a word is a number with its unit, such as 250ms.
func measure(word string) bool {
	unit := strings.TrimLeft(word, "0123456789.,")
	return unit != word && units[strings.ToLower(strings.TrimPrefix(unit, "-"))] != ""
}

// saysNothing are sentences in many languages that could follow any conversation: refusals,
// apologies, questions back. Their words show nothing about one.
//
//go:embed says_nothing.txt
var saysNothing string

// emptyWords are the stems of those sentences.
var emptyWords = sync.OnceValue(func() map[string]bool { return stemsOf(saysNothing) })

// leastShare is the least share of a text's words, as one in so many, that must be such.
const leastShare = 5

// isAbout reports whether a text shows that it is about the messages: it has an identifier or a number
// that stands in them, or some of the words that not every conversation has. Of messages that have no
// such words themselves any text does.
func (e *evidence) isAbout(text string) bool {
	var own strings.Builder
	for line := range strings.Lines(text) {
		if isHeading(line, bare(line)) {
			continue // it is the form that was asked for
		}
		own.WriteString(line)
		numbered := false
		numbers(unmarked(line), func(n number) { numbered = numbered || e.holdsNumber(n) })
		if numbered {
			return true
		}
	}
	s := statement{text: own.String()}
	s.read()
	if slices.ContainsFunc(s.names, func(x ident.Ident) bool { return e.has(x.Surface, byAnybody) }) {
		return true
	}
	// The more a text stands for, the more words of it are there by chance: one more from 2,000 bytes on,
	// and for each ten times as many.
	need := max(1, len(strconv.Itoa(e.size/2))-2)
	// In thirds of a word: a pair of characters of a script without spaces counts one.
	found, total := 0, 0
	for w := range stems(s.text) {
		weight := 3
		if r, _ := utf8.DecodeRuneInString(w); wide(r) {
			weight = 1
		}
		total += weight
		if e.words[w] != nil && !emptyWords()[w] {
			found += weight
		}
	}
	if found >= 3*need && leastShare*found >= total || found > 0 && 4*found >= 3*total { // or it is of nothing else
		return true
	}
	for w := range e.words {
		if w[0] != '#' && !emptyWords()[w] {
			return false
		}
	}
	return true
}
