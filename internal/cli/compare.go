package cli

import (
	"context"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Compact makes a request fit like the command compact, for programs that compare policies:
// a policy that keeps to its own rules may exceed the budget. The note says who wrote the
// summaries.
func Compact(ctx context.Context, chosen *setup.Policy, config palimpsest.Config, q palimpsest.Request) (res *palimpsest.Result, note string, err error) {
	made := newSummaries()
	f, err := newFitter(chosen, config, made)
	if err != nil {
		return nil, "", err
	}
	res, err = f.apply(ctx, withRecallNote(f.compactor, q, &storeFlag{settled: true}))
	return res, made.note(), err
}

// Keep stores a conversation and its plan in a store, which recall and artifact get read.
func Keep(ctx context.Context, name string, t *thread.Thread, p *plan.Plan) error {
	flag := &storeFlag{name: name}
	return flag.withDatabase(ctx, false, func(db *database) error {
		_, err := db.forTenant("").save(ctx, t, p)
		return err
	})
}
