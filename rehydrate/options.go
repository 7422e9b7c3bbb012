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
	Disabled bool
	// MaxArtifacts is how many artifacts one turn may bring back. 0 is 3.
	MaxArtifacts int
	// MaxTokens bounds each of them in tokens, heading and notes included; a
	// larger one is cut to head and tail. 0 is 4,000.
	MaxTokens int
	// TotalTokens bounds all of one turn. 0 is 8,000.
	TotalTokens int
	// CooldownTurns is for how many turns an artifact is not shown again, its
	// own turn counted. 0 is 2.
	CooldownTurns int
	// Sensitivities may come back by themselves; anything else needs an explicit
	// read_artifact. Nil is public and internal; an empty list is none.
	Sensitivities []artifact.Sensitivity
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
