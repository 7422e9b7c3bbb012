package recall

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// DefaultLimit is the default of Options.Limit.
const DefaultLimit = 10

// DefaultTokens is about the size of an answer with DefaultLimit hits.
const DefaultTokens = 2000

// Options configure a search; nil or the zero value searches everything.
type Options struct {
	// Limit is the largest number of hits. 0 is DefaultLimit.
	Limit int
	// Tokens is about the size of an answer with all hits. 0 is DefaultTokens in proportion
	// to the limit, for three hits at least.
	Tokens int
	// ThreadID, Tool and Role limit the search to one thread, tool or role, unless they are
	// empty. Messages with an Author are of no role.
	ThreadID string
	Tool     string
	Role     thread.Role
}

// grainWeight is the weight of a term by its grain: whoever asks for a path wants the path,
// then its base name, then anything that shares a word with it.
var grainWeight = [...]float64{wholeToken: 1, baseName: 0.8, wordPart: 0.5, identifierPart: 0.35}

const (
	// prefixWeight is the weight of a word that only begins like one of the query.
	prefixWeight = 0.5
	// exactFactor is for a text that contains the whole query as it is, phraseFactor for
	// each quoted phrase that it contains, and missingPhraseFactor for each that it does not:
	// whoever quotes wants exactly that first.
	exactFactor, phraseFactor, missingPhraseFactor = 1.5, 2.0, 0.05
	// heldShare is how much of the score of an entry depends on how much of the query it has.
	heldShare = 0.75
)

// term is a word of a query.
type term struct {
	id     int32
	weight float64 // with its rarity
	share  float64 // without
}

// Search returns the passages that match a query best, best first; each is chosen for what
// those before it do not show. Entries with equal text count as one. Of equal scores the
// later message comes first. Phrases in double quotes are searched as they are, and a word with a
// star at its end ("deploy*") is the beginning of words; the rest are words, and a passage need not
// have all of them (see Hit.Missing). A query that is part of a word finds it too. These words of a
// query exclude other messages: from:ROLE, tool:NAME (a tool or a program, such as pytest), file:NAME,
// turn:N or turn:N-M, on:DATE, before:DATE and after:DATE; without other words they list messages. In
// a query of more than 300 bytes or with many quotes, such as code, none of that has a meaning.
func (x *Index) Search(query string, o *Options) []Hit {
	o = cmp.Or(o, &Options{})
	return x.buildHits(x.rank(newQuestion(query, o, x.newest)), o)
}

// ranking is what entries are worth for a question.
type ranking struct {
	question
	found   []int     // the entries that match, best first
	scores  []float64 // of all entries
	terms   []term    // that excerpts are to show, and so are the phrases
	missing []string  // words and phrases of the question that no entry has
	// admitted is 1 for entries that the filter admits and -1 for others, to ask it once of each.
	admitted []int8
}

// admits reports whether the filter admits entry i.
func (r *ranking) admits(x *Index, i int) bool {
	if r.only == (filter{}) {
		return true
	}
	if r.admitted[i] == 0 {
		r.admitted[i] = -1
		if r.only.admits(x, i) {
			r.admitted[i] = 1
		}
	}
	return r.admitted[i] > 0
}

// likelyFactor is for what the question likely means, such as messages of the user.
const likelyFactor = 1.5

// rank scores the entries for a question.
func (x *Index) rank(q question) *ranking {
	r := &ranking{question: q, scores: make([]float64, len(x.entries)), admitted: make([]int8, len(x.entries))}
	if q.text == "" && len(q.prefixes) == 0 {
		if q.only != (filter{}) {
			for i := range r.scores {
				r.scores[i] = 1
			}
		}
		r.found = x.matchingEntries(r)
		return r
	}
	var asked []askedWord
	r.terms, asked = x.queryTerms(&q)
	r.scores = x.scoreEntries(r.terms, q.text)
	if len(q.text) > maxPhrased && len(r.terms) > 0 {
		r.found = x.matchingEntries(r)
		return r
	}
	holds := x.entriesWithPhrase(q.text)
	rare := x.rarity(max(1, len(holds)), true)
	for _, i := range holds {
		if r.scores[i] == 0 {
			r.scores[i] = rare * x.bm25(i, 1)
		}
		r.scores[i] *= exactFactor
	}
	for _, phrase := range q.phrases {
		if phrase == q.text {
			continue // counted above
		}
		for i := range r.scores {
			r.scores[i] *= missingPhraseFactor
		}
		holds := x.entriesWithPhrase(phrase)
		for _, i := range holds {
			if r.scores[i] == 0 {
				r.scores[i] = missingPhraseFactor * rare * x.bm25(i, 1)
			}
			r.scores[i] *= phraseFactor / missingPhraseFactor
		}
		if !slices.ContainsFunc(holds, func(i int) bool { return r.admits(x, i) }) {
			r.missing = append(r.missing, `"`+phrase+`"`)
		}
	}
	r.phrases = append(slices.Clip(q.phrases), q.text)
	r.found = x.matchingEntries(r)
	r.missing = append(r.missing, missingWords(x, r, asked)...)
	return r
}

// missingWords are the words that none of the entries has that the question is for.
func missingWords(x *Index, r *ranking, asked []askedWord) (missing []string) {
	seen := map[string]bool{}
	for _, word := range asked {
		if seen[word.text] {
			continue
		}
		seen[word.text] = true
		held := slices.ContainsFunc(word.terms, func(id int32) bool {
			return slices.ContainsFunc(x.postings[id], func(p posting) bool { return r.admits(x, int(p.entry)) })
		})
		if !held && !slices.ContainsFunc(r.found, func(i int) bool { return indexFold(x.views[i], word.text) >= 0 }) {
			missing = append(missing, word.text)
		}
	}
	return missing
}

// maxFound is how many entries are put in order and looked at closely.
const maxFound = 2000

// matchingEntries lists the entries with the best scores, best first.
func (x *Index) matchingEntries(r *ranking) []int {
	var found []int
	for i, score := range r.scores {
		if score > 0 && r.admits(x, i) {
			found = append(found, i)
			if r.likely != (filter{}) && r.likely.admits(x, i) {
				r.scores[i] *= likelyFactor
			}
		}
	}
	found = mostPromising(found, r.scores)
	x.sortByScore(found, r.scores)
	return found[:min(len(found), maxFound)]
}

// mostPromising returns the entries of which maxFound are best, and some more; of very many with about
// the same score the later ones.
func mostPromising(found []int, scores []float64) []int {
	if len(found) <= maxFound {
		return found
	}
	best := 0.0
	for _, i := range found {
		best = max(best, scores[i])
	}
	const steps = 4096
	step := func(i int) int { return int(scores[i] / best * steps) }
	var have [steps + 1]int // entries by score, in parts of the best
	for _, i := range found {
		have[step(i)]++
	}
	least, above := steps, 0
	for ; above+have[least] < maxFound; least-- {
		above += have[least]
	}
	surplus := have[least] - maxFound
	return slices.DeleteFunc(found, func(i int) bool {
		if step(i) == least {
			surplus--
			return surplus >= 0
		}
		return step(i) < least
	})
}

// sortByScore sorts entries by score, best first, and of equal scores the later first.
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

// askedWord is a word of a question as it was written, and the terms that it means.
type askedWord struct {
	text  string
	terms []int32
}

// queryTerms returns the terms of the index that match a question, each with its largest weight, and
// its words. Stop words count where there is nothing else.
func (x *Index) queryTerms(q *question) (terms []term, asked []askedWord) {
	at := map[int32]int{}
	add := func(id int32, share float64, isName bool) {
		weight := share * x.rarity(len(x.postings[id]), isName)
		if n, twice := at[id]; twice {
			terms[n].weight, terms[n].share = max(terms[n].weight, weight), max(terms[n].share, share)
			return
		}
		at[id] = len(terms)
		terms = append(terms, term{id, weight, share})
	}
	var sc scanner
	look := func(skip map[string]bool) (others bool) {
		for n, text := range append([]string{q.words}, q.phrases...) {
			sc.scan(text, func(token []byte, g grain, from, to int) {
				word, isName := string(token), g != wholeToken || nameScore(text[from:to]) > 1
				if skip[word] {
					return
				}
				others = true
				share, root := grainWeight[g], stem(word)
				id, known := x.terms[word]
				if !known {
					id, known = x.terms[root]
				}
				ids := []int32{id}
				if !known {
					ids, share = nil, share*prefixWeight
					if len(root) > 3 && strings.HasPrefix(word, root) {
						word = root
					}
					if len(q.words) <= maxPhrased && len(word) > 2 && strings.Trim(word, "0123456789") != "" {
						ids = x.termsWithPrefix(word)
					}
				}
				for _, id := range ids {
					add(id, share, isName)
				}
				if n == 0 && g == wholeToken && token[0] < utf8.RuneSelf && (len(token) > 2 || scan.IsDigit(token[0])) && !askingWords[string(token)] {
					asked = append(asked, askedWord{text[from:to], ids})
				}
			})
		}
		return others
	}
	if !look(stopWords) && len(q.prefixes) == 0 {
		look(nil)
	}
	for _, prefix := range q.prefixes {
		ids := x.termsWithPrefix(prefix)
		for _, id := range ids {
			add(id, grainWeight[wholeToken], true)
		}
		asked = append(asked, askedWord{prefix + "*", ids})
	}
	return terms, asked
}

// maxPrefixTerms is how many terms an unknown word may match.
const maxPrefixTerms = 32

// termsWithPrefix returns the terms that begin so, shortest first.
func (x *Index) termsWithPrefix(word string) []int32 {
	words := x.words()
	at, _ := slices.BinarySearch(words, word)
	end := at
	for end < len(words) && strings.HasPrefix(words[end], word) {
		end++
	}
	found := slices.Clone(words[at:end])
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	ids := make([]int32, 0, min(len(found), maxPrefixTerms))
	for _, t := range found[:min(len(found), maxPrefixTerms)] {
		ids = append(ids, x.terms[t])
	}
	return ids
}

// scoreEntries adds up the weights of the terms of each entry. Entries with more of the
// query count more.
func (x *Index) scoreEntries(terms []term, query string) []float64 {
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
			scores[i] *= 1 - heldShare + heldShare*held[i]/asked
		}
	}
	return x.withSurroundings(scores, terms, query)
}

// entriesWithPhrase lists the entries whose text contains a phrase in any case, as it is
// shown or, for a phrase with its escapes, as it was written.
func (x *Index) entriesWithPhrase(phrase string) []int {
	var found []int
	holders, narrowed := holdersOfInner(x, phrase)
	for i := range x.entries {
		view, text := x.views[i], x.entries[i].Text
		for len(holders) > 0 && holders[0].entry < int32(i) {
			holders = holders[1:]
		}
		if may := !narrowed || len(holders) > 0 && holders[0].entry == int32(i); may && indexFold(view, phrase) >= 0 || len(view) != len(text) && indexFold(text, phrase) >= 0 {
			found = append(found, i)
		}
	}
	return found
}

// holdersOfInner returns the entries that have the rarest of the words between the first and the last
// of a phrase: these stand whole in a text that contains it. Without such words it narrows nothing.
func holdersOfInner(x *Index, phrase string) (holders []posting, narrowed bool) {
	words := strings.Fields(phrase)
	if len(words) < 3 {
		return nil, false
	}
	sc := scanner{wholesOnly: true}
	sc.scan(strings.Join(words[1:len(words)-1], " "), func(token []byte, _ grain, _, _ int) {
		var list []posting
		if id, known := x.terms[string(token)]; known {
			list = x.postings[id]
		}
		if !narrowed || len(list) < len(holders) {
			holders, narrowed = list, true
		}
	})
	return holders, narrowed
}

// indexFold is strings.Index without regard to case. A character does not match its other
// case if that has another number of bytes.
func indexFold(s, phrase string) int {
	if phrase == "" {
		return -1
	}
	if phrase[0] >= utf8.RuneSelf {
		for at := 0; at+len(phrase) <= len(s); at++ {
			if s[at] >= utf8.RuneSelf && utf8.RuneStart(s[at]) && strings.EqualFold(s[at:at+len(phrase)], phrase) {
				return at
			}
		}
		return -1
	}
	first := phrase[0]
	other := first // its other case
	if c := first | 0x20; 'a' <= c && c <= 'z' {
		other = first ^ 0x20
	}
	for at := 0; at+len(phrase) <= len(s); at++ {
		if c := s[at]; (c == first || c == other) && strings.EqualFold(s[at:at+len(phrase)], phrase) {
			return at
		}
	}
	return -1
}
