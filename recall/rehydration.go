package recall

import (
	"cmp"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
)

// The names of the tools that an agent is offered.
const (
	ReadArtifactTool = "read_artifact"
	RecallTool       = "recall"
)

// Rehydration tunes what comes back by itself (seed A, RehydrationConfig). The zero value has the
// seed's defaults; a negative limit is 0.
type Rehydration struct {
	// Disabled shows nothing by itself.
	Disabled bool `file:"rehydration.enabled" not:"true" about:"show stored content again that the agent means without asking for it"`
	// MaxArtifacts is how many artifacts one turn may bring back. 0 is 3.
	MaxArtifacts int `file:"rehydration.max_artifacts_per_turn" unit:"artifacts" range:"0.." about:"how many one turn may bring back"`
	// MaxTokens bounds each of them in tokens, heading and notes included; a larger one is
	// cut to head and tail. 0 is 4,000.
	MaxTokens int `file:"rehydration.max_tokens_per_artifact" unit:"tokens" range:"0.." about:"bound on each; a larger one is cut to head and tail"`
	// TotalTokens bounds all of one turn. 0 is 8,000.
	TotalTokens int `file:"rehydration.total_budget_tokens" unit:"tokens" range:"0.." about:"bound on all of one turn"`
	// CooldownTurns is for how many turns an artifact is not shown again, counting its own
	// turn. 0 is 2.
	CooldownTurns int `file:"rehydration.cooldown_turns" unit:"turns" range:"0.." about:"for how many turns an artifact is not shown again"`
	// Sensitivities may come back by themselves; anything else needs an explicit
	// read_artifact. Nil is public and internal; an empty list is none.
	Sensitivities []artifact.Sensitivity `file:"rehydration.auto_rehydrate_sensitivities" about:"what may come back by itself; the rest needs read_artifact"`
	// Events is told what came back and what was blocked. Nil tells nobody.
	Events event.Sink
}

// Defaults returns the settings with the seed's defaults filled in, for display.
func (r Rehydration) Defaults() Rehydration {
	r.MaxArtifacts, r.MaxTokens = cmp.Or(r.MaxArtifacts, 3), cmp.Or(r.MaxTokens, 4_000)
	r.TotalTokens, r.CooldownTurns = cmp.Or(r.TotalTokens, 8_000), cmp.Or(r.CooldownTurns, 2)
	if r.Sensitivities == nil {
		r.Sensitivities = []artifact.Sensitivity{artifact.Public, artifact.Internal}
	}
	return r
}

// TurnContext is what a turn was given (seed A, "Rehydration Loop Breaking"). The zero
// value is a turn that was given nothing.
type TurnContext struct {
	Number int `json:"turn_number"`
	// Happened is true when anything came back.
	Happened bool `json:"rehydration_happened"`
	// Tokens is what it takes in the prompt, headings included. Compaction is decided
	// without these tokens.
	Tokens      int      `json:"rehydrated_tokens"`
	ArtifactIDs []string `json:"rehydrated_artifact_ids"`
}

// Allows reports whether the named strategy may be used in this turn: where anything came
// back, all but "externalize" and "drop", so that the agent can finish what it asked for.
// If nothing else makes the prompt fit, the caller should climb the whole ladder.
func (c TurnContext) Allows(strategy string) bool {
	return !c.Happened || strategy != plan.Externalize.String() && strategy != plan.Drop.String()
}
