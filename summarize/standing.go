package summarize

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/standing"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

const (
	standingShare = 0.30 // the default of Extractive.StandingShare
	// mostStanding is how many times that share what surely stands may take.
	mostStanding = 2
	// surelyStanding is the score of what needs no weighing: an answer that the user gave to a question
	// of a tool.
	surelyStanding = standing.Rule - 1
	// likelyStanding is the score from which what has no room is counted.
	likelyStanding = 0
	// demandStanding is the least score of what the user said when a call was refused: a demand.
	demandStanding = 0
	// fewClauses is up to how many clauses a message is taken to be the person's own words throughout. In a longer
	// one, which may hold what was put in, only clauses of words count, with a score of longStanding, and in
	// paragraphs that are not mostly of words only those with which the message begins or ends, or that
	// likely stand.
	fewClauses, longStanding = 12, -100
	// documentHeadings is from how many headings on a message is a document. Most of a plan or a specification says what
	// is to be done: only clauses with a score of likelyRule count, and paragraphs of which most stands.
	documentHeadings = 3
	// likelyRule is the score, without what was said before, from which a clause that looks like none may stand: one of a
	// document, "No mocks." beside "No thanks.", a piece of a quotation.
	likelyRule = 75
	// shortAnswer is up to how many words a clause is told with the question that it answers.
	shortAnswer = 8
	// leastQuotation is the length, in bytes, from which the assistant's words in a message of the user are
	// known as quoted.
	leastQuotation = 24
	// mostSentences is how many sentences of a conversation are weighed against each other, those with the highest
	// score: more than any summary holds.
	mostSentences = 2048
	// mostClauses is how many clauses of one message are kept, those with the highest score.
	mostClauses = 64
)

// clause is a clause of a message of the user.
type clause struct {
	standing.Clause
	score  int  // without what was said before the message
	copied bool // its paragraph was most likely copied from a screen
}

// readClauses finds the clauses of a user message that may stand.
func readClauses(live *effort.Budget, text string) []clause {
	every := standing.Clauses(text, "")
	long, headings := len(every) > fewClauses, 0
	for _, c := range every {
		if strings.HasPrefix(c.Text, "##") { // one mark is a remark in a script too
			headings++
		}
	}
	all, own := make([]clause, 0, len(every)), false
	firstEnds, lastBegins := len(text), 0
	for from, to := 0, 0; from < len(every); from = to {
		begin, parts := len(all), 0
		head, tail := begin, begin // the words without gaps that the paragraph begins and ends with: up to, and from
		for to = from; to == from || to < len(every) && strings.Count(text[every[to-1].To:every[to].From], "\n") < 2; to++ {
			s := every[to]
			if !live.Live(readingByte * (1 + len(s.Text))) {
				return nil
			}
			if long && s.Text[0] == '#' { // a heading
				continue
			}
			parts++
			score := standing.Score(s)
			if len(s.Text) > maxSentence || pasted(s.Text) || long && !wordy(s.Text, score) || strings.HasPrefix(s.Text, `{"`) || strings.HasPrefix(s.Text, `[{"`) { // a line of a log
				tail = len(all)
				continue
			}
			for _, mark := range [...]string{"- ", "* ", "• "} { // of a list
				s.Text = strings.TrimPrefix(s.Text, mark)
			}
			if all = append(all, clause{Clause: s, score: score}); len(all)-begin == parts {
				head = len(all)
			}
		}
		if lastBegins = every[from].From; from == 0 {
			firstEnds = every[to-1].To
		}
		if long && 2*(len(all)-begin) <= parts { // most of it was not written by the person, who may have written right above or below
			if from > 0 {
				head = begin
			}
			if to < len(every) {
				tail = len(all)
			}
			last := slices.Clone(all[max(head, tail):])
			between := slices.DeleteFunc(all[head:max(head, tail)], func(c clause) bool { return c.score < likelyStanding })
			all = append(all[:head+len(between)], last...)
		}
		if headings >= documentHeadings {
			all = append(all[:begin], rulesIn(all[begin:])...)
		}
		copied := offScreen(text, every[from].From, every[to-1].To)
		for i := range all[begin:] {
			all[begin+i].copied = copied
		}
		own = own || !copied
	}
	if own {
		all = slices.DeleteFunc(all, func(c clause) bool { return c.copied })
	}
	if long {
		material := 2*len(all) <= len(every) // then only the first and the last paragraph are the person's words throughout
		all = slices.DeleteFunc(all, func(c clause) bool {
			inside := material && c.From >= firstEnds && c.To <= lastBegins
			return !unweighed(c.Text) && (c.score < longStanding || inside && c.score < standing.Rule)
		})
	}
	if len(all) > mostClauses {
		slices.SortStableFunc(all, func(a, b clause) int { return cmp.Compare(b.score, a.score) })
		all = all[:mostClauses]
		slices.SortFunc(all, func(a, b clause) int { return cmp.Compare(a.Index, b.Index) })
	}
	return all
}

// rulesIn is what of a paragraph of a document may stand: all of it if it is one of rules, else what surely is one.
func rulesIn(paragraph []clause) []clause {
	sum := 0
	for _, c := range paragraph {
		sum += c.score
	}
	if sum >= 0 {
		return paragraph
	}
	return slices.DeleteFunc(paragraph, func(c clause) bool { return c.score < likelyRule && !unweighed(c.Text) })
}

// offScreen reports whether a paragraph was copied from a terminal: spaces pad its lines, or all of them are indented and
// they are no list.
func offScreen(text string, from, to int) bool {
	from = strings.LastIndexByte(text[:from], '\n') + 1
	if n := strings.IndexByte(text[to:], '\n'); n >= 0 {
		to += n
	} else {
		to = len(text)
	}
	indented, lines := !listItem(strings.TrimLeft(text[from:to], " ")), 0
	for line := range strings.Lines(text[from:to]) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasSuffix(line, "   ") {
			return true
		}
		indented = indented && strings.HasPrefix(line, "  ")
		lines++
	}
	return indented && lines > 1
}

// pasted reports whether a sentence was copied from a screen: it has a quotation mark of a
// mail, the mark of a line in a diff, more marks of code than words, or frames and lines.
func pasted(s string) bool {
	fields := strings.Fields(s)
	marked := slices.DeleteFunc(slices.Clone(fields), func(w string) bool { return !strings.ContainsAny(w, "()=[]{};") })
	code := strings.ContainsAny(s[len(s)-1:], "{};") && 2*len(marked) > len(fields)
	diff := s[0] == '+' && (strings.HasPrefix(s[1:], "\t") || strings.HasPrefix(s[1:], "  ")) || strings.HasPrefix(s, "-     ") // fewer are a list
	return s[0] == '>' || code || diff || strings.ContainsFunc(s, func(r rune) bool { return r >= 0x2500 && r < 0x2600 })
}

// wordy reports whether a clause is mostly words, and has three of them or ends as a sentence. It may hold
// code between backticks. Rows and tags need the score of a rule.
func wordy(s string, score int) bool {
	if strings.ContainsAny(s[:1], "=[") || strings.ContainsAny(s[:1], "|<") && score < standing.Rule {
		return false
	}
	if s = strings.TrimLeft(s, "-*•| 0123456789.)"); strings.HasPrefix(s, ":") { // a line with its number
		return false
	}
	if parts := strings.Split(s, "`"); len(parts)%2 == 1 {
		s = ""
		for i := 0; i < len(parts); i += 2 {
			s += parts[i] + " "
		}
	}
	words, others := 0, 0
	for field := range strings.FieldsSeq(s) {
		bare := strings.Trim(field, `.,;:!?()'"*_…—–„“”«»`)
		unparted, other := 0, field[0] == '-'
		for _, r := range bare {
			switch {
			case wide(r):
				unparted++
			case !unicode.In(r, unicode.L, unicode.M) && r != '-' && r != '\'' && r != '’' && r < 0x3000:
				other = true
			}
		}
		switch {
		case bare == "":
		case unparted > 0:
			words += (unparted + 1) / 2
		case other:
			others++
		default:
			words++
		}
	}
	sentence := strings.ContainsAny(s, ".!。！") && !strings.ContainsAny(s[len(s)-1:], ":=,")
	return words >= others && (words > 2 || words == 2 && sentence)
}

// unweighed reports whether a clause is mostly in a script that the table of scores was not learned from.
func unweighed(s string) bool {
	letters := 0 // of such scripts, less the others
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			letters--
		case unicode.IsLetter(r):
			letters++
		}
	}
	return letters > 0
}

// standingSentences are what the user said that may stand, by turn.
type standingSentences struct {
	items     []summary.Item
	changedBy []int // for each of them, a later one that perhaps changes it; else -1
}

// sentences collects what the user may have laid down in the span and in what the summary before stands
// for: from the log as far as it is at hand, and from the summary before what it holds already.
func (b *builder) sentences() (all []summary.Item) {
	inSpan := make(map[thread.ID]struct{}, len(b.Span.MessageIDs))
	for _, id := range b.Span.MessageIDs {
		inSpan[id] = struct{}{}
	}
	all = make([]summary.Item, 0, len(b.Requests))
	at := make(map[string]int, len(b.Requests)) // by the words
	add := func(it summary.Item) {
		key, bare := strings.ToLower(oneLine(it.Text+it.Asked)), strings.ToLower(oneLine(it.Text))
		n, again := at[key]
		if k, ok := at[bare]; ok && !again && all[k].Turn == it.Turn { // there was no room for the question
			n, again, all[k].Asked = k, true, it.Asked
		}
		if again {
			all[n].Score = max(all[n].Score, it.Score)
			return
		}
		at[key], all = len(all), append(all, it)
	}
	if p := b.in.Previous; p != nil {
		for _, it := range p.Standing() {
			add(it)
		}
	}
	log, of := b.logged()
	var answer *thread.Message   // of the assistant, before a message of the user
	before, command := "", false // the last that it says
	for i := range log {
		if !b.effort.Live(messageEffort) {
			return nil
		}
		m := &log[i]
		f := of(m)
		_, inside := inSpan[m.ID]
		switch {
		case len(f.said) > 0:
			before, answer = f.said[len(f.said)-1].text, m
		case f.user != "":
			if inside && !f.command && !command {
				for _, it := range b.ownWords(m, f, answer, before) {
					add(it)
				}
			}
			before, answer = "", nil
		case inside:
			for _, it := range b.throughTools(m) {
				add(it)
			}
		}
		command = f.command
	}
	slices.SortStableFunc(all, func(x, y summary.Item) int { return cmp.Compare(x.Turn, y.Turn) })
	if over := len(all) - mostSentences; over > 0 {
		scores := make([]int, len(all))
		for i, it := range all {
			scores[i] = it.Score
		}
		slices.Sort(scores)
		low := scores[over-1]
		all = slices.DeleteFunc(all, func(it summary.Item) bool {
			gone := over > 0 && it.Score <= low
			if gone {
				over--
			}
			return gone
		})
	}
	return all
}

// ownWords lists what of a message of the user may stand, which follows that answer of the assistant with
// those last words. The assistant's words in it, shown to it again, are not the user's; a single word
// says nothing without the question before it.
func (b *builder) ownWords(m *thread.Message, f *facts, answer *thread.Message, before string) (all []summary.Item) {
	letters := "" // of the answer
	for _, c := range f.clauses {
		it := summary.Item{Text: c.Text, Turn: m.Turn, Sources: []thread.ID{m.ID}, Score: c.score}
		words := strings.Count(c.Text, " ") + 1
		if before != "" && c.Index == 0 {
			c.Before = before
			it.Score = standing.Score(c.Clause)
			if c.Count == 1 && words <= shortAnswer && strings.HasSuffix(before, "?") && !strings.HasSuffix(c.Text, "?") {
				for q := range scan.Sentences(before) {
					it.Asked = clip.Brief(oneLine(before[q.From:q.To]), maxSentence) // the last
				}
			}
		}
		if it.Asked == "" && words == 1 && !strings.ContainsFunc(c.Text, wide) || c.score < likelyRule && (it.Asked == "" && (words == 2 && answers(c.Text) || idle(c.Text)) || incomplete(c.Text)) {
			continue
		}
		if len(c.Text) >= leastQuotation && answer != nil {
			if letters == "" {
				letters = lettersOf(answer.Text())
			}
			if !b.effort.Live(len(letters)) || strings.Contains(letters, lettersOf(c.Text)) {
				continue
			}
		}
		all = append(all, it)
	}
	return all
}

// leadWords end a clause that goes on in what follows: "this results in", and an error is pasted below.
var leadWords = scan.WordSet("in to of for with from by at the a an and or is are was were as into")

// incomplete reports whether a clause leads to what follows, or is a piece of a list or of a quotation. A mark
// behind a digit may stand for inches.
func incomplete(s string) bool {
	return strings.HasPrefix(s, "/ ") || strings.HasSuffix(strings.TrimRight(s, "*_"), ":") || leadWords[s[strings.LastIndexByte(s, ' ')+1:]] ||
		openQuotation(s) && openQuotation(inches.ReplaceAllString(s, "$1"))
}

var inches = regexp.MustCompile(`([0-9])"`)

const (
	// mostLater is how many of the later sentences are compared with one: those that share its rarest words.
	mostLater = 16
	// surelyChanges is the score from which a sentence is taken to change an earlier one.
	surelyChanges = 60
	// likelyChanged is the score from which what is changed is not called a rule.
	likelyChanged = 195
	// sharesRare is added to that for each rare word that both hold, from the second on; a word is rare
	// if at most rareWord sentences hold it.
	rareWord, sharesRare = 4, 140
)

// linked finds for each sentence the later one that changes it or takes it back, by the judgement or else
// most likely: the sentence is not told without it.
func linked(live *effort.Budget, all []summary.Item, in *Input) standingSentences {
	holding := map[string][]int{} // by word, the sentences that hold it
	words := make([][]string, len(all))
	for i := range all {
		for w := range stems(all[i].Text) {
			words[i], holding[w] = append(words[i], w), append(holding[w], i)
		}
	}
	changedBy, judged, read := make([]int, len(all)), in.changedBy(all), make([]*standing.Sentence, len(all))
	sentence := func(i int) *standing.Sentence {
		if read[i] == nil {
			read[i] = standing.Read(all[i].Text)
		}
		return read[i]
	}
	for i := range all {
		var known bool
		if changedBy[i], known = judged(i); known || !live.Live(messageEffort) {
			continue
		}
		slices.SortStableFunc(words[i], func(x, y string) int { return cmp.Compare(len(holding[x]), len(holding[y])) })
		rare := map[int]int{} // the later sentences, and how many rare words each shares
		for _, w := range words[i] {
			isRare := len(holding[w]) <= rareWord
			if len(rare) == mostLater && !isRare {
				break
			}
			next, _ := slices.BinarySearch(holding[w], i+1)
			for _, later := range holding[w][next:] {
				_, compared := rare[later]
				switch {
				case all[later].Turn == all[i].Turn:
				case !compared && len(rare) == mostLater:
				case isRare:
					rare[later]++
				default:
					rare[later] += 0
				}
				if !isRare && len(rare) == mostLater {
					break
				}
			}
		}
		best := surelyChanges
		for _, later := range slices.Sorted(maps.Keys(rare)) {
			if score := standing.Changes(sentence(later), sentence(i)) + sharesRare*max(0, rare[later]-1); score >= best {
				best, changedBy[i] = score, later
			}
		}
		if later := changedBy[i]; later >= 0 { // it stands about as surely as what it changes
			all[later].Score = max(all[later].Score, min(all[i].Score, surelyStanding))
			if best >= likelyChanged { // no rule any more: it is told with what changes it
				all[i].Score = min(all[i].Score, surelyStanding)
			}
		}
	}
	return standingSentences{all, changedBy}
}

// lettersOf is a text without anything but letters and digits: quotations are often wrapped and marked otherwise.
func lettersOf(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// throughTools lists what the user said through tools: answers to their questions, and about calls that were not
// allowed.
func (b *builder) throughTools(m *thread.Message) (all []summary.Item) {
	result, _ := m.Result()
	for _, a := range result.Said {
		it := summary.Item{Text: scan.Clean(a.Text), Turn: m.Turn, Sources: []thread.ID{m.ID}, Score: surelyStanding}
		if it.Text != "" && a.Asked != "" {
			it.Asked = clip.Brief(scan.Clean(a.Asked), maxSentence)
			all = append(all, it)
			continue
		}
		for _, c := range readClauses(b.effort, it.Text) {
			it.Text, it.Score = c.Text, max(c.score, demandStanding)
			all = append(all, it)
		}
	}
	return all
}

// laidDown is what was chosen of what the user laid down.
type laidDown struct {
	items            []summary.Item
	tokens, unlisted int                          // what they take, and how many had no room
	said             map[thread.ID][]summary.Item // those that one message said
	count            func(string) int
}

// choose takes the sentences that most likely stand, as far as room tokens go; 0 is no limit. What surely
// stands may take more, and where even that is too little, answers are told without their questions.
func (all *standingSentences) choose(room int, count func(string) int) (l laidDown) {
	l.count, l.said = count, map[thread.ID][]summary.Item{}
	sure := 0
	for _, it := range all.items {
		if it.Score >= surelyStanding {
			sure += l.cost(it)
		}
	}
	if room > 0 && sure > mostStanding*room {
		all = &standingSentences{slices.Clone(all.items), all.changedBy}
		for i := range all.items {
			if it := &all.items[i]; it.Asked != "" && answers(it.Text) && !strings.Contains(it.Text, " ") { // a bare yes
				it.Score = standing.Least - 1
			}
			all.items[i].Asked = ""
		}
	}
	order := make([]int, len(all.items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(all.items[b].Score, all.items[a].Score), cmp.Compare(b, a))
	})
	taken := make([]bool, len(all.items))
	for _, i := range order {
		if all.items[i].Score < standing.Least {
			break
		}
		var with []int // and what perhaps changes it
		cost := 0
		for at := i; at >= 0 && !taken[at]; at = all.changedBy[at] {
			with, cost = append(with, at), cost+l.cost(all.items[at])
		}
		limit := room
		if all.items[i].Score >= surelyStanding {
			limit *= mostStanding
		}
		if room > 0 && l.tokens+cost > limit {
			if all.items[i].Score >= likelyStanding {
				l.unlisted++
			}
			continue
		}
		for _, at := range with {
			taken[at] = true
		}
		l.tokens += cost
	}
	for i, is := range taken {
		if it := all.items[i]; is {
			l.items = append(l.items, it)
			if len(it.Sources) == 1 {
				l.said[it.Sources[0]] = append(l.said[it.Sources[0]], it)
			}
		}
	}
	return l
}

// shorten is a message of the user in about limit bytes, without the sentences of it that are listed;
// empty if little else is left. Where that and the entries of its sentences take no less, it is the message, and
// they need no entries.
func (l *laidDown) shorten(m *summary.Item, limit int) string {
	const first = 0xE000 // of the characters that stand for listed sentences
	var listed []string
	text, entries := m.Text, 0 // bytes of those that are no rules
	for _, id := range m.Sources {
		for _, it := range l.said[id] {
			sentence := it.Text
			if strings.Contains(text, sentence) && !strings.ContainsFunc(text, func(r rune) bool { return r == first+rune(len(listed)) }) {
				text = strings.Replace(text, sentence, string(rune(first+len(listed))), 1)
				if listed = append(listed, sentence); it.Score < standing.Rule {
					entries += len(sentence) + entryFrame
				}
			}
		}
	}
	isMark := func(r rune) bool { return r >= first && int(r-first) < len(listed) }
	rest := func(r rune) bool { return isMark(r) || unicode.IsSpace(r) || unicode.IsPunct(r) }
	if len(listed) > 0 && len(strings.TrimFunc(text, rest)) < littleLeft && entries+len(listedMark) < len(m.Text) {
		return ""
	}
	short := clip.HeadAndTailOf(text, limit, func(part string) int {
		n := 0
		for _, r := range part {
			if n++; isMark(r) {
				n += utf8.RuneCountInString(listed[r-first]) - 1
			}
		}
		return n
	})
	var b strings.Builder
	marked, space := false, "" // only white space since a mark, and which
	for _, r := range short {
		switch {
		case isMark(r) && marked:
			space = ""
		case isMark(r):
			b.WriteString(listedMark)
			marked, space = true, ""
		case marked && r == '\n':
			space = "\n"
		case marked && unicode.IsSpace(r):
			space = cmp.Or(space, " ")
		default:
			b.WriteString(space)
			b.WriteRune(r)
			marked, space = false, ""
		}
	}
	if b.Len()+entries >= len(m.Text) {
		return m.Text
	}
	left := strings.TrimSpace(b.String())
	if len(listed) > 0 && strings.HasPrefix(left, "[… ") && strings.IndexByte(left, ']') == len(left)-1 { // only a mark
		return ""
	}
	return left
}

// entryFrame is what an entry of the list takes beside its sentence, in bytes.
const entryFrame = 16

// listedMark stands where a sentence of a shortened message is listed elsewhere.
const listedMark = "[…]"

// cost is what an entry takes, in tokens.
func (l *laidDown) cost(it summary.Item) int {
	return l.count(summary.Lines([]summary.Item{it}, true)[0]) + 1
}

// divide parts what is surely a rule from what else the user said.
func (l *laidDown) divide() (rules, stated []summary.Item) {
	for _, it := range l.items {
		if it.Score >= standing.Rule {
			rules = append(rules, it)
		} else {
			stated = append(stated, it)
		}
	}
	return rules, stated
}

// beside is what those entries take, in tokens, of which the requests do not show the words.
func (l *laidDown) beside(requests []summary.Item) (n int) {
	rules, stated := l.divide()
	shown := summary.Summary{Stated: stated, Requests: requests}
	for _, it := range slices.Concat(rules, shown.Unsaid()) {
		n += l.cost(it)
	}
	if n > 0 {
		n += 40 // two headings
	}
	return n
}
