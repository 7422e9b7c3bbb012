package strategy

import "github.com/palimpsest-ai/palimpsest/cut"

// The order of the rungs: a ladder climbs by the aggressiveness of its strategies,
// whatever order they are listed in. Others fit in between.
const (
	externalizeRung = 10
	clearRung       = 20
	summarizeRung   = 30
	dropRung        = 40
)

// Auto is the ladder of our own default: the newest part stays whole but for
// results that would fill it alone, and what is older is summarized, since lines
// chosen from all of it hold more of what later steps need than whole messages or
// the beginnings of results do. Where that is not enough, results of the kept part
// are externalized or cleared.
func Auto() Ladder {
	return Ladder{
		Externalize{Large: true}, Summarize{},
		AfterSummaries(Externalize{}), AfterSummaries(Clear{Arguments: true}), Drop{},
	}
}

// Cut is the ladder that summarizes everything before a cut, and keeps what is
// behind it, also where there would be room for more. When the kept part itself does
// not fit, it keeps less, and clears.
func Cut(keep cut.Policy) Ladder {
	return Ladder{Summarize{Keep: keep, exact: true}, AfterSummaries(Clear{Arguments: true}), Drop{}}
}

// AfterSummaries moves a rung behind Summarize, whatever its own aggressiveness.
func AfterSummaries(s Strategy) Strategy { return afterSummaries{s} }

type afterSummaries struct{ Strategy }

func (afterSummaries) Aggressiveness() int { return summarizeRung + 1 }
