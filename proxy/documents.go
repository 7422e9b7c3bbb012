package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/store"
)

// records are values that outlive the process beside logs and plans, by id, in documents of one kind.
// They are safe for concurrent use.
type records[T any] struct {
	documents store.Documents
	kind      string
	// maxBytes bounds the document of a value; a larger one is not kept. 0 is no bound.
	maxBytes int
	// cache holds those that were used last; nil holds none.
	cache *lru.Cache[string, record[T]]
}

// responseLog keeps stored responses, within bounds. It is safe for concurrent use, and holds no
// lock while a store is asked.
type responseLog struct {
	records[storedResponse]

	mu     sync.Mutex
	listed bool
	oldest []responseName
	bytes  int
}

// record is a value with the version of its document; nil and 0 if there is none.
type record[T any] struct {
	value   *T
	version int
}

// get returns a record. An id that no document can have has none.
func (r records[T]) get(ctx context.Context, id string) (found record[T], err error) {
	if store.CheckName(r.kind, id) != nil {
		return found, nil
	}
	if r.cache != nil {
		if known, ok := r.cache.Get(id); ok {
			return known, nil
		}
	}
	d, err := r.documents.Document(ctx, r.kind, id)
	found.version = d.Version
	if err == nil {
		err = json.Unmarshal(d.Body, &found.value)
	} else if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	if err == nil && r.cache != nil {
		r.cache.Put(id, found, 1)
	}
	return found, err
}

// getValue returns the value of a record; the zero value if there is none.
func (r records[T]) getValue(ctx context.Context, id string) (value T, err error) {
	found, err := r.get(ctx, id)
	if err == nil && found.value != nil {
		value = *found.value
	}
	return value, err
}

// put replaces the value of a record, and returns the new one with its size in bytes; a nil value
// forgets it. The error is store.ErrConflict if another writer was faster.
func (r records[T]) put(ctx context.Context, id string, before record[T], value *T) (after record[T], size int, err error) {
	if store.CheckName(r.kind, id) != nil {
		return after, 0, nil
	}
	var body []byte
	if value != nil {
		if body, err = json.Marshal(value); err != nil {
			return after, 0, err
		}
	}
	if r.maxBytes > 0 && len(body) > r.maxBytes {
		value, body = nil, nil
	}
	if body == nil && before.version == 0 {
		return after, 0, nil
	}
	after = record[T]{value, before.version}
	if r.cache != nil {
		r.cache.Put(id, after, 1) // known here, even if the store fails
	}
	after.version, err = r.documents.Put(ctx, store.Document{Kind: r.kind, ID: id, Version: before.version, Body: body})
	if r.cache != nil && errors.Is(err, store.ErrConflict) {
		r.cache.Delete(id)
	} else if r.cache != nil && err == nil {
		r.cache.Put(id, after, 1)
	}
	return after, len(body), err
}

// unlessConflict is the error, unless another writer was faster: then what that one wrote will do.
func unlessConflict(err error) error {
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// change replaces a value by what next makes of it, nil for none. It tries again if another writer was
// faster.
func (r records[T]) change(ctx context.Context, id string, next func(now *T) *T) (after record[T], size int, err error) {
	for n := 1; ; n++ {
		before, err := r.get(ctx, id)
		if err != nil {
			return before, 0, err
		}
		value := next(before.value)
		if value == before.value {
			return before, 0, nil
		}
		after, size, err = r.put(ctx, id, before, value)
		if n == maxTries || !errors.Is(err, store.ErrConflict) {
			return after, size, err
		}
	}
}

// recordsPage is how many documents are read at a time: each may be half a megabyte.
const recordsPage = 50

// each calls f for every record, with its size in bytes. The value of one that cannot be read is nil.
func (r records[T]) each(ctx context.Context, f func(id string, found record[T], size int) error) error {
	for after := ""; ; {
		page, err := r.documents.Documents(ctx, r.kind, after, recordsPage)
		if err != nil {
			return err
		}
		for _, d := range page {
			found := record[T]{version: d.Version}
			if json.Unmarshal(d.Body, &found.value) != nil {
				found.value = nil
			}
			if err := f(d.ID, found, len(d.Body)); err != nil {
				return err
			}
			after = d.ID
		}
		if len(page) < recordsPage {
			return nil
		}
	}
}

// storedResponse is what is kept of an answer that the provider keeps (of OpenAI's API unless
// store is false, of Anthropic's in a message thread), so that a request which names it can
// be rebuilt once it has to be made smaller. A conversation of OpenAI's has one without
// output: Previous is its last response, and Input what the client has added since.
type storedResponse struct {
	// The history of the response's request, if it stands in a log; else Previous, the
	// response before it, and Input, the items of the request.
	loggedHistory
	Previous string            `json:"prev,omitempty"`
	Input    []json.RawMessage `json:"input,omitempty"`
	// System are the instructions in the input, which no log holds.
	System []json.RawMessage `json:"system,omitempty"`
	// ThreadMembers are the members that only the first request of a message thread has. A
	// response with a Previous leaves them to that.
	ThreadMembers json.RawMessage `json:"around,omitempty"`
	// Output is what the client was answered.
	Output []json.RawMessage `json:"output,omitempty"`
	// Incomplete: the provider was sent less than the whole conversation.
	Incomplete bool `json:"part,omitempty"`
	// Made is when, in nanoseconds since 1970, so that the oldest can be found after a
	// restart.
	Made int64 `json:"made"`
}

const (
	// maxResponses and maxResponsesBytes bound the responses that are kept. An agent names the
	// last one, hardly ever an earlier one.
	maxResponses      = 5_000
	maxResponsesBytes = 128 << 20
	// maxResponse bounds one, in bytes; a larger one is not kept.
	maxResponse = 512 << 10
	// maxChain bounds how many responses a history is followed back through.
	maxChain = 1_000
)

type responseName struct {
	id      string
	version int
	made    int64
	bytes   int
}

func responsesIn(documents store.Documents) records[storedResponse] {
	return records[storedResponse]{documents: documents, kind: "proxy-response", maxBytes: maxResponse}
}

func (l *responseLog) save(ctx context.Context, id string, k *storedResponse) error {
	return unlessConflict(l.writeBounded(ctx, id, func() (record[storedResponse], int, error) { return l.put(ctx, id, record[storedResponse]{}, k) }))
}

// update changes what is stored under a name; see records.change.
func (l *responseLog) update(ctx context.Context, id string, next func(now *storedResponse) *storedResponse) error {
	return l.writeBounded(ctx, id, func() (record[storedResponse], int, error) { return l.change(ctx, id, next) })
}

// writeBounded writes a response, and forgets the oldest if there are too many.
func (l *responseLog) writeBounded(ctx context.Context, id string, write func() (record[storedResponse], int, error)) error {
	if err := l.listOnce(ctx); err != nil {
		return err
	}
	made, size, err := write()
	if err != nil || size == 0 {
		return err
	}
	for _, old := range l.note(responseName{id, made.version, made.value.Made, size}) {
		if _, _, err := l.put(ctx, old.id, record[storedResponse]{version: old.version}, nil); unlessConflict(err) != nil {
			return err
		}
	}
	return nil
}

func (l *responseLog) note(n responseName) (old []responseName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.oldest = append(l.oldest, n)
	l.bytes += n.bytes
	for len(l.oldest) > maxResponses || l.bytes > maxResponsesBytes && len(l.oldest) > 1 {
		old = append(old, l.oldest[0])
		l.bytes -= l.oldest[0].bytes
		l.oldest = l.oldest[1:]
	}
	return old
}

// listOnce lists, once, the responses of processes before this one.
func (l *responseLog) listOnce(ctx context.Context) error {
	l.mu.Lock()
	listed := l.listed
	l.listed = true
	l.mu.Unlock()
	if listed {
		return nil
	}
	var all []responseName
	err := l.each(ctx, func(id string, found record[storedResponse], size int) error {
		if found.value != nil {
			all = append(all, responseName{id, found.version, found.value.Made, size})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b responseName) int { return cmp.Compare(a.made, b.made) })
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range all {
		l.bytes += n.bytes
	}
	l.oldest = append(all, l.oldest...)
	return err
}

type heldChain struct {
	loggedHistory
	system, items []string
	threadMembers string
	incomplete    bool
	last          *storedResponse // stored under the name itself
}

// resolve puts together the conversation behind a response; nil if a part of it is not known.
func (l *responseLog) resolve(ctx context.Context, id string) (*heldChain, error) {
	c := &heldChain{}
	var back [][]string // the items of the responses, the newest first
	for range maxChain {
		found, err := l.get(ctx, id)
		k := found.value
		if k == nil || err != nil {
			return nil, err
		}
		if c.last == nil {
			c.last = k
		}
		back = append(back, converted[string](k.Output), converted[string](k.Input))
		c.incomplete = c.incomplete || k.Incomplete
		if k.Log != "" || k.Previous == "" {
			c.loggedHistory, c.system, c.threadMembers = k.loggedHistory, converted[string](k.System), string(k.ThreadMembers)
			for _, items := range slices.Backward(back) {
				c.items = append(c.items, items...)
			}
			return c, nil
		}
		id = k.Previous
	}
	return nil, nil
}

// Forget removes what the documents hold of a conversation under other ids than its log's: the
// responses that continue it, and its first message. Call it before deleting the log; the store
// removes documents under the log's own id by itself. Forgetting twice does no harm. The error is
// that of the documents.
func Forget(ctx context.Context, documents store.Documents, log string) error {
	err := forgetResponses(ctx, responsesIn(documents), log)
	if err == nil {
		err = forgetBeginning(ctx, beginningsIn(documents), log)
	}
	if err != nil {
		return fmt.Errorf("proxy.Forget(%s): %w", log, err)
	}
	return nil
}

func forgetResponses(ctx context.Context, responses records[storedResponse], log string) error {
	all := map[string]record[storedResponse]{}
	err := responses.each(ctx, func(id string, found record[storedResponse], _ int) error {
		k := storedResponse{}
		if found.value != nil { // nil: it cannot be read
			k.Log, k.Previous = found.value.Log, found.value.Previous
		}
		all[id] = record[storedResponse]{&k, found.version}
		return nil
	})
	if err != nil {
		return err
	}
	// leads reports whether the log is behind a response, which may name only the one before it.
	leads := func(id string) bool {
		for range maxChain {
			k, known := all[id]
			if !known || k.value.Log != "" {
				return known && k.value.Log == log
			}
			id = k.value.Previous
		}
		return false
	}
	for id, k := range all {
		if !leads(id) {
			continue
		}
		if _, _, err := responses.put(ctx, id, k, nil); unlessConflict(err) != nil {
			return fmt.Errorf("response %s: %w", id, err)
		}
	}
	return nil
}

// forgetBeginning takes a conversation out of the lists by first message.
func forgetBeginning(ctx context.Context, beginnings records[[]string], log string) error {
	return beginnings.each(ctx, func(id string, found record[[]string], _ int) error {
		if found.value == nil || !slices.Contains(*found.value, log) {
			return nil
		}
		left := append([]string{}, slices.DeleteFunc(*found.value, func(base string) bool { return base == log })...)
		_, _, err := beginnings.put(ctx, id, found, &left)
		return unlessConflict(err)
	})
}

// secret is the key that tokens are signed with: that of the options, else one kept in the
// documents (sealed if the store seals), else one of this process.
type secret struct {
	mu  sync.Mutex
	key []byte
}

// secretKind and secretID name the document that holds the key.
const (
	secretKind = "proxy"
	secretID   = "native-compaction-key"
)

// load returns the key, which is read or made when it is first needed. After an error the store
// is asked again the next time.
func (s *secret) load(ctx context.Context, o *Options) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		return s.key, nil
	}
	key := o.Secret
	if len(key) == 0 && o.Config.Store.Documents != nil {
		var err error
		if key, err = store.Secret(ctx, o.Config.Store.Documents, secretKind, secretID); err != nil {
			return nil, fmt.Errorf("key of native compaction: %w", err)
		}
	}
	if len(key) == 0 {
		key = NewSecret()
	}
	s.key = key
	return key, nil
}

// NewSecret makes a key for Options.Secret, of 256 random bits.
func NewSecret() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return key
}
