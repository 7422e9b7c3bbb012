package policyfile

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

const (
	// least is the smallest share, most the largest number of anything.
	least = 0.001
	most  = 100_000_000

	automatic = "auto"
)

// Which bases a field belongs to.
var (
	fitting  = []string{"auto", "last-messages", "last-tokens", "last-turns", "ratio"}
	ladder   = []string{"ladder"}
	session  = []string{"session"}
	timeline = []string{"timeline"}
	stream   = []string{"workstream"}
	loop     = []string{"loop"}

	climbing = append(fitting[:5:5], "ladder") // those that treat results by their tools
	aside    = []string{"auto", "ladder"}      // those that put results aside
)

// Words that stand for a value.
var (
	autoWord = []word{{automatic, 0}}

	foreverWord = []word{{"forever", -1}}
)

// table holds every field but those of single tools, in the order in which files
// are written. Each row names the seed's requirement or document it comes from.
var table = []field{
	{path: "trigger.favor", bases: fitting[:1], enum: policy.Favors(), about: "when the thread is compacted and how much is kept: near the window (quality), from 64000 tokens or 45 % of a small window on (balanced), or where it costs least (cost)", source: "docs/policies.md", at: func(s *Settings) any { return &s.Auto.Favor }},
	{path: "trigger.hard", bases: fitting, unit: "ratio", min: least, max: 1, words: autoWord, about: "share of the budget at which the thread is compacted; auto: 0.9, or as the favor says", source: "docs/policies.md", at: func(s *Settings) any { return &s.Auto.Hard }},
	{path: "trigger.target", bases: fitting, unit: "ratio", min: least, max: 1, words: autoWord, about: "share of the budget that is left afterwards; auto: 0.5, or as the favor says", source: "docs/policies.md", at: func(s *Settings) any { return &s.Auto.Target }},
	{path: "trigger.working", bases: fitting[:1], unit: "tokens", min: 1, max: most, words: autoWord, about: "what the messages take after a compaction that prices decided; auto: 20000, or what the balanced favor keeps", source: "docs/policies.md", at: func(s *Settings) any { return &s.Auto.Working }},

	{path: "trigger.max_input_tokens", bases: ladder, unit: "tokens", min: 1, max: most, about: "the largest request", source: "A12, A19", at: func(s *Settings) any { return &s.Ladder.MaxInputTokens }},
	{path: "trigger.soft_threshold_percent", bases: ladder, unit: "ratio", min: least, max: 1, about: "share of max_input_tokens that may be filled", source: "A12, A19", at: func(s *Settings) any { return &s.Ladder.SoftThreshold }},
	{path: "trigger.target", bases: ladder, unit: "ratio", min: least, max: 1, about: "share of what is available for messages that a compaction goes down to", source: "docs/policies.md", at: func(s *Settings) any { return &s.Ladder.Target }},

	{path: "trigger.safety_buffer_tokens", bases: ladder, unit: "tokens", max: most, negative: true, about: "kept free for errors of the count", source: "A12", at: func(s *Settings) any { return &s.Ladder.SafetyBuffer }},
	{path: "trigger.rehydration_reserve_tokens", bases: ladder, unit: "tokens", max: most, negative: true, about: "kept free for content that is brought back", source: "A12", at: func(s *Settings) any { return &s.Ladder.RehydrationReserve }},
	{path: "trigger.max_rehydration_artifacts", bases: ladder, unit: "artifacts", max: most, negative: true, about: "how many artifacts may be brought back at a time", source: "A12", at: func(s *Settings) any { return &s.Ladder.MaxRehydrated }},

	{path: "trigger.context_limit", bases: session, unit: "tokens", min: 1, max: most, words: autoWord, about: "the context window; auto: the model's, or else 128000", source: "B3", at: func(s *Settings) any { return &s.Session.ContextLimit }},
	{path: "trigger.system_reserve", bases: session, unit: "tokens", min: 1, max: most, about: "kept free for the system prompt", source: "B2", at: func(s *Settings) any { return &s.Session.SystemReserve }},
	{path: "trigger.output_reserve", bases: session, unit: "tokens", min: 1, max: most, about: "kept free for the answer", source: "B2", at: func(s *Settings) any { return &s.Session.OutputReserve }},
	{path: "trigger.safety_buffer", bases: session, unit: "tokens", min: 1, max: most, about: "kept free for errors of the estimate", source: "B2", at: func(s *Settings) any { return &s.Session.SafetyBuffer }},
	{path: "trigger.threshold_percent", bases: session, unit: "ratio", min: least, max: 1, about: "share of the rest at which the thread is compacted", source: "B2", at: func(s *Settings) any { return &s.Session.ThresholdPercent }},

	{path: "trigger.max_tokens", bases: timeline, unit: "tokens", min: 1, max: most, words: autoWord, about: "the largest request; auto: the budget, or what the window leaves beside the answer", source: "C2", at: func(s *Settings) any { return &s.Timeline.MaxTokens }},
	{path: "trigger.share", bases: timeline, unit: "ratio", min: least, max: 1, about: "share of max_tokens above which the thread is compacted", source: "C2", at: func(s *Settings) any { return &s.Timeline.Share }},

	{path: "trigger.context_size", bases: stream, unit: "tokens", min: 1, max: most, words: autoWord, about: "the context window; auto: the model's, or else 200000", source: "D1", at: func(s *Settings) any { return &s.Workstream.ContextSize }},
	{path: "trigger.share", bases: stream, unit: "ratio", min: least, max: 1, about: "share of the window at which the thread is compacted", source: "D1", at: func(s *Settings) any { return &s.Workstream.Share }},
	{path: "trigger.output_reserve", bases: stream, unit: "tokens", min: 1, max: most, about: "kept free for the answer", source: "D1", at: func(s *Settings) any { return &s.Workstream.OutputReserve }},
	{path: "trigger.safety_margin", bases: stream, unit: "tokens", min: 1, max: most, about: "kept free for errors of the estimate", source: "D1", at: func(s *Settings) any { return &s.Workstream.SafetyMargin }},

	{path: "trigger.context_limit", bases: loop, unit: "tokens", min: 1, max: most, words: autoWord, about: "the context window; auto: the model's, or else 200000", source: "E3", at: func(s *Settings) any { return &s.Loop.ContextLimit }},
	{path: "trigger.long_context", bases: loop, about: "take 1000000 for models that have such a window, whatever the table of models says", source: "E3", at: func(s *Settings) any { return &s.Loop.LongContext }},
	{path: "trigger.max_output", bases: loop, unit: "tokens", min: 1, max: most, words: autoWord, about: "kept free for the answer; auto: the model's limit, or else 16384", source: "E3", at: func(s *Settings) any { return &s.Loop.MaxOutput }},
	{path: "trigger.utilization", bases: loop, unit: "ratio", min: least, max: 1, about: "share of what the window leaves above which the thread is compacted", source: "E1", at: func(s *Settings) any { return &s.Loop.Utilization }},

	{path: "cut.messages", bases: []string{"last-messages"}, unit: "messages", min: 1, max: most, about: "how many of the newest messages stay", source: "docs/policies.md", at: func(s *Settings) any { return &s.Messages }},
	{path: "cut.tokens", bases: []string{"last-tokens"}, unit: "tokens", min: 1, max: most, about: "how much of the newest part stays", source: "docs/policies.md", at: func(s *Settings) any { return &s.Tokens }},
	{path: "cut.split_turns", bases: []string{"last-tokens"}, about: "cut inside a turn where that keeps more", source: "docs/policies.md", at: func(s *Settings) any { return &s.SplitTurns }},
	{path: "cut.turns", bases: []string{"last-turns"}, unit: "turns", min: 1, max: most, about: "how many of the newest turns stay whole", source: "docs/policies.md", at: func(s *Settings) any { return &s.Turns }},
	{path: "cut.ratio", bases: []string{"ratio"}, unit: "ratio", min: least, max: 0.999, about: "share of the tokens that stays", source: "docs/policies.md", at: func(s *Settings) any { return &s.Ratio }},
	{path: "cut.preserve_recent_turns", bases: ladder, unit: "turns", min: 1, max: most, about: "how many of the newest turns are not summarized", source: "A19", at: func(s *Settings) any { return &s.Ladder.PreserveRecentTurns }},
	{path: "cut.keep", bases: session, unit: "messages", min: 1, max: most, about: "how many of the newest messages stay", source: "B4", at: func(s *Settings) any { return &s.Session.Keep }},
	{path: "cut.keep_recent", bases: timeline, unit: "tokens", min: 1, max: most, words: autoWord, about: "how much of the newest part stays; auto: 20000, at most a third of the mark", source: "C4", at: func(s *Settings) any { return &s.Timeline.KeepRecent }},
	{path: "cut.tail", bases: stream, unit: "messages", min: 1, max: most, about: "how many of the newest messages stay", source: "D3", at: func(s *Settings) any { return &s.Workstream.Tail }},
	{path: "cut.preserve", bases: loop, unit: "ratio", min: least, max: 1, about: "share of the messages that stays", source: "E5", at: func(s *Settings) any { return &s.Loop.Preserve }},

	{path: "ladder.enable_externalization", bases: ladder, not: true, about: "put large results aside and leave a pointer", source: "A19", at: func(s *Settings) any { return &s.Ladder.DisableExternalization }},
	{path: "ladder.enable_summarization", bases: ladder, not: true, about: "summarize older spans", source: "A19", at: func(s *Settings) any { return &s.Ladder.DisableSummarization }},
	{path: "ladder.enable_clearing", bases: ladder, not: true, about: "replace results by a placeholder", source: "A19", at: func(s *Settings) any { return &s.Ladder.DisableClearing }},
	{path: "ladder.enable_dropping", bases: ladder, not: true, about: "leave messages out, as the last resort", source: "A19", at: func(s *Settings) any { return &s.Ladder.DisableDropping }},
	{path: "ladder.externalize_threshold_tokens", bases: ladder, unit: "tokens", min: 1, max: most, about: "from what size a result is put aside", source: "A19", at: func(s *Settings) any { return &s.Ladder.ExternalizeThreshold }},
	{path: "ladder.summarize_target_ratio", bases: ladder, unit: "ratio", min: least, max: 1, about: "share of a span that its summary may take", source: "A19", at: func(s *Settings) any { return &s.Ladder.SummarizeTargetRatio }},
	{path: "ladder.enable_externalization", bases: fitting[:1], not: true, about: "put large results aside and leave a pointer", source: "A17", at: func(s *Settings) any { return &s.Off.Externalize }},
	{path: "ladder.enable_clearing", bases: fitting, not: true, about: "replace results by a placeholder", source: "A17", at: func(s *Settings) any { return &s.Off.Clear }},
	{path: "ladder.enable_summarization", bases: fitting, not: true, about: "summarize older spans", source: "A17", at: func(s *Settings) any { return &s.Off.Summarize }},
	{path: "ladder.enable_dropping", bases: fitting, not: true, about: "leave messages out, as the last resort", source: "A17", at: func(s *Settings) any { return &s.Off.Drop }},

	{path: "summary.tokens", bases: timeline, unit: "tokens", min: 1, max: most, about: "bound on the summary of whole turns", source: "C7", at: func(s *Settings) any { return &s.Timeline.SummaryTokens }},
	{path: "summary.prefix_tokens", bases: timeline, unit: "tokens", min: 1, max: most, about: "bound on the summary of the beginning of a split turn", source: "C7", at: func(s *Settings) any { return &s.Timeline.PrefixTokens }},
	{path: "summary.rollup_tokens", bases: stream, unit: "tokens", min: 1, max: most, about: "bound on the summary; above it, it is rolled up", source: "D6", at: func(s *Settings) any { return &s.Workstream.RollupTokens }},
	{path: "summary.role", bases: stream, enum: []string{string(thread.System), string(thread.User), string(thread.Assistant)}, about: "who says the summary", source: "D9", at: func(s *Settings) any { return &s.Workstream.Role }},
	{path: "summary.show_state", bases: stream, about: "show the state behind the summary", source: "D8", at: func(s *Settings) any { return &s.Workstream.ShowState }},

	{path: "transcript.tool_names", bases: stream, about: "tools that are part of what is summarized", source: "D4", at: func(s *Settings) any { return &s.Workstream.ToolNames }},
	{path: "transcript.tool_prefixes", bases: stream, about: "as tool_names, by the beginning of the name", source: "D4", at: func(s *Settings) any { return &s.Workstream.ToolPrefixes }},
	{path: "transcript.chunk_chars", bases: stream, unit: "characters", min: 2000, max: most, about: "the largest transcript of one request", source: "D6", at: func(s *Settings) any { return &s.Workstream.ChunkChars }},

	{path: "state.key_decisions", bases: stream, unit: "items", max: most, negative: true, about: "how many decisions are kept", source: "D7", at: func(s *Settings) any { return &s.Workstream.Limits.KeyDecisions }},
	{path: "state.active_constraints", bases: stream, unit: "items", max: most, negative: true, about: "how many constraints are kept", source: "D7", at: func(s *Settings) any { return &s.Workstream.Limits.ActiveConstraints }},
	{path: "state.tasks", bases: stream, unit: "items", max: most, negative: true, about: "how many tasks are kept", source: "D7", at: func(s *Settings) any { return &s.Workstream.Limits.Tasks }},
	{path: "state.open_questions", bases: stream, unit: "items", max: most, negative: true, about: "how many open questions are kept", source: "D7", at: func(s *Settings) any { return &s.Workstream.Limits.OpenQuestions }},
	{path: "state.risks", bases: stream, unit: "items", max: most, negative: true, about: "how many risks are kept", source: "D7", at: func(s *Settings) any { return &s.Workstream.Limits.Risks }},
	{path: "state.artifacts", bases: stream, unit: "items", max: most, negative: true, about: "how many artifacts are kept", source: "D7", at: func(s *Settings) any { return &s.Workstream.Limits.Artifacts }},
	{path: "state.agent_contributions", bases: stream, unit: "items", max: most, negative: true, about: "how many contributions of agents are kept", source: "D7", at: func(s *Settings) any { return &s.Workstream.Limits.AgentContributions }},

	{path: "expire.ttl", bases: timeline, unit: "duration", min: 1, max: 365 * 24 * 3600, words: []word{{automatic, 0}, {"off", -1}}, about: "the age at which blocks are hidden; auto: the life of the provider's cache, as far as it is known", source: "C12", at: func(s *Settings) any { return &s.Timeline.TTL }},
	{path: "cache_points.offset", bases: timeline, unit: "rounds", min: 1, max: most, about: "how many rounds stand behind the second cache point", source: "C9", at: func(s *Settings) any { return &s.Timeline.CacheOffset }},
	{path: "cache_points.min_rounds", bases: timeline, unit: "rounds", min: 1, max: most, words: autoWord, about: "the fewest rounds with a second cache point; auto: offset + 1", source: "C9", at: func(s *Settings) any { return &s.Timeline.CacheMinRounds }},

	{path: "counter", about: "how tokens are counted: o200k, cl100k, claude, gemini, chars/4, …; auto: as the model counts, or else o200k", source: "A13, A19", at: func(s *Settings) any { return &s.Counter }},

	{path: "summarizer.use", model: true, about: "models that write summaries, asked in order: anthropic:MODEL or openai:MODEL; after them, and with extractive alone, code does", source: "A19", at: func(s *Settings) any { return &s.Summarizer.Use }},
	{path: "summarizer.timeout", unit: "duration", min: 0.001, max: 3600, about: "bound on each model", source: "docs/policies.md", at: func(s *Settings) any { return &s.Summarizer.Timeout }},
	{path: "summarizer.temperature", min: 0, max: 2, words: []word{{automatic, Own}, {"none", None}}, about: "sent with each request; auto: each prompt's own; none: for models that take none", source: "B6", at: func(s *Settings) any { return &s.Summarizer.Temperature }},
	{path: "summarizer.max_output", unit: "tokens", min: 1, max: most, words: autoWord, about: "bound on each answer, thinking included; auto: each prompt's own", source: "docs/policies.md", at: func(s *Settings) any { return &s.Summarizer.MaxOutput }},
	{path: "summarizer.chunk_characters", bases: climbing, unit: "characters", min: 1000, max: most, about: "the most of a span that is sent at once", source: "D6", at: func(s *Settings) any { return &s.Summarizer.ChunkCharacters }},
	{path: "summarizer.trust", enum: policy.Trusts(), about: "how much of what a model writes is taken: the sentences that stand on the messages (checked), or all of it, as the seeds do (model)", source: "F2", at: func(s *Settings) any { return &s.Summarizer.Trust }},
	{path: "summarizer.cache", about: "ask the same question only once", source: "A15, A19", at: func(s *Settings) any { return &s.Summarizer.Cache }},

	{path: "rehydration.enabled", bases: aside, not: true, about: "show stored content again that the agent plainly means", source: "A10, A19", at: func(s *Settings) any { return &s.Rehydration.Disabled }},
	{path: "rehydration.max_artifacts_per_turn", bases: aside, unit: "artifacts", max: most, negative: true, about: "how many one turn may bring back", source: "A10, A19", at: func(s *Settings) any { return &s.Rehydration.MaxArtifacts }},
	{path: "rehydration.max_tokens_per_artifact", bases: aside, unit: "tokens", max: most, negative: true, about: "bound on each; a larger one is cut to head and tail", source: "A10, A19", at: func(s *Settings) any { return &s.Rehydration.MaxTokens }},
	{path: "rehydration.total_budget_tokens", bases: aside, unit: "tokens", max: most, negative: true, about: "bound on all of one turn", source: "A10, A19", at: func(s *Settings) any { return &s.Rehydration.TotalTokens }},
	{path: "rehydration.cooldown_turns", bases: aside, unit: "turns", max: most, negative: true, about: "for how many turns an artifact is not shown again", source: "A10, A19", at: func(s *Settings) any { return &s.Rehydration.CooldownTurns }},
	{path: "rehydration.auto_rehydrate_sensitivities", bases: aside, enum: sensitivities, about: "what may come back by itself; the rest needs read_artifact", source: "A10", at: func(s *Settings) any { return &s.Rehydration.Sensitivities }},

	{path: "retrieval.enabled", about: "show what was removed and matches the user's last message beside it", source: "A19, A23", at: func(s *Settings) any { return &s.Retrieval.Enabled }},
	{path: "retrieval.tokens", unit: "tokens", min: 1, max: most, about: "bound on what one request is shown so", source: "A23", at: func(s *Settings) any { return &s.Retrieval.Tokens }},
	{path: "retrieval.vector_store", about: "search by meaning too, with vectors of a model such as openai:text-embedding-3-small; none: by words alone", source: "A19, A23", at: func(s *Settings) any { return &s.Retrieval.Vectors }},

	{path: "tools.default_durability", bases: climbing, enum: durabilities, about: "holds for tools that nobody declares", source: "A9, A19", at: func(s *Settings) any { return &s.Durability }},
}

var durabilities = []string{string(thread.Ephemeral), string(thread.Anchoring), string(thread.Replayable), string(thread.NonReplayable)}

var sensitivities = []string{string(artifact.Public), string(artifact.Internal), string(artifact.Confidential), string(artifact.Restricted)}

// overrides is where the settings of single tools stand, by the tool's name.
const overrides = "tools.overrides"

// toolTable holds the fields of one tool. What is not set is as the built-in
// declarations say.
var toolTable = []toolField{
	{field{path: "durability", enum: durabilities, about: "what may happen to results", source: "A7"}, func(p *toolpolicy.Policy) any { return &p.Durability }},
	{field{path: "preserve_fields", about: "fields that stay when a result is cleared", source: "A9"}, func(p *toolpolicy.Policy) any { return &p.PreserveFields }},
	{field{path: "externalize_threshold_tokens", bases: aside, unit: "tokens", min: 1, max: most, about: "from what size a result is put aside", source: "A9"}, func(p *toolpolicy.Policy) any { return &p.ExternalizeThreshold }},
	{field{path: "replay_cost", bases: aside, enum: []string{string(toolpolicy.Free), string(toolpolicy.Cheap), string(toolpolicy.Expensive)}, about: "what it costs to run the tool again; what is expensive is put aside, never cleared", source: "A9"}, func(p *toolpolicy.Policy) any { return &p.ReplayCost }},
	{field{path: "sensitivity", bases: aside, enum: sensitivities, about: "how sensitive results are that are put aside", source: "A10, A20"}, func(p *toolpolicy.Policy) any { return &p.Sensitivity }},
	{field{path: "ttl", bases: aside, unit: "duration", min: 1, max: 365 * 24 * 3600, words: foreverWord, about: "for how long results that are put aside may be read", source: "A20"}, func(p *toolpolicy.Policy) any { return &p.TTL }},
}

type toolField struct {
	field
	at func(*toolpolicy.Policy) any
}

// toolFields are the fields of one tool that a policy has; none where it treats
// all results alike.
func toolFields(base string) []toolField {
	if !slices.Contains(climbing, base) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(toolTable), func(f toolField) bool { return !f.of(base) })
}
