// Package eval measures compaction policies on recorded conversations, without a
// model. At many moments of each conversation every contender fits the history
// into the same budget; then the identifiers that the agent really wrote in the
// calls of its next steps are looked for in what was left.
//
//	set, err := references.Load(ctx, []string{"transcripts"}, nil, nil)
//	report, err := eval.Run(ctx, set, nil)
//	report.WriteTable(os.Stdout, false)
//
// Replay is open-loop: what the agent did is taken from the record and does not
// react to what it is shown. So this measures what is kept and what it costs,
// and says nothing about tasks solved.
package eval
