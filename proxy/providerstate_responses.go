package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/store"
)

// storedResponse is what is kept of an answer that the provider holds (of OpenAI's API where
// store is not false, of Anthropic's in a message thread), so that a request which goes
// on with it by its id can be put together here once it has to be made smaller. What
// is kept of a conversation of OpenAI's is one without output: Prev is its last response,
// and Input what the client has put into it since.
type storedResponse struct {
	// The history of the response's request, where it stands in a log; else Prev,
	// the response before it, and Input, the items of the request.
	loggedHistory
	Previous string            `json:"prev,omitempty"`
	Input    []json.RawMessage `json:"input,omitempty"`
	// System are the instructions in the input, which no log holds.
	System []json.RawMessage `json:"system,omitempty"`
	// ThreadMembers are the members that the first request of a message thread has alone; of
	// a response that names one before it, that has them.
	ThreadMembers json.RawMessage `json:"around,omitempty"`
	// Output is what the client was answered.
	Output []json.RawMessage `json:"output,omitempty"`
	// Incomplete: the provider does not know the whole conversation behind the response,
	// because it was sent less.
	Incomplete bool `json:"part,omitempty"`
	// Made is when, in nanoseconds since 1970, so that the oldest can be told after
	// a restart.
	Made int64 `json:"made"`
}

const (
	// maxResponses and maxResponsesBytes bound how many responses are remembered. An agent names the last
	// one, hardly ever one before it.
	maxResponses      = 5_000
	maxResponsesBytes = 128 << 20
	// maxResponse bounds one, in bytes; a larger one is not remembered.
	maxResponse = 512 << 10
	// maxChain bounds how many responses are gone back through.
	maxChain = 1_000
)

// responseLog keeps what is behind responses. It is safe for concurrent use; no lock is held
// while a store is asked.
type responseLog struct {
	records[storedResponse]

	mu     sync.Mutex
	listed bool
	oldest []responseName
	bytes  int
}

type responseName struct {
	id      string
	version int
	made    int64
	bytes   int
}

func responsesIn(documents store.Documents) records[storedResponse] {
	return records[storedResponse]{documents: documents, kind: "proxy-response", maxBytes: maxResponse}
}

// save saves a response, which is made once.
func (l *responseLog) save(ctx context.Context, id string, k *storedResponse) error {
	err := l.writeBounded(ctx, id, func() (record[storedResponse], int, error) { return l.put(ctx, id, record[storedResponse]{}, k) })
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// update saves another state of what a name stands for; see records.change.
func (l *responseLog) update(ctx context.Context, id string, next func(now *storedResponse) *storedResponse) error {
	return l.writeBounded(ctx, id, func() (record[storedResponse], int, error) { return l.change(ctx, id, next) })
}

// writeBounded writes a response, and forgets the oldest where there are too many.
func (l *responseLog) writeBounded(ctx context.Context, id string, write func() (record[storedResponse], int, error)) error {
	if err := l.listOnce(ctx); err != nil {
		return err
	}
	made, size, err := write()
	if err != nil || size == 0 {
		return err
	}
	for _, old := range l.note(responseName{id, made.version, made.value.Made, size}) {
		_, _, err := l.put(ctx, old.id, record[storedResponse]{version: old.version}, nil)
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// note notes a response, and returns those that are to be forgotten.
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

// listOnce finds out, once, which responses there are from before, and notes the oldest first.
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

// responseChain is the conversation behind a response.
type responseChain struct {
	loggedHistory
	system, items []string
	threadMembers string
	incomplete    bool
	last          *storedResponse // what the name itself stands for
}

// resolve puts together the conversation behind a response; it is nil where a part
// of it is not known.
func (l *responseLog) resolve(ctx context.Context, id string) (*responseChain, error) {
	c := &responseChain{}
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
		back = append(back, rawStrings(k.Output))
		c.incomplete = c.incomplete || k.Incomplete
		if k.Log != "" || k.Previous == "" {
			c.loggedHistory, c.system, c.threadMembers = k.loggedHistory, rawStrings(k.System), string(k.ThreadMembers)
			back = append(back, rawStrings(k.Input))
			for _, items := range slices.Backward(back) {
				c.items = append(c.items, items...)
			}
			return c, nil
		}
		back = append(back, rawStrings(k.Input))
		id = k.Previous
	}
	return nil, nil
}

func rawStrings(list []json.RawMessage) []string {
	out := make([]string, len(list))
	for i, raw := range list {
		out[i] = string(raw)
	}
	return out
}

func rawMessages(list []string) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, text := range list {
		out[i] = json.RawMessage(text)
	}
	return out
}
