package summarize

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Cache keeps summaries. Implementations are safe for concurrent use. Nobody
// writes to what a summary points at. A cache that fails has nothing.
type Cache interface {
	Get(ctx context.Context, key string) (summary.Summary, bool)
	Put(ctx context.Context, key string, s summary.Summary)
}

// Cached asks Inner once for the same input (A15). What decides the answer is in
// the key: the content of the span, the previous summary, what stays behind the
// span, the budget, the user's instructions, the schema version, and the three
// fields below. Safe for concurrent use.
type Cached struct {
	Inner Summarizer
	Cache Cache
	// Policy, Model and Prompt are the versions of the compaction policy, the
	// model's name, and the hash of the prompt; empty where Inner has none. What
	// else changes Inner's answer, such as its settings, belongs into Policy.
	Policy, Model, Prompt string
	// Report is told whether a summary came from the cache. May be nil.
	Report Reporter
}

var _ Summarizer = (*Cached)(nil)

// Summarize implements Summarizer. The errors are those of Inner; they are not
// kept.
func (c *Cached) Summarize(ctx context.Context, in Input) (summary.Summary, error) {
	key := c.Key(in)
	if s, ok := c.Cache.Get(ctx, key); ok {
		c.Report.tell(ctx, Report{Cache: event.Hit})
		return s, nil
	}
	s, err := c.Inner.Summarize(ctx, in)
	if err != nil {
		return s, err
	}
	c.Cache.Put(ctx, key, s)
	c.Report.tell(ctx, Report{Cache: event.Miss})
	return s, nil
}

// Key is the key of an input, in hexadecimal digits.
func (c *Cached) Key(in Input) string {
	h := sha256.New()
	field := func(parts ...string) {
		for _, p := range parts {
			// The length in front keeps two fields from passing as others.
			h.Write([]byte(strconv.Itoa(len(p))))
			h.Write([]byte{':'})
			h.Write([]byte(p))
		}
	}
	messages := func(list []thread.Message) {
		field(strconv.Itoa(len(list)))
		for i := range list {
			m := &list[i]
			// Ids that callers bring need not be those of the content.
			field(string(m.ID), string(thread.ChainID("", m)), strconv.Itoa(m.Turn), strconv.Itoa(int(m.Kind)), m.Time.UTC().String())
			for _, p := range m.Parts {
				if r, ok := p.(thread.ToolResult); ok {
					field(r.Tool, r.KeyFields.String(), string(r.Durability))
				}
			}
		}
	}
	messages(in.Messages)
	messages(in.Context)
	if in.Shown != nil {
		field("shown")
		messages(in.Shown)
	}
	if in.Previous != nil {
		doc, err := json.Marshal(in.Previous)
		if err != nil {
			doc = fmt.Appendf(nil, "%#v", *in.Previous) // a key field that JSON cannot hold
		}
		field(string(doc))
	}
	if in.Instructions != "" {
		field("instructions", in.Instructions)
	}
	field(summary.Version, c.Policy, c.Model, c.Prompt, strconv.Itoa(in.Budget))
	return hex.EncodeToString(h.Sum(nil))
}

// LRU is a Cache in memory that forgets what was not asked for longest. The zero
// value is ready to use and safe for concurrent use; it must not be copied.
type LRU struct {
	// Size is how many summaries it holds; 0 stands for 256.
	Size int

	mu    sync.Mutex
	order list.List // of entries, the newest in front
	at    map[string]*list.Element
}

type entry struct {
	key     string
	summary summary.Summary
}

var _ Cache = (*LRU)(nil)

// Get implements Cache.
func (l *LRU) Get(_ context.Context, key string) (summary.Summary, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.at[key]
	if !ok {
		return summary.Summary{}, false
	}
	l.order.MoveToFront(e)
	return e.Value.(entry).summary, true
}

// Put implements Cache.
func (l *LRU) Put(_ context.Context, key string, s summary.Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = map[string]*list.Element{}
	}
	if e, ok := l.at[key]; ok {
		l.order.Remove(e)
	}
	l.at[key] = l.order.PushFront(entry{key, s})
	size := l.Size
	if size <= 0 {
		size = 256
	}
	for l.order.Len() > size {
		oldest := l.order.Back()
		delete(l.at, oldest.Value.(entry).key)
		l.order.Remove(oldest)
	}
}
