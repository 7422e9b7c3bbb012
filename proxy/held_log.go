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

// responseKind is the kind of the documents that hold them, by the id of the
// response.
const responseKind = "proxy-response"

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

// responseLog keeps what is behind responses. The zero value with documents is ready to
// use; it is safe for concurrent use. No lock is held while a store is asked.
type responseLog struct {
	documents store.Documents

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

// find returns a response; it is nil where nobody knows the response.
func (l *responseLog) find(ctx context.Context, id string) (*response, error) {
	if store.CheckName("response", id) != nil {
		return nil, nil
	}
	d, err := l.documents.Document(ctx, responseKind, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found response
	if err := json.Unmarshal(d.Body, &found); err != nil {
		return nil, err
	}
	return &found, nil
}

// save keeps a response, and forgets the oldest where there are too many.
func (l *responseLog) save(ctx context.Context, id string, k *response) error {
	if id == "" || store.CheckName("response", id) != nil {
		return nil
	}
	body, err := json.Marshal(k)
	if err != nil || len(body) > maxResponse {
		return err
	}
	before, err := l.list(ctx)
	if err != nil {
		return err
	}
	old := l.add(before...)
	version, err := l.documents.Put(ctx, store.Document{Kind: responseKind, ID: id, Body: body})
	if errors.Is(err, store.ErrConflict) {
		return nil // a response is made once
	}
	if err != nil {
		return err
	}
	return l.drop(ctx, append(old, l.add(responseName{id, version, k.Made, len(body)})...))
}

// change keeps another state of what a name stands for; nil forgets it. make gets the one of
// now, which is nil where nobody knows the name. Somebody else who writes at the same
// time is waited for.
func (l *responseLog) change(ctx context.Context, id string, make func(*response) *response) error {
	if id == "" || store.CheckName("response", id) != nil {
		return nil
	}
	for n := 1; ; n++ {
		d, err := l.documents.Document(ctx, responseKind, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		var now *response
		if err == nil {
			now = &response{}
			if err := json.Unmarshal(d.Body, now); err != nil {
				return err
			}
		}
		next := make(now)
		if now == nil && next == nil {
			return nil
		}
		var body []byte
		if next != nil {
			if body, err = json.Marshal(next); err != nil {
				return err
			}
			if len(body) > maxResponse {
				next, body = nil, nil // it is not known any more
			}
		}
		version, err := l.documents.Put(ctx, store.Document{Kind: responseKind, ID: id, Version: d.Version, Body: body})
		if errors.Is(err, store.ErrConflict) && n < tries {
			continue
		}
		if err != nil || next == nil {
			return err
		}
		return l.drop(ctx, l.add(responseName{id, version, next.Made, len(body)}))
	}
}

// drop forgets responses.
func (l *responseLog) drop(ctx context.Context, old []responseName) error {
	for _, old := range old {
		_, err := l.documents.Put(ctx, store.Document{Kind: responseKind, ID: old.id, Version: old.version})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// add notes responses, and returns those that are to be forgotten.
func (l *responseLog) add(names ...responseName) (old []responseName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range names {
		l.oldest = append(l.oldest, n)
		l.bytes += n.bytes
	}
	for len(l.oldest) > maxResponses || l.bytes > maxResponsesBytes && len(l.oldest) > 1 {
		old = append(old, l.oldest[0])
		l.bytes -= l.oldest[0].bytes
		l.oldest = l.oldest[1:]
	}
	return old
}

// list finds out, once, which responses there are from before, the oldest first.
func (l *responseLog) list(ctx context.Context) ([]responseName, error) {
	l.mu.Lock()
	listed := l.listed
	l.listed = true
	l.mu.Unlock()
	if listed {
		return nil, nil
	}
	var all []responseName
	err := each(ctx, l.documents, responseKind, func(d store.Document) error {
		var k struct {
			Made int64 `json:"made"`
		}
		if json.Unmarshal(d.Body, &k) == nil {
			all = append(all, responseName{d.ID, d.Version, k.Made, len(d.Body)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b responseName) int { return cmp.Compare(a.made, b.made) })
	return all, nil
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
		k, err := l.find(ctx, id)
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
