package render

import (
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Manifest says what became of every message: where each message of the prompt came from,
// what was hidden by which record, and what had to be repaired.
type Manifest struct {
	Format string `json:"format_version"`
	// Messages has one entry per message of the prompt.
	Messages []Origin `json:"messages"`
	// Hidden are the messages of the thread that the prompt does not show as they were, in
	// thread order; cleared ones are among them.
	Hidden []Hidden `json:"hidden"`
	// Repairs are places where the log could not be sent as it is.
	Repairs []Repair `json:"repairs"`
}

// Origin says where a message of the prompt came from.
type Origin struct {
	// ID is the message of the thread, or the first of the span that a synthetic message
	// replaces. It is empty where neither exists.
	ID thread.ID `json:"message_id,omitempty"`
	// Record is the plan's record behind it; zero for included messages.
	Record plan.Ref `json:"record"`
	// Synthetic marks messages that nobody wrote.
	Synthetic bool `json:"synthetic,omitempty"`
}

// Hidden is a message that a record changed or removed.
type Hidden struct {
	ID     thread.ID `json:"message_id"`
	Record plan.Ref  `json:"record"`
}

// Repair is something in the log that no provider would accept, and what was done about
// it.
type Repair struct {
	ID   thread.ID `json:"message_id"`
	What string    `json:"what"`
}
