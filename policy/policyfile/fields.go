package policyfile

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
)

// A field of a file is a tagged field of Settings, of a policy, or of what these hold:
//
//	file    the keys down to the field; without it the field is in no file
//	bases   the policies that have it, where not all of its struct do
//	unit, about   what it means
//	range   from..to of a number or a duration; without an end to the largest number.
//	        A whole number may be 0 where that means none: the setting is then -1,
//	        since 0 is its default
//	words   word=value pairs that stand for values outside the range
//	enum    the words that it may be, where its type does not say; "models" for a
//	        chain of summarizers
//	not     true: the setting is the opposite of the field

// The structs of packages state and rehydrate have no tags: pointers to them convert to
// these.
type stateFields struct {
	KeyDecisions       int `file:"state.key_decisions" unit:"items" range:"0.." about:"how many decisions are kept"`
	ActiveConstraints  int `file:"state.active_constraints" unit:"items" range:"0.." about:"how many constraints are kept"`
	Tasks              int `file:"state.tasks" unit:"items" range:"0.." about:"how many tasks are kept"`
	OpenQuestions      int `file:"state.open_questions" unit:"items" range:"0.." about:"how many open questions are kept"`
	Risks              int `file:"state.risks" unit:"items" range:"0.." about:"how many risks are kept"`
	Artifacts          int `file:"state.artifacts" unit:"items" range:"0.." about:"how many artifacts are kept"`
	AgentContributions int `file:"state.agent_contributions" unit:"items" range:"0.." about:"how many contributions of agents are kept"`
}

type rehydrationFields struct {
	Disabled      bool                   `file:"rehydration.enabled" not:"true" about:"show stored content again that the agent plainly means"`
	MaxArtifacts  int                    `file:"rehydration.max_artifacts_per_turn" unit:"artifacts" range:"0.." about:"how many one turn may bring back"`
	MaxTokens     int                    `file:"rehydration.max_tokens_per_artifact" unit:"tokens" range:"0.." about:"bound on each; a larger one is cut to head and tail"`
	TotalTokens   int                    `file:"rehydration.total_budget_tokens" unit:"tokens" range:"0.." about:"bound on all of one turn"`
	CooldownTurns int                    `file:"rehydration.cooldown_turns" unit:"turns" range:"0.." about:"for how many turns an artifact is not shown again"`
	Sensitivities []artifact.Sensitivity `file:"rehydration.auto_rehydrate_sensitivities" about:"what may come back by itself; the rest needs read_artifact"`
	Events        event.Sink
}

// groups are the first keys of files, in the order in which they are written.
var groups = []string{"trigger", "cut", "ladder", "summary", "transcript", "state", "expire", "cache_points", "counter", "summarizer", "rehydration", "retrieval", "tools"}

// fields are those that a file with the base of the settings has, each bound to its
// setting.
func (s *Settings) fields() []field {
	parts := []any{s, &s.Summarizer, &s.Retrieval}
	if own := baseOf(s.Base).parts; own != nil {
		parts = append(parts, own(s)...)
	} else {
		parts = append(parts, &s.Auto, &s.DisabledRungs)
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

// overridesPath is where the settings of single tools stand, by the tool's name.
const overridesPath = "tools.overrides"
