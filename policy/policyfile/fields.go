package policyfile

import (
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// The structs below have the fields of the policies, so that a pointer to a policy
// converts to one of them, and tags that say what of it stands in a file:
//
//	file    the keys down to the field; without it the field is in no file
//	bases   the policies that have it, where not all of its struct do
//	unit, about, source   what it means, and the requirement or document it is from
//	range   from..to of a number or a duration; without an end to the largest number.
//	        A whole number may be 0 where that means none: the setting is then -1,
//	        since 0 is its default
//	words   word=value pairs that stand for values outside the range
//	enum    the words that it may be, where its type does not say; "models" for a
//	        chain of summarizers
//	not     true: the setting is the opposite of the field

type autoFields struct {
	Favor   policy.Favor `file:"trigger.favor" bases:"auto" about:"when the thread is compacted and how much is kept: near the window (quality), from 64000 tokens or 45 % of a small window on (balanced), or where it costs least (cost)" source:"docs/policies.md"`
	Hard    float64      `file:"trigger.hard" unit:"ratio" range:"0.001..1" words:"auto=0" about:"share of the budget at which the thread is compacted; auto: 0.9, or as the favor says" source:"docs/policies.md"`
	Target  float64      `file:"trigger.target" unit:"ratio" range:"0.001..1" words:"auto=0" about:"share of the budget that is left afterwards; auto: 0.5, or as the favor says" source:"docs/policies.md"`
	Working int          `file:"trigger.working" bases:"auto" unit:"tokens" range:"1.." words:"auto=0" about:"what the messages take after a compaction that prices decided; auto: 20000, or what the balanced favor keeps" source:"docs/policies.md"`
}

type ladderFields struct {
	MaxInputTokens         int     `file:"trigger.max_input_tokens" unit:"tokens" range:"1.." about:"the largest request" source:"A12, A19"`
	SoftThreshold          float64 `file:"trigger.soft_threshold_percent" unit:"ratio" range:"0.001..1" about:"share of max_input_tokens that may be filled" source:"A12, A19"`
	SafetyBuffer           int     `file:"trigger.safety_buffer_tokens" unit:"tokens" range:"0.." about:"kept free for errors of the count" source:"A12"`
	RehydrationReserve     int     `file:"trigger.rehydration_reserve_tokens" unit:"tokens" range:"0.." about:"kept free for content that is brought back" source:"A12"`
	MaxRehydrated          int     `file:"trigger.max_rehydration_artifacts" unit:"artifacts" range:"0.." about:"how many artifacts may be brought back at a time" source:"A12"`
	DisableExternalization bool    `file:"ladder.enable_externalization" not:"true" about:"store large results outside of the prompt and leave a pointer" source:"A19"`
	DisableSummarization   bool    `file:"ladder.enable_summarization" not:"true" about:"summarize older spans" source:"A19"`
	DisableClearing        bool    `file:"ladder.enable_clearing" not:"true" about:"replace results by a placeholder" source:"A19"`
	DisableDropping        bool    `file:"ladder.enable_dropping" not:"true" about:"leave messages out, as the last resort" source:"A19"`
	ExternalizeThreshold   int     `file:"ladder.externalize_threshold_tokens" unit:"tokens" range:"1.." about:"from what size a result is externalized" source:"A19"`
	SummarizeTargetRatio   float64 `file:"ladder.summarize_target_ratio" unit:"ratio" range:"0.001..1" about:"share of a span that its summary may take" source:"A19"`
	PreserveRecentTurns    int     `file:"cut.preserve_recent_turns" unit:"turns" range:"1.." about:"how many of the newest turns are not summarized" source:"A19"`
	Target                 float64 `file:"trigger.target" unit:"ratio" range:"0.001..1" about:"share of what is available for messages that a compaction goes down to" source:"docs/policies.md"`
}

type sessionFields struct {
	Model            llm.Generator
	Timeout          time.Duration
	Trust            policy.Trust
	ContextLimit     int     `file:"trigger.context_limit" unit:"tokens" range:"1.." words:"auto=0" about:"the context window; auto: the model's, or else 128000" source:"B3"`
	SystemReserve    int     `file:"trigger.system_reserve" unit:"tokens" range:"1.." about:"kept free for the system prompt" source:"B2"`
	OutputReserve    int     `file:"trigger.output_reserve" unit:"tokens" range:"1.." about:"kept free for the answer" source:"B2"`
	SafetyBuffer     int     `file:"trigger.safety_buffer" unit:"tokens" range:"1.." about:"kept free for errors of the estimate" source:"B2"`
	ThresholdPercent float64 `file:"trigger.threshold_percent" unit:"ratio" range:"0.001..1" about:"share of the rest at which the thread is compacted" source:"B2"`
	Keep             int     `file:"cut.keep" unit:"messages" range:"1.." about:"how many of the newest messages stay" source:"B4"`
}

type timelineFields struct {
	Model          llm.Generator
	Trust          policy.Trust
	MaxTokens      int           `file:"trigger.max_tokens" unit:"tokens" range:"1.." words:"auto=0" about:"the largest request; auto: the budget, or what the window leaves beside the answer" source:"C2"`
	Share          float64       `file:"trigger.share" unit:"ratio" range:"0.001..1" about:"share of max_tokens above which the thread is compacted" source:"C2"`
	KeepRecent     int           `file:"cut.keep_recent" unit:"tokens" range:"1.." words:"auto=0" about:"how much of the newest part stays; auto: 20000, at most a third of the mark" source:"C4"`
	SummaryTokens  int           `file:"summary.tokens" unit:"tokens" range:"1.." about:"bound on the summary of whole turns" source:"C7"`
	PrefixTokens   int           `file:"summary.prefix_tokens" unit:"tokens" range:"1.." about:"bound on the summary of the beginning of a split turn" source:"C7"`
	TTL            time.Duration `file:"expire.ttl" unit:"duration" range:"1s..8760h" words:"auto=0 off=-1" about:"the age at which blocks are hidden; auto: the life of the provider's cache, as far as it is known" source:"C12"`
	CacheOffset    int           `file:"cache_points.offset" unit:"rounds" range:"1.." about:"how many rounds stand behind the second cache point" source:"C9"`
	CacheMinRounds int           `file:"cache_points.min_rounds" unit:"rounds" range:"1.." words:"auto=0" about:"the fewest rounds with a second cache point; auto: offset + 1" source:"C9"`
}

type workstreamFields struct {
	Model         llm.Generator
	Trust         policy.Trust
	ContextSize   int      `file:"trigger.context_size" unit:"tokens" range:"1.." words:"auto=0" about:"the context window; auto: the model's, or else 200000" source:"D1"`
	Share         float64  `file:"trigger.share" unit:"ratio" range:"0.001..1" about:"share of the window at which the thread is compacted" source:"D1"`
	OutputReserve int      `file:"trigger.output_reserve" unit:"tokens" range:"1.." about:"kept free for the answer" source:"D1"`
	SafetyMargin  int      `file:"trigger.safety_margin" unit:"tokens" range:"1.." about:"kept free for errors of the estimate" source:"D1"`
	Tail          int      `file:"cut.tail" unit:"messages" range:"1.." about:"how many of the newest messages stay" source:"D3"`
	ToolNames     []string `file:"transcript.tool_names" about:"tools that are part of what is summarized" source:"D4"`
	ToolPrefixes  []string `file:"transcript.tool_prefixes" about:"as tool_names, by the beginning of the name" source:"D4"`
	ChunkChars    int      `file:"transcript.chunk_chars" unit:"characters" range:"2000.." about:"the largest transcript of one request" source:"D6"`
	RollupTokens  int      `file:"summary.rollup_tokens" unit:"tokens" range:"1.." about:"bound on the summary; above it, it is rolled up" source:"D6"`
	Limits        state.Limits
	Role          thread.Role `file:"summary.role" about:"who says the summary" source:"D9"`
	ShowState     bool        `file:"summary.show_state" about:"show the state behind the summary" source:"D8"`
}

type stateFields struct {
	KeyDecisions       int `file:"state.key_decisions" unit:"items" range:"0.." about:"how many decisions are kept" source:"D7"`
	ActiveConstraints  int `file:"state.active_constraints" unit:"items" range:"0.." about:"how many constraints are kept" source:"D7"`
	Tasks              int `file:"state.tasks" unit:"items" range:"0.." about:"how many tasks are kept" source:"D7"`
	OpenQuestions      int `file:"state.open_questions" unit:"items" range:"0.." about:"how many open questions are kept" source:"D7"`
	Risks              int `file:"state.risks" unit:"items" range:"0.." about:"how many risks are kept" source:"D7"`
	Artifacts          int `file:"state.artifacts" unit:"items" range:"0.." about:"how many artifacts are kept" source:"D7"`
	AgentContributions int `file:"state.agent_contributions" unit:"items" range:"0.." about:"how many contributions of agents are kept" source:"D7"`
}

type loopFields struct {
	Model        llm.Generator
	Timeout      time.Duration
	Trust        policy.Trust
	ContextLimit int     `file:"trigger.context_limit" unit:"tokens" range:"1.." words:"auto=0" about:"the context window; auto: the model's, or else 200000" source:"E3"`
	LongContext  bool    `file:"trigger.long_context" about:"take 1000000 for models that have such a window, whatever the table of models says" source:"E3"`
	MaxOutput    int     `file:"trigger.max_output" unit:"tokens" range:"1.." words:"auto=0" about:"kept free for the answer; auto: the model's limit, or else 16384" source:"E3"`
	Utilization  float64 `file:"trigger.utilization" unit:"ratio" range:"0.001..1" about:"share of what the window leaves above which the thread is compacted" source:"E1"`
	Preserve     float64 `file:"cut.preserve" unit:"ratio" range:"0.001..1" about:"share of the messages that stays" source:"E5"`
}

type rehydrationFields struct {
	Disabled      bool                   `file:"rehydration.enabled" not:"true" about:"show stored content again that the agent plainly means" source:"A10, A19"`
	MaxArtifacts  int                    `file:"rehydration.max_artifacts_per_turn" unit:"artifacts" range:"0.." about:"how many one turn may bring back" source:"A10, A19"`
	MaxTokens     int                    `file:"rehydration.max_tokens_per_artifact" unit:"tokens" range:"0.." about:"bound on each; a larger one is cut to head and tail" source:"A10, A19"`
	TotalTokens   int                    `file:"rehydration.total_budget_tokens" unit:"tokens" range:"0.." about:"bound on all of one turn" source:"A10, A19"`
	CooldownTurns int                    `file:"rehydration.cooldown_turns" unit:"turns" range:"0.." about:"for how many turns an artifact is not shown again" source:"A10, A19"`
	Sensitivities []artifact.Sensitivity `file:"rehydration.auto_rehydrate_sensitivities" about:"what may come back by itself; the rest needs read_artifact" source:"A10"`
	Events        event.Sink
}

// toolFields are those of one tool. What is not set is as the built-in declarations
// say.
type toolFields struct {
	Durability           thread.Durability     `file:"durability" about:"what may happen to results" source:"A7"`
	PreserveFields       []string              `file:"preserve_fields" about:"fields that stay when a result is cleared" source:"A9"`
	ExternalizeThreshold int                   `file:"externalize_threshold_tokens" bases:"auto ladder" unit:"tokens" range:"1.." about:"from what size a result is externalized" source:"A9"`
	ReplayCost           toolpolicy.ReplayCost `file:"replay_cost" bases:"auto ladder" about:"what it costs to run the tool again; what is expensive is externalized, never cleared" source:"A9"`
	Sensitivity          string                `file:"sensitivity" bases:"auto ladder" enum:"public internal confidential restricted" about:"how sensitive externalized results are" source:"A10, A20"`
	TTL                  time.Duration         `file:"ttl" bases:"auto ladder" unit:"duration" range:"1s..8760h" words:"forever=-1" about:"for how long externalized results may be read" source:"A20"`
	Capture              func(thread.ToolCall) (thread.Determinism, error)
}

// groups are the first keys of files, in the order in which they are written.
var groups = []string{"trigger", "cut", "ladder", "summary", "transcript", "state", "expire", "cache_points", "counter", "summarizer", "rehydration", "retrieval", "tools"}

// fields are those that a file with the base of the settings has, each bound to its
// setting.
func (s *Settings) fields() []field {
	parts := []any{s, &s.Summarizer, &s.Retrieval}
	switch s.Base {
	case "ladder":
		parts = append(parts, (*ladderFields)(&s.Ladder))
	case "session":
		parts = append(parts, (*sessionFields)(&s.Session))
	case "timeline":
		parts = append(parts, (*timelineFields)(&s.Timeline))
	case "workstream":
		parts = append(parts, (*workstreamFields)(&s.Workstream), (*stateFields)(&s.Workstream.Limits))
	case "loop":
		parts = append(parts, (*loopFields)(&s.Loop))
	default:
		parts = append(parts, (*autoFields)(&s.Auto), &s.Off)
	}
	if s.Base == "auto" || s.Base == "ladder" { // they externalize results
		parts = append(parts, (*rehydrationFields)(&s.Rehydration))
	}
	var all []field
	for _, part := range parts {
		all = append(all, fieldsOf(s.Base, part)...)
	}
	slices.SortStableFunc(all, func(a, b field) int { return slices.Index(groups, a.group()) - slices.Index(groups, b.group()) })
	return all
}

// group is the first key.
func (f *field) group() string {
	group, _, _ := strings.Cut(f.path, ".")
	return group
}

// overrides is where the settings of single tools stand, by the tool's name.
const overrides = "tools.overrides"
