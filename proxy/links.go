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

// link is what is kept of a response that the provider holds (store is not
// false), so that a request which goes on with it by previous_response_id can be
// put together here once it has to be made smaller.
type link struct {
	// The history of the response's request, where it stands in a log; else Prev,
	// the response before it, and Input, the items of the request.
	history
	Prev  string            `json:"prev,omitempty"`
	Input []json.RawMessage `json:"input,omitempty"`
	// System are the instructions in the input, which no log holds.
	System []json.RawMessage `json:"system,omitempty"`
	// Output is what the client was answered.
	Output []json.RawMessage `json:"output,omitempty"`
	// Held: the provider does not know the whole conversation behind the response,
	// because it was sent less.
	Held bool `json:"held,omitempty"`
	// Made is when, in nanoseconds since 1970, so that the oldest can be told after
	// a restart.
	Made int64 `json:"made"`
}

// linkKind is the kind of the documents that hold links, by the id of the
// response.
const linkKind = "proxy-response"

const (
	// maxLinks and maxLinksBytes bound how many responses are remembered. An agent names the last
	// one, hardly ever one before it.
	maxLinks      = 5_000
	maxLinksBytes = 128 << 20
	// maxLink bounds a link, in bytes; a larger one is not remembered.
	maxLink = 512 << 10
	// maxHops bounds how many responses are gone back through.
	maxHops = 1_000
)

// links are the links of a transport. The zero value with documents is ready to
// use; it is safe for concurrent use. No lock is held while a store is asked.
type links struct {
	documents store.Documents

	mu     sync.Mutex
	listed bool
	oldest []linkName
	bytes  int
}

type linkName struct {
	id      string
	version int
	made    int64
	bytes   int
}

// find returns a link; it is nil where nobody knows the response.
func (l *links) find(ctx context.Context, id string) (*link, error) {
	if store.CheckName("response", id) != nil {
		return nil, nil
	}
	d, err := l.documents.Document(ctx, linkKind, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found link
	if err := json.Unmarshal(d.Body, &found); err != nil {
		return nil, err
	}
	return &found, nil
}

// save keeps a link, and forgets the oldest where there are too many.
func (l *links) save(ctx context.Context, id string, k *link) error {
	if id == "" || store.CheckName("response", id) != nil {
		return nil
	}
	body, err := json.Marshal(k)
	if err != nil || len(body) > maxLink {
		return err
	}
	before, err := l.list(ctx)
	if err != nil {
		return err
	}
	old := l.add(before...)
	version, err := l.documents.Put(ctx, store.Document{Kind: linkKind, ID: id, Body: body})
	if errors.Is(err, store.ErrConflict) {
		return nil // a response is made once
	}
	if err != nil {
		return err
	}
	for _, old := range append(old, l.add(linkName{id, version, k.Made, len(body)})...) {
		_, err := l.documents.Put(ctx, store.Document{Kind: linkKind, ID: old.id, Version: old.version})
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// add notes links, and returns those that are to be forgotten.
func (l *links) add(names ...linkName) (old []linkName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range names {
		l.oldest = append(l.oldest, n)
		l.bytes += n.bytes
	}
	for len(l.oldest) > maxLinks || l.bytes > maxLinksBytes && len(l.oldest) > 1 {
		old = append(old, l.oldest[0])
		l.bytes -= l.oldest[0].bytes
		l.oldest = l.oldest[1:]
	}
	return old
}

// list finds out, once, which links there are from before, the oldest first.
func (l *links) list(ctx context.Context) ([]linkName, error) {
	l.mu.Lock()
	listed := l.listed
	l.listed = true
	l.mu.Unlock()
	if listed {
		return nil, nil
	}
	var all []linkName
	for after := ""; ; {
		page, err := l.documents.Documents(ctx, linkKind, after, store.MaxLimit)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			var k struct {
				Made int64 `json:"made"`
			}
			if json.Unmarshal(d.Body, &k) == nil {
				all = append(all, linkName{d.ID, d.Version, k.Made, len(d.Body)})
			}
		}
		if len(page) < store.MaxLimit {
			break
		}
		after = page[len(page)-1].ID
	}
	slices.SortFunc(all, func(a, b linkName) int { return cmp.Compare(a.made, b.made) })
	return all, nil
}

// chain is the conversation behind a response.
type chain struct {
	history
	system, items []string
	held          bool
}

// follow puts together the conversation behind a response; it is nil where a part
// of it is not known.
func (l *links) follow(ctx context.Context, id string) (*chain, error) {
	c := &chain{}
	var back [][]string // the items of the responses, the newest first
	for range maxHops {
		k, err := l.find(ctx, id)
		if k == nil || err != nil {
			return nil, err
		}
		back = append(back, strung(k.Output))
		c.held = c.held || k.Held
		if k.Log != "" || k.Prev == "" {
			c.history, c.system = k.history, strung(k.System)
			back = append(back, strung(k.Input))
			for _, items := range slices.Backward(back) {
				c.items = append(c.items, items...)
			}
			return c, nil
		}
		back = append(back, strung(k.Input))
		id = k.Prev
	}
	return nil, nil
}

func strung(list []json.RawMessage) []string {
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
