package event

// Type says what happened. Readers must ignore types that they do not know.
type Type string

// The steps of a compaction.
const (
	// CheckStarted: it was checked whether to compact. Details: due, and why as a name.
	CheckStarted Type = "compaction_check_started"
	// ProposalGenerated: a strategy proposed a record. The next four: a record is new in the plan.
	ProposalGenerated Type = "compaction_proposal_generated"
	Externalized      Type = "compaction_externalized"
	Summarized        Type = "compaction_summarized"
	Cleared           Type = "compaction_cleared"
	Dropped           Type = "compaction_dropped"
	// Retrieved: the span was removed and can be searched.
	Retrieved Type = "compaction_retrieved"
	// Rehydrated: externalized content was shown again without a request. Details:
	// artifact, tokens; for a removed message that matched the user's last one: message_id,
	// trigger "recall".
	Rehydrated Type = "compaction_rehydrated"
	// Completed: the compaction ended, with its sizes. Details: proposed, kept and dropped_ with a
	// cause, as Asked has them, of all models that it asked.
	Completed Type = "compaction_completed"
)

// What else happens to a thread.
const (
	// Blocked: content was not shown again. Details: artifact, sensitivity, reason.
	Blocked Type = "rehydration_blocked"
	// Failed: the compaction failed. Err has the class of the error; details: fallback, what was done instead
	// ("passthrough", "earlier_plan"). A compaction that succeeded in another way than planned is Completed, with Err
	// and fallback ("extractive", "truncation_note") set. Each compaction ends with one of the two, once, unless there
	// turned out to be nothing to compact: after PreCompact comes neither then.
	Failed Type = "compaction_failed"
	// PlanCommitted and PlanConflict: the plan was stored, or another one was faster.
	// Details: version, attempt.
	PlanCommitted Type = "plan_committed"
	PlanConflict  Type = "plan_conflict"
	// OverflowShortened: the provider refused a request as too long, and a smaller one was
	// made. Whether it takes that is not known yet.
	OverflowShortened Type = "overflow_shortened"
	// PreCompact comes before a compaction, with TokensBefore. Details: trigger ("auto",
	// "manual"), and why as a name.
	PreCompact Type = "pre_compact"
	// SessionStart: the agent's context begins anew. Details: source, "compact" after a
	// compaction.
	SessionStart Type = "session_start"
	// Boundary marks where the visible log begins after a compaction. Details: trigger
	// ("auto", "manual"), first_kept, a message id.
	Boundary Type = "compact_boundary"
	// Asked: a summarizer that may call models was asked for a summary, which need not be in the plan. Details:
	// summarizer, who wrote it; cache, whether the answers of models were cached ("hit") or not ("miss"); proposed,
	// kept, and dropped_ with a cause: numbers of sentences or items of a model; failed and classes, the summarizers
	// that failed before and why, and then fallback, the summarizer again.
	Asked Type = "summarizer_asked"
	// PromptPrepared: a prompt was handed out. TokensBefore is the size of the unshortened
	// conversation, TokensAfter that of the prompt. Details: mark, the size at which the next compaction is
	// due, if that is known.
	PromptPrepared Type = "prompt_prepared"
	// RequestProxied: a request went through a proxy, and its answer has ended. TokensBefore and TokensAfter are the
	// request under the plan so far and as it was sent, if they were counted; Duration is to the end of the answer.
	// Details: route, the API; action and reason, as the headers of the answer say them; status, absent if there was
	// none. Err is set if there was no whole answer, and for a request that asks a model also if that gave none: the
	// provider refused it, or its stream ended with an error.
	RequestProxied Type = "request_proxied"
	// WindowLearned: from now on, the context window that a provider named in a refusal is used.
	// Details: upstream, model, window, and instead_of, the window that was used before, 0 for
	// none; windows are in tokens.
	WindowLearned Type = "window_learned"
	// ModelAssumed: the table of models does not know a model, and the figures of another one
	// of its family are used. Details: model, window, in tokens, and figures, which says whose.
	ModelAssumed Type = "model_assumed"
	// ContextRequested: the agent asked for something that was removed. Details: message_id,
	// class.
	ContextRequested Type = "context_requested"
	// QualityAlert: an agent keeps asking. Details: asks, turns.
	QualityAlert Type = "quality_alert"
)

// Cache is the result of a lookup in a cache of summaries or plans.
type Cache string

// The results; empty if no cache was asked.
const (
	Hit  Cache = "hit"
	Miss Cache = "miss"
)
