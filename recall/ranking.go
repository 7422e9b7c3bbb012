package recall

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

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
	// empty.
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
// later message comes first. Phrases in double quotes are searched as they are; the rest are
// words, and a passage need not have all of them. A query that is part of a word finds it
// too. In a query of more than 300 bytes or with many quotes, such as code, quotes have no
// meaning.
func (x *Index) Search(query string, o *Options) []Hit {
	o = cmp.Or(o, &Options{})
	found, scores, terms, phrases := x.rank(query, o)
	return x.buildHits(query, found, scores, terms, phrases, o)
}

// rank returns the entries that match, best first, the scores of all entries, and the terms
// and phrases that excerpts are to show.
func (x *Index) rank(query string, o *Options) (found []int, scores []float64, terms []term, phrases []string) {
	words, phrases := parseQuery(query)
	plain := strings.TrimSpace(strings.ReplaceAll(query, `"`, ""))
	if plain == "" {
		return nil, make([]float64, len(x.entries)), nil, nil
	}
	terms = x.queryTerms(words, phrases)
	scores = x.scoreEntries(terms, query)
	if len(plain) > maxPhrased && len(terms) > 0 {
		return x.matchingEntries(scores, o), scores, terms, nil
	}
	holds := x.entriesWithPhrase(plain)
	rare := x.rarity(max(1, len(holds)), true)
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

// maxFound is how many entries are put in order and looked at closely.
const maxFound = 2000

// matchingEntries lists the entries with the best scores, best first.
func (x *Index) matchingEntries(scores []float64, o *Options) []int {
	var found []int
	for i, score := range scores {
		if score > 0 && o.matches(&x.entries[i]) {
			found = append(found, i)
		}
	}
	found = mostPromising(found, scores)
	x.sortByScore(found, scores)
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

func (o *Options) matches(e *Entry) bool {
	return (o.ThreadID == "" || o.ThreadID == e.ThreadID) && (o.Tool == "" || o.Tool == e.Tool) && (o.Role == "" || o.Role == e.Role)
}

// maxPhrased is the length in bytes up to which a query is also searched as it is; a longer
// one is a description. maxQuotes is the number of quotes up to which they have a meaning.
const maxPhrased, maxQuotes = 300, 4

// parseQuery splits a query into words and quoted phrases.
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

// queryTerms returns the terms of the index that match a query, each with its largest weight.
// Stop words count where there is nothing else.
func (x *Index) queryTerms(words string, phrases []string) []term {
	var terms []term
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
	scan := func(skip map[string]bool) (others bool) {
		for _, text := range append([]string{words}, phrases...) {
			sc.scan(text, func(token []byte, g grain, from, to int) {
				word, isName := string(token), g != wholeToken || nameScore(text[from:to]) > 1
				if skip[word] {
					return
				}
				others = true
				id, known := x.terms[word]
				if !known {
					id, known = x.terms[stem(word)]
				}
				if known {
					add(id, grainWeight[g], isName)
					return
				}
				if len(words) > maxPhrased {
					return
				}
				for _, id := range x.termsWithPrefix(word) {
					add(id, grainWeight[g]*prefixWeight, isName)
				}
			})
		}
		return others
	}
	if !scan(stopWords) {
		scan(nil)
	}
	return terms
}

// maxPrefixTerms is how many terms an unknown word may match.
const maxPrefixTerms = 32

// termsWithPrefix returns the terms that begin like a word that no text has, shortest first.
func (x *Index) termsWithPrefix(word string) []int32 {
	if len(word) < 3 {
		return nil
	}
	if root := stem(word); len(root) > 3 && strings.HasPrefix(word, root) {
		word = root
	}
	at, _ := slices.BinarySearch(x.words, word)
	end := at
	for end < len(x.words) && strings.HasPrefix(x.words[end], word) {
		end++
	}
	found := slices.Clone(x.words[at:end])
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
