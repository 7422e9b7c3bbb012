// Package eval measures compaction policies on recorded conversations, without a
// model. At many moments of each conversation every contender fits the history
// into the same budget. Then it looks in what is left for the identifiers that the agent
// really wrote in the calls of its next steps.
//
//	set, err := references.Load(ctx, []string{"transcripts"}, nil, nil)
//	report, err := eval.Run(ctx, set, nil)
//	report.WriteTable(os.Stdout, false)
//
// Replay is open-loop: the agent's steps are those of the record, whatever a contender
// shows it. So this measures what is kept and what it costs, and says nothing about
// tasks solved.
package eval
