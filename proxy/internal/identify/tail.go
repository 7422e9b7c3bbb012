package identify

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// extend reads a body that continues this one: everything around the messages is the same, and so are most
// of them. Only the rest is decoded. It returns nil if it was canceled, or if the whole has to be
// decoded.
//
// same is how many bytes both bodies begin with.
func (r *Request) extend(codec wire.Codec, body *Body, same int, canceled Canceled) *Request {
	behind := r.Body.cut(r.messagesEnd, r.Body.Len())
	end := body.Len() - (r.Body.Len() - r.messagesEnd)
	if len(r.frameEnds) == 0 || end < r.messagesStart || !body.has(end, strings.Join(behind, "")) {
		return nil
	}
	same = min(same, r.messagesEnd, end)
	n := len(r.frameEnds)
	for n > 0 && (r.frameEnds[n-1] > same || r.Prompt.Messages[r.messagesUpTo[n-1]-1].Role == thread.Assistant) {
		n-- // the model's items could continue
	}
	if n == 0 {
		return nil
	}
	from, kept := r.frameEnds[n-1], r.messagesUpTo[n-1]
	if r.holdsTooMuchFor(body, end-from) {
		return nil
	}
	added := body.slice(from, end)
	rest, more := strings.CutPrefix(strings.TrimLeft(added, " \t\r\n"), ",")
	if more == (strings.TrimSpace(rest) == "") {
		return nil
	}
	before := r.Prompt.Messages[:kept]
	news, ok := decodeTail(codec, rest, before)
	if !ok {
		return nil
	}
	news, err := markKinds(news, &before[kept-1], canceled)
	if err != nil {
		return nil
	}
	last := before[kept-1].Frame
	shiftFrames(news, last.Position()+last.Elements())
	p := *r.Prompt
	p.Messages = slices.Concat(before, news)
	ids, err := chainIDs(r.IDs[:kept], p.Messages, canceled)
	if err != nil {
		return nil
	}
	next := &Request{
		Body:   NewBody(slices.Concat(r.Body.cut(0, same), []string{strings.Clone(body.slice(same, end))}, behind)...),
		Prompt: &p, IDs: ids, Members: r.Members, SystemDigest: r.SystemDigest,
		separable:     r.separable && isSeparable(codec.API(), nil, news, end-from),
		decodedBytes:  r.decodedBytes*from/r.Body.Len() + decodedFactor*len(rest),
		heldBytes:     r.heldBytes + len(added),
		messagesStart: r.messagesStart, messagesEnd: end, frameEnds: slices.Clip(r.frameEnds[:n]), messagesUpTo: slices.Clip(r.messagesUpTo[:n]),
	}
	if !next.locateFrames(added, from, news, kept) {
		return nil
	}
	p.Source = next.sourceAfter(r, kept, news)
	return next
}

// sourceAfter is the source of a request that has other messages from a position on than the one before it.
func (r *Request) sourceAfter(before *Request, kept int, news []thread.Message) *prompt.Source {
	source := *before.Prompt.Source
	if !r.separable {
		source.Body = r.Body.String()
	}
	for f := range frames(before.Prompt.Messages[kept:]) {
		source.Elements -= f.Elements()
	}
	for f := range frames(news) {
		source.Elements += f.Elements()
	}
	return &source
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

func shiftFrames(messages []thread.Message, by int) {
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

// decodeTail decodes elements of a messages array that follow other messages.
func decodeTail(codec wire.Codec, elements string, before []thread.Message) ([]thread.Message, bool) {
	if strings.TrimSpace(elements) == "" {
		return nil, true
	}
	name, array := messagesMember[codec.API()], "["+elements+"]"
	body := `{"` + name + `":` + array + `}`
	if gjson.Get(body, name).Raw != array {
		return nil, false // the messages end before, and another member is a list too
	}
	p, err := codec.Decode(body)
	if err != nil || len(p.System) > 0 || len(p.Messages) == 0 {
		return nil, false // instructions at the beginning would not be instructions here
	}
	if codec.API() == wire.Gemini {
		return p.Messages, numberCalls(p.Messages, before)
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		for _, c := range m.Calls() {
			if thread.IsLocalID(c.ID) {
				return nil, false
			}
		}
		if r, ok := m.Result(); ok && thread.IsLocalID(r.CallID) {
			return nil, false
		}
	}
	return withToolNames(before, p.Messages), true
}

// numberCalls gives Gemini's calls without ids, and their results, the numbers that they have behind other
// messages. It is false if the numbers depend on those messages: if results come first, or name a
// call that is not here.
func numberCalls(news, before []thread.Message) bool {
	if news[0].Role != thread.Assistant {
		return false
	}
	called, first := map[string]bool{}, -1
	for i := range news {
		m := &news[i]
		for k, part := range m.Parts {
			switch p := part.(type) {
			case thread.ToolCall:
				called[p.ID] = true
				if !thread.IsLocalID(p.ID) {
					continue
				}
				if wireID(p.Raw) != "" {
					return false // an id on the wire that looks like ours
				}
				if first < 0 {
					first = countNumbered(before)
				}
				p.ID = renumber(p.ID, first)
				m.Parts[k] = p
			case thread.ToolResult:
				if id := wireID(p.Raw); !called[p.CallID] || id != "" && (id != p.CallID || thread.IsLocalID(id)) {
					return false
				}
				if thread.IsLocalID(p.CallID) {
					p.CallID = renumber(p.CallID, first)
					m.Parts[k] = p
				}
			}
		}
	}
	return true
}

func wireID(part string) (id string) {
	for _, v := range rawjson.Members(gjson.Parse(part)) {
		if own := v.Get("id"); v.IsObject() && own.Exists() {
			id = own.String()
		}
	}
	return id
}

func countNumbered(messages []thread.Message) int {
	n := 0
	for i := range messages {
		for _, part := range messages[i].Parts {
			if c, ok := part.(thread.ToolCall); ok && thread.IsLocalID(c.ID) && wireID(c.Raw) == "" {
				n++
			}
		}
	}
	return n
}

func renumber(id string, first int) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, strings.TrimSuffix(thread.LocalID(0), "0"))) // as the codec made it
	return thread.LocalID(first + n)
}

// ReadContinued reads a body that continues a history which it does not hold. Of its first messages, so
// many retained ones, those that the history holds are left out. It returns the size of the whole in
// bytes, too.
func ReadContinued(codec wire.Codec, body string, before []thread.Message, retained int, canceled Canceled) (*Request, int, error) {
	p, err := Decode(codec, body, canceled)
	if err != nil {
		return nil, 0, err
	}
	news := withToolNames(before, withoutKnown(before, p.Messages, retained))
	known, size := make([]thread.ID, len(before)), len(body)
	for i := range before {
		known[i] = before[i].ID
		if f := before[i].Frame; f != nil && before[i].Index == 0 {
			size += len(f.Raw())
		}
	}
	p.Messages = append(before, news...)
	ids, err := chainIDs(known, p.Messages, canceled)
	if err != nil {
		return nil, 0, err
	}
	return &Request{Body: NewBody(body), Prompt: p, IDs: ids, Members: members(body), SystemDigest: systemDigest(p)}, size, nil
}

// withoutKnown drops those of the first n messages that the history holds.
func withoutKnown(before, messages []thread.Message, n int) []thread.Message {
	if n == 0 || len(before) == 0 {
		return messages
	}
	there := map[thread.ID]bool{}
	for i := range before {
		if m := &before[i]; m.Role == thread.User || m.Role == thread.System {
			there[thread.ChainID("", m)] = true
		}
	}
	first, rest := slices.Clone(messages[:min(n, len(messages))]), messages[min(n, len(messages)):]
	first = slices.DeleteFunc(first, func(m thread.Message) bool { return there[thread.ChainID("", &m)] })
	return append(first, rest...)
}

// withToolNames gives results the tool names of their calls in the history.
func withToolNames(before, news []thread.Message) []thread.Message {
	var names map[string]string
	for i := range news {
		r, ok := news[i].Result()
		if !ok || r.Tool != "" {
			continue
		}
		if names == nil {
			names = map[string]string{}
			for j := range before {
				for _, c := range before[j].Calls() {
					names[c.ID] = c.Name
				}
			}
		}
		if r.Tool = names[r.CallID]; r.Tool != "" {
			news[i].Parts = []thread.Part{r}
		}
	}
	return news
}
