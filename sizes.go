package palimpsest

import (
	"context"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// sizeCache holds the token counts of a conversation, by profile.
type sizeCache struct {
	mu        sync.Mutex
	byProfile map[render.Profile]*profileSizes
}

func (s *sizeCache) forProfile(profile render.Profile, counter *token.Counter) *profileSizes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byProfile == nil {
		s.byProfile = map[render.Profile]*profileSizes{}
	}
	if s.byProfile[profile] == nil {
		s.byProfile[profile] = &profileSizes{counter: counter, profile: profile}
	}
	return s.byProfile[profile]
}

// bytes is about how much memory the conversation takes, for all profiles.
func (s *sizeCache) bytes() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.byProfile {
		k.mu.Lock()
		n += bytesPerMessage*int64(len(k.plain)) + bytesPerToken*k.tokens
		k.mu.Unlock()
	}
	return n
}

// profileSizes are the sizes of the messages of a log under one profile, and its rendering
// so far, so that a step costs what it adds.
type profileSizes struct {
	counter   *token.Counter
	profile   render.Profile
	memo      render.Memo
	estimates policy.Estimates

	mu     sync.Mutex
	thread *thread.Thread // the longest that was counted
	// changed and plain are the sizes of its messages; they only grow.
	changed, plain []int
	tokens         int64     // of plain, all together
	size           wire.Size // of all messages, without a plan
}

// messageSizes returns the size of every message of t in tokens: as it is sent once a plan
// has changed something, and as it is sent under no plan; 0 for one that cannot be sent.
// Messages are identified by their ids, which are hash-chained over the content; callers
// with ids of their own must not reuse one for other content. all is what they take beside
// their tokens, and perhaps some behind them, that were counted before. The slices must not be
// modified. The error is that of ctx; counts up to then are kept.
func (k *profileSizes) messageSizes(ctx context.Context, t *thread.Thread) (changed, plain []int, all wire.Size, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := t.Len()
	if k.thread != nil && k.thread.Extends(t) {
		return k.changed[:n:n], k.plain[:n:n], k.size, nil
	}
	messages := t.Messages()
	if !t.Extends(k.thread) {
		same := k.commonPrefix(messages)
		for _, size := range k.plain[same:] {
			k.tokens -= int64(size)
		}
		k.changed, k.plain = k.changed[:same:same], k.plain[:same:same]
		k.size = sizeOf(&prompt.Prompt{Messages: messages[:same]})
	}
	counter := k.counter.Until(ctx)
	k.plain, k.changed = slices.Grow(k.plain, n-len(k.plain)), slices.Grow(k.changed, n-len(k.changed))
	for i := len(k.plain); i < n; i++ {
		whole := k.profile.Translate(messages[i], false)
		less := k.profile.Translate(messages[i], true)
		size := messageSize(counter, &whole)
		lessSize := size
		if len(less.Parts) != len(whole.Parts) {
			lessSize = messageSize(counter, &less)
		}
		if err := ctx.Err(); err != nil {
			k.thread = t.Prefix(i)
			return nil, nil, all, err
		}
		k.plain, k.tokens = append(k.plain, size), k.tokens+int64(size)
		k.size = addMessage(k.size, &messages[i])
		k.changed = append(k.changed, lessSize)
	}
	k.thread = t
	return k.changed[:n:n], k.plain[:n:n], k.size, nil
}

// commonPrefix is how many messages at the beginning are those that were counted.
func (k *profileSizes) commonPrefix(messages []thread.Message) int {
	if k.thread == nil {
		return 0
	}
	n := 0
	for _, m := range k.thread.Messages() {
		if n == len(messages) || messages[n].ID != m.ID {
			break
		}
		n++
	}
	return n
}

// messageSize is 0 for a message of which nothing is sent.
func messageSize(c *token.Counter, m *thread.Message) int {
	if len(m.Parts) == 0 {
		return 0
	}
	return c.Message(m)
}

// sizeOf is the size of a request, nearly: what JSON adds to it is left out.
func sizeOf(p *prompt.Prompt) (size wire.Size) {
	for i := range p.System {
		size.Bytes += len(p.System[i].Text)
	}
	for i := range p.Tools {
		size.Bytes += len(p.Tools[i].Description) + len(p.Tools[i].Schema)
	}
	for i := range p.Messages {
		size = addMessage(size, &p.Messages[i])
	}
	return size
}

// addMessage is the size with one more message.
func addMessage(size wire.Size, m *thread.Message) wire.Size {
	all, _ := weigh(m)
	return wire.Size{Bytes: size.Bytes + all.Bytes, Pictures: size.Pictures + all.Pictures, Side: max(size.Side, all.Side)}
}

// weigh is the size of a message, and how many of its bytes are pictures and files.
func weigh(m *thread.Message) (size wire.Size, inMedia int) {
	parts := m.Parts
	if r, ok := m.Result(); ok {
		parts = r.Content
	}
	for _, part := range parts {
		switch part := part.(type) {
		case thread.Media:
			if part.Type == thread.Image || part.Type == thread.Document && part.Text == "" { // pages are read as pictures
				w, h, _ := media.Size(part.Data)
				size.Pictures, size.Side = size.Pictures+1, max(size.Side, w, h)
			}
			inMedia += len(part.Data) + len(part.URL) + len(part.Text)
		case thread.Text:
			size.Bytes += len(part.Text)
		case thread.ToolCall:
			size.Bytes += len(part.Arguments)
		case thread.Opaque:
			size.Bytes += len(part.Raw)
		}
	}
	size.Bytes += inMedia
	return size, inMedia
}
