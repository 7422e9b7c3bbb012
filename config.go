package palimpsest

import (
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/quality"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// Config is what a Compactor is made of. The zero value is the default: the
// automatic policy, exact o200k counts, summaries without a model, everything in
// memory.
type Config struct {
	// Policy decides when sessions are compacted and how. Nil is policy.Auto.
	Policy policy.Policy
	// Ladder is how Compactor.Compact makes room, Name what it writes into its
	// plans. Nil and empty are strategy.Auto and "auto". Sessions do not use them.
	Ladder strategy.Ladder
	Name   string

	// IgnorePrices makes policies decide by size alone, also for models whose
	// prices are known.
	IgnorePrices bool

	// Counter counts everything. Nil counts o200k tokens. What a provider
	// reports (FinishStep) corrects it, session by session.
	Counter *token.Counter
	// Measure asks the provider for the size of a request that Counter estimates
	//: of one that takes half of its limit or more, once under each plan,
	// until FinishStep tells. Where it cannot be reached the estimate holds, and it
	// is left alone for a minute. Nil: Counter alone.
	Measure llm.TokenCounter
	// Summarizer makes summaries. Nil is the extractive one, which needs no
	// model.
	Summarizer summarize.Summarizer
	// Tools declares how durable the results of tools are. Nil holds the
	// built-in declarations.
	Tools *toolpolicy.Registry
	// CurrentSource says what the source of a replayable result looks like now, so
	// that it may be cleared when it has not changed. Nil takes what the tool's
	// Capture says, or else the newest result that was read from the same source.
	CurrentSource func(thread.ToolCall) (thread.Determinism, bool)

	// Log and Plans keep the threads of sessions and their plans. Nil is a
	// store.Memory.
	Log   store.Log
	Plans store.Plans
	// Documents keeps, by session, what a provider last counted (FinishStep), so
	// that a process that is started anew counts as the one before it. Nil: it is
	// lost with the process.
	Documents store.Documents
	// Sign has summaries and pointers signed where they stand in a prompt, with a key
	// that is made once and kept among the Documents, without which it has no effect. A text in the user's
	// name that has the form of one is taken for one only where it is signed; unsigned
	// it is data, and nobody's words. It costs some twenty tokens for each of them.
	Sign bool
	// Answers keeps what models answered, so that no question is asked twice, by
	// the process that is started anew either: llm.NewAnswers of a store.Answers.
	// Nil keeps in memory.
	Answers *llm.Answers
	// Memory is what is remembered between steps. Nil is one of the Compactor's own,
	// of DefaultMemory.
	Memory *Memory
	// Artifacts keeps the content that plans externalize, before they are in force,
	// for the tenant of Requester and as sensitive as Sensitivity says (empty is
	// internal). Nil: it stays in the log alone, and is read from there.
	Artifacts   *artifact.Store
	Requester   artifact.Requester
	Sensitivity artifact.Sensitivity
	// Recall gives agents back what plans removed. Nil: they never see it again.
	Recall *Recall
	// Quality watches each session for an agent that misses what was removed
	//. Nil does not. Where its Events are nil, Events is told.
	Quality *quality.Options
	// Events is told what happens; nil for nobody.
	Events event.Sink
	// Jobs, where it is set, prepares compactions in the background before they
	// must be made; its handler for CompactJob is Compactor.Work. Domain stands in
	// the keys of its jobs, so that several Compactors can share it.
	Jobs   job.Queue
	Domain string
	// Patience bounds how long a step waits for a compaction that is being
	// prepared. 0 is 30 seconds.
	Patience time.Duration
	// Now is the clock. It dates plans, and messages that come without a time; by
	// it a step knows whether the provider's cache has gone cold. Nil is time.Now.
	Now func() time.Time
}

// Recall says how agents get back what plans removed. The zero value offers the
// tools read_artifact and recall from the first plan on that removes something
// (Session.Answer answers their calls), and shows content that was externalized
// again for one turn when the agent names it without asking for it.
type Recall struct {
	// Rehydrate tunes what comes back without being asked for. Where
	// its Events are nil, those of Config are told.
	Rehydrate rehydrate.Options
	// Inject is how many tokens of removed messages that match the user's last
	// message are shown at the end of the prompt, as quoted data, and never more
	// than the limit of the request leaves. 0 shows none.
	Inject int
	// Embedder lets searches find by meaning beside words. May be nil.
	Embedder recall.Embedder
	// MaxBytes bounds one answer of a tool, in bytes. 0 is 32,000.
	MaxBytes int
}
