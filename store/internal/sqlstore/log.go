package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func (t *tenant) Load(ctx context.Context, id string) (_ *thread.Thread, err error) {
	defer t.db.fail(&err, "Load", id)
	if err := t.usable(ctx, id); err != nil {
		return nil, err
	}
	k := t.db.threads.get(name{t.id, id})
	k.mu.Lock()
	defer k.mu.Unlock()
	for try := 0; ; try++ {
		r, ok, err := t.find(ctx, t.db.read, id, "")
		if err != nil {
			return nil, err
		}
		if !ok {
			return thread.New(id), nil
		}
		th, err := t.grow(ctx, t.db.read, k, id, r)
		// Between the two queries the thread may have been deleted.
		if err == nil || try == 2 {
			return th, err
		}
	}
}

// grow reads the rows of a thread that are not in k yet. The caller holds the lock of k.
func (t *tenant) grow(ctx context.Context, q querier, k *cachedThread, id string, r row) (*thread.Thread, error) {
	k.about(r.number)
	if k.thread == nil || k.thread.Len() > r.messages {
		k.thread = thread.New(id)
	}
	from := k.thread.Len()
	if from == r.messages {
		return k.thread, nil
	}
	size := 0
	added := make([]thread.Message, 0, r.messages-from)
	_, err := list(ctx, q, func(scan scan) (none struct{}, err error) {
		var position int
		var messageID string
		var data []byte
		if err := scan(&position, &messageID, &data); err != nil {
			return none, err
		}
		size += len(data)
		if want := from + len(added); position != want {
			return none, fmt.Errorf("message %d is missing: %w", want, errDamaged)
		}
		m, err := t.message(ctx, id, position, messageID, data, func(back int) *thread.Frame {
			switch {
			case back > position:
				return nil
			case back > len(added):
				return k.thread.At(position - back).Frame
			}
			return added[len(added)-back].Frame
		})
		m.Final = true
		added = append(added, m)
		return none, err
	}, `SELECT position, id, content FROM messages WHERE thread = $1 AND position >= $2 AND position < $3 ORDER BY position`, r.number, from, r.messages)
	if err != nil {
		return nil, err
	}
	if len(added) != r.messages-from {
		return nil, fmt.Errorf("%d messages of %d: %w", from+len(added), r.messages, errDamaged)
	}
	next, err := k.thread.Append(added...)
	if err != nil {
		return nil, err
	}
	k.thread = next
	t.db.threads.grew(k, size)
	return next, nil
}

func (t *tenant) message(ctx context.Context, id string, position int, messageID string, data []byte, frame func(int) *thread.Frame) (thread.Message, error) {
	plain, err := t.open(ctx, rowName("messages", id, position, messageID), data)
	if err != nil {
		return thread.Message{}, err
	}
	m, err := neutral.Unmarshal(plain, frame)
	if err != nil {
		return m, fmt.Errorf("message %s at %d: %w", messageID, position, err)
	}
	if string(m.ID) != messageID {
		return m, fmt.Errorf("message %s at %d says it is %s: %w", messageID, position, m.ID, errDamaged)
	}
	return m, nil
}

func (t *tenant) Append(ctx context.Context, id string, version int, messages []thread.Message) (_ *thread.Thread, err error) {
	if len(messages) == 0 {
		th, err := t.Load(ctx, id)
		if err == nil {
			_, err = store.Skip(th, version, nil)
		}
		return th, err
	}
	defer t.db.fail(&err, "Append", id)
	if err := t.usable(ctx, id); err != nil {
		return nil, err
	}
	k := t.db.threads.get(name{t.id, id})
	k.mu.Lock()
	defer k.mu.Unlock()
	var next *thread.Thread
	size := 0
	err = t.keeping(ctx, "append", len(messages), func(tx *sql.Tx, seal sealer) error {
		r, err := t.lock(ctx, tx, id)
		if err != nil {
			return err
		}
		th, err := t.grow(ctx, tx, k, id, r)
		if err != nil {
			return err
		}
		rest, err := store.Skip(th, version, messages)
		if err != nil {
			return err
		}
		if next, err = th.Append(rest...); err != nil || len(rest) == 0 {
			return err
		}
		if size, err = insert(ctx, tx, seal, r, next); err != nil {
			return err
		}
		r.messages = next.Len()
		return t.touch(ctx, tx, r)
	})
	if err != nil {
		return nil, err
	}
	k.thread = next
	t.db.threads.grew(k, size)
	return next, nil
}

// insert writes the messages of next that r does not count yet, and returns their size as
// stored.
func insert(ctx context.Context, tx *sql.Tx, seal sealer, r row, next *thread.Thread) (size int, err error) {
	rows := inserter{q: tx, table: "messages", columns: []string{"thread", "position", "id", "content"}}
	for i := r.messages; i < next.Len(); i++ {
		id := next.At(i).ID
		plain, err := neutral.Marshal(next, i)
		if err != nil {
			return 0, err
		}
		data, err := seal(rowName("messages", next.ID(), i, id), plain)
		if err != nil {
			return 0, err
		}
		size += len(data)
		if err := rows.add(ctx, r.number, i, string(id), data); err != nil {
			return 0, err
		}
	}
	return size, rows.flush(ctx)
}

// cache holds the beginnings of threads, weighed in bytes. The database is always asked
// for what was added since.
type cache struct {
	*lru.Cache[name, *cachedThread]
}

type name struct{ tenant, thread string }

// cachedThread is the beginning of a thread and its newest plan, as far as they were
// read. Its lock is held while the database is asked, so that several readers of a thread
// read its rows once. One that was evicted may still be used.
type cachedThread struct {
	name name

	mu        sync.Mutex
	number    int64 // of the thread; 0 before the first read
	thread    *thread.Thread
	plan      *plan.Plan
	version   int // of plan
	planBytes int // size of plan as stored
}

// emptyBytes is about the size of an entry without messages, such as that of a thread
// that does not exist.
const emptyBytes = 512

func newCache(bytes int) cache {
	return cache{lru.New[name, *cachedThread](cmp.Or(bytes, store.DefaultCacheBytes))}
}

// get returns the entry of a thread, which may be empty.
func (c cache) get(n name) *cachedThread {
	return c.GetOrCreate(n, emptyBytes, func() *cachedThread { return &cachedThread{name: n} })
}

// grew records that k has grown.
func (c cache) grew(k *cachedThread, bytes int) {
	c.Grow(k.name, bytes, func(held *cachedThread) bool { return held == k })
}

// planned records that k has another plan of the given size. The lock of k is held.
func (c cache) planned(k *cachedThread, bytes int) {
	c.grew(k, bytes-k.planBytes)
	k.planBytes = bytes
}

// forgetTenant removes all threads of a tenant.
func (c cache) forgetTenant(tenant string) {
	c.DeleteFunc(func(n name) bool { return n.tenant == tenant })
}

// about resets k if it is about another thread of the same name, which was deleted.
func (k *cachedThread) about(number int64) {
	if k.number != number {
		k.number, k.thread, k.plan, k.version = number, nil, nil, 0
	}
}
