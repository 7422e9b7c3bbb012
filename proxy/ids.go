package proxy

import (
	"hash/maphash"
	"sync"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// chainIDs are the chained ids of the client's messages: the client's history,
// whatever stands in our log beside it.
func chainIDs(messages []thread.Message) []thread.ID {
	ids := make([]thread.ID, len(messages))
	parent := thread.ID("")
	for i := range messages {
		parent = thread.ChainID(parent, &messages[i])
		ids[i] = parent
	}
	return ids
}

// chainMemo remembers ids by the bytes that they were computed from, because a
// client sends its whole history with every request. A request costs one fast
// pass over its bytes and the real hash of what is new.
type chainMemo struct {
	seeds [2]maphash.Seed
	mu    sync.Mutex
	known map[chainKey]thread.ID
}

// chainKey is the parent's id, and the bytes of a message, in 128 bits.
type chainKey [2]uint64

// maxMemo bounds what is remembered. Beyond it all is forgotten, which costs no
// more than computing it once again.
const maxMemo = 200_000

func newChainMemo() *chainMemo {
	return &chainMemo{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, known: map[chainKey]thread.ID{}}
}

// ids is chainIDs, where the ids of the first messages are known already.
func (c *chainMemo) ids(known []thread.ID, messages []thread.Message) []thread.ID {
	ids := make([]thread.ID, len(messages))
	n := copy(ids, known)
	parent := thread.ID("")
	if n > 0 {
		parent = ids[n-1]
	}
	var frame *thread.Frame
	var raw chainKey
	for i := n; i < len(messages); i++ {
		m := &messages[i]
		if m.Frame == nil {
			parent = thread.ChainID(parent, m)
			ids[i] = parent
			continue
		}
		if m.Frame != frame {
			frame = m.Frame
			raw = chainKey{maphash.String(c.seeds[0], frame.Raw()), maphash.String(c.seeds[1], frame.Raw())}
		}
		parent = c.id(parent, m, raw)
		ids[i] = parent
	}
	return ids
}

// id is the id of one message of a frame. What a codec makes of a frame can
// depend on messages before it (numbers of calls without ids, names of tools);
// the parent's id stands for those.
func (c *chainMemo) id(parent thread.ID, m *thread.Message, raw chainKey) thread.ID {
	var key chainKey
	for i, seed := range c.seeds {
		key[i] = maphash.Comparable(seed, struct {
			parent thread.ID
			raw    uint64
			api    string
			index  int
		}{parent, raw[i], m.Frame.API(), m.Index})
	}
	c.mu.Lock()
	id, found := c.known[key]
	c.mu.Unlock()
	if found {
		return id
	}
	id = thread.ChainID(parent, m)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxMemo {
		clear(c.known)
	}
	c.known[key] = id
	return id
}
