package identify

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Client is what a request says of its client.
type Client struct {
	// API and Model are what the request asks, the model as the table of models names it.
	API, Model string
	// Thread is the client's name of the conversation, for us; empty for none.
	Thread string
	// Session is the client's name of its session, in pairs of name and value. It is not a
	// conversation by itself: titles, side requests and restarted histories share it. It lasts
	// longer than a window of the client, which ends when the client compacts.
	Session []string
}

// sessionHeaders and sessionFields are the headers and the members of a body in which clients name a
// session: Claude Code, Codex, opencode, pi.
var (
	sessionHeaders = []string{
		"X-Claude-Code-Session-Id", "Session-Id", "Session_id", "Thread-Id",
		"X-Session-Id", "Conversation_id", "X-Conversation-Id",
	}
	sessionFields = []string{"metadata.user_id", "metadata.session_id", "prompt_cache_key", "conversation", "session_id"}
)

// ClientOf reads what a request says of its client; header returns its headers.
func ClientOf(r *Request, header func(name string) string, model, thread string) Client {
	c := Client{API: r.Prompt.Source.API, Model: model, Thread: thread}
	for _, name := range sessionHeaders {
		if value := header(name); value != "" {
			c.Session = append(c.Session, name, value)
		}
	}
	for _, path := range sessionFields {
		if v := r.memberAt(path); v.Type == gjson.String {
			c.Session = append(c.Session, path, v.Str)
		}
	}
	return c
}

// logIDPattern is the form of names that can be the id of a log; other names are hashed.
var logIDPattern = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)

// Base is the id of the conversation before any fork: the client's own name, or a hash of all that it says
// of itself with model, system, tools and the first message. It is the same after a restart and on
// every machine.
func (c Client) Base(r *Request) string {
	switch {
	case logIDPattern().MatchString(c.Thread):
		return c.Thread
	case c.Thread != "":
		return "px-" + canonjson.Digest("name", c.Thread)
	}
	parts := []string{c.API, c.Model, string(r.IDs[0])}
	return "px-" + canonjson.Digest(slices.Concat(parts, c.Session, []string{r.SystemDigest})...)
}

// Beginning names the first message of a request, for a model. It stays the same for a conversation whose
// system prompt, tools or session change on the way.
func (c Client) Beginning(r *Request) string {
	return canonjson.Digest(c.API, c.Model, string(r.IDs[0]))
}

// SessionID names the client's session; empty if the client names none.
func (c Client) SessionID() string {
	if len(c.Session) == 0 {
		return ""
	}
	return canonjson.Digest(slices.Concat(c.Session, []string{c.API})...)
}

// changingDigits are what changes in a system prompt from request to request: dates, times, counters,
// builds.
var changingDigits = lazyregexp.New(`[0-9]+`)

func systemDigest(p *prompt.Prompt) string {
	var parts []string
	for _, s := range p.System {
		if strings.HasPrefix(s.Text, "x-anthropic-billing-header:") {
			s.Text = ""
		}
		parts = append(parts, "system", changingDigits().ReplaceAllString(s.Text, "0"))
	}
	for _, tool := range p.Tools {
		parts = append(parts, "tool", tool.Name)
	}
	return canonjson.Digest(parts...)
}

// detachPrompt copies everything but the messages out of the request: a conversation keeps that longer
// than the request.
func detachPrompt(p *prompt.Prompt) *prompt.Prompt {
	out := *p
	out.Model = strings.Clone(p.Model)
	out.System, out.Tools = slices.Clone(p.System), slices.Clone(p.Tools)
	for i := range out.System {
		s := &out.System[i]
		copiedText(strings.Clone(s.Raw)).detach(reflect.ValueOf(s).Elem())
	}
	for i := range out.Tools {
		t := &out.Tools[i]
		copiedText(strings.Clone(t.Raw)).detach(reflect.ValueOf(t).Elem())
	}
	return &out
}

// Request is a request that was read. It is immutable.
type Request struct {
	Body *Body
	// Prompt is what it says. Its source has no messages if an encoder that writes new ones does not need them.
	Prompt *prompt.Prompt
	// IDs are the chained ids of its messages, as the client has them; the log may have more.
	IDs []thread.ID
	// Members are those of the body, without the messages.
	Members map[string]gjson.Result
	// SystemDigest is a digest of system and tools.
	SystemDigest string

	asRead                     *Request // of which this is another reading; nil for the request as it was read
	unmarked                   bool     // see Similar
	separable                  bool     // the source of the prompt has no messages
	hashes                     []uint64 // of the pieces of Body (see Comparison)
	objects                    int      // at most so many JSON objects are in Body up to the end of its messages
	decodedBytes               int      // about what the messages take beside the body
	heldBytes                  int      // of the bodies that parts of Body are cut from, at most
	messagesStart, messagesEnd int      // of the messages array in Body, without its brackets
	frameEnds                  []int    // the ends of the frames in Body
	messagesUpTo               []int    // how many messages there are up to each of them
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
	out := make([]thread.Message, 0, len(messages))
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
	if r.IDs, err = chainIDs(nil, r.Prompt.Messages, canceled); err != nil {
		return nil, err
	}
	return r, nil
}

// chainIDs are the chained ids of messages; those of the first are known.
func chainIDs(known []thread.ID, messages []thread.Message, canceled Canceled) ([]thread.ID, error) {
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
	r := &Request{Body: NewBody(body), Prompt: p, Members: members, SystemDigest: systemDigest(p), decodedBytes: decodedFactor * len(body), heldBytes: len(body)}
	name := messagesMember[p.Source.API]
	array, there := members[name]
	if !there || !array.IsArray() || array.Index == 0 {
		return r
	}
	delete(members, name) // it is long, and not needed
	r.messagesStart, r.messagesEnd = array.Index+1, array.Index+len(array.Raw)-1
	if !r.locateFrames(body[r.messagesStart:r.messagesEnd], r.messagesStart, p.Messages, 0) {
		r.frameEnds, r.messagesUpTo = nil, nil
		return r
	}
	if r.separable = len(r.frameEnds) > 0 && isSeparable(p.Source.API, p.System, p.Messages, len(array.Raw)-1); r.separable {
		source := *p.Source
		source.Body = body[:r.messagesStart] + body[r.messagesEnd:]
		p.Source = &source
	}
	return r
}

// locateFrames finds the frames of messages in a text that is the body from an offset on, behind so many other
// messages. It is false if one is not there.
func (r *Request) locateFrames(text string, offset int, messages []thread.Message, before int) bool {
	at := 0
	for i := range messages {
		f := messages[i].Frame
		if f == nil {
			return false
		}
		if i > 0 && messages[i-1].Frame == f {
			r.messagesUpTo[len(r.messagesUpTo)-1] = before + i + 1
			continue
		}
		from := strings.Index(text[at:], f.Raw())
		if from < 0 {
			return false
		}
		at += from + len(f.Raw())
		r.frameEnds, r.messagesUpTo = append(r.frameEnds, offset+at), append(r.messagesUpTo, before+i+1)
	}
	return true
}

// WithoutMessages is the prompt without its messages, to be kept by the conversation.
func (r *Request) WithoutMessages() *prompt.Prompt {
	out := *r.Prompt
	out.Messages = nil
	return &out
}

// isSeparable reports whether an encoder that writes new messages needs nothing of these in the source, where each
// stands with the comma before it in so many bytes.
func isSeparable(api string, system []prompt.System, messages []thread.Message, bytes int) bool {
	switch api {
	case wire.Anthropic: // a system message in the body says that the model takes some
		return !slices.ContainsFunc(messages, func(m thread.Message) bool { return m.Role == thread.System })
	case wire.Chat, wire.Gemini: // the encoder keeps what is between two elements
		for i := range system {
			if api == wire.Chat {
				bytes -= len(system[i].Raw) + 1
			}
		}
		for f := range frames(messages) {
			bytes -= len(f.Raw()) + 1
		}
		return bytes == 0
	}
	return false
}
