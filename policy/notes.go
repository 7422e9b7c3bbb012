package policy

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/strategy"
)

// Notes gives the model a fresh window in place of a summary: what the user said and laid down, the
// model's own notes, where the work stands, and the newest messages, as many as there is room for.
// What happened is not told: it can be searched. No model is ever asked.
//
// It compacts when Auto does, and leaves as much. It is for models that note what they will need
// (Recall.ContextTools of the module's root package); without notes a summary holds more.
type Notes struct {
	// Auto says when, and how much is left.
	Auto
}

// Name returns "notes".
func (Notes) Name() string { return "notes" }

// Plan brings the request down to the target of Auto, or to a budget that was asked for.
func (n Notes) Plan(ctx context.Context, s *Situation) (*Fitted, error) {
	return n.plan(ctx, s, n.Name(), strategy.Fresh())
}
