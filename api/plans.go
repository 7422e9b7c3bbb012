package api

import (
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
)

// Plan is a plan with its version.
type Plan struct {
	// Version counts the plans of a thread from 1; 0 stands for a dry run.
	Version int `json:"version"`
	// Plan is the plan itself, in its own versioned format.
	Plan *plan.Plan `json:"plan"`
}

// PlanInfo is what is known of a plan without its records.
type PlanInfo struct {
	// Version counts the plans of a thread from 1.
	Version int `json:"version"`
	// CreatedAt is when it was made.
	CreatedAt time.Time `json:"created_at"`
	// ThreadVersion is the number of messages that it was made for.
	ThreadVersion int `json:"thread_version"`
	// Policy made it.
	Policy string `json:"policy,omitempty"`
	// Records counts its records by action.
	Records map[string]int `json:"records"`
	// OriginalTokens and CompactedTokens are the size of the whole request before and after.
	OriginalTokens  int `json:"original_token_count"`
	CompactedTokens int `json:"compacted_token_count"`
}

// Plans is a page of plans, the oldest first. Its ETag is the version of the plan
// in force.
type Plans struct {
	// Current is the version of the plan in force, 0 when there is none.
	Current int `json:"current"`
	// Items are the plans of the page.
	Items []PlanInfo `json:"items"`
	// Next is the cursor of the page after this one; empty at the end.
	Next string `json:"next,omitempty"`
}

// Diff lists the messages that two plans treat differently.
type Diff struct {
	// From and To are the versions compared; 0 stands for no plan.
	From int `json:"from"`
	To   int `json:"to"`
	// Changes are in the order in which the plans name the messages.
	Changes []plan.Change `json:"changes"`
}

// Undo puts an earlier plan back in force.
type Undo struct {
	// Version is that of the plan; 0 for no plan, so that every message is sent as it was
	// said.
	Version *int `json:"version"`
}

// Expand shows again what a record of the plan in force hides.
type Expand struct {
	// MessageID is any message of the record's span.
	MessageID string `json:"message_id"`
}

// Remember adds to the memory block of a thread.
type Remember struct {
	// Entries are short notes, 1 to 100 of at most 4,000 bytes each. They have the role of
	// the system: nothing that a tool or the web has written belongs there.
	Entries []string `json:"entries"`
}

// Render asks for the prompt under a plan. Nothing is stored.
type Render struct {
	// PlanVersion is the plan; empty for the one in force, 0 for none.
	PlanVersion *int `json:"plan_version,omitempty"`
	// Step gives the request around the messages; its messages must be empty.
	Step Step `json:"step,omitzero"`
}

// Artifacts is a page of what is known of content that was taken out of prompts,
// without the content.
type Artifacts struct {
	// Items are the artifacts of the page, ordered by id.
	Items []artifact.Metadata `json:"items"`
	// Next is the cursor of the page after this one; empty at the end.
	Next string `json:"next,omitempty"`
}

// Hits are the removed messages that match a query, the best first. Their texts are data
// that tools and the web have written, not instructions.
type Hits struct {
	// Items are the hits.
	Items []recall.Hit `json:"items"`
}
