package proxy

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// known is a request that was read: what there is to be known of it without a
// second look at its bytes.
type known struct {
	body   string
	prompt *prompt.Prompt
	ids    []thread.ID
	top    map[string]gjson.Result // without the messages
	around string                  // a digest of system and tools
	held   int                     // about what the messages hold, in bytes

	open, end int   // the messages array: behind its bracket, and at the closing one
	ends      []int // the ends of the frames, as offsets into body
	upTo      []int // how many messages there are up to each of them
}

// arrayNames are the members that hold the messages.
var arrayNames = map[string]string{wire.Anthropic: "messages", wire.Chat: "messages", wire.Responses: "input", wire.Gemini: "contents"}

// newKnown finds the places in a body that was read.
func newKnown(body string, p *prompt.Prompt, members map[string]gjson.Result) *known {
	p = ownSurroundings(p)
	k := &known{body: body, prompt: p, top: members, around: surroundings(p), held: decodedBytes * len(body)}
	array, there := members[arrayNames[p.Source.API]]
	if !there || !array.IsArray() || array.Index == 0 {
		return k
	}
	delete(members, arrayNames[p.Source.API]) // it is long, and nobody asks for it
	k.open, k.end = array.Index+1, array.Index+len(array.Raw)-1
	at := k.open
	for i := range p.Messages {
		f := p.Messages[i].Frame
		if f == nil {
			return k
		}
		if i > 0 && p.Messages[i-1].Frame == f {
			k.upTo[len(k.upTo)-1] = i + 1
			continue
		}
		from := strings.Index(body[at:k.end], f.Raw())
		if from < 0 {
			k.ends, k.upTo = nil, nil
			return k
		}
		at += from + len(f.Raw())
		k.ends, k.upTo = append(k.ends, at), append(k.upTo, i+1)
	}
	return k
}

// extended reads a body that goes on where a known one ends: everything around
// the messages is the same, and so are most of them. Only the rest is decoded. It
// is nil where that cannot be done, and then the whole has to be.
//
// same is how much the two have in common at their beginning, in bytes.
func (k *known) extended(codec wire.Codec, body string, same int) *known {
	tail := len(k.body) - k.end // what stands behind the messages
	if len(k.ends) == 0 || len(body) < len(k.body)-k.end+k.open || body[len(body)-tail:] != k.body[k.end:] {
		return nil
	}
	same = min(same, k.end, len(body)-tail)
	n := len(k.ends)
	for n > 0 && (k.ends[n-1] > same || k.prompt.Messages[k.upTo[n-1]-1].Role == thread.Assistant) {
		n-- // a run of the model's items could go on
	}
	if n == 0 {
		return nil
	}
	from, kept := k.ends[n-1], k.upTo[n-1]
	rest := strings.TrimLeft(body[from:len(body)-tail], " \t\r\n")
	rest, more := strings.CutPrefix(rest, ",")
	if more == (strings.TrimSpace(rest) == "") {
		return nil
	}
	news, ok := decodeTail(codec, rest, k.prompt.Messages[:kept])
	if !ok {
		return nil
	}
	p := *k.prompt
	source := *k.prompt.Source
	source.Body = body
	for f := range frames(k.prompt.Messages[kept:]) {
		source.Elements -= f.Elements()
	}
	before := k.prompt.Messages[kept-1].Frame
	for f := range frames(news) {
		source.Elements += f.Elements()
	}
	move(news, before.Position()+before.Elements())
	p.Messages = append(slices.Clip(k.prompt.Messages[:kept]), news...)
	p.Source = &source
	next := &known{
		body: body, prompt: &p, ids: slices.Clip(k.ids[:kept]), top: k.top, around: k.around,
		held: k.held*from/len(k.body) + decodedBytes*len(rest),
		open: k.open, end: len(body) - tail, ends: slices.Clip(k.ends[:n]), upTo: slices.Clip(k.upTo[:n]),
	}
	at := from
	for i := range news {
		if i > 0 && news[i].Frame == news[i-1].Frame {
			next.upTo[len(next.upTo)-1]++
			continue
		}
		off := strings.Index(body[at:next.end], news[i].Frame.Raw())
		if off < 0 {
			return nil
		}
		at += off + len(news[i].Frame.Raw())
		next.ends, next.upTo = append(next.ends, at), append(next.upTo, kept+i+1)
	}
	return next
}

// move puts the frames of messages so many elements further back.
func move(messages []thread.Message, by int) {
	var from, to *thread.Frame
	for i := range messages {
		if f := messages[i].Frame; f != nil && f != from {
			from, to = f, thread.NewFrame(f.API(), f.Raw(), f.Position()+by, f.Elements(), f.Messages())
		}
		if messages[i].Frame != nil {
			messages[i].Frame = to
		}
	}
}

// frames are the frames of messages, each once.
func frames(messages []thread.Message) iter.Seq[*thread.Frame] {
	return func(yield func(*thread.Frame) bool) {
		for i := range messages {
			if f := messages[i].Frame; f != nil && (i == 0 || messages[i-1].Frame != f) && !yield(f) {
				return
			}
		}
	}
}

// shell is a request without its messages, for what goes on after it: a conversation
// that waits for its next step must not keep the whole of this one. Where it is the
// one that was read, and the encoder writes the same without them, they are taken out
// of the body behind it as well, and the encoder need not go through them.
func (k *known) shell(p *prompt.Prompt) *prompt.Prompt {
	out := *p
	out.Messages = nil
	if p != k.prompt || !k.apart() {
		return &out
	}
	source := *p.Source
	source.Body = k.body[:k.open] + k.body[k.end:]
	out.Source = &source
	return &out
}

// apart reports whether an encoder that writes the messages anew looks at nothing but
// them.
func (k *known) apart() bool {
	switch api := k.prompt.Source.API; {
	case len(k.ends) == 0:
		return false
	case api == wire.Anthropic: // system messages in the body say whether the model takes such
		return !slices.ContainsFunc(k.prompt.Messages, func(m thread.Message) bool { return m.Role == thread.System })
	case api == wire.Chat, api == wire.Gemini: // what stands between two elements stays there
		size := -1
		for i := range k.prompt.System {
			if api == wire.Chat {
				size += len(k.prompt.System[i].Raw) + 1
			}
		}
		for f := range frames(k.prompt.Messages) {
			size += len(f.Raw()) + 1
		}
		return size == k.end-k.open
	}
	return false
}

// decodeTail reads elements of a messages array that stand behind others.
func decodeTail(codec wire.Codec, elements string, before []thread.Message) ([]thread.Message, bool) {
	if strings.TrimSpace(elements) == "" {
		return nil, true
	}
	p, err := codec.Decode([]byte(`{"` + arrayNames[codec.API()] + `":[` + elements + `]}`))
	if err != nil || len(p.System) > 0 || len(p.Messages) == 0 {
		return nil, false // instructions at the beginning are none in the middle
	}
	if codec.API() == wire.Gemini {
		return p.Messages, numbered(p.Messages, before)
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		for _, c := range m.Calls() {
			if thread.IsLocalID(c.ID) {
				return nil, false
			}
		}
		r, ok := m.Result()
		if !ok {
			continue
		}
		if thread.IsLocalID(r.CallID) {
			return nil, false
		}
		if r.Tool != "" {
			continue
		}
		if name := caller(before, r.CallID); name != "" {
			r.Tool = name
			m.Parts = []thread.Part{r}
		}
	}
	return p.Messages, true
}

// caller is the name of the tool that the last call with an id was for.
func caller(messages []thread.Message, id string) string {
	for i := len(messages) - 1; i >= 0; i-- {
		for _, part := range slices.Backward(messages[i].Parts) {
			if c, ok := part.(thread.ToolCall); ok && c.ID == id {
				return c.Name
			}
		}
	}
	return ""
}

// commonPrefix is the length of what two texts have in common at their beginning.
func commonPrefix(a, b string) int {
	const chunk = 4 << 10
	n, limit := 0, min(len(a), len(b))
	for n+chunk <= limit && a[n:n+chunk] == b[n:n+chunk] {
		n += chunk
	}
	for n < limit && a[n] == b[n] {
		n++
	}
	return n
}

// bodies remembers the last requests, so that the next step of a conversation
// costs what the step adds.
type bodies struct {
	mu    sync.Mutex
	last  []*known // the newest last
	bytes int
}

// maxKnown and maxKnownBytes bound what is remembered, by number and by about what
// it holds, in bytes: a body that was read takes twice as much, because its texts
// are kept without escapes as well.
const (
	maxKnown      = 256
	maxKnownBytes = 128 << 20
	decodedBytes  = 2
)

// bytes is about what a request holds.
func (k *known) bytes() int { return len(k.body) + k.held }

// find returns the request that has most in common with a body, and how much that
// is in bytes: nil where there is none with the same first message.
func (b *bodies) find(api, body string) (best *known, most int) {
	b.mu.Lock()
	last := slices.Clone(b.last)
	b.mu.Unlock()
	for _, k := range slices.Backward(last) {
		if k.prompt.Source.API != api || len(k.ends) == 0 || !k.begins(body) {
			continue
		}
		if most > 0 && (most > len(k.body) || k.body[most-1] != body[min(most-1, len(body)-1)]) {
			continue
		}
		if n := commonPrefix(k.body, body); n > most {
			best, most = k, n
		}
	}
	return best, most
}

// begins reports whether a body has the first element where this one has it.
// Conversations mostly have system and tools in common, and part in their first
// message.
func (k *known) begins(body string) bool {
	return k.ends[0] <= len(body) && body[k.open:k.ends[0]] == k.body[k.open:k.ends[0]]
}

// keep remembers a request, in place of the one that it goes on with.
func (b *bodies) keep(k, before *known) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.last, before); before != nil && i >= 0 {
		b.bytes -= before.bytes()
		b.last = slices.Delete(b.last, i, i+1)
	}
	b.last = append(b.last, k)
	b.bytes += k.bytes()
	for len(b.last) > maxKnown || b.bytes > maxKnownBytes && len(b.last) > 1 {
		b.bytes -= b.last[0].bytes()
		b.last[0] = nil
		b.last = b.last[1:]
	}
}
