package api

import (
	_ "embed"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/api/view"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// Root begins the paths of operations on threads, SessionsRoot those on the sessions that
// agents left on the daemon's machine.
const (
	Root         = "/v1/threads"
	SessionsRoot = "/v1/sessions"
)

// Operation is one operation of the API. The daemon serves exactly those of Operations,
// and the OpenAPI document describes them.
type Operation struct {
	// ID is unique, such as "prepare".
	ID string
	// Method and Path are the route, with {name} for its variables.
	Method, Path string
	// Right is what a key must allow.
	Right apikey.Rights
	// Summary is one sentence for people.
	Summary string
	// Query are the names of the query parameters.
	Query []string
	// IfMatch says which version a write may name: "version" (of the log),
	// "plan version", or nothing.
	IfMatch string
	// Status is that of success.
	Status int
	// Request and Response are zero values of the types of the bodies; nil for none. A
	// Response of a string is plain text, of an event.Event a stream of server-sent events.
	Request, Response any
}

// Streams reports whether the answer is a stream of events, which has no end.
func (o Operation) Streams() bool {
	_, ok := o.Response.(event.Event)
	return ok
}

// Operations lists the operations.
func Operations() []Operation {
	const (
		threads = Root
		one     = Root + "/{thread}"
		// For operations that write and answer with content or a plan, or that may spend on
		// a model.
		both = apikey.Read | apikey.Write
	)
	page := []string{"cursor", "limit"}
	return []Operation{
		{ID: "create", Method: "POST", Path: threads, Right: apikey.Write, Status: 201, Request: NewThread{}, Response: Thread{},
			Summary: "Create a thread. Writing to a thread that does not exist is refused, so that a mistyped id is noticed."},
		{ID: "list", Method: "GET", Path: threads, Right: apikey.Read, Status: 200, Query: append([]string{"about"}, page...), Response: Threads{},
			Summary: "List the threads, ordered by id."},
		{ID: "get", Method: "GET", Path: one, Right: apikey.Read, Status: 200, Response: Thread{},
			Summary: "Get what is known of a thread, without its content."},
		{ID: "delete", Method: "DELETE", Path: one, Right: apikey.Admin, Status: 204,
			Summary: "Delete a thread for good: its messages, plans, events and artifacts, and what the proxy remembers of it. It waits for a running compaction."},
		{ID: "log", Method: "GET", Path: one + "/messages", Right: apikey.Read, Status: 200, Query: page, Response: Log{},
			Summary: "Read the messages as they were said."},
		{ID: "append", Method: "POST", Path: one + "/messages", Right: apikey.Write, Status: 200, IfMatch: "version", Request: Append{}, Response: Appended{},
			Summary: "Add messages without preparing a prompt. With If-Match, repeating the same call changes nothing."},
		{ID: "prepare", Method: "POST", Path: one + "/prepare", Right: both, Status: 200, IfMatch: "version", Request: Step{}, Response: Prepared{},
			Summary: "Before each call of the model: add the new messages, compact when it is due, and get the request to send."},
		{ID: "finish", Method: "POST", Path: one + "/finish", Right: apikey.Write, Status: 200, IfMatch: "version", Request: Answer{}, Response: Appended{},
			Summary: "After each call of the model: add its answer and its usage."},
		{ID: "answer", Method: "POST", Path: one + "/answer", Right: apikey.Read, Status: 200, Request: neutral.Part{}, Response: neutral.Message{},
			Summary: "Answer a model's call of read_artifact or recall, which prompts offer where the daemon's setting recall is tools, or of context_status, context_note or compact_now, with the setting context-tools; the last two need the right to write. The result goes into the next step."},
		{ID: "overflowed", Method: "POST", Path: one + "/overflowed", Right: both, Status: 200, Request: Step{}, Response: Prepared{},
			Summary: "When the provider refused the request for its size: compact harder, or take out what it was refused for, and get the request to try once more. The body is the last step, without its messages."},
		{ID: "cut-off", Method: "POST", Path: one + "/cut-off", Right: both, Status: 200, IfMatch: "version", Request: CutOff{}, Response: Prepared{},
			Summary: "In place of finish, when the answer ended at the limit on the output: add it without its tool calls, compact when that is due, and get the request to go on with. A problem of type nothing-to-do says that compacting would not help; the answer is in the log all the same."},
		{ID: "remember", Method: "POST", Path: one + "/memory", Right: both, Status: 200, IfMatch: "plan version", Request: Remember{}, Response: Plan{},
			Summary: "Add entries to the thread's memory block, which stands behind the system prompt of every prompt from then on. It is part of the plan in force."},
		{ID: "outcome", Method: "POST", Path: one + "/outcome", Right: both, Status: 200, Request: quality.Outcome{}, Response: quality.Metrics{},
			Summary: "Say how the thread's task ended, and get how the thread did under compaction: what the agent asked for again, and how often. An empty body only asks. Needs the daemon's setting quality; counted since this daemon first saw the thread."},
		{ID: "compact", Method: "POST", Path: one + "/compact", Right: both, Status: 200, IfMatch: "plan version", Request: Compact{}, Response: Plan{},
			Summary: "Compact now, whether it is due or not, and get the plan."},
		{ID: "dry-run", Method: "POST", Path: one + "/dry-run", Right: both, Status: 200, Request: Step{}, Response: Plan{},
			Summary: "Get the plan that compact would make. Nothing is stored."},
		{ID: "plans", Method: "GET", Path: one + "/plans", Right: apikey.Read, Status: 200, Query: page, Response: Plans{},
			Summary: "List the plans that were in force, the oldest first."},
		{ID: "plan", Method: "GET", Path: one + "/plans/{version}", Right: apikey.Read, Status: 200, Response: Plan{},
			Summary: "Get one plan with its records, reasons and summaries; version may be \"current\"."},
		{ID: "diff", Method: "GET", Path: one + "/diff", Right: apikey.Read, Status: 200, Query: []string{"from", "to"}, Response: Diff{},
			Summary: "List the messages that two plans treat differently; to is the plan in force when it is left out."},
		{ID: "undo", Method: "POST", Path: one + "/undo", Right: both, Status: 200, IfMatch: "plan version", Request: Undo{}, Response: Plan{},
			Summary: "Put an earlier plan back in force, as a new version."},
		{ID: "expand", Method: "POST", Path: one + "/expand", Right: both, Status: 200, IfMatch: "plan version", Request: Expand{}, Response: Plan{},
			Summary: "Show a message that the plan in force hides, with its unit."},
		{ID: "render", Method: "POST", Path: one + "/render", Right: apikey.Read, Status: 200, Request: Render{}, Response: Prepared{},
			Summary: "Get the prompt under any plan. Nothing is stored."},
		{ID: "artifacts", Method: "GET", Path: one + "/artifacts", Right: apikey.Read, Status: 200, Query: page, Response: Artifacts{},
			Summary: "List what was taken out of prompts and stored, without the content."},
		{ID: "artifact", Method: "GET", Path: one + "/artifacts/{artifact}", Right: apikey.Read, Status: 200, Response: artifact.Metadata{},
			Summary: "Get what is known of an artifact, without the content."},
		{ID: "content", Method: "GET", Path: one + "/artifacts/{artifact}/content", Right: apikey.Read, Status: 200, Response: "",
			Summary: "Read the content of an artifact. It is data that tools have written, not instructions."},
		{ID: "recall", Method: "GET", Path: one + "/recall", Right: apikey.Read, Status: 200, Query: []string{"q", "limit", "tool", "role"}, Response: Hits{},
			Summary: "Search what the plan in force removed."},
		{ID: "events", Method: "GET", Path: one + "/events", Right: apikey.Read, Status: 200, Response: event.Event{},
			Summary: "Watch what happens to the thread, as server-sent events; Last-Event-ID resumes."},
		{ID: "view", Method: "GET", Path: one + "/view", Right: apikey.Read, Status: 200, Query: []string{"plan"}, Response: view.View{},
			Summary: "Look at the thread: the log, the prompt under the plan in force or another, and what each record did to which messages. Without texts."},
		{ID: "text", Method: "GET", Path: one + "/text", Right: apikey.Read, Status: 200, Query: []string{"message", "part", "plan"}, Response: "",
			Summary: "Read what a message of the log says, or what stands at a position of the prompt."},
		{ID: "preview", Method: "POST", Path: one + "/preview", Right: both, Status: 200, Request: Compact{}, Response: view.View{},
			Summary: "Look at the thread under the plan that compact would make. Nothing is stored."},
		{ID: "pin", Method: "POST", Path: one + "/pin", Right: both, Status: 200, IfMatch: "plan version", Request: view.Pin{}, Response: Plan{},
			Summary: "Keep a message as it was said, in this plan and all later ones, or release it. The other messages are compacted around it."},
		{ID: "sessions", Method: "GET", Path: SessionsRoot, Right: apikey.Read, Status: 200, Response: view.Sessions{},
			Summary: "List the sessions that agents left on the daemon's machine, the newest first. A daemon with keys has none."},
		{ID: "session-view", Method: "POST", Path: SessionsRoot + "/{session}/view", Right: apikey.Read, Status: 200, Request: Compact{}, Response: view.View{},
			Summary: "Look at a session under the plan that compact would make. Nothing is stored."},
	}
}

//go:embed openapi.json
var document []byte

// Document returns the OpenAPI 3.1 document of the operations, as the daemon
// serves it at /openapi.json.
func Document() []byte { return append([]byte(nil), document...) }
