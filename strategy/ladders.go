package strategy

import "github.com/palimpsest-ai/palimpsest/cut"

// Auto is the ladder of our own default: results are put aside or cleared by
// rule while the words and the calls around them stay, since those hold most of
// what later steps need; what is older than fits that way is summarized.
func Auto() Ladder {
	return Ladder{Externalize{}, Clear{Arguments: true}, Summarize{}, Drop{}}
}

// Seed is the ladder of seed A in its own order, with the defaults of its
// configuration table: externalize, summarize, clear, drop; the last three
// turns are kept and summaries take a quarter of what they replace.
func Seed() Ladder {
	return Ladder{
		Externalize{Threshold: 1000},
		Summarize{Keep: cut.LastTurns{N: 3}, Ratio: 0.25},
		AfterSummaries(Clear{}),
		Drop{},
	}
}

// Cut is the ladder that summarizes everything before a cut, and clears what is
// left only when the kept part itself does not fit.
func Cut(keep cut.Policy) Ladder {
	return Ladder{Summarize{Keep: keep}, AfterSummaries(Clear{Arguments: true}), Drop{}}
}

// AfterSummaries moves a rung behind Summarize, whatever its own aggressiveness.
func AfterSummaries(s Strategy) Strategy { return afterSummaries{s} }

type afterSummaries struct{ Strategy }

func (afterSummaries) Aggressiveness() int { return summarizeRung + 1 }
