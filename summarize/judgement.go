package summarize

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/standing"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

// Sentences lists what the user said in the span, clause by clause, and what the summary before holds of
// it, in order: what may stand. Score is that of the table. The only errors are those of ctx.
func (e *Extractive) Sentences(ctx context.Context, in Input) ([]summary.Item, error) {
	span := spanOf(&in)
	in.Messages = hosted.Unfold(in.Messages)
	b := &builder{pool: &pool{effort: effort.New(ctx, in.bytes())}, in: &in, read: e.reading(ctx), messages: in.Messages}
	b.facts, _ = readSpan(&in, b.read)
	b.Span = span
	return b.sentences(), ctx.Err()
}

// judgedStanding is the score of a sentence that stands by a judgement.
const judgedStanding = 2 * standing.Rule

// left is what of the sentences is left by the judgement: neither what does not stand, unless it is a
// carried rule or an answer through a tool, nor what a later one of them takes back.
func (in *Input) left(all []summary.Item) (left []summary.Item) {
	if len(in.Stands)+len(in.Changes) == 0 {
		return all
	}
	takenBack, stood := map[string]bool{}, map[string]bool{}
	for i := range all {
		if earlier, changes := in.Changes[all[i].Text]; changes && !in.Stands[earlier] {
			takenBack[earlier] = true
		}
	}
	if in.Previous != nil {
		for _, it := range in.Previous.Constraints {
			stood[it.Text] = true
		}
	}
	for _, it := range all {
		stands, judged := in.Stands[it.Text]
		if takenBack[it.Text] || judged && !stands && !stood[it.Text] && it.Asked == "" {
			continue
		}
		if stands {
			it.Score = max(it.Score, judgedStanding)
		}
		left = append(left, it)
	}
	return left
}

// changedBy returns what tells for a judged sentence which later one changes it, or -1.
func (in *Input) changedBy(all []summary.Item) func(i int) (later int, judged bool) {
	newest := map[string]int{} // what changes a sentence, by its words
	for i := range all {
		if earlier, changes := in.Changes[all[i].Text]; changes {
			newest[earlier] = i
		}
	}
	return func(i int) (int, bool) {
		_, judged := in.Stands[all[i].Text]
		if later := newest[all[i].Text]; later > i {
			return later, true
		}
		return -1, judged
	}
}
