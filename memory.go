package palimpsest

import (
	"cmp"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Memory bounds what compactors remember of conversations between steps: half of it
// for the sizes and renderings of messages, a quarter for the texts that are ready for
// searches, and a quarter for what summaries without a model found in messages. What goes beyond is forgotten, the conversation used last at the end: its
// next step reads it from the stores again and is the same, but for cooldowns of what
// came back and for figures of quality, which begin anew. It is safe for concurrent
// use, and may be shared by the compactors of many tenants.
type Memory struct {
	conversations    *lru.Cache[conversationKey, *sessionState]
	indexes          *lru.Cache[conversationKey, *removedIndex]
	summarizerMemory *summarize.Memory

	mu          sync.Mutex
	summarizers map[*token.Counter]*summarize.Extractive
}

// conversationKey is one that a compactor knows.
type conversationKey struct {
	compactor *Compactor
	id        string
}

// NewMemory returns a Memory of about so many bytes; 0 is DefaultMemory.
func NewMemory(bytes int) *Memory {
	bytes = cmp.Or(bytes, DefaultMemory)
	return &Memory{
		conversations:    lru.New[conversationKey, *sessionState](bytes / 2),
		indexes:          lru.New[conversationKey, *removedIndex](bytes / 4),
		summarizerMemory: summarize.NewMemory(bytes / 4),
		summarizers:      map[*token.Counter]*summarize.Extractive{},
	}
}

// Bytes is about what is remembered.
func (m *Memory) Bytes() int {
	_, conversations := m.conversations.Stats()
	_, indexes := m.indexes.Stats()
	return conversations + indexes + m.summarizerMemory.Bytes()
}

// Summarizer is the one that needs no model and counts so.
func (m *Memory) Summarizer(c *token.Counter) *summarize.Extractive {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.summarizers[c] == nil {
		m.summarizers[c] = &summarize.Extractive{Counter: token.NewLines(c).Text, Memory: m.summarizerMemory}
	}
	return m.summarizers[c]
}

// updateSize counts what k of a session has come to hold, if it is still remembered.
func (m *Memory) updateSize(s *Session, k *sessionState) {
	bytes := k.sizes.bytes()
	m.conversations.Grow(s.conversationKey(), int(bytes-k.countedBytes.Swap(bytes)), func(held *sessionState) bool { return held == k })
}

func (s *Session) conversationKey() conversationKey { return conversationKey{s.c, s.id} }
