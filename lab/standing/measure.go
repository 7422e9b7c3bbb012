package standing

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/standing"
	"github.com/palimpsest-ai/palimpsest/lab/texttable"
)

// long is from how many characters a message counts as long, if it has one clause only.
const long = 140

// Scored is a labelled sentence with its score.
type Scored struct {
	Labelled
	Score int
}

// Scores scores sentences as messages: by their highest clause.
func Scores(t standing.Table, all []Labelled) []Scored {
	out := make([]Scored, len(all))
	for i, l := range all {
		_, score := t.Best(l.Text, l.Before)
		out[i] = Scored{l, score}
	}
	return out
}

// Folds scores every sentence by a table that was learned from the other hands: parts of one
// hand are too much alike to tell what is reached for others. The second
// are long messages of each hand, joined of its sentences.
func Folds(all []Labelled) (sentences, joined []Scored) {
	var done []string
	for _, l := range all {
		if slices.Contains(done, l.Hand) {
			continue
		}
		done = append(done, l.Hand)
		var rest, held []Labelled
		for _, o := range all {
			if o.Hand == l.Hand {
				held = append(held, o)
			} else {
				rest = append(rest, o)
			}
		}
		if len(rest) > 0 {
			table := Train(rest, nil)
			sentences = append(sentences, Scores(table, held)...)
			joined = append(joined, Scores(table, Joined(held))...)
		}
	}
	return sentences, joined
}

// Joined makes long messages of sentences that answer nothing: of each such sentence one, with
// three that do not stand, of the same hand, language and topic where there are as many, at
// the first to fourth place in turn. The message stands where that sentence does.
func Joined(all []Labelled) []Labelled {
	type topic struct{ hand, lang, domain string }
	fall := map[topic][]string{}
	for _, l := range all {
		if key := (topic{l.Hand, l.Lang, l.Domain}); !l.Stands && l.Before == "" {
			fall[key] = append(fall[key], l.Text)
		}
	}
	var out []Labelled
	for i, l := range all {
		others := fall[topic{l.Hand, l.Lang, l.Domain}]
		if l.Before != "" || len(others) < 8 {
			continue
		}
		var message strings.Builder
		for n := range 4 {
			text := others[(i+n*len(others)/4)%len(others)]
			if n == i%4 {
				text = l.Text
			}
			if !strings.ContainsAny(text[len(text)-1:], ".!?") {
				text += "."
			}
			message.WriteString(text + " ")
		}
		l.Text, l.Domain, l.Kind = strings.TrimSpace(message.String()), "joined", 0
		out = append(out, l)
	}
	return out
}

// Ranking is how well scores rank what stands before what does not.
type Ranking struct {
	Of                string  `json:"of"`
	Sentences         int     `json:"sentences"`
	Stand             int     `json:"stand"`
	AveragePrecision  float64 `json:"average_precision"`
	RecallAtPrecision float64 `json:"recall_at_precision_90"`
	// Top is the highest 20, 30 and 40 % of the sentences.
	Top [3]Share `json:"top_20_30_40"`
}

// Share is a part of a ranking: how much of it stands, and how much of what stands is in it.
type Share struct {
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
}

// Report is a ranking of all sentences and of parts of them. Kinds has for each letter how
// much of it is in the top 40 %.
type Report struct {
	Rankings []Ranking `json:"rankings"`
	Kinds    []Kind    `json:"kinds,omitempty"`
}

// Kind is the sentences of one label.
type Kind struct {
	Name      string  `json:"name"`
	Sentences int     `json:"sentences"`
	Top       float64 `json:"top_40"`
}

// Measure reports on scored sentences: all, by hand, language and length, and what answers
// something.
func Measure(all []Scored) *Report {
	r := &Report{Rankings: []Ranking{rank("all", all)}}
	for _, by := range []func(Scored) string{
		func(s Scored) string { return "hand " + s.Hand },
		func(s Scored) string {
			if s.Lang == "en" {
				return "English, " + lengthOf(s)
			}
			return "other languages"
		},
		func(s Scored) string { return "language " + s.Lang },
		lengthOf,
		func(s Scored) string {
			if s.Before == "" {
				return ""
			}
			return "answers"
		},
	} {
		parts := map[string][]Scored{}
		for _, s := range all {
			parts[by(s)] = append(parts[by(s)], s)
		}
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if part := parts[name]; name != "" && name != "hand " && len(part) < len(all) {
				r.Rankings = append(r.Rankings, rank(name, part))
			}
		}
	}
	r.Kinds = kindsIn(ranked(all))
	return r
}

func lengthOf(s Scored) string {
	if len(standing.Clauses(s.Text, "")) > 1 || utf8.RuneCountInString(s.Text) >= long {
		return "long"
	}
	return "short"
}

// ranked is sentences by score, the highest first.
func ranked(all []Scored) []Scored {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Scored) int { return cmp.Compare(b.Score, a.Score) })
	return all
}

// rank measures one ranking. Sentences of the same score share a rank, so their order tells
// nothing.
func rank(of string, all []Scored) Ranking {
	all = ranked(all)
	r := Ranking{Of: of, Sentences: len(all)}
	for _, s := range all {
		if s.Stands {
			r.Stand++
		}
	}
	if r.Stand == 0 {
		return r
	}
	hits := 0
	for from := 0; from < len(all); {
		to, tied := from, 0
		for ; to < len(all) && all[to].Score == all[from].Score; to++ {
			if all[to].Stands {
				tied++
			}
		}
		hits += tied
		precision, recall := float64(hits)/float64(to), float64(hits)/float64(r.Stand)
		r.AveragePrecision += precision * float64(tied) / float64(r.Stand)
		if precision >= .9 {
			r.RecallAtPrecision = recall
		}
		from = to
	}
	for i, percent := range []int{20, 30, 40} {
		top, stand := all[:max(1, len(all)*percent/100)], 0
		for _, s := range top {
			if s.Stands {
				stand++
			}
		}
		r.Top[i] = Share{float64(stand) / float64(len(top)), float64(stand) / float64(r.Stand)}
	}
	return r
}

func kindsIn(ranked []Scored) []Kind {
	var out []Kind
	for _, letter := range []byte(letters) {
		k := Kind{Name: kinds[letter]}
		top := 0
		for i, s := range ranked {
			if s.Kind == letter {
				k.Sentences++
				if i < len(ranked)*40/100 {
					top++
				}
			}
		}
		if k.Sentences > 0 {
			k.Top = float64(top) / float64(k.Sentences)
			out = append(out, k)
		}
	}
	return out
}

// Above returns the lowest score from which a share of the sentences stands, if frequency of
// all sentences stand, and how much of what stands is above it. Without such a score it is
// the highest possible.
func Above(all []Scored, share, frequency float64) (score int, recall float64) {
	var stand, fall float64
	for _, s := range all {
		if s.Stands {
			stand++
		}
	}
	fall = float64(len(all)) - stand
	score = math.MaxInt
	var hits, misses float64
	all = ranked(all)
	for i, s := range all {
		if s.Stands {
			hits += frequency / stand
		} else {
			misses += (1 - frequency) / fall
		}
		if last := i == len(all)-1 || all[i+1].Score < s.Score; last && hits >= share*(hits+misses) {
			score, recall = s.Score, hits/frequency
		}
	}
	return score, recall
}

// Thresholds tells from which scores a share of sentences stands, at natural frequencies, and
// which score nearly all of what stands has.
func Thresholds(all []Scored) string {
	var b strings.Builder
	for _, frequency := range []float64{.02, .05, .1} {
		score, recall := Above(all, .85, frequency)
		fmt.Fprintf(&b, "where %s stands: of what scores %d and more %s (recall %s)\n", share(frequency), score, share(.85), share(recall))
	}
	var stand []Scored
	for _, s := range ranked(all) {
		if s.Stands {
			stand = append(stand, s)
		}
	}
	if len(stand) > 0 {
		fmt.Fprintf(&b, "%s of what stands scores %d and more\n", share(.95), stand[len(stand)*95/100].Score)
	}
	return b.String()
}

// Text is the report as tables.
func (r *Report) Text() string {
	var b strings.Builder
	t := texttable.Table{Head: []string{"", "sentences", "stand", "av.prec.", "at .90", "20%", "30%", "40%"}}
	for _, k := range r.Rankings {
		row := []string{k.Of, clip.Number(k.Sentences), clip.Number(k.Stand), share(k.AveragePrecision), share(k.RecallAtPrecision)}
		for _, top := range k.Top {
			row = append(row, share(top.Precision)+"/"+share(top.Recall))
		}
		t.Row(row...)
	}
	t.Write(&b)
	b.WriteString("\nat .90: recall at a precision of .90; 20%: of the highest 20 %, the share that\nstands / how much of what stands is among them\n")
	if len(r.Kinds) > 0 {
		b.WriteByte('\n')
		t := texttable.Table{Head: []string{"kind", "sentences", "in the top 40%"}}
		for _, k := range r.Kinds {
			t.Row(k.Name, clip.Number(k.Sentences), share(k.Top))
		}
		t.Write(&b)
	}
	return b.String()
}

func share(x float64) string {
	if x >= .995 {
		return "1.00"
	}
	return strings.TrimPrefix(fmt.Sprintf("%.2f", x), "0")
}
