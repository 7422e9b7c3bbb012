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

// response is what is kept of an answer that the provider holds (of OpenAI's API where
// store is not false, of Anthropic's in a message thread), so that a request which goes
// on with it by its id can be put together here once it has to be made smaller. What
// is kept of a conversation of OpenAI's is one without output: Prev is its last response,
// and Input what the client has put into it since.
type response struct {
	// The history of the response's request, where it stands in a log; else Prev,
	// the response before it, and Input, the items of the request.
	history
	Prev  string            `json:"prev,omitempty"`
	Input []json.RawMessage `json:"input,omitempty"`
	// System are the instructions in the input, which no log holds.
	System []json.RawMessage `json:"system,omitempty"`
	// Around are the members that the first request of a message thread has alone; of
	// a response that names one before it, that has them.
	Around json.RawMessage `json:"around,omitempty"`
	// Output is what the client was answered.
	Output []json.RawMessage `json:"output,omitempty"`
	// Part: the provider does not know the whole conversation behind the response,
	// because it was sent less.
	Part bool `json:"part,omitempty"`
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
	// maxHops bounds how many responses are gone back through.
	maxHops = 1_000
)

// responseLog keeps what is behind responses. It is safe for concurrent use; no lock is held
// while a store is asked.
type responseLog struct {
	records[response]

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

func responsesIn(documents store.Documents) records[response] {
	return records[response]{documents: documents, kind: "proxy-response", most: maxResponse}
}

// save keeps a response, which is made once.
func (l *responseLog) save(ctx context.Context, id string, k *response) error {
	err := l.bounded(ctx, id, func() (record[response], int, error) { return l.put(ctx, id, record[response]{}, k) })
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// become keeps another state of what a name stands for; see records.change.
func (l *responseLog) become(ctx context.Context, id string, next func(now *response) *response) error {
	return l.bounded(ctx, id, func() (record[response], int, error) { return l.change(ctx, id, next) })
}

// bounded writes a response, and forgets the oldest where there are too many.
func (l *responseLog) bounded(ctx context.Context, id string, write func() (record[response], int, error)) error {
	if err := l.list(ctx); err != nil {
		return err
	}
	made, size, err := write()
	if err != nil || size == 0 {
		return err
	}
	for _, old := range l.add(responseName{id, made.version, made.value.Made, size}) {
		_, _, err := l.put(ctx, old.id, record[response]{version: old.version}, nil)
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// add notes a response, and returns those that are to be forgotten.
func (l *responseLog) add(n responseName) (old []responseName) {
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

// list finds out, once, which responses there are from before, and notes the oldest first.
func (l *responseLog) list(ctx context.Context) error {
	l.mu.Lock()
	listed := l.listed
	l.listed = true
	l.mu.Unlock()
	if listed {
		return nil
	}
	var all []responseName
	err := l.each(ctx, func(id string, found record[response], size int) error {
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

// chain is the conversation behind a response.
type chain struct {
	history
	system, items []string
	around        string
	part          bool
	last          *response // what the name itself stands for
}

// follow puts together the conversation behind a response; it is nil where a part
// of it is not known.
func (l *responseLog) follow(ctx context.Context, id string) (*chain, error) {
	c := &chain{}
	var back [][]string // the items of the responses, the newest first
	for range maxHops {
		found, err := l.get(ctx, id)
		k := found.value
		if k == nil || err != nil {
			return nil, err
		}
		if c.last == nil {
			c.last = k
		}
		back = append(back, rawItems(k.Output))
		c.part = c.part || k.Part
		if k.Log != "" || k.Prev == "" {
			c.history, c.system, c.around = k.history, rawItems(k.System), string(k.Around)
			back = append(back, rawItems(k.Input))
			for _, items := range slices.Backward(back) {
				c.items = append(c.items, items...)
			}
			return c, nil
		}
		back = append(back, rawItems(k.Input))
		id = k.Prev
	}
	return nil, nil
}

func rawItems(list []json.RawMessage) []string {
	out := make([]string, len(list))
	for i, raw := range list {
		out[i] = string(raw)
	}
	return out
}

func raws(list []string) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, text := range list {
		out[i] = json.RawMessage(text)
	}
	return out
}
