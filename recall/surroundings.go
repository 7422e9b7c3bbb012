package recall

import (
	"strings"
	"time"
)

// section is a stretch of a thread: entries with no long pause between them, which mostly are about
// the same.
type section struct {
	from, to int // entries; to is not in it
	length   int // tokens
}

const (
	// longestPause ends a section, and so does what is larger than mostEntries and mostTokens.
	longestPause            = 3 * time.Hour
	mostEntries, mostTokens = 64, 12_000
	// sectionWeight is what the score of its section adds to that of an entry.
	sectionWeight = 0.8
	// beforeWeight and afterWeight are what the score of the entry before and behind adds, and
	// answerWeight what that of a question adds to its answer. questionWeight is for what asks
	// itself, and does not tell.
	beforeWeight, afterWeight, answerWeight, questionWeight = 0.1, 0.1, 0.35, 0.9
	// sameSectionWeight is for each hit of a section after its best one: others may be meant.
	sameSectionWeight = 0.8
	// maxSpread is how many entries are put in order that way.
	maxSpread = 200
)

// addSections divides the entries into sections, and finds the questions.
func (x *Index) addSections() {
	x.sectionOf, x.asks = make([]int32, len(x.entries)), make([]bool, len(x.entries))
	for i := range x.entries {
		e := &x.entries[i]
		if e.Time.After(x.newest) {
			x.newest = e.Time
		}
		x.asks[i] = e.Tool == "" && strings.HasSuffix(strings.TrimRight(e.Text, " \t\r\n)\"*"), "?")
		n := len(x.sections) - 1
		if n < 0 || !x.sections[n].goesOn(x, i) {
			x.sections = append(x.sections, section{from: i})
			n++
		}
		x.sections[n].to = i + 1
		x.sections[n].length += int(x.lengths[i])
		x.sectionOf[i] = int32(n)
	}
}

// goesOn reports whether entry i belongs to the section before it.
func (s section) goesOn(x *Index, i int) bool {
	e, last := &x.entries[i], &x.entries[i-1]
	paused := !e.Time.IsZero() && !last.Time.IsZero() && e.Time.Sub(last.Time).Abs() > longestPause
	return e.ThreadID == last.ThreadID && !paused && i-s.from < mostEntries && s.length < mostTokens
}

// addSurroundings adds to the scores of entries what stands around them: their neighbors, the
// question that they answer, and their section as a whole.
func (x *Index) addSurroundings(scores []float64, terms []term, query string) {
	whole := sectionScores(x, terms)
	addPeriod(x, whole, query)
	for n, s := range x.sections {
		if whole[n] == 0 {
			continue // none of its entries has a score
		}
		before := 0.0 // the own score of the entry before
		for i := s.from; i < s.to; i++ {
			own := scores[i]
			answers := i > s.from && x.asks[i-1]
			if score := own; own > 0 || answers {
				score += beforeWeight * before
				if answers {
					score += answerWeight * before
				}
				if i+1 < s.to {
					score += afterWeight * scores[i+1]
				}
				if x.asks[i] {
					score *= questionWeight
				}
				if score > 0 {
					scores[i] = score + sectionWeight*whole[n]
				}
			}
			before = own
		}
	}
}

// sectionScores are the scores of BM25 of the sections, as if each were one text.
func sectionScores(x *Index, terms []term) []float64 {
	scores, counts := make([]float64, len(x.sections)), make([]int32, len(x.sections))
	mean := 0.0
	for _, s := range x.sections {
		mean += float64(s.length) / float64(len(x.sections))
	}
	var holders []int32
	for _, t := range terms {
		holders = holders[:0]
		for i, places := range x.occurrences(0, t.ids) {
			n := x.sectionOf[i]
			if counts[n] == 0 {
				holders = append(holders, n)
			}
			counts[n] += int32(len(places))
		}
		weight := t.share * idf(len(x.sections), len(holders))
		for _, n := range holders {
			scores[n] += weight * saturate(float64(counts[n]), float64(x.sections[n].length)/mean)
			counts[n] = 0
		}
	}
	return scores
}

// addPeriod adds to sections what they are worth because of a time that the query names. Where none
// is of that time it says nothing.
func addPeriod(x *Index, scores []float64, query string) {
	p, ok := periodOf(query, x.newest)
	if !ok {
		return
	}
	holders := 0
	near := make([]float64, len(scores))
	for n, s := range x.sections {
		if near[n] = p.nearness(x.entries[s.from].Time); near[n] > 0 {
			holders++
		}
	}
	for n := range scores {
		if scores[n] > 0 {
			scores[n] += periodWeight * near[n] * idf(len(scores), holders)
		}
	}
}

// spread puts the found entries, best first, into an order in which the first ones are not all of one
// section, and lowers the scores of the later ones accordingly.
func (x *Index) spread(found []int, scores []float64) {
	used := map[int32]float64{}
	value := func(i int) float64 {
		if factor, is := used[x.sectionOf[i]]; is {
			return scores[i] * factor
		}
		return scores[i]
	}
	head := found[:min(len(found), maxSpread)]
	for n := range head[:min(len(head), DefaultLimit)] {
		best := n
		for m := n + 1; m < len(head); m++ {
			if value(head[m]) > value(head[best]) {
				best = m
			}
		}
		i := head[best]
		copy(head[n+1:best+1], head[n:best])
		head[n] = i
		scores[i] = value(i)
		if _, is := used[x.sectionOf[i]]; !is {
			used[x.sectionOf[i]] = 1
		}
		used[x.sectionOf[i]] *= sameSectionWeight
	}
}
