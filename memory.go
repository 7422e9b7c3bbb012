package palimpsest

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/rehydrate"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Memory bounds what compactors keep in memory of conversations between steps: half of it
// for sizes and renderings, a quarter for search indexes, a quarter for what the
// extractive summarizer found in messages. The conversations used least recently are
// evicted; their next step reads the stores again and gives the same prompt, except that
// cooldowns and quality figures begin anew. It is safe for concurrent use and may be
// shared by the compactors of many tenants.
type Memory struct {
	conversations    *lru.Cache[conversation, *sessionState]
	indexes          *lru.Cache[conversation, *removedIndex]
	summarizerMemory *summarize.Memory

	mu       sync.Mutex
	counters map[*token.Counter]*token.Counter // those that remember, by those that they count as
}

// NewMemory returns a Memory of about that many bytes; 0 is DefaultMemory.
func NewMemory(bytes int) *Memory {
	bytes = cmp.Or(bytes, DefaultMemory)
	return &Memory{
		conversations:    lru.New[conversation, *sessionState](bytes / 2),
		indexes:          lru.New[conversation, *removedIndex](bytes / 4),
		summarizerMemory: summarize.NewMemory(bytes / 4),
		counters:         map[*token.Counter]*token.Counter{},
	}
}

// Bytes is about how much is in use.
func (m *Memory) Bytes() int {
	_, conversations := m.conversations.Stats()
	_, indexes := m.indexes.Stats()
	return conversations + indexes + m.summarizerMemory.Bytes()
}

// Summarizer is the extractive summarizer for a counter.
func (m *Memory) Summarizer(c *token.Counter) *summarize.Extractive {
	return &summarize.Extractive{Counter: m.remembering(c).Lines, Memory: m.summarizerMemory}
}

// remembering is the counter that compactors share that count alike.
func (m *Memory) remembering(c *token.Counter) *token.Counter {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counters[c] == nil {
		m.counters[c] = c.Remembering(nil)
	}
	return m.counters[c]
}

// updateSize accounts for what k has grown by, if it is still in memory.
func (m *Memory) updateSize(in conversation, k *sessionState) {
	bytes := k.sizes.bytes()
	m.conversations.Grow(in, int(bytes-k.countedBytes.Swap(bytes)), func(held *sessionState) bool { return held == k })
}

// The cost of a conversation in memory: about 2 KB by itself, half a kilobyte for each
// message and, for each token, four bytes of text in the log and four in the
// rendering. An index takes 2 to 6 times its texts.
const (
	bytesPerSession = 2 << 10
	bytesPerMessage = 512
	bytesPerToken   = 8
	indexFactor     = 6
)

// sessionState is what this process remembers of a conversation between steps. Losing it
// costs work, cooldowns and quality figures; everything else is in the stores, as far as there are
// any (Config.Store).
type sessionState struct {
	lock  chan struct{} // held by the running step
	sizes *sizeCache
	// countedBytes is what Memory has accounted for beyond bytesPerSession.
	countedBytes atomic.Int64

	calibration   calibrationState     // guarded by lock
	step          document[savedStep]  // guarded by lock
	lastPrompt    document[lastPrompt] // guarded by lock
	hasPrompted   bool                 // a prompt was made; guarded by lock
	foundValid    foundValid           // guarded by lock
	hasNoNotes    atomic.Bool          // neither log nor plan has any from before
	measureAfter  time.Time            // no request for sizes before; guarded by lock
	monitoredPlan int                  // the plan version that the monitor knows; guarded by lock

	removedContent removedContent
	rehydrator     *rehydrate.Rehydrator // may be nil
	pendingEvents  []event.Event         // of the rehydrator, for render
	monitor        *quality.Monitor      // may be nil
}

// Delete calls remove, which deletes the conversation from the stores, while no step of it
// is running, and then forgets it. The error is that of remove, or of ctx.
func (s *Session) Delete(ctx context.Context, remove func(context.Context) error) error {
	return s.runLocked(ctx, "Delete", func(s *Session) error {
		err := remove(ctx)
		if own, ok := s.c.books.(*store.Memory); ok && err == nil && s.c.config.Store.Documents == nil {
			err = own.Delete(ctx, s.id)
		}
		if err == nil {
			forget(s)
		}
		return err
	})
}

// Release forgets what this process holds of the conversation in memory, unless a step is
// running. The next step reads it from the stores.
func (s *Session) Release() {
	k, ok := s.c.config.Memory.conversations.Get(s.conversation)
	if !ok {
		return
	}
	select {
	case k.lock <- struct{}{}:
		forget(s)
		<-k.lock
	default:
	}
}

// forget is for the holder of the lock.
func forget(s *Session) {
	r := &s.state().removedContent
	r.mu.Lock()
	r.building = nil
	r.mu.Unlock()
	s.c.config.Memory.conversations.Delete(s.conversation)
	s.c.config.Memory.indexes.Delete(s.conversation)
}

// state returns what is remembered of the conversation.
func (s *Session) state() *sessionState {
	if s.stateOverride != nil {
		return s.stateOverride
	}
	return s.c.config.Memory.conversations.GetOrCreate(s.conversation, bytesPerSession, func() *sessionState {
		k := &sessionState{lock: make(chan struct{}, 1), sizes: &sizeCache{}}
		if r := s.c.config.Recall; r != nil {
			k.rehydrator = s.c.newRehydrator(s.id, r.Rehydrate, event.Func(func(_ context.Context, e event.Event) { k.pendingEvents = append(k.pendingEvents, e) }))
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

func (c *Compactor) newRehydrator(id string, o recall.Rehydration, events event.Sink) *rehydrate.Rehydrator {
	if o.Disabled {
		return nil
	}
	o.Events = events
	var source rehydrate.Source = logSource{session: &Session{conversation: conversation{c, id}}}
	if c.config.Artifacts != nil {
		source = c.config.Artifacts
	}
	return rehydrate.New(source, c.config.Counter.Text, &o)
}

func (in conversation) emit(ctx context.Context, events ...event.Event) {
	for _, e := range events {
		e.ThreadID, e.TenantID = in.id, in.c.config.Requester.TenantID
		e.Policy = cmp.Or(e.Policy, in.c.config.Policy.Name())
		event.Emit(ctx, in.c.config.Events, e)
	}
}
