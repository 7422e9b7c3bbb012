package locomo

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/token"
)

// enoughWords is the share of the weight of a turn's words that must be in a prompt for
// the turn to count as there.
const enoughWords = 0.8

// answered is what one contender kept of one conversation, by category of the
// questions.
type answered struct {
	byCategory map[int]*kept
	// prompts are how many were made, over those of them beyond the budget.
	prompts, over float64
}

// kept counts questions. evidence is the sum of the shares of their turns that are in
// the prompt, answers counts those whose answer is, found with one lookup.
type kept struct{ questions, evidence, answers, found float64 }

func (k *kept) add(x kept) {
	k.questions += x.questions
	k.evidence += x.evidence
	k.answers += x.answers
	k.found += x.found
}

func (a *answered) all() kept {
	var sum kept
	// In order: sums of fractions depend on it.
	for _, category := range slices.Sorted(maps.Keys(a.byCategory)) {
		sum.add(*a.byCategory[category])
	}
	return sum
}

// weights are the inverse document frequencies of the words of a conversation, with its
// turns as documents.
func (d *dialogue) weights() map[string]float64 {
	count := map[string]int{}
	for _, text := range d.texts {
		for w := range bagOf(text) {
			count[w]++
		}
	}
	weights := map[string]float64{}
	for w, n := range count {
		weights[w] = math.Log(float64(len(d.texts)) / float64(n))
	}
	return weights
}

// answers adds what a prompt holds.
func (d *dialogue) answers(ctx context.Context, f *fit, weights map[string]float64, counter *token.Counter, out *answered) error {
	words, text := bagOf(f.Text), " "+normal(f.Text)+" "
	holds := func(text, answer string) bool { return answer != "" && strings.Contains(text, " "+answer+" ") }
	var index *recall.Index
	if len(f.Removed) > 0 {
		index = recall.NewIndex(f.Removed)
	}
	out.prompts++
	if f.Over {
		out.over++
	}
	for _, q := range d.questions {
		k := kept{questions: 1}
		for _, pos := range q.evidence {
			all, there := 0.0, 0.0
			for _, w := range slices.Sorted(maps.Keys(bagOf(d.texts[pos]))) {
				all += weights[w]
				if words[w] {
					there += weights[w]
				}
			}
			if there >= enoughWords*all {
				k.evidence += 1 / float64(len(q.evidence))
			}
		}
		answer := normal(q.answer)
		is := holds(text, answer)
		if is {
			k.answers = 1
		}
		if !is && index != nil {
			brought, _, err := references.Lookup(ctx, index, q.text, counter)
			if err != nil {
				return err
			}
			is = holds(" "+normal(brought)+" ", answer)
		}
		if is {
			k.found = 1
		}
		if out.byCategory[q.category] == nil {
			out.byCategory[q.category] = &kept{}
		}
		out.byCategory[q.category].add(k)
	}
	return nil
}

// normal is a text in lower case, without punctuation and articles, with single spaces.
func normal(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	kept := words[:0]
	for _, w := range words {
		if w != "a" && w != "an" && w != "the" {
			kept = append(kept, w)
		}
	}
	return strings.Join(kept, " ")
}

// bagOf are the words of a text.
func bagOf(text string) map[string]bool {
	bag := map[string]bool{}
	for _, w := range strings.Fields(normal(text)) {
		bag[w] = true
	}
	return bag
}
