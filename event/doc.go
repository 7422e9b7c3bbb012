// Package event reports what happens to the context of a thread: to logs, metrics, a page,
// or hooks of the caller.
//
// Whoever acts calls Emit; whoever watches implements Sink. Func makes a sink of a function,
// Multi fans out, Counters adds up.
//
// # No content
//
// An event never contains text of a conversation. It has ids, counts, sizes and names. In
// everything that is written of an event (its JSON, its Attrs, and so every sink of this
// module), a text that does not look like an id or a name, because it is long or has white
// space, is replaced by its length, and a value of an unexpected type by the type. Errors are
// written as their class (ErrorClass), because providers quote prompts in error texts. A log
// that only the operator reads may add CauseText, which leaves out what they quote.
//
// # A compaction, event by event
//
//	compaction_check_started        tokens before, budget, due, why
//	pre_compact                     tokens before, trigger, why
//	compaction_proposal_generated   strategy, span, tokens it would free   (0…n)
//	compaction_externalized, …      strategy, span, tokens freed           (0…n, see OfRecord)
//	compaction_retrieved            span, where recall is on                (0…n)
//	plan_committed | plan_conflict  version, attempt
//	compaction_completed | compaction_failed
//	session_start                   source "compact"
//	compact_boundary                where the visible log begins now
//
// Hooks of a caller are sinks that look at the type: pre_compact comes before a compaction,
// compaction_completed after it.
package event
