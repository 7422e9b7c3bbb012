package event

// Type says what happened. Readers must let pass types that they do not know.
type Type string

// The lifecycle of a compaction (A18), in the seed's words.
const (
	// CheckStarted: it was looked whether to compact. Details: due, and why as a
	// name.
	CheckStarted      Type = "compaction_check_started"
	ProposalGenerated Type = "compaction_proposal_generated"
	Externalized      Type = "compaction_externalized"
	Summarized        Type = "compaction_summarized"
	Cleared           Type = "compaction_cleared"
	// Retrieved: the span is removed and can be searched.
	Retrieved Type = "compaction_retrieved"
	Dropped   Type = "compaction_dropped"
	// Rehydrated: content that was externalized was shown again without being
	// asked for. Details: artifact, tokens; of a removed message that was found
	// for the user's last one: message_id, trigger "recall".
	Rehydrated Type = "compaction_rehydrated"
	Completed  Type = "compaction_completed"
)

// What else happens to a thread.
const (
	// Blocked: content was not shown again. Details: artifact, sensitivity,
	// reason (A10).
	Blocked Type = "rehydration_blocked"
	// Failed: the compaction came to nothing. Err has the class of the error;
	// details: fallback, the name of what was done instead ("passthrough",
	// "earlier_plan"). A compaction that reached its end in another way than
	// planned is Completed, with Err and fallback ("extractive",
	// "truncation_note") set: each compaction ends in one of the two, once.
	Failed Type = "compaction_failed"
	// PlanCommitted and PlanConflict: the plan was stored, or another one was
	// first (A14). Details: version, attempt.
	PlanCommitted Type = "plan_committed"
	PlanConflict  Type = "plan_conflict"
	// OverflowRecovered: the provider refused a request as too long, and a
	// smaller one was made.
	OverflowRecovered Type = "overflow_recovered"
	// PreCompact comes before anything is done, with TokensBefore (C11, E4).
	// Details: trigger ("auto", "manual"), and why as a name.
	PreCompact Type = "pre_compact"
	// SessionStart: the agent goes on from a new beginning. Details: source,
	// "compact" after a compaction (E4).
	SessionStart Type = "session_start"
	// Boundary marks where the visible log begins after a compaction (E4).
	// Details: trigger ("auto", "manual"), first_kept, a message id.
	Boundary Type = "compact_boundary"
	// Asked: a summarizer that may ask models was asked for a summary, which need
	// not be in the plan. Details: summarizer, who wrote it; cache, whether the
	// answers of models were known ("hit") or not ("miss"); proposed, kept and
	// dropped_ with a cause, how many sentences or items of a model; failed and classes, who
	// was asked before it and why that came to nothing, and fallback then, the
	// summarizer again.
	Asked Type = "summarizer_asked"
	// PromptPrepared: a prompt was handed out. TokensBefore is what it would take
	// with every message as it was said, TokensAfter what it takes.
	PromptPrepared Type = "prompt_prepared"
	// ContextRequested: the agent asked for something that was removed (A22).
	// Details: message_id, class.
	ContextRequested Type = "context_requested"
	// QualityAlert: it keeps asking (A22). Details: asks, turns.
	QualityAlert Type = "quality_alert"
)

// Cache says how a cache of summaries or plans answered.
type Cache string

// The answers; empty when no cache was asked.
const (
	Hit  Cache = "hit"
	Miss Cache = "miss"
)
