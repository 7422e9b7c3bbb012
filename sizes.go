package palimpsest

import (
	"context"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// sizeCache holds the token counts of a conversation, by profile.
type sizeCache struct {
	mu        sync.Mutex
	byProfile map[render.Profile]*profileSizes
}

func (s *sizeCache) forProfile(profile render.Profile, counter *token.Counter) *profileSizes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byProfile == nil {
		s.byProfile = map[render.Profile]*profileSizes{}
	}
	if s.byProfile[profile] == nil {
		s.byProfile[profile] = &profileSizes{counter: counter, profile: profile}
	}
	return s.byProfile[profile]
}

// bytes is about how much memory the conversation takes, for all profiles.
func (s *sizeCache) bytes() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.byProfile {
		k.mu.Lock()
		n += bytesPerMessage*int64(len(k.plain)) + bytesPerToken*k.tokens
		k.mu.Unlock()
	}
	return n
}

// profileSizes are the sizes of the messages of a log under one profile, and its rendering
// so far, so that a step costs what it adds.
type profileSizes struct {
	counter   *token.Counter
	profile   render.Profile
	memo      render.Memo
	estimates policy.Estimates

	mu     sync.Mutex
	thread *thread.Thread // the longest that was counted
	// changed and plain are the sizes of its messages; they only grow.
	changed, plain []int
	tokens         int64 // of plain, all together
}

// messageSizes returns the size of every message of t in tokens: as it is sent once a plan
// has changed something, and as it is sent under no plan; 0 for one that cannot be sent.
// Messages are identified by their ids, which are hash-chained over the content; callers
// with ids of their own must not reuse one for other content. The slices must not be
// modified. The error is that of ctx; counts up to then are kept.
func (k *profileSizes) messageSizes(ctx context.Context, t *thread.Thread) (changed, plain []int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := t.Len()
	if k.thread != nil && k.thread.Extends(t) {
		return k.changed[:n:n], k.plain[:n:n], nil
	}
	messages := t.Messages()
	if !t.Extends(k.thread) {
		same := k.commonPrefix(messages)
		for _, size := range k.plain[same:] {
			k.tokens -= int64(size)
		}
		k.changed, k.plain = k.changed[:same:same], k.plain[:same:same]
	}
	counter := k.counter.Until(ctx)
	k.plain, k.changed = slices.Grow(k.plain, n-len(k.plain)), slices.Grow(k.changed, n-len(k.changed))
	for i := len(k.plain); i < n; i++ {
		whole := k.profile.Translate(messages[i], false)
		less := k.profile.Translate(messages[i], true)
		size := messageSize(counter, &whole)
		lessSize := size
		if len(less.Parts) != len(whole.Parts) {
			lessSize = messageSize(counter, &less)
		}
		if err := ctx.Err(); err != nil {
			k.thread = t.Prefix(i)
			return nil, nil, err
		}
		k.plain, k.tokens = append(k.plain, size), k.tokens+int64(size)
		k.changed = append(k.changed, lessSize)
	}
	k.thread = t
	return k.changed[:n:n], k.plain[:n:n], nil
}

// commonPrefix is how many messages at the beginning are those that were counted.
func (k *profileSizes) commonPrefix(messages []thread.Message) int {
	if k.thread == nil {
		return 0
	}
	n := 0
	for _, m := range k.thread.Messages() {
		if n == len(messages) || messages[n].ID != m.ID {
			break
		}
		n++
	}
	return n
}

// messageSize is 0 for a message of which nothing is sent.
func messageSize(c *token.Counter, m *thread.Message) int {
	if len(m.Parts) == 0 {
		return 0
	}
	return c.Message(m)
}
