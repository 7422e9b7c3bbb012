// Package event says what happened to a thread's context, to whoever wants to
// watch: a log, metrics, a page, a hook of the caller's.
//
// There is one contract, Sink, and one way to call it, Emit. Whoever does
// something emits; whoever watches is a Sink. Func makes one of a function,
// Multi fans out, Queue puts a slow one behind a buffer, Counters adds up.
//
// # No content
//
// An event never carries what a conversation said. It has ids, counts, sizes
// and names, and what an event writes (its JSON form, its Attrs, and every sink
// of this module) goes through one gate: a text among the Details that is not
// shaped like an id or a name, because it is long or holds white space, is
// replaced by its length, and a value of another type by that type. An error is
// named by its class (ErrorClass), never by its text, because providers quote
// prompts in theirs.
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
// A caller's hooks are sinks that look at the type: the hook before a compaction
// is pre_compact (tokens before), the one after it is compaction_completed
// (tokens before, after, and freed).
package event
