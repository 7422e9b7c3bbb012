package rehydrate

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
)

// Options tune a Rehydrator (seed A, RehydrationConfig; A10, A19). Nil or the
// zero value holds the seed's defaults; of the limits, a negative number is 0.
type Options struct {
	// Disabled shows nothing by itself. The seed's flag is enabled, true.
	Disabled bool `file:"rehydration.enabled" not:"true" about:"show stored content again that the agent plainly means"`
	// MaxArtifacts is how many artifacts one turn may bring back. 0 is 3.
	MaxArtifacts int `file:"rehydration.max_artifacts_per_turn" unit:"artifacts" range:"0.." about:"how many one turn may bring back"`
	// MaxTokens bounds each of them in tokens, heading and notes included; a
	// larger one is cut to head and tail. 0 is 4,000.
	MaxTokens int `file:"rehydration.max_tokens_per_artifact" unit:"tokens" range:"0.." about:"bound on each; a larger one is cut to head and tail"`
	// TotalTokens bounds all of one turn. 0 is 8,000.
	TotalTokens int `file:"rehydration.total_budget_tokens" unit:"tokens" range:"0.." about:"bound on all of one turn"`
	// CooldownTurns is for how many turns an artifact is not shown again, its
	// own turn counted. 0 is 2.
	CooldownTurns int `file:"rehydration.cooldown_turns" unit:"turns" range:"0.." about:"for how many turns an artifact is not shown again"`
	// Sensitivities may come back by themselves; anything else needs an explicit
	// read_artifact. Nil is public and internal; an empty list is none.
	Sensitivities []artifact.Sensitivity `file:"rehydration.auto_rehydrate_sensitivities" about:"what may come back by itself; the rest needs read_artifact"`
	// Events is told what came back and what was held back. Nil tells nobody.
	Events event.Sink
}

const (
	defaultMaxArtifacts  = 3
	defaultMaxTokens     = 4000
	defaultTotalTokens   = 8000
	defaultCooldownTurns = 2
)

// resolved fills in the defaults.
func (o *Options) resolved() Options {
	if o == nil {
		o = &Options{}
	}
	r := *o
	r.MaxArtifacts = orDefault(r.MaxArtifacts, defaultMaxArtifacts)
	r.MaxTokens = orDefault(r.MaxTokens, defaultMaxTokens)
	r.TotalTokens = orDefault(r.TotalTokens, defaultTotalTokens)
	r.CooldownTurns = orDefault(r.CooldownTurns, defaultCooldownTurns)
	if r.Sensitivities == nil {
		r.Sensitivities = []artifact.Sensitivity{artifact.Public, artifact.Internal}
	}
	r.Sensitivities = slices.Clone(r.Sensitivities)
	return r
}

func orDefault(n, fallback int) int {
	if n == 0 {
		return fallback
	}
	return max(n, 0)
}
