package palimpsest

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/quality"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// A conversation takes about 2 KB by itself, its messages about half a kilobyte each
// and, for each token, four bytes of text, which the log and its rendering both hold.
const (
	bytesPerSession = 2 << 10
	bytesPerMessage = 512
	bytesPerToken   = 8
)

// sessionState is what this process remembers of a conversation between steps. Losing
// it costs work, and the cooldowns and quality figures so far; the truth is in
// the stores.
type sessionState struct {
	lock  chan struct{} // held by the step that is being taken
	sizes *sizeCache
	// countedBytes is what Memory counts of it, in bytes, beside bytesPerSession.
	countedBytes atomic.Int64

	calibration   calibrationState    // guarded by lock
	step          document[savedStep] // guarded by lock
	measureAfter  time.Time           // until when the provider is not asked for sizes; guarded by lock
	monitoredPlan int                 // the version of the plan that the monitor knows; guarded by lock

	removedContent removedContent
	rehydrator     *rehydrate.Rehydrator // nil: nothing comes back by itself
	pendingEvents  pendingEvents         // events of the rehydrator that render has not emitted yet
	monitor        *quality.Monitor      // nil: nobody watches
}

// Delete has remove take the conversation out of the stores, while no step of it is
// being taken, and gives up what is remembered of it. The error is that of remove,
// or of ctx.
func (s *Session) Delete(ctx context.Context, remove func(context.Context) error) error {
	return s.runLocked(ctx, "Delete", func(s *Session) error {
		err := remove(ctx)
		if err == nil {
			s.forget()
		}
		return err
	})
}

// Release gives up what this process remembers of the conversation between steps,
// unless a step of it is being taken. The next step reads it from the stores.
func (s *Session) Release() {
	k, ok := s.c.config.Memory.conversations.Get(s.conversationKey())
	if !ok {
		return
	}
	select {
	case k.lock <- struct{}{}:
		s.forget()
		<-k.lock
	default:
	}
}

// forget drops what is remembered of the conversation.
func (s *Session) forget() {
	r := &s.state().removedContent
	r.mu.Lock()
	r.building = nil
	r.mu.Unlock()
	s.c.config.Memory.conversations.Delete(s.conversationKey())
	s.c.config.Memory.indexes.Delete(s.conversationKey())
}

// state returns what is remembered of the session's conversation.
func (s *Session) state() *sessionState {
	if s.stateOverride != nil {
		return s.stateOverride
	}
	return s.c.config.Memory.conversations.GetOrCreate(s.conversationKey(), bytesPerSession, func() *sessionState {
		k := &sessionState{lock: make(chan struct{}, 1), sizes: &sizeCache{}}
		if r := s.c.config.Recall; r != nil {
			k.rehydrator = s.c.newRehydrator(s.id, r.Rehydrate, &k.pendingEvents)
		}
		if q := s.c.config.Quality; q != nil {
			o := *q
			o.Events = cmp.Or(o.Events, s.c.config.Events)
			o.TenantID = cmp.Or(o.TenantID, s.c.config.Requester.TenantID)
			o.Policy = cmp.Or(o.Policy, s.c.config.Policy.Name())
			k.monitor = quality.New(s.id, &o)
		}
		return k
	})
}

// forJob is the session for a job, which must not wait for the step that waits
// for it: it shares nothing with the steps but the sizes of messages.
func (s *Session) forJob() *Session {
	out := *s
	out.stateOverride = &sessionState{sizes: s.state().sizes}
	return &out
}

// sizeCache are the counts of a conversation, by the provider that it is sent to.
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

// bytes is about what the conversation takes in memory, for all providers.
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

// profileSizes are the sizes of the messages of one log for one provider, and its
// rendering so far, so that a step costs what the step adds.
type profileSizes struct {
	counter *token.Counter
	profile render.Profile
	memo    render.Memo
	// estimates are those of the policies that estimate by characters.
	estimates policy.Estimates

	mu     sync.Mutex
	thread *thread.Thread // the longest that was counted
	// changed and plain are the sizes of its messages; they are only added to.
	changed, plain []int
	tokens         int64 // of plain, all together
}

// messageSizes returns the size of every message of t in tokens, as the profile sends
// it once a plan has changed something, and when none has; 0 for one that cannot
// be sent. Messages are told apart by id, which is chained over their content; a
// caller who brings ids of his own must not use one twice for different content.
// The slices must not be written to. The error is that of ctx, which is looked at
// before each message; what was counted by then is kept.
func (k *profileSizes) messageSizes(ctx context.Context, t *thread.Thread) (changed, plain []int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := t.Len()
	if k.thread != nil && k.thread.Extends(t) {
		return k.changed[:n:n], k.plain[:n:n], nil
	}
	messages := uncopied.Messages(t)
	if !t.Extends(k.thread) {
		same := k.commonPrefix(messages)
		for _, size := range k.plain[same:] {
			k.tokens -= int64(size)
		}
		k.changed, k.plain = k.changed[:same:same], k.plain[:same:same]
	}
	for i := len(k.plain); i < n; i++ {
		if err := ctx.Err(); err != nil {
			k.thread = t.Prefix(i)
			return nil, nil, err
		}
		whole := k.profile.Translate(messages[i], false)
		less := k.profile.Translate(messages[i], true)
		size := k.count(&whole)
		k.plain, k.tokens = append(k.plain, size), k.tokens+int64(size)
		if len(less.Parts) != len(whole.Parts) {
			size = k.count(&less)
		}
		k.changed = append(k.changed, size)
	}
	k.thread = t
	return k.changed[:n:n], k.plain[:n:n], nil
}

// commonPrefix is how many messages at the beginning are those of the thread that was
// counted.
func (k *profileSizes) commonPrefix(messages []thread.Message) int {
	if k.thread == nil {
		return 0
	}
	n := 0
	for _, m := range uncopied.Messages(k.thread) {
		if n == len(messages) || messages[n].ID != m.ID {
			break
		}
		n++
	}
	return n
}

func (k *profileSizes) count(m *thread.Message) int {
	if len(m.Parts) == 0 {
		return 0
	}
	return k.counter.Message(m)
}
