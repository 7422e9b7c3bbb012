// Package otelsink gives events to OpenTelemetry: metrics, and one span for each
// compaction. Nothing in them is content; see package event.
//
// The metrics are those of event.Metrics, under "palimpsest." and with dots in
// place of "_": palimpsest.tokens.freed, palimpsest.compaction.duration. Their
// labels are attributes under "palimpsest.", error_class is error.type, and what an
// event does not have is left out. None is an id.
//
// Span "compact_context", of kind internal, made when a compaction is completed
// or has failed and dated back by its duration; its parent is the span of the
// context that the event came with. It has every attribute of the event
// (event.Event.Attrs) under "palimpsest.", but for those that the semantic
// conventions name, most of them for generative AI:
//
//	gen_ai.operation.name   "compact_context"
//	gen_ai.conversation.id  the thread's id
//	gen_ai.request.model    details: model
//	gen_ai.provider.name    details: provider
//	error.type              the class of the error, also of one that was overcome
//
// What happened in the thread since its compaction began is in the span as
// events under the type's name, with attributes named in the same way.
package otelsink
