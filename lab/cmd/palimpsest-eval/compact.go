package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// recallNote is what `palimpsest compact` tells the reader of a prompt whose store is the default one.
const recallNote = render.RemovedNote + ` To read one in full, run: palimpsest artifact get ID; to search them: palimpsest recall "WORDS"]`

// compact makes a request fit like the command compact; a policy that keeps to its own rules may exceed the
// budget. The note says who wrote the summaries.
func compact(ctx context.Context, config palimpsest.Config, q palimpsest.Request) (res *palimpsest.Result, note string, err error) {
	c, err := palimpsest.New(config)
	if err != nil {
		return nil, "", err
	}
	q.Note = recallNote
	if res, err = c.Compact(ctx, q); res != nil {
		return res, summariesNote(res.Summaries), nil
	}
	return nil, summariesNote(policy.SummariesOf(nil, err)), err
}

// keep stores a conversation and its plan in a store, which `palimpsest recall` and `artifact get` read.
func keep(ctx context.Context, file string, t *thread.Thread, p *plan.Plan) error {
	db, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	kept, version := db.Tenant(""), 0
	if _, err = kept.Log.Append(ctx, t.ID(), 0, t.Messages()); err == nil {
		_, version, err = kept.Plans.Current(ctx, t.ID())
	}
	if err == nil {
		_, err = kept.Plans.Commit(ctx, t.ID(), version, store.Commit{Plan: p})
	}
	return errors.Join(err, db.Close())
}

// summariesNote says in one line who wrote summaries, what of them was used, and what failed.
func summariesNote(reports []summarize.Report) string {
	by := map[string]int{}
	var all summarize.Report
	var failures []string
	for _, r := range reports {
		if r.By != "" {
			by[r.By]++
		}
		for _, f := range r.Failures {
			reason := "no reason given"
			if f.Err != nil {
				reason = cli.ErrorText(f.Err)
			}
			if line := fmt.Sprintf("%s failed: %s", f.Step, reason); !slices.Contains(failures, line) {
				failures = append(failures, line)
			}
		}
		all = all.With(r)
	}
	if len(by) == 0 {
		return "no summary was needed"
	}
	note := "summaries by " + byFrequency(by)
	if all.Proposed > 0 {
		note += fmt.Sprintf("; %d of %d items kept", all.Kept, all.Proposed)
	}
	if len(all.Dropped) > 0 {
		note += ", left out: " + byFrequency(all.Dropped)
	}
	return strings.Join(append([]string{note}, failures...), "; ")
}

// byFrequency lists names with their counts, the most frequent first.
func byFrequency(count map[string]int) string {
	var all []string
	for _, name := range slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	}) {
		all = append(all, fmt.Sprintf("%s (%d)", name, count[name]))
	}
	return strings.Join(all, ", ")
}
