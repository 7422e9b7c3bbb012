// Package view is what pages that show conversations get from the daemon: one
// conversation to display, and the list of them.
package view

import (
	"time"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// View is a conversation for display: the log as it is, the prompt under a plan, and
// what each record did to which messages. All sizes are tokens, as Counter counts them.
// Positions count from 0. Texts are data that people, models and tools have written.
type View struct {
	// ThreadID names the conversation. Title is the name that its agent or user gave it, or
	// how its first request begins. Agent is the agent that wrote it, where it is known.
	ThreadID string `json:"thread_id"`
	Title    string `json:"title,omitempty"`
	Agent    string `json:"agent,omitempty"`
	// Version and PlanVersion are those of log and plan. PlanVersion is 0 for no plan, and
	// for one that is not stored.
	Version     int `json:"version"`
	PlanVersion int `json:"plan_version"`
	// Policy made the plan, Model gets the prompt, Counter counted the tokens.
	Policy  string `json:"policy,omitempty"`
	Model   string `json:"model,omitempty"`
	Counter string `json:"counter"`
	// Before and After are the size of the whole request with nothing hidden and under the
	// plan, Fixed that of system prompt and tools in both. Budget bounds a request and
	// Window is the model's context window; 0 where they are not known.
	Before int `json:"tokens_before"`
	After  int `json:"tokens_after"`
	Fixed  int `json:"fixed_tokens"`
	Budget int `json:"budget,omitempty"`
	Window int `json:"window,omitempty"`
	// CompactsAt is the size above which the policy compacts by itself; 0 where it names none.
	CompactsAt int `json:"compacts_at,omitempty"`
	// Command is the shell command that makes the prompt; empty for a conversation of the
	// daemon.
	Command string `json:"command,omitempty"`

	// Messages are the log, Prompt the parts of the prompt, Records those of the plan.
	Messages []Message `json:"messages"`
	Prompt   []Part    `json:"prompt"`
	Records  []Record  `json:"records"`
	// Notes are what the model has noted by context_note, each with its id and what it cites.
	Notes []string `json:"notes,omitempty"`
	// Marks are the places where the agent compacted by itself, Plans the plans that
	// were in force, Steps the requests as they grew.
	Marks []Mark `json:"marks"`
	Plans []Plan `json:"plans"`
	Steps []Step `json:"steps"`
	// Side are other conversations of the same session: those of sub-agents, and branches that the
	// user left.
	Side []Side `json:"side,omitempty"`
	// Cached says that there are figures in dollars, which take the model's prompt cache
	// into account: its prices are known.
	Cached bool `json:"cached,omitempty"`
}

// Message is a message of the log.
type Message struct {
	ID thread.ID `json:"id"`
	// Role is system, user, assistant, tool, or harness for what a program wrote in the
	// user's name. Turn counts from 1; 0 is before the first.
	Role string    `json:"role"`
	Turn int       `json:"turn"`
	Time time.Time `json:"time,omitzero"`
	// Tool is the tool of a result, Failed that it failed.
	Tool   string `json:"tool,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	// Tokens is its original size.
	Tokens int `json:"tokens"`
	// Label is the message in a few words.
	Label string `json:"label"`
	// Text is what it says, in views with texts; Cut says that it is shortened.
	Text string `json:"text,omitempty"`
	Cut  bool   `json:"cut,omitempty"`
	// Record is the position in Records of the one that hides it, -1 for none.
	Record int `json:"record"`
	// Pinned: no plan may change it, by the policy's rules or the user's wish.
	Pinned bool `json:"pinned,omitempty"`
}

// Part is a message of the prompt, its system prompt (role system) or its tools (role
// tools).
type Part struct {
	Role   string `json:"role"`
	Tokens int    `json:"tokens"`
	// From is the position of its message in the log, or of the first that it stands for;
	// -1 for none.
	From int `json:"from"`
	// Record is as in Message.
	Record int `json:"record"`
	// Label and Text are missing for unchanged messages of the log.
	Label string `json:"label,omitempty"`
	Text  string `json:"text,omitempty"`
	Cut   bool   `json:"cut,omitempty"`
}

// Record is what a plan does with some messages.
type Record struct {
	// Path names the record in the plan, such as summarizations[0].
	Path   string      `json:"path"`
	Action plan.Action `json:"action"`
	// Strategy proposed it, for Reason.
	Strategy string `json:"strategy,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Before and After are the size of its messages and of what replaces them.
	Before int `json:"tokens_before"`
	After  int `json:"tokens_after"`
	// Messages is how many it covers, First and Last are the positions of the outermost,
	// FirstTurn and LastTurn their turns.
	Messages  int `json:"messages"`
	First     int `json:"first"`
	Last      int `json:"last"`
	FirstTurn int `json:"first_turn"`
	LastTurn  int `json:"last_turn"`
	// Artifact names the content that was externalized.
	Artifact string `json:"artifact_id,omitempty"`
}

// Mark is a place where the agent itself compacted or cleared its history.
type Mark struct {
	// At is the position of the first message after it, Trigger the cause in the agent's
	// words.
	At      int    `json:"at"`
	Trigger string `json:"trigger,omitempty"`
}

// Side is another conversation of the session.
type Side struct {
	// Title is its name, or how its first request begins.
	Title    string `json:"title,omitempty"`
	Messages int    `json:"messages"`
}

// Plan is a plan that was in force.
type Plan struct {
	// Version counts the plans of a thread from 1; 0 for one that is not stored.
	Version int `json:"version"`
	// CreatedAt is when Policy made it, ThreadVersion the number of messages that it was
	// made for.
	CreatedAt     time.Time `json:"created_at,omitzero"`
	ThreadVersion int       `json:"thread_version"`
	Policy        string    `json:"policy,omitempty"`
	// Records counts its records by action.
	Records map[string]int `json:"records"`
	// Before and After are the size of the whole request when it was made, and under it.
	// Counter counted them, where that is not the view's own.
	Before  int    `json:"tokens_before"`
	After   int    `json:"tokens_after"`
	Counter string `json:"counter,omitempty"`
	// At is the position of the first message that came under it.
	At int `json:"at"`
	// Prefix is the size of the beginning that it left unchanged of the prompt before it,
	// which a provider's cache still holds.
	Prefix int `json:"prefix_tokens"`
}

// Step is one request to the model.
type Step struct {
	// At is the position of the answer.
	At int `json:"at"`
	// Whole is the size of the request with nothing hidden, Sent its size under the plan of
	// that time.
	Whole int `json:"whole"`
	Sent  int `json:"sent"`
	// WholeUSD and SentUSD are what their input costs, in dollars.
	WholeUSD float64 `json:"whole_usd,omitempty"`
	SentUSD  float64 `json:"sent_usd,omitempty"`
}

// About is what a thread is about, for a list to choose from.
type About struct {
	// Title is how the first request begins. Model got the last request, which was one of API; empty
	// where no step was made.
	Title string `json:"title,omitempty"`
	Model string `json:"model,omitempty"`
	API   string `json:"api,omitempty"`
	// Compacted is when the plan in force was made; missing without one. Before and After
	// are the size of the request when it was made and under it, in tokens.
	Compacted time.Time `json:"compacted_at,omitzero"`
	Before    int       `json:"tokens_before,omitempty"`
	After     int       `json:"tokens_after,omitempty"`
}

// Session is a session that an agent left on the daemon's machine.
type Session struct {
	// ID is what the agent calls it.
	ID string `json:"id"`
	// Agent wrote it, Project is the folder that the agent worked in, Title how the first
	// request begins.
	Agent   string `json:"agent"`
	Project string `json:"project,omitempty"`
	Title   string `json:"title,omitempty"`
	// ChangedAt is when it was last written to, Bytes the size of its file.
	ChangedAt time.Time `json:"changed_at"`
	Bytes     int64     `json:"bytes"`
}

// Sessions are the sessions on the daemon's machine.
type Sessions struct {
	// Items are the sessions.
	Items []Session `json:"items"`
}

// Pin keeps a message as it is in all later plans.
type Pin struct {
	// MessageID is the message.
	MessageID string `json:"message_id"`
	// Free releases it.
	Free bool `json:"free,omitempty"`
}
