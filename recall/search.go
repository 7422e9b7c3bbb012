package recall

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// DefaultLimit is how many hits a search gives where Options set no limit.
const DefaultLimit = 10

// DefaultExcerpt is how long an excerpt is at most, about, in bytes.
const DefaultExcerpt = 600

// Options tune a search; nil or the zero value searches everything.
type Options struct {
	// Limit is how many hits are wanted. 0 is DefaultLimit.
	Limit int
	// Excerpt is how long an excerpt may be, in bytes. 0 is DefaultExcerpt.
	Excerpt int
	// ThreadID, Tool and Role keep the search to messages of one thread, tool or
	// role; empty ones keep nothing out.
	ThreadID string
	Tool     string
	Role     thread.Role
}

// Hit is a removed message that a query found.
type Hit struct {
	ThreadID   string      `json:"thread_id"`
	MessageID  thread.ID   `json:"message_id"`
	Turn       int         `json:"turn"`
	Role       thread.Role `json:"role"`
	Tool       string      `json:"tool,omitempty"`
	Action     plan.Action `json:"action"`
	ArtifactID string      `json:"artifact_id,omitempty"`
	Time       time.Time   `json:"time,omitzero"`
	Summary    string      `json:"summary"`
	// Excerpt holds whole lines around the best match, or a part of one line
	// that is longer than an excerpt may be. Line is the number of its first line
	// in the full text, counting from 1, and Lines how many the text has.
	Excerpt string  `json:"excerpt"`
	Line    int     `json:"line"`
	Lines   int     `json:"lines"`
	Score   float64 `json:"score"`
	// Also are other messages that say exactly the same, the latest first.
	Also []thread.ID `json:"also,omitempty"`
}

// How the weight of a query's term depends on how much it is of what was asked:
// whoever asks for a path wants the path, then its base name, then anything that
// shares a word with it.
var grainWeight = [...]float64{whole: 1, base: 0.8, word: 0.5, piece: 0.35}

const (
	// prefixWeight is the weight of a word that only begins like one asked for.
	prefixWeight = 0.5
	// asWritten is what a text counts more that holds the whole query as it was
	// written, quoted what it counts more for each quoted phrase, and unquoted
	// what is left of it where it lacks one: whoever quotes wants just that, and
	// the rest only after it.
	asWritten, quoted, unquoted = 1.5, 2.0, 0.05
)

// term is a word that a search looks for.
type term struct {
	id     int32
	weight float64
}

// Search returns the entries that match best, best first. Entries that say the
// same are one hit. Between equal scores the later message comes first. A query
// in double quotes is looked for as it stands; the rest are words, and an entry
// needs not hold them all. A query that is part of a word finds it too.
func (x *Index) Search(query string, o *Options) []Hit {
	if o == nil {
		o = &Options{}
	}
	found, scores, terms, phrases := x.rank(query, o)
	return x.hits(found, scores, terms, phrases, o)
}

// rank finds the entries that match, best first, with the score of every entry
// and what an excerpt is to show.
func (x *Index) rank(query string, o *Options) (found []int, scores []float64, terms []term, phrases []string) {
	words, phrases := parse(query)
	plain := strings.TrimSpace(strings.ReplaceAll(query, `"`, ""))
	if plain == "" {
		return nil, make([]float64, len(x.entries)), nil, nil
	}
	terms = x.wanted(words, phrases)
	scores = x.score(terms)
	holds := x.holding(plain)
	rare := x.rarity(max(1, len(holds)))
	for _, i := range holds {
		if scores[i] == 0 {
			scores[i] = rare * x.weight(i, 1)
		}
		scores[i] *= asWritten
	}
	for _, phrase := range phrases {
		if phrase == plain {
			continue // counted above
		}
		for i := range scores {
			scores[i] *= unquoted
		}
		for _, i := range x.holding(phrase) {
			if scores[i] == 0 {
				scores[i] = unquoted * rare * x.weight(i, 1)
			}
			scores[i] *= quoted / unquoted
		}
	}

	for i, score := range scores {
		if score > 0 && o.admits(&x.entries[i]) {
			found = append(found, i)
		}
	}
	x.order(found, scores)
	return found, scores, terms, append(phrases, plain)
}

// order sorts entries by score, the best first, and the later first where scores
// are equal.
func (x *Index) order(found []int, scores []float64) {
	slices.SortFunc(found, func(i, j int) int {
		a, b := &x.entries[i], &x.entries[j]
		return cmp.Or(cmp.Compare(scores[j], scores[i]), later(a, b), cmp.Compare(i, j))
	})
}

func later(a, b *Entry) int {
	if a.ThreadID == b.ThreadID {
		return cmp.Compare(b.Position, a.Position)
	}
	return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.ThreadID, b.ThreadID))
}

func (o *Options) admits(e *Entry) bool {
	return (o.ThreadID == "" || o.ThreadID == e.ThreadID) && (o.Tool == "" || o.Tool == e.Tool) && (o.Role == "" || o.Role == e.Role)
}

// parse takes the quoted phrases out of a query.
func parse(query string) (words string, phrases []string) {
	for n, part := range strings.Split(query, `"`) {
		if n%2 == 0 {
			words += part + " "
		} else if part = strings.TrimSpace(part); part != "" {
			phrases = append(phrases, part)
		}
	}
	return words, phrases
}

// wanted finds the terms of the index that a query asks for, each once, with
// the most weight that the query gives it.
func (x *Index) wanted(words string, phrases []string) []term {
	var terms []term
	at := map[int32]int{}
	add := func(id int32, weight float64) {
		weight *= x.rarity(len(x.postings[id]))
		if n, twice := at[id]; twice {
			terms[n].weight = max(terms[n].weight, weight)
			return
		}
		at[id] = len(terms)
		terms = append(terms, term{id, weight})
	}
	var sc scanner
	for _, text := range append([]string{words}, phrases...) {
		sc.scan(text, func(token []byte, g grain, _, _ int) {
			if id, known := x.terms[string(token)]; known {
				add(id, grainWeight[g])
				return
			}
			for _, id := range x.beginning(stem(string(token))) {
				add(id, grainWeight[g]*prefixWeight)
			}
		})
	}
	return terms
}

// maxBeginning is how many terms one unknown word may stand for.
const maxBeginning = 32

// beginning returns the terms that begin with a word, the shortest first.
func (x *Index) beginning(stem string) []int32 {
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
	ids := make([]int32, 0, min(len(found), maxBeginning))
	for _, t := range found[:min(len(found), maxBeginning)] {
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

// score sums up the weights of the terms per entry; what holds more of what was
// asked for counts more.
func (x *Index) score(terms []term) []float64 {
	scores := make([]float64, len(x.entries))
	held := make([]float64, len(x.entries))
	asked := 0.0
	for _, t := range terms {
		asked += t.weight
		for _, p := range x.postings[t.id] {
			scores[p.entry] += t.weight * x.weight(int(p.entry), float64(p.count))
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

// holding lists the entries whose text holds a phrase, case folded.
func (x *Index) holding(phrase string) []int {
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
	if phrase == "" || len(phrase) > len(s) {
		return -1
	}
	first := phrase[0]
	if first >= utf8.RuneSelf {
		return strings.Index(s, phrase)
	}
	small, capital := first, first
	switch {
	case 'a' <= first && first <= 'z':
		capital -= 'a' - 'A'
	case 'A' <= first && first <= 'Z':
		small += 'a' - 'A'
	}
	next := func(c byte, from int) int {
		if at := strings.IndexByte(s[from:], c); at >= 0 {
			return from + at
		}
		return len(s)
	}
	a := next(small, 0)
	z := len(s)
	if capital != small {
		z = next(capital, 0)
	}
	for {
		at := min(a, z)
		if at+len(phrase) > len(s) {
			return -1
		}
		if strings.EqualFold(s[at:at+len(phrase)], phrase) {
			return at
		}
		if a == at {
			a = next(small, at+1)
		} else {
			z = next(capital, at+1)
		}
	}
}

// hits writes the first of the found entries, each text once.
func (x *Index) hits(found []int, scores []float64, terms []term, phrases []string, o *Options) []Hit {
	limit, length := o.Limit, o.Excerpt
	if limit <= 0 {
		limit = DefaultLimit
	}
	if length <= 0 {
		length = DefaultExcerpt
	}
	marks := make(map[int32]float64, len(terms))
	for _, t := range terms {
		marks[t.id] = t.weight
	}
	var hits []Hit
	said := map[string]int{}
	for _, i := range found {
		e := &x.entries[i]
		if n, same := said[e.Text]; same && e.Text != "" {
			if !slices.Contains(hits[n].Also, e.MessageID) && hits[n].MessageID != e.MessageID {
				hits[n].Also = append(hits[n].Also, e.MessageID)
			}
			continue
		}
		if len(hits) == limit {
			continue
		}
		said[e.Text] = len(hits)
		h := Hit{
			ThreadID: e.ThreadID, MessageID: e.MessageID, Turn: e.Turn, Role: e.Role, Tool: e.Tool, Action: e.Action,
			ArtifactID: e.ArtifactID, Time: e.Time, Summary: e.Summary, Score: scores[i],
		}
		h.Excerpt, h.Line, h.Lines = x.excerpt(e.Text, marks, phrases, length)
		hits = append(hits, h)
	}
	return hits
}
