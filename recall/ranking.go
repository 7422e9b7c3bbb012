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
	root   string
	ids    []int32 // in each segment
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
	// filtered and favors say that the question has a filter, and a likely one.
	filtered, favors bool
	// admitted is 1 for entries that the filter admits and -1 for others, to ask it once of each.
	admitted []int8
}

// admits reports whether the filter admits entry i.
func (r *ranking) admits(x *Index, i int) bool {
	if !r.filtered {
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
	r := &ranking{question: q, filtered: q.only != (filter{}), favors: q.likely != (filter{})}
	if r.filtered {
		r.admitted = make([]int8, len(x.entries))
	}
	if q.text == "" && len(q.prefixes) == 0 {
		if r.scores = make([]float64, len(x.entries)); r.filtered {
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
	rare := rarity(len(x.entries), max(1, len(holds)), true)
	for _, i := range holds {
		if r.scores[i] == 0 {
			r.scores[i] = rare * x.bm25(i, 1)
		}
		r.scores[i] *= exactFactor
	}
	for _, phrase := range q.phrases {
		if phrase != q.text { // else it was counted above
			for i := range r.scores {
				r.scores[i] *= missingPhraseFactor
			}
			holds = x.entriesWithPhrase(phrase)
			for _, i := range holds {
				if r.scores[i] == 0 {
					r.scores[i] = missingPhraseFactor * rare * x.bm25(i, 1)
				}
				r.scores[i] *= phraseFactor / missingPhraseFactor
			}
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
		held := slices.ContainsFunc(word.terms, func(ids []int32) bool {
			for i := range x.occurrences(0, ids) {
				if r.admits(x, i) {
					return true
				}
			}
			return false
		})
		sought := newFolded(word.text)
		if !held && !slices.ContainsFunc(r.found, func(i int) bool { return sought.index(x.views[i]) >= 0 }) {
			missing = append(missing, word.text)
		}
	}
	return missing
}

// maxFound is how many entries are put in order and looked at closely.
const maxFound = 2000

// matchingEntries lists the entries with the best scores, best first; of very many with about the same score the
// later ones.
func (x *Index) matchingEntries(r *ranking) []int {
	each := func(yield func(i int) bool) {
		for i, score := range r.scores {
			if score > 0 && r.admits(x, i) && !yield(i) {
				return
			}
		}
	}
	best := 0.0
	for i := range each {
		if r.favors && r.likely.admits(x, i) {
			r.scores[i] *= likelyFactor
		}
		best = max(best, r.scores[i])
	}
	var have [4096 + 1]int // entries by score, in parts of the best
	step := func(i int) int { return int(r.scores[i] / best * float64(len(have)-1)) }
	for i := range each {
		have[step(i)]++
	}
	least, above := len(have)-1, 0
	for ; least > 0 && above+have[least] < maxFound; least-- {
		above += have[least]
	}
	surplus, found := have[least]-maxFound, []int(nil)
	for i := range each {
		if at := step(i); at == least && surplus > 0 {
			surplus--
		} else if at >= least {
			found = append(found, i)
		}
	}
	x.sortByScore(found, r.scores)
	return found[:min(len(found), maxFound)]
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
	terms [][]int32
}

// queryTerms returns the terms of the index that match a question, each with its largest weight, and
// its words. Stop words count where there is nothing else.
func (x *Index) queryTerms(q *question) (terms []term, asked []askedWord) {
	at := map[string]int{} // by root
	// add adds the term of a word, if there is one.
	add := func(word string, share float64, isName bool) (ids []int32, known bool) {
		root := stem(word)
		n, twice := at[root]
		if !twice {
			if ids, known = x.lookUp(root); !known {
				return nil, false
			}
			n = len(terms)
			at[root], terms = n, append(terms, term{root: root, ids: ids})
		}
		t := &terms[n]
		t.weight, t.share = max(t.weight, share*rarity(len(x.entries), x.holders(t.ids), isName)), max(t.share, share)
		return t.ids, true
	}
	addAll := func(words []string, share float64, isName bool) (all [][]int32) {
		for _, word := range words {
			ids, _ := add(word, share, isName)
			all = append(all, ids)
		}
		return all
	}
	look := func(skip map[string]bool) (others bool) {
		for n, text := range append([]string{q.words}, q.phrases...) {
			eachToken(text, func(word string, g grain, from, to int) {
				isName := g != wholeToken || nameScore(text[from:to]) > 1
				if skip[word] {
					return
				}
				others = true
				means := [][]int32{nil}
				var known bool
				if means[0], known = add(word, grainWeight[g], isName); !known {
					beginning := word
					if root := stem(word); len(root) > 3 && strings.HasPrefix(word, root) {
						beginning = root
					}
					means = nil
					if len(q.words) <= maxPhrased && len(beginning) > 2 && strings.Trim(beginning, "0123456789") != "" {
						means = addAll(x.wordsWithPrefix(beginning), prefixWeight*grainWeight[g], isName)
					}
				}
				if n == 0 && g == wholeToken && word[0] < utf8.RuneSelf && (len(word) > 2 || scan.IsDigit(word[0])) && !askingWords[word] {
					asked = append(asked, askedWord{text[from:to], means})
				}
			})
		}
		return others
	}
	if !look(stopWords) && len(q.prefixes) == 0 {
		look(nil)
	}
	for _, prefix := range q.prefixes {
		asked = append(asked, askedWord{prefix + "*", addAll(x.wordsWithPrefix(prefix), grainWeight[wholeToken], true)})
	}
	return terms, asked
}

// scoreEntries adds up the weights of the terms of each entry. Entries with more of the
// query count more.
func (x *Index) scoreEntries(terms []term, query string) []float64 {
	scores := make([]float64, len(x.entries))
	var held []float64 // by the entries of a segment
	asked := 0.0
	for _, t := range terms {
		asked += t.weight
	}
	for n, s := range x.segments {
		held = append(held[:0], make([]float64, 1+s.rows[len(s.rows)-1].entry)...)
		for _, t := range terms {
			for i, places := range x.occurrences(n, t.ids[n:n+1]) {
				scores[i] += t.weight * x.bm25(i, float64(len(places)))
				held[i-s.first] += t.weight
			}
		}
		for i, h := range held {
			if h > 0 {
				scores[s.first+i] *= 1 - heldShare + heldShare*h/asked
			}
		}
	}
	x.addSurroundings(scores, terms, query)
	return scores
}

// entriesWithPhrase lists the entries whose text contains a phrase in any case, as it is
// shown or, for a phrase with its escapes, as it was written.
func (x *Index) entriesWithPhrase(phrase string) []int {
	var found []int
	sought := newFolded(phrase)
	inner, narrowed := innerWord(x, phrase)
	holds := make([]bool, len(x.entries))
	for i := range x.occurrences(0, inner) {
		holds[i] = true
	}
	for i, view := range x.views {
		if (!narrowed || holds[i]) && sought.index(view) >= 0 || x.escaped[i] && sought.index(x.entries[i].Text) >= 0 {
			found = append(found, i)
		}
	}
	return found
}

// innerWord is the rarest term of the words between the first and the last of a phrase: these stand whole in a
// text that contains it. Without such words it narrows nothing.
func innerWord(x *Index, phrase string) (rarest []int32, narrowed bool) {
	words := strings.Fields(phrase)
	if len(words) < 3 {
		return nil, false
	}
	inner := strings.Join(words[1:len(words)-1], " ")
	eachWhole(inner, func(from, to int, _ bool) {
		if to-from > maxToken {
			return // not indexed
		}
		ids, _ := x.lookUp(stem(lower(inner[from:to])))
		if !narrowed || x.holders(ids) < x.holders(rarest) {
			rarest, narrowed = ids, true
		}
	})
	return rarest, narrowed
}
