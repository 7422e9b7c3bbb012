package rehydrate

import (
	"cmp"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
)

// ShownArtifact says in which turn an artifact came back last.
type ShownArtifact struct {
	ArtifactID string `json:"artifact_id"`
	Turn       int    `json:"turn"`
}

// maxThreads bounds the threads that cooldowns are kept of. Of those that are
// forgotten content comes back sooner, at worst.
const maxThreads = 4096

// cooldowns remembers per thread what was shown, in order, no longer than it
// matters. It is safe for concurrent use; its lists are replaced, never changed.
type cooldowns struct {
	turns int

	mu      sync.Mutex // held from reading to writing
	threads *lru.Cache[string, []ShownArtifact]
}

// shown returns what was shown in the thread.
func (c *cooldowns) shown(threadID string) []ShownArtifact {
	shown, _ := c.threads.Get(threadID)
	return shown
}

// set replaces what is remembered of a thread.
func (c *cooldowns) set(threadID string, shown []ShownArtifact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.threads.Put(threadID, slices.Clone(shown), 1)
}

// isCoolingDown reports whether an artifact that was shown as s says must wait in a
// turn. In the turn itself it need not; and a later turn than this one is of a
// history that has been rewritten since.
func (c *cooldowns) isCoolingDown(s ShownArtifact, turn int) bool {
	return s.Turn < turn && turn-s.Turn < c.turns
}

// mustWait reports whether the list has the artifact as one that must wait.
func (c *cooldowns) mustWait(shown []ShownArtifact, id string, turn int) bool {
	return slices.ContainsFunc(shown, func(s ShownArtifact) bool { return s.ArtifactID == id && c.isCoolingDown(s, turn) })
}

// commit notes that ids are shown in a turn. Those that another turn has shown
// meanwhile, so that they must wait, are not noted; it returns the others.
func (c *cooldowns) commit(threadID string, turn int, ids []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.shown(threadID)
	allowed := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return c.mustWait(have, id, turn) })
	var next []ShownArtifact
	for _, s := range have {
		if !slices.Contains(allowed, s.ArtifactID) && (s.Turn == turn || c.isCoolingDown(s, turn)) {
			next = append(next, s)
		}
	}
	for _, id := range allowed {
		next = append(next, ShownArtifact{id, turn})
	}
	slices.SortStableFunc(next, func(a, b ShownArtifact) int { return cmp.Compare(a.Turn, b.Turn) })
	c.threads.Put(threadID, next, 1)
	return allowed
}
