// Package otelsink gives events to OpenTelemetry: metrics, and one span for each
// compaction. Nothing in them is content; see package event.
//
// Metrics (A24). Only names of small number are attributes, never an id:
//
//	palimpsest.compactions          {compaction}  policy, palimpsest.outcome: completed, failed; error.type
//	palimpsest.compaction.duration  s             the same
//	palimpsest.tokens.freed         {token}       policy; completed compactions
//	palimpsest.prompts              {prompt}      policy
//	palimpsest.tokens.spared        {token}       policy; of all prompts together
//	palimpsest.records              {record}      policy, strategy, palimpsest.action
//	palimpsest.record.tokens        {token}       policy, strategy, palimpsest.action
//	palimpsest.cache.lookups        {lookup}      palimpsest.cache: hit, miss
//	palimpsest.rehydrations         {artifact}    palimpsest.outcome: done, blocked
//	palimpsest.plan.conflicts       {conflict}    policy
//	palimpsest.overflows.shortened  {request}     policy
//	palimpsest.proxy.requests       {request}     palimpsest.details. action, reason, route, status; error.type
//	palimpsest.context.requests     {request}     policy (A22)
//	palimpsest.quality.alerts       {alert}       policy (A22)
//
// Policy and strategy stand for palimpsest.policy and palimpsest.strategy.
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
