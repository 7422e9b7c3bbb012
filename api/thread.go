package api

import (
	"encoding/json"
	"time"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/api/view"
)

// NewThread asks for a thread.
type NewThread struct {
	// ID names the thread: 1 to 200 characters, none of them a control
	// character; ".", ".." and "/" are not allowed. Empty lets the daemon choose.
	ID string `json:"id,omitempty"`
	// Labels are the caller's own; at most 32, names and values of at most 200
	// bytes each.
	Labels map[string]string `json:"labels,omitempty"`
}

// Thread is what is known of a thread without its content. Its ETag is its
// version, a dot, and its plan version, such as "12.3".
type Thread struct {
	// ID names the thread.
	ID string `json:"id"`
	// Labels are the caller's own.
	Labels map[string]string `json:"labels,omitempty"`
	// CreatedAt is when the thread was created, ChangedAt when it was last
	// written to.
	CreatedAt time.Time `json:"created_at"`
	ChangedAt time.Time `json:"changed_at,omitzero"`
	// Version is the number of messages in the log. Writes to the log take it as
	// If-Match.
	Version int `json:"version"`
	// PlanVersion is the version of the plan in force, 0 for none. Changes of the plan take
	// it as If-Match.
	PlanVersion int `json:"plan_version"`
	// Compacting says that a compaction of the thread is running or waits to run. A list
	// of threads does not say it.
	Compacting bool `json:"compacting,omitempty"`
	// About is what the thread is about, in a list with about=yes.
	About *view.About `json:"about,omitempty"`
}

// Threads is a page of threads, ordered by id.
type Threads struct {
	// Items are the threads of the page.
	Items []Thread `json:"items"`
	// Next is the cursor of the page after this one; empty at the end.
	Next string `json:"next,omitempty"`
}

// Log is a page of a thread's messages, as they were said, the oldest first. Its
// ETag is the version.
type Log struct {
	// Version is the number of messages in the whole log.
	Version int `json:"version"`
	// Items are the messages of the page.
	Items []neutral.Message `json:"items"`
	// Next is the cursor of the page after this one; empty at the end.
	Next string `json:"next,omitempty"`
}

// Append adds messages to the log: in neutral form, or as a provider's request body. All
// its messages count as new, unless If-Match names the version at which they begin ("0"
// with a whole history adds what is not there yet).
type Append struct {
	// Messages are the new ones in neutral form.
	Messages []neutral.Message `json:"messages,omitempty"`
	// API names the form of Body: anthropic, openai, responses or gemini.
	API string `json:"api,omitempty"`
	// Body is a request body of that API.
	Body json.RawMessage `json:"body,omitempty"`
}

// Appended is the state of a log after a write.
type Appended struct {
	// Version is the number of messages in the log.
	Version int `json:"version"`
	// MessageIDs are those of the messages in the request, also of those that were there
	// already.
	MessageIDs []string `json:"message_ids"`
}
