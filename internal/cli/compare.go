package cli

import (
	"context"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Compact makes a request fit like the command compact, for programs that compare policies:
// a policy that keeps to its own rules may exceed the budget. The note says who wrote the
// summaries.
func Compact(ctx context.Context, config palimpsest.Config, q palimpsest.Request) (res *palimpsest.Result, note string, err error) {
	made := newSummaries()
	c, err := palimpsest.New(config)
	if err != nil {
		return nil, "", err
	}
	q.Note = (&storeFlag{settled: true}).recallNote()
	res, err = c.Compact(ctx, q)
	made.addAll(summariesOf(res, err))
	if res != nil {
		err = nil
	}
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
