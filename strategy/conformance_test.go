package strategy_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/strategytest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
)

// TestConformance: every built-in rung. A17
func TestConformance(t *testing.T) {
	rungs := map[string]strategy.Strategy{
		"externalize":             strategy.Externalize{},
		"externalize from 100":    strategy.Externalize{Threshold: 100},
		"clear":                   strategy.Clear{},
		"clear with arguments":    strategy.Clear{Arguments: true},
		"summarize":               strategy.Summarize{},
		"summarize to a quarter":  strategy.Summarize{Ratio: 0.25},
		"summarize before a turn": strategy.Summarize{Keep: cut.LastTurns{N: 2}},
		"drop":                    strategy.Drop{},
	}
	for name, rung := range rungs {
		t.Run(name, func(t *testing.T) { strategytest.Run(t, rung) })
	}
	for name, ladder := range map[string]strategy.Ladder{"auto": strategy.Auto(), "seed": policy.Ladder{}.Rungs()} {
		for _, rung := range ladder {
			t.Run(name+"/"+rung.Name(), func(t *testing.T) { strategytest.Run(t, rung) })
		}
	}
}
