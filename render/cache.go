package render

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// roundPoints puts cache marks by turns and rounds: at the end, before the current turn,
// and some rounds before the end.
func (r *renderer) roundPoints(rule plan.CacheRule) []prompt.CachePoint {
	after := []int{len(r.out) - 1}
	if r.current > 0 {
		after = append(after, r.current-1)
	}
	starts := r.rounds()
	if n := len(starts); rule.Offset > 0 && n > rule.Offset && n >= rule.MinRounds && starts[n-rule.Offset] > 0 {
		after = append(after, starts[n-rule.Offset]-1)
	}
	return r.pointsAfter(after...)
}

// pointsAfter puts cache marks after messages, -1 for system and tools: the first ones, as
// many as the provider takes, in this order, since the caller's own marks may leave room
// for fewer.
func (r *renderer) pointsAfter(after ...int) []prompt.CachePoint {
	var points []prompt.CachePoint
	for _, i := range after {
		if p := (prompt.CachePoint{After: i}); len(points) < r.profile.CachePoints && !slices.Contains(points, p) {
			points = append(points, p)
		}
	}
	return points
}

// rounds returns where the visible rounds begin in the prompt. Replacements at the
// beginning belong to none.
func (r *renderer) rounds() []int {
	var starts []int
	var last thread.Role
	for i := range r.out {
		m := &r.out[i]
		if m.Role == thread.System || m.Kind == thread.Recap && last == "" {
			continue
		}
		if m.Role != thread.Tool && last != thread.User {
			starts = append(starts, i)
		}
		last = m.Role
	}
	return starts
}

// cachePoints asks for cache marks where later requests will read them: at the end, after
// the part that compaction froze, and after system and tools. Where the provider takes
// fewer, the first of these count. Without a plan the caller's own marks are all there
// are, unless the options say otherwise.
func (r *renderer) cachePoints() []prompt.CachePoint {
	rule := r.plan.Cache
	if r.plan.Empty() {
		rule = r.cache
	}
	switch {
	case r.profile.CachePoints == 0 || len(r.out) == 0 || r.plan.Empty() && rule == nil:
		return nil
	case rule != nil:
		return r.roundPoints(*rule)
	}
	frozen := -1
	for i, o := range r.manifest.Messages {
		if o.Record.Action != plan.Include {
			frozen = i
		}
	}
	return r.pointsAfter(len(r.out)-1, frozen, -1)
}
