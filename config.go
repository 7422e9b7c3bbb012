package palimpsest

import (
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Config configures a Compactor. The zero value works: the automatic policy, exact o200k
// counts, summaries without a model, everything in memory. Most programs set no more than Model, Store,
// Recall and Events.
type Config struct {
	// Model is the model that is asked, by any name that token.Models knows or one of its family. It is
	// that of steps and requests whose Base names none; of a step without Window and Budget, the window
	// is the model's. Empty: only Base and the step tell.
	Model string
	// Counter counts all tokens. Nil counts as Model does; without one, o200k tokens. The usage that a
	// provider reports (FinishStep) corrects it, session by session.
	Counter *token.Counter
	// Measure asks the provider for the size of a request that Counter only estimates. A
	// session asks when a request takes half of its limit or more, once under each plan,
	// until FinishStep reports a usage. When the call fails, the estimate holds and the
	// next call waits for a minute. Nil: Counter alone.
	Measure llm.TokenCounter

	// Store is where sessions are kept: db.Tenant("") of store/sqlite or store/postgres. Of its fields
	// Log holds the threads, and Plans their plans; where one is nil, a store.Memory does. Documents
	// holds, by session, what a provider last counted (FinishStep), the last step, and what the
	// last prompt was made from, so that another process goes on with the same figures and
	// keeps no reasoning that is no longer valid; nil loses them with the process. Answers
	// holds answers of models, so that no question is asked twice; nil keeps them in memory.
	Store store.Tenant
	// Answers, if set, is asked in place of one of Store.Answers; it may limit what is spent.
	Answers *llm.Answers
	// Sign puts a signature into summaries and pointers in prompts. Its key is made once
	// and kept in Store.Documents; without them, Sign has no effect. When a prompt comes
	// back, a text that looks like a summary but has no valid signature is treated as data
	// that nobody said. A signature takes some twenty tokens.
	Sign bool

	// Policy decides when and how sessions and single requests are compacted. Nil is
	// policy.Auto. A ladder of your own goes into a policy.Custom.
	Policy policy.Policy
	// IgnorePrices makes policies decide by size alone, even where prices are known.
	IgnorePrices bool
	// Summarizer writes summaries. Nil is the extractive one, which needs no model.
	Summarizer summarize.Summarizer

	// Recall gives agents access to what plans removed. Nil: they have none.
	Recall *Recall

	// Events receives an event for whatever happens; nil discards them.
	Events event.Sink
	// Quality watches each session for an agent that misses what was removed. Nil does
	// not. Where its Events are nil, Events is used.
	Quality *quality.Options

	// Tools declares how durable tool results are. Nil holds the built-in declarations.
	Tools *toolpolicy.Registry
	// CurrentSource describes the source of a replayable result as it is now: the result
	// may be cleared when the source has not changed. Nil uses the tool's Capture, or else
	// a later result read from the same source.
	CurrentSource func(thread.ToolCall) (thread.Determinism, bool)

	// Artifacts stores what plans externalize, before they come into force, for the tenant
	// of Requester and with Sensitivity as the default class (empty is internal). Nil: the
	// content stays in the log and is read from there.
	Artifacts   *artifact.Store
	Requester   artifact.Requester
	Sensitivity artifact.Sensitivity

	// Memory caches conversations between steps. Nil is one of its own, of DefaultMemory bytes.
	Memory *Memory

	// Jobs, if set, prepares compactions in the background before they are due; its
	// handler for CompactJob is Compactor.Work. Domain is part of the keys of its jobs, so
	// that several Compactors can share a queue.
	Jobs   job.Queue
	Domain string
	// Patience bounds how long a step waits for one that is being made. 0 is DefaultPatience.
	Patience time.Duration

	// Now is the clock. It dates plans and messages without a time, and tells whether the
	// provider's prompt cache has expired. Nil is time.Now.
	Now func() time.Time
}

// Recall configures how agents get back what plans removed. The zero value offers the
// tools read_artifact and recall as soon as a plan has removed something (Session.Answer
// answers their calls), and shows externalized content again for one turn when the agent
// names it without asking for it.
type Recall struct {
	// Rehydrate configures what comes back without being asked for. Where its Events are
	// nil, those of Config are used.
	Rehydrate recall.Rehydration
	// Inject is how many tokens of removed messages that match the user's last message are
	// shown at the end of the prompt, as quoted data, within the limit of the request. 0
	// shows none.
	Inject int
	// Embedder adds search by meaning to search by words. May be nil.
	Embedder recall.Embedder
	// ContextTools offers the model, with read_artifact and recall, the tools context_status,
	// context_note and compact_now: it sees how much room is left, keeps notes that stand behind
	// the summary after a compaction, and has a compaction made with the next step. They are
	// in every request from the first on, so that the prompt keeps its prefix. Notes are stored in
	// Config.Store.
	ContextTools bool
	// Reminder tells the model once, with ContextTools, when a tenth of the room up to the next
	// compaction is left. The text stays in later prompts, until the compaction.
	Reminder bool
	// MaxBytes bounds one answer of a tool, in bytes. 0 is 32,000. In a small window
	// answers are smaller: read_artifact gives about a fifth of it at a time.
	MaxBytes int
}
