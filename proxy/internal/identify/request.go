package identify

import (
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Request is a request that was read. It is immutable.
type Request struct {
	Body   string
	Prompt *prompt.Prompt
	// IDs are the chained ids of its messages, as the client has them; the log may have more.
	IDs []thread.ID
	// Members are those of the body, without the messages.
	Members map[string]gjson.Result
	// SystemDigest is a digest of system and tools.
	SystemDigest string

	unmarked                   bool  // see Similar
	decodedBytes               int   // about what the messages take beside the body
	messagesStart, messagesEnd int   // of the messages array in Body, without its brackets
	frameEnds                  []int // the ends of the frames in Body
	messagesUpTo               []int // how many messages there are up to each of them
}

// Canceled is the Err of a context. It is called between the steps of reading a body, none of which takes
// longer than decoding it.
type Canceled func() error

// Decode decodes a body, and marks our own summaries and what a harness wrote in the user's name.
func Decode(codec wire.Codec, body string, canceled Canceled) (*prompt.Prompt, error) {
	if err := canceled(); err != nil {
		return nil, err
	}
	p, err := codec.Decode(body)
	if err == nil {
		p.Messages, err = markKinds(p.Messages, nil, canceled)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// cancelStride is how many messages are handled between two calls of Canceled.
const cancelStride = 64

// markKinds is injected.MarkKinds in stretches that can be canceled. Messages of one element stay
// together.
func markKinds(messages []thread.Message, before *thread.Message, canceled Canceled) ([]thread.Message, error) {
	var out []thread.Message
	for len(messages) > 0 {
		if err := canceled(); err != nil {
			return nil, err
		}
		n := min(cancelStride, len(messages))
		for n < len(messages) && messages[n].Frame != nil && messages[n].Frame == messages[n-1].Frame {
			n++
		}
		part := injected.MarkKinds(messages[:n:n], before)
		if out = append(out, part...); len(part) > 0 {
			last := part[len(part)-1]
			before = &last
		}
		messages = messages[n:]
	}
	return out, nil
}

// Read reads a whole body.
func Read(codec wire.Codec, body string, canceled Canceled) (*Request, error) {
	p, err := Decode(codec, body, canceled)
	if err != nil {
		return nil, err
	}
	r := locateMessages(body, p, members(body))
	if r.IDs, err = ChainIDs(nil, r.Prompt.Messages, canceled); err != nil {
		return nil, err
	}
	return r, nil
}

// Assembled is a request whose conversation was put together from several places; the body holds a part
// of it.
func Assembled(body string, p *prompt.Prompt, ids []thread.ID) *Request {
	return &Request{Body: body, Prompt: p, IDs: ids, Members: members(body), SystemDigest: systemDigest(p)}
}

// ChainIDs are the chained ids of messages; those of the first are known.
func ChainIDs(known []thread.ID, messages []thread.Message, canceled Canceled) ([]thread.ID, error) {
	ids := make([]thread.ID, len(messages))
	n := copy(ids, known)
	parent := thread.ID("")
	if n > 0 {
		parent = ids[n-1]
	}
	for i := n; i < len(messages); i++ {
		if i%cancelStride == 0 {
			if err := canceled(); err != nil {
				return nil, err
			}
		}
		parent = thread.ChainID(parent, &messages[i])
		ids[i] = parent
	}
	return ids, nil
}

func (r *Request) memberAt(path string) gjson.Result {
	first, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return r.Members[first]
	}
	return r.Members[first].Get(rest)
}

// Has reports whether a member is there and is not null.
func (r *Request) Has(member string) bool {
	v := r.Members[member]
	return v.Exists() && v.Type != gjson.Null
}

// members are those of a body, found in one pass: most bodies are long.
func members(body string) map[string]gjson.Result {
	return maps.Collect(rawjson.Members(gjson.Parse(body)))
}

// messagesMember are the members that hold the messages.
var messagesMember = map[string]string{wire.Anthropic: "messages", wire.Chat: "messages", wire.Responses: "input", wire.Gemini: "contents"}

// locateMessages finds the messages of a decoded body in its bytes.
func locateMessages(body string, p *prompt.Prompt, members map[string]gjson.Result) *Request {
	p = detachPrompt(p)
	r := &Request{Body: body, Prompt: p, Members: members, SystemDigest: systemDigest(p), decodedBytes: decodedFactor * len(body)}
	name := messagesMember[p.Source.API]
	array, there := members[name]
	if !there || !array.IsArray() || array.Index == 0 {
		return r
	}
	delete(members, name) // it is long, and not needed
	r.messagesStart, r.messagesEnd = array.Index+1, array.Index+len(array.Raw)-1
	if !r.locateFrames(r.messagesStart, p.Messages, 0) {
		r.frameEnds, r.messagesUpTo = nil, nil
	}
	return r
}

// locateFrames finds the frames of messages in the body from an offset on, behind so many other messages.
// It is false if one is not there.
func (r *Request) locateFrames(at int, messages []thread.Message, before int) bool {
	for i := range messages {
		f := messages[i].Frame
		if f == nil {
			return false
		}
		if i > 0 && messages[i-1].Frame == f {
			r.messagesUpTo[len(r.messagesUpTo)-1] = before + i + 1
			continue
		}
		from := strings.Index(r.Body[at:r.messagesEnd], f.Raw())
		if from < 0 {
			return false
		}
		at += from + len(f.Raw())
		r.frameEnds, r.messagesUpTo = append(r.frameEnds, at), append(r.messagesUpTo, before+i+1)
	}
	return true
}

// WithoutMessages is the prompt without its messages, to be kept by the conversation. If the encoder does
// not need them, they are taken out of the prompt's source as well.
func (r *Request) WithoutMessages() *prompt.Prompt {
	out := *r.Prompt
	out.Messages = nil
	if !r.isSeparable() {
		return &out
	}
	source := *out.Source
	source.Body = r.Body[:r.messagesStart] + r.Body[r.messagesEnd:]
	out.Source = &source
	return &out
}

// isSeparable reports whether an encoder that writes new messages needs nothing of those in the source.
func (r *Request) isSeparable() bool {
	switch api := r.Prompt.Source.API; {
	case len(r.frameEnds) == 0:
		return false
	case api == wire.Anthropic: // a system message in the body says that the model takes some
		return !slices.ContainsFunc(r.Prompt.Messages, func(m thread.Message) bool { return m.Role == thread.System })
	case api == wire.Chat, api == wire.Gemini: // the encoder keeps what is between two elements
		size := -1
		for i := range r.Prompt.System {
			if api == wire.Chat {
				size += len(r.Prompt.System[i].Raw) + 1
			}
		}
		for f := range frames(r.Prompt.Messages) {
			size += len(f.Raw()) + 1
		}
		return size == r.messagesEnd-r.messagesStart
	}
	return false
}
