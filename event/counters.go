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

// Counters is a sink that counts events. The zero value is ready to use; it is safe for
// concurrent use and must not be copied.
type Counters struct {
	mu sync.Mutex
	s  Snapshot
}

// Snapshot has the sums of Counters since it was created.
type Snapshot struct {
	// Checks counts how often it was checked whether to compact, Compactions the completed
	// compactions, Failures the failed ones by class of error.
	Checks      int64            `json:"checks"`
	Compactions int64            `json:"compactions"`
	Failures    map[string]int64 `json:"failures,omitempty"`
	// Fallbacks counts completed compactions in which something failed, by what was done
	// instead.
	Fallbacks map[string]int64 `json:"fallbacks,omitempty"`
	// TokensFreed is the sum over completed compactions.
	TokensFreed int64 `json:"tokens_freed"`
	// Prompts counts the prompts that were handed out, and TokensSpared by how many tokens
	// they were smaller than their conversations.
	Prompts      int64 `json:"prompts"`
	TokensSpared int64 `json:"tokens_spared"`
	// Proxied counts the requests through a proxy by what was done: the action or, where a
	// reason is known, "action/reason"; of those that failed "action/reason/class", with the
	// class of the error.
	Proxied map[string]int64 `json:"proxied,omitempty"`
	// Strategies counts the records of plans by strategy, and StrategyTokens the tokens that
	// they freed. Records without a strategy are counted by the type of their event.
	Strategies     map[string]int64 `json:"strategies,omitempty"`
	StrategyTokens map[string]int64 `json:"strategy_tokens,omitempty"`
	// Latency is the duration of completed and failed compactions.
	Latency     Histogram `json:"latency"`
	CacheHits   int64     `json:"cache_hits"`
	CacheMisses int64     `json:"cache_misses"`
	// Rehydrations and Blocked count artifacts shown again, or not.
	Rehydrations int64 `json:"rehydrations"`
	Blocked      int64 `json:"rehydrations_blocked"`
	Conflicts    int64 `json:"plan_conflicts"`
	Overflows    int64 `json:"overflows_shortened"`
	// Sentences counts the sentences of models in summaries, LeftOut those that were not
	// used, by cause (see Asked).
	Sentences int64            `json:"summary_sentences"`
	LeftOut   map[string]int64 `json:"summary_left_out,omitempty"`
	// ContextRequests counts how often agents asked for what was removed, Alerts how often
	// one kept asking.
	ContextRequests int64 `json:"context_requests"`
	Alerts          int64 `json:"quality_alerts"`
}

// Histogram counts durations by upper bound.
type Histogram struct {
	// Bounds are the upper bounds, inclusive, in seconds.
	Bounds []float64 `json:"bounds_seconds"`
	// Counts has one element more than Bounds, for what is above all bounds. The counts are
	// not cumulative.
	Counts []int64 `json:"counts"`
	// Sum is in seconds.
	Sum   float64 `json:"sum_seconds"`
	Count int64   `json:"count"`
}

// latencyBounds reach from a plan without a model to the summary of a slow one, in seconds.
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

// maxNames bounds the names that are counted one by one, because callers choose them. Further
// ones are counted as "other".
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

// Emit implements Sink.
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
		if took := e.Latency(); took > 0 {
			c.s.Latency.add(took)
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
	case RequestProxied:
		action, _ := e.Details["action"].(string)
		reason, _ := e.Details["reason"].(string)
		if reason != "" || e.Err != "" {
			action += "/" + reason
		}
		if e.Err != "" {
			action += "/" + e.Err
		}
		bump(&c.s.Proxied, name(action), 1)
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
	case OverflowShortened:
		c.s.Overflows++
	case ContextRequested:
		c.s.ContextRequests++
	case QualityAlert:
		c.s.Alerts++
	}
}

// Lookups returns the hits and misses of a cache that an event reports: details cache_hits and
// cache_misses if it reports several, else Cache.
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

// Latency is how long a compaction took; 0 if that is unknown. Of a failure with details.where,
// Duration is that of a whole request.
func (e Event) Latency() time.Duration {
	if _, elsewhere := e.Details["where"]; elsewhere {
		return 0
	}
	return e.Duration
}

// Snapshot returns the current sums.
func (c *Counters) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Failures, s.Fallbacks = maps.Clone(s.Failures), maps.Clone(s.Fallbacks)
	s.Strategies, s.StrategyTokens = maps.Clone(s.Strategies), maps.Clone(s.StrategyTokens)
	s.LeftOut, s.Proxied = maps.Clone(s.LeftOut), maps.Clone(s.Proxied)
	s.Latency.Bounds = slices.Clone(latencyBounds[:])
	if s.Latency.Counts = slices.Clone(s.Latency.Counts); s.Latency.Counts == nil {
		s.Latency.Counts = make([]int64, len(latencyBounds)+1)
	}
	return s
}
