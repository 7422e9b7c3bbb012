package recall

import (
	"cmp"
	"math"
	"slices"
)

const (
	// nearShare is the part of an answer that names beside the excerpts may take,
	// nearBytes how far from its excerpt a name may stand, and nearHalf where it
	// counts half.
	nearShare           = 0.2
	nearBytes, nearHalf = 10_000, 2500
	// nearLeast is the weight of what stands near the weakest hit, and nearAlike
	// how much it counts that a name has parts in common with the question.
	nearLeast, nearAlike = 0.3, 2
	// nearRare is the power of the number of entries that hold a name by which it
	// counts less: what stands everywhere need not be told.
	nearRare = 0.6
	// shortestName is the least length of a name, in bytes.
	shortestName = 5
)

// near finds, for each passage, the names around it that no passage shows and the
// question does not hold: whoever has forgotten a name knows it again in a list.
func (c *chooser) near(spans []span, terms []term, room int) [][]string {
	type name struct {
		text  string
		span  int
		score float64
	}
	asked := make(map[int32]float64, len(terms))
	for k, t := range terms {
		asked[t.id] = c.worth[k]
	}
	shown := map[string]bool{}
	var sc, parts scanner
	show := func(token []byte, g grain, _, _ int) {
		if g == whole {
			shown[string(token)] = true
		}
	}
	for _, s := range spans {
		sc.scan(c.x.entries[c.x.rows[s.from].entry].Call, show)
		sc.scan(c.x.text(s), show)
	}
	var names []name
	at := map[string]int{}
	for n, s := range spans {
		text := c.x.views[c.x.rows[s.from].entry]
		from, to := int(c.x.rows[s.from].from), int(c.x.rows[s.to].to)
		weight := nearLeast + s.score/spans[0].score
		consider := func(start, end int) {
			sc.scan(text[start:end], func(token []byte, g grain, a, b int) {
				if g != whole || len(token) < shortestName || shown[string(token)] || start > 0 && a == 0 || start+b == end && end < len(text) {
					return
				}
				a, b = start+a, start+b
				if a > 0 && text[a-1] == '/' {
					a-- // an absolute path keeps its root
				}
				word := text[a:b]
				holders := 1
				if id, known := c.x.terms[string(token)]; known {
					if _, is := asked[id]; is {
						return
					}
					holders = len(c.x.postings[id])
				}
				if naming(word) < 2 || !lettered(word) {
					return
				}
				alike := 0.0
				parts.scan(word, func(part []byte, g grain, _, _ int) {
					if id, known := c.x.terms[string(part)]; known && g != whole {
						alike += asked[id]
					}
				})
				away := max(from-b, a-to)
				score := weight * (1 + nearAlike*alike) / (1 + float64(away)/nearHalf) / math.Pow(float64(holders), nearRare)
				if i, twice := at[word]; !twice {
					at[word] = len(names)
					names = append(names, name{word, n, score})
				} else if names[i].score < score {
					names[i].score, names[i].span = score, n
				}
			})
		}
		consider(max(0, from-nearBytes), from)
		consider(to, min(len(text), to+nearBytes))
	}
	slices.SortStableFunc(names, func(a, b name) int { return cmp.Compare(b.score, a.score) })
	out := make([][]string, len(spans))
	for _, n := range names {
		if cost := estimate(n.text) + 1; cost <= room {
			room -= cost
			out[n.span] = append(out[n.span], n.text)
		}
	}
	return out
}

func lettered(word string) bool {
	for i := range len(word) {
		if c := word[i] | 0x20; 'a' <= c && c <= 'z' {
			return true
		}
	}
	return false
}

// estimate is about how many tokens a text is, most often a few percent more than
// o200k counts.
func estimate(s string) int {
	n := 0
	run := func(i int, in func(byte) bool) int {
		for i++; i < len(s) && in(s[i]); i++ {
		}
		return i
	}
	for i := 0; i < len(s); {
		start := i
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			i = run(i, func(c byte) bool { return 'a' <= c && c <= 'z' })
			n += 1 + (i-start-1)/9
		case '0' <= c && c <= '9':
			i = run(i, func(c byte) bool { return '0' <= c && c <= '9' })
			n += (i - start + 2) / 3
		case c == ' ':
			i = run(i, func(c byte) bool { return c == ' ' })
			if i-start > 1 {
				n++
			}
		case c < 0x80:
			i = run(i, func(c byte) bool {
				return c < 0x80 && c != ' ' && (c < '0' || '9' < c) && (c|0x20 < 'a' || 'z' < c|0x20)
			})
			n += (i - start + 1) / 2
		default:
			i = run(i, func(c byte) bool { return 0x80 <= c && c < 0xC0 })
			n++
		}
	}
	return n
}
