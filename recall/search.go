package recall

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// DefaultLimit is how many hits a search gives where Options set no limit.
const DefaultLimit = 10

// DefaultTokens is about how much an answer with DefaultLimit hits takes, with
// what is written around the excerpts.
const DefaultTokens = 2000

// Options tune a search; nil or the zero value searches everything.
type Options struct {
	// Limit is how many hits are wanted. 0 is DefaultLimit.
	Limit int
	// Tokens is about how much all hits may take in an answer. 0 is a tenth of
	// DefaultTokens for each hit of the limit, and three tenths at least.
	Tokens int
	// ThreadID, Tool and Role keep the search to messages of one thread, tool or
	// role; empty ones keep nothing out.
	ThreadID string
	Tool     string
	Role     thread.Role
}

// Hit is a passage of a removed message that a query found. One message may have
// several.
type Hit struct {
	ThreadID   string      `json:"thread_id"`
	MessageID  thread.ID   `json:"message_id"`
	Turn       int         `json:"turn"`
	Role       thread.Role `json:"role"`
	Tool       string      `json:"tool,omitempty"`
	Action     plan.Action `json:"action"`
	ArtifactID string      `json:"artifact_id,omitempty"`
	Time       time.Time   `json:"time,omitzero"`
	// Call is Entry.Call.
	Call    string `json:"call,omitempty"`
	Summary string `json:"summary"`
	// Excerpt holds lines of the text around the match, or a part of a long one,
	// with an ellipsis where the line goes on. In JSON the escapes are decoded.
	// Line is the number of the line that it begins in in the full text, counting
	// from 1, and Lines how many the text has; Column is the character of that
	// line that it begins with, counting from 1, where it is not the first.
	Excerpt string `json:"excerpt"`
	Line    int    `json:"line"`
	Lines   int    `json:"lines"`
	Column  int    `json:"column,omitempty"`
	// Near are names of the same message that no excerpt shows, Others, of the
	// best hit alone, such of messages that no hit is from: those first that are
	// most likely meant, by what stands around them and how they are written.
	Near   []string `json:"near,omitempty"`
	Others []string `json:"others,omitempty"`
	Score  float64  `json:"score"`
	// Also are other messages that say exactly the same, the latest first.
	Also []thread.ID `json:"also,omitempty"`
}

// How the weight of a query's term depends on how much it is of what was asked:
// whoever asks for a path wants the path, then its base name, then anything that
// shares a word with it.
var grainWeight = [...]float64{wholeToken: 1, baseName: 0.8, wordPart: 0.5, identifierPart: 0.35}

const (
	// prefixWeight is the weight of a word that only begins like one asked for.
	prefixWeight = 0.5
	// exactFactor is what a text counts more that holds the whole query as it was
	// written, quoted what it counts more for each quoted phrase, and unquoted
	// what is left of it where it lacks one: whoever quotes wants just that, and
	// the rest only after it.
	exactFactor, phraseFactor, missingPhraseFactor = 1.5, 2.0, 0.05
)

// term is a word that a search looks for.
type term struct {
	id     int32
	weight float64 // with its rarity
	share  float64 // without
}

// Search returns the passages that match best, best first; each is chosen for
// what those before it do not show. Entries that say the same are one. Between
// equal scores the later message comes first. A query in double quotes is looked
// for as it stands; the rest are words, and a passage needs not hold them all. A
// query that is part of a word finds it too. In a query of more than maxPhrased
// bytes or with many quotes, such as code, quotes mean nothing.
func (x *Index) Search(query string, o *Options) []Hit {
	if o == nil {
		o = &Options{}
	}
	found, scores, terms, phrases := x.rank(query, o)
	return x.buildHits(query, found, scores, terms, phrases, o)
}

// rank finds the entries that match, best first, with the score of every entry
// and what an excerpt is to show.
func (x *Index) rank(query string, o *Options) (found []int, scores []float64, terms []term, phrases []string) {
	words, phrases := parseQuery(query)
	plain := strings.TrimSpace(strings.ReplaceAll(query, `"`, ""))
	if plain == "" {
		return nil, make([]float64, len(x.entries)), nil, nil
	}
	terms = x.queryTerms(words, phrases)
	scores = x.scoreEntries(terms)
	if len(plain) > maxPhrased && len(terms) > 0 {
		return x.matchingEntries(scores, o), scores, terms, nil
	}
	holds := x.entriesWithPhrase(plain)
	rare := x.rarity(max(1, len(holds)))
	for _, i := range holds {
		if scores[i] == 0 {
			scores[i] = rare * x.bm25(i, 1)
		}
		scores[i] *= exactFactor
	}
	for _, phrase := range phrases {
		if phrase == plain {
			continue // counted above
		}
		for i := range scores {
			scores[i] *= missingPhraseFactor
		}
		for _, i := range x.entriesWithPhrase(phrase) {
			if scores[i] == 0 {
				scores[i] = missingPhraseFactor * rare * x.bm25(i, 1)
			}
			scores[i] *= phraseFactor / missingPhraseFactor
		}
	}

	return x.matchingEntries(scores, o), scores, terms, append(phrases, plain)
}

// matchingEntries lists the entries that match, best first.
func (x *Index) matchingEntries(scores []float64, o *Options) []int {
	var found []int
	for i, score := range scores {
		if score > 0 && o.matches(&x.entries[i]) {
			found = append(found, i)
		}
	}
	x.sortByScore(found, scores)
	return found
}

// sortByScore sorts entries by score, the best first, and the later first where scores
// are equal.
func (x *Index) sortByScore(found []int, scores []float64) {
	slices.SortFunc(found, func(i, j int) int {
		a, b := &x.entries[i], &x.entries[j]
		return cmp.Or(cmp.Compare(scores[j], scores[i]), compareNewestFirst(a, b), cmp.Compare(i, j))
	})
}

func compareNewestFirst(a, b *Entry) int {
	if a.ThreadID == b.ThreadID {
		return cmp.Compare(b.Position, a.Position)
	}
	return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.ThreadID, b.ThreadID))
}

func (o *Options) matches(e *Entry) bool {
	return (o.ThreadID == "" || o.ThreadID == e.ThreadID) && (o.Tool == "" || o.Tool == e.Tool) && (o.Role == "" || o.Role == e.Role)
}

// maxPhrased is the length of a query, in bytes, up to which it may stand in a
// text as it is; a longer one describes what is looked for. maxQuotes is how many
// quotes a query has at most that quotes.
const maxPhrased, maxQuotes = 300, 4

// parseQuery takes the quoted phrases out of a query.
func parseQuery(query string) (words string, phrases []string) {
	if len(query) > maxPhrased || strings.Count(query, `"`) > maxQuotes {
		return strings.ReplaceAll(query, `"`, " "), nil
	}
	for n, part := range strings.Split(query, `"`) {
		if n%2 == 0 {
			words += part + " "
		} else if part = strings.TrimSpace(part); part != "" {
			phrases = append(phrases, part)
		}
	}
	return words, phrases
}

// queryTerms finds the terms of the index that a query asks for, each once, with
// the most weight that the query gives it.
func (x *Index) queryTerms(words string, phrases []string) []term {
	var terms []term
	at := map[int32]int{}
	add := func(id int32, share float64) {
		weight := share * x.rarity(len(x.postings[id]))
		if n, twice := at[id]; twice {
			terms[n].weight, terms[n].share = max(terms[n].weight, weight), max(terms[n].share, share)
			return
		}
		at[id] = len(terms)
		terms = append(terms, term{id, weight, share})
	}
	var sc scanner
	for _, text := range append([]string{words}, phrases...) {
		sc.scan(text, func(token []byte, g grain, _, _ int) {
			if id, known := x.terms[string(token)]; known {
				add(id, grainWeight[g])
				return
			}
			if len(words) > maxPhrased {
				return
			}
			for _, id := range x.termsWithPrefix(stem(string(token))) {
				add(id, grainWeight[g]*prefixWeight)
			}
		})
	}
	return terms
}

// maxPrefixTerms is how many terms one unknown word may stand for.
const maxPrefixTerms = 32

// termsWithPrefix returns the terms that begin with a word, the shortest first.
func (x *Index) termsWithPrefix(stem string) []int32 {
	if len(stem) < 3 {
		return nil
	}
	var found []string
	for t := range x.terms {
		if strings.HasPrefix(t, stem) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	ids := make([]int32, 0, min(len(found), maxPrefixTerms))
	for _, t := range found[:min(len(found), maxPrefixTerms)] {
		ids = append(ids, x.terms[t])
	}
	return ids
}

// stem takes the commonest endings of English off a word that no text holds.
func stem(word string) string {
	for _, ending := range []string{"ies", "ing", "ed", "es", "s", "y"} {
		if rest, ok := strings.CutSuffix(word, ending); ok && len(rest) >= 4 {
			return rest
		}
	}
	return word
}

// scoreEntries sums up the weights of the terms per entry; what holds more of what was
// asked for counts more.
func (x *Index) scoreEntries(terms []term) []float64 {
	scores := make([]float64, len(x.entries))
	held := make([]float64, len(x.entries))
	asked := 0.0
	for _, t := range terms {
		asked += t.weight
		for _, p := range x.postings[t.id] {
			scores[p.entry] += t.weight * x.bm25(int(p.entry), float64(p.count))
			held[p.entry] += t.weight
		}
	}
	for i := range scores {
		if scores[i] > 0 {
			scores[i] *= 0.5 + 0.5*held[i]/asked
		}
	}
	return scores
}

// entriesWithPhrase lists the entries whose text holds a phrase, case folded.
func (x *Index) entriesWithPhrase(phrase string) []int {
	var found []int
	for i := range x.entries {
		if indexFold(x.entries[i].Text, phrase) >= 0 {
			found = append(found, i)
		}
	}
	return found
}

// indexFold returns where s holds phrase, with case folded, or -1. Characters
// that take another number of bytes in the other case do not match it.
func indexFold(s, phrase string) int {
	if phrase == "" {
		return -1
	}
	if phrase[0] >= utf8.RuneSelf {
		return strings.Index(s, phrase)
	}
	first := strings.ToLower(phrase[:1]) + strings.ToUpper(phrase[:1])
	for at := 0; ; at++ {
		next := strings.IndexAny(s[at:], first)
		if at += next; next < 0 || at+len(phrase) > len(s) {
			return -1
		}
		if strings.EqualFold(s[at:at+len(phrase)], phrase) {
			return at
		}
	}
}

// buildHits shows the found entries, which come best first, each text once.
func (x *Index) buildHits(query string, found []int, scores []float64, terms []term, phrases []string, o *Options) []Hit {
	if len(found) == 0 {
		return nil
	}
	limit, tokens := cmp.Or(max(o.Limit, 0), DefaultLimit), o.Tokens
	if tokens <= 0 {
		tokens = max(limit, 3) * DefaultTokens / DefaultLimit
	}
	weights := make([]float64, len(x.entries))
	paths := pathsIn(query)
	said := map[string]int{}
	also := map[int][]thread.ID{}
	var shown []int
	for _, i := range found {
		e := &x.entries[i]
		if n, same := said[e.Text]; same && e.Text != "" {
			if x.entries[n].MessageID != e.MessageID && !slices.Contains(also[n], e.MessageID) {
				also[n] = append(also[n], e.MessageID)
			}
			continue
		}
		said[e.Text] = i
		shown = append(shown, i)
		weights[i] = minEntryWeight + (1-minEntryWeight)*math.Sqrt(scores[i]/scores[found[0]])
		if e.Tool != "" {
			weights[i] *= resultWeight
		}
		if slices.ContainsFunc(paths, func(path string) bool { return strings.Contains(e.Call, path) }) {
			weights[i] *= namedCallWeight
		}
	}
	share := nameShare
	if len(terms) <= fewTerms {
		share = nameShareShort
	}
	names := int(share * float64(tokens))
	c := x.newChooser(weights, terms, phrases, tokens-names)
	spans := c.choose(limit, shown)
	// What matches by its head alone, or in part of a word, shows its beginning.
	for _, i := range shown {
		if len(spans) >= limit || c.tokensLeft <= 0 && len(spans) > 0 {
			break
		}
		if !slices.ContainsFunc(spans, func(s span) bool { return int(x.rows[s.from].entry) == i }) {
			score := scores[i]
			if n := len(spans); n > 0 {
				score = min(score, spans[n-1].score)
			}
			spans = append(spans, c.startPassage(int(x.rowStarts[i]), score))
		}
	}
	spans = c.growAll(spans)
	c.moveWidestFirst(spans)
	near, others := c.nearbyNames(query, spans, terms, names+max(0, c.tokensLeft))
	hits := make([]Hit, len(spans))
	for n, s := range spans {
		i := int(x.rows[s.from].entry)
		e := &x.entries[i]
		h := &hits[n]
		*h = Hit{
			ThreadID: e.ThreadID, MessageID: e.MessageID, Turn: e.Turn, Role: e.Role, Tool: e.Tool, Action: e.Action,
			ArtifactID: e.ArtifactID, Time: e.Time, Call: e.Call, Summary: e.Summary, Score: s.score, Near: near[n], Also: also[i],
		}
		if n == 0 {
			h.Others = others
		}
		h.Excerpt = x.passageText(s)
		from, to := int(x.rows[s.from].from), int(x.rows[s.to].to)
		h.Lines = 1 + strings.Count(e.Text, "\n")
		h.setPosition(e.Text, originalOffset(e.Text, from))
		if text := x.views[i]; from > 0 && text[from-1] != '\n' {
			h.Excerpt = "…" + h.Excerpt
		}
		if text := x.views[i]; to < len(text) && text[to] != '\n' {
			h.Excerpt += "…"
		}
	}
	return hits
}

// setPosition says where the excerpt begins, which is byte at of the text.
func (h *Hit) setPosition(text string, at int) {
	line := strings.LastIndexByte(text[:at], '\n') + 1
	h.Line, h.Column = 1+strings.Count(text[:line], "\n"), 0
	if at > line {
		h.Column = 1 + utf8.RuneCountInString(text[line:at])
	}
}
