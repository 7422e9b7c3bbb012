// Package summary is the structured summary of a span (seed A): typed items that code can
// merge, each with the messages it came from, and one deterministic way to write them
// down. A summary contains no sentence that nobody said, unless the item says so.
package summary

import (
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// version is the version of the summary's schema and of its rendering.
const version = "v1.0"

// Summary is what is kept of a span. Empty sections are not rendered. The zero value is an
// empty summary.
type Summary struct {
	Span thread.Span `json:"span"`

	// CurrentTask is what the user wants, in the user's words.
	CurrentTask string `json:"current_task,omitempty"`
	// Work is where the work stood at the end of the span.
	Work state.Work `json:"work,omitzero"`
	// Requests are the user's messages, in order, in the user's words.
	Requests []Item `json:"requests,omitempty"`
	// Elsewhere are turns of which the prompt showed the user's message, or what the model said, outside of
	// this summary when it was made.
	Elsewhere []int `json:"elsewhere,omitempty"`
	// Constraints are rules and preferences, in the user's words.
	Constraints []Item `json:"constraints,omitempty"`
	// Stated is what else the user said that may still hold: decisions, answers, what is less surely
	// a rule.
	Stated []Item `json:"stated,omitempty"`
	// Unlisted is how many more such sentences there was no room for.
	Unlisted int `json:"unlisted,omitempty"`
	// Facts are stable pieces of information.
	Facts     []Item     `json:"facts,omitempty"`
	Decisions []Decision `json:"decisions,omitempty"`
	// CurrentPlan is the plan or todo list as it was last written.
	CurrentPlan []Step     `json:"current_plan,omitempty"`
	OpenItems   []OpenItem `json:"open_items,omitempty"`
	// Files is the ledger of files read and changed.
	Files []File `json:"files,omitempty"`
	// MoreFiles is how many more files there was no room for, MoreChanged how many of those were changed.
	MoreFiles   int `json:"more_files,omitempty"`
	MoreChanged int `json:"more_changed,omitempty"`
	// ToolOutcomes are commands and calls with their most important lines.
	ToolOutcomes []ToolOutcome `json:"tool_outcomes,omitempty"`
	// FailedAttempts are what was tried and did not work.
	FailedAttempts []Item `json:"failed_attempts,omitempty"`
	// Reports are the answers of sub-agents, each after its task.
	Reports []Item `json:"reports,omitempty"`
	// Conclusions are what the assistant said, at the end of its turns and on the way, and what it
	// wrote for people through calls.
	Conclusions []Item `json:"conclusions,omitempty"`
	// Identifiers are names, paths, hashes and numbers that later steps are likely to
	// need, each with a few words around it.
	Identifiers []Item              `json:"identifiers,omitempty"`
	Artifacts   []ArtifactReference `json:"artifacts,omitempty"`
	// Told is what a model told of the span, as far as it was used, whether there was room for it
	// or not. It is not rendered: with it no model is sent the same messages again. Nil if no model
	// was asked.
	Told *Summary `json:"told,omitempty"`
}

// Item is a piece of text with its origin.
type Item struct {
	Text string `json:"text"`
	// Asked is the assistant's question that the text answers, where it was put through a tool.
	Asked string `json:"asked,omitempty"`
	// Turn is the turn it was said in; 0 when unknown.
	Turn int `json:"turn,omitempty"`
	// Sources are the messages it came from.
	Sources []thread.ID `json:"sources,omitempty"`
	// Score is how surely the words of a constraint still hold, by the table that ranked them; 0 where
	// none did. It is kept so that a later table does not weigh them anew.
	Score int `json:"score,omitempty"`
}

// Decision is a choice that was made, and why.
type Decision struct {
	Decision  string      `json:"decision"`
	Rationale string      `json:"rationale,omitempty"`
	Turn      int         `json:"turn,omitempty"`
	Time      time.Time   `json:"time,omitzero"`
	Sources   []thread.ID `json:"sources,omitempty"`
}

// Step is one entry of a plan or todo list.
type Step struct {
	Text string `json:"text"`
	// Status is the word of the agent's own list: "pending", "in_progress", "completed",
	// …; may be empty.
	Status string `json:"status,omitempty"`
	// Detail is what else the agent wrote of the step that it works on, or does next.
	Detail  string      `json:"detail,omitempty"`
	Sources []thread.ID `json:"sources,omitempty"`
}

// Priority ranks open items.
type Priority string

// The priorities.
const (
	High   Priority = "high"
	Medium Priority = "medium"
	Low    Priority = "low"
)

// OpenItem is an unresolved item.
type OpenItem struct {
	Description string      `json:"description"`
	Context     string      `json:"context,omitempty"`
	Priority    Priority    `json:"priority,omitempty"`
	Turn        int         `json:"turn,omitempty"`
	Sources     []thread.ID `json:"sources,omitempty"`
}

// File is a line of the file ledger.
type File struct {
	Path string `json:"path"`
	// Operations are "read", "created", "edited", "deleted", each at most once, in this
	// order.
	Operations []string `json:"operations"`
	// Turn is the turn of the last change, or of the last reading where there is none.
	Turn int `json:"turn,omitempty"`
	// Note says what was done last, such as line ranges; it may be empty.
	Note    string      `json:"note,omitempty"`
	Sources []thread.ID `json:"sources,omitempty"`
}

// Changed reports whether the file was more than read.
func (f *File) Changed() bool {
	return slices.ContainsFunc(f.Operations, func(op string) bool { return op != "read" })
}

// ToolOutcome is the outcome of a tool call.
type ToolOutcome struct {
	Tool string `json:"tool"`
	// Input is the command or the main argument, shortened.
	Input     string         `json:"input,omitempty"`
	Outcome   thread.Outcome `json:"outcome"`
	KeyFields thread.Fields  `json:"key_fields,omitempty"`
	// Error is the most important lines of a failure.
	Error   string      `json:"error,omitempty"`
	Turn    int         `json:"turn,omitempty"`
	Sources []thread.ID `json:"sources,omitempty"`
}

// ArtifactReference points to content that was stored outside the prompt.
type ArtifactReference struct {
	ArtifactID  string `json:"artifact_id"`
	Description string `json:"description"`
	// RehydrateHint says when it should be read back.
	RehydrateHint string      `json:"rehydrate_hint,omitempty"`
	Turn          int         `json:"turn,omitempty"`
	Sources       []thread.ID `json:"sources,omitempty"`
}

// Standing is what the user laid down, rules first.
func (s *Summary) Standing() []Item { return slices.Concat(s.Constraints, s.Stated) }
