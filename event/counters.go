package event

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Counters is a sink that adds up what it is told (A24). The zero value is
// ready; it is safe for concurrent use and must not be copied.
type Counters struct {
	mu sync.Mutex
	s  Snapshot
}

// Snapshot is what Counters has added up since it was made.
type Snapshot struct {
	// Checks counts how often it was looked whether to compact; Compactions
	// those completed, Failures those that failed, by class of error.
	Checks      int64            `json:"checks"`
	Compactions int64            `json:"compactions"`
	Failures    map[string]int64 `json:"failures,omitempty"`
	// Fallbacks counts, by what was done instead, the completed compactions on
	// the way of which something failed.
	Fallbacks map[string]int64 `json:"fallbacks,omitempty"`
	// TokensFreed is the sum over the completed compactions, in tokens.
	TokensFreed int64 `json:"tokens_freed"`
	// Prompts counts those that were handed out, and TokensSpared what all of them
	// together were smaller by than their conversations as they were said.
	Prompts      int64 `json:"prompts"`
	TokensSpared int64 `json:"tokens_spared"`
	// Strategies counts the records that each strategy had in plans, and
	// StrategyTokens what these freed, in tokens. Records by strategies that
	// gave no name stand under the type of their event.
	Strategies     map[string]int64 `json:"strategies,omitempty"`
	StrategyTokens map[string]int64 `json:"strategy_tokens,omitempty"`
	// Latency is over completed and failed compactions that said how long they
	// took.
	Latency     Histogram `json:"latency"`
	CacheHits   int64     `json:"cache_hits"`
	CacheMisses int64     `json:"cache_misses"`
	// Rehydrations and Blocked count artifacts shown again, or not.
	Rehydrations int64 `json:"rehydrations"`
	Blocked      int64 `json:"rehydrations_blocked"`
	Conflicts    int64 `json:"plan_conflicts"`
	Overflows    int64 `json:"overflows_recovered"`
	// Sentences counts those that models wrote in summaries, LeftOut those of them
	// that were not taken, by cause (see Asked).
	Sentences int64            `json:"summary_sentences"`
	LeftOut   map[string]int64 `json:"summary_left_out,omitempty"`
	// ContextRequests counts how often agents asked for what was removed,
	// Alerts how often one kept asking (A22).
	ContextRequests int64 `json:"context_requests"`
	Alerts          int64 `json:"quality_alerts"`
}

// Histogram counts durations by upper bound. The bounds reach from a plan
// without a model (milliseconds) to a slow model's summary (a minute).
type Histogram struct {
	// Bounds are the upper bounds, inclusive, in seconds.
	Bounds []float64 `json:"bounds_seconds"`
	// Counts has one more than Bounds: the last is what lies above all. The
	// counts are not cumulative.
	Counts []int64 `json:"counts"`
	// Sum is in seconds.
	Sum   float64 `json:"sum_seconds"`
	Count int64   `json:"count"`
}

var latencyBounds = [...]float64{0.001, 0.005, 0.025, 0.1, 0.25, 1, 2.5, 5, 10, 30, 60}

func (h *Histogram) add(d time.Duration) {
	if h.Counts == nil {
		h.Counts = make([]int64, len(latencyBounds)+1)
	}
	i, _ := slices.BinarySearch(latencyBounds[:], d.Seconds())
	h.Counts[i]++
	h.Sum += d.Seconds()
	h.Count++
}

// maxNames bounds the names that are counted one by one: a caller's names must
// not fill the memory. More of them are counted as "other".
const maxNames = 64

func bump(m *map[string]int64, key string, by int64) {
	if *m == nil {
		*m = map[string]int64{}
	}
	if _, known := (*m)[key]; !known && len(*m) >= maxNames {
		key = "other"
	}
	(*m)[key] += by
}

// Emit adds the event up.
func (c *Counters) Emit(_ context.Context, e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hits, misses := e.Lookups()
	c.s.CacheHits += hits
	c.s.CacheMisses += misses
	switch e.Type {
	case CheckStarted:
		c.s.Checks++
	case Completed, Failed:
		if e.Type == Completed {
			c.s.Compactions++
			c.s.TokensFreed += int64(e.TokensFreed)
			if e.Err != "" {
				instead, _ := e.Details["fallback"].(string)
				bump(&c.s.Fallbacks, name(cmp.Or(instead, "unnamed")), 1)
			}
		} else {
			bump(&c.s.Failures, name(cmp.Or(e.Err, "error")), 1)
		}
		if e.Duration > 0 {
			c.s.Latency.add(e.Duration)
		}
	case Externalized, Summarized, Cleared, Retrieved, Dropped:
		by := name(cmp.Or(e.Strategy, string(e.Type)))
		bump(&c.s.Strategies, by, 1)
		bump(&c.s.StrategyTokens, by, int64(e.TokensFreed))
	case Rehydrated:
		c.s.Rehydrations++
	case Blocked:
		c.s.Blocked++
	case PromptPrepared:
		c.s.Prompts++
		c.s.TokensSpared += int64(e.TokensFreed)
	case Asked:
		proposed, _ := e.Details["proposed"].(int)
		c.s.Sentences += int64(proposed)
		for key, n := range e.Details {
			if cause, ok := strings.CutPrefix(key, "dropped_"); ok {
				count, _ := n.(int)
				bump(&c.s.LeftOut, name(cause), int64(count))
			}
		}
	case PlanConflict:
		c.s.Conflicts++
	case OverflowRecovered:
		c.s.Overflows++
	case ContextRequested:
		c.s.ContextRequests++
	case QualityAlert:
		c.s.Alerts++
	}
}

// Lookups is how often a cache had what was asked of it, and how often it had not:
// details cache_hits and cache_misses where one event tells of several, else Cache.
func (e Event) Lookups() (hits, misses int64) {
	h, several := e.Details["cache_hits"].(int)
	m, also := e.Details["cache_misses"].(int)
	switch {
	case several || also:
		return int64(h), int64(m)
	case e.Cache == Hit:
		return 1, 0
	case e.Cache == Miss:
		return 0, 1
	}
	return 0, 0
}

// Snapshot returns the sums of now; it shares nothing with the counters.
func (c *Counters) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Failures, s.Fallbacks = maps.Clone(s.Failures), maps.Clone(s.Fallbacks)
	s.Strategies, s.StrategyTokens = maps.Clone(s.Strategies), maps.Clone(s.StrategyTokens)
	s.LeftOut = maps.Clone(s.LeftOut)
	s.Latency.Bounds = slices.Clone(latencyBounds[:])
	if s.Latency.Counts = slices.Clone(s.Latency.Counts); s.Latency.Counts == nil {
		s.Latency.Counts = make([]int64, len(latencyBounds)+1)
	}
	return s
}
