package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// responsesSpan is a range of bytes.
type responsesSpan struct{ start, end int }

// responsesWriter collects the items of a new input.
type responsesWriter struct {
	body   *responsesBody // what the prompt was read from; nil when translating
	spans  []responsesSpan
	index  map[string]int // positions of the body's items by their text, made when needed
	pieces []responsesPiece
	tools  []prompt.Tool

	flat  map[string]bool            // calls that can only be told in words
	calls map[string]responsesAnswer // what answers the calls written so far, by the id in the prompt
	used  map[string]bool            // call ids in the output
	ids   map[string]bool            // ids of recorded items in the output
}

// responsesPiece is one or more items of the new input. At is the position of
// the first in the body when they are the same bytes there, else -1.
type responsesPiece struct {
	text  string
	at, n int
}

// responsesAnswer is how a result must look: the id that was written, and the
// type of the call.
type responsesAnswer struct{ id, typ string }

func (w *responsesWriter) item(i int) string {
	return w.body.text[w.spans[i].start:w.spans[i].end]
}

// add appends items, found again in the body at or after the last ones when
// they stand there. Without a body they may be those of a file, and are repaired.
func (w *responsesWriter) add(text string, at, n int) {
	if w.body == nil {
		text = w.repaired(text)
	}
	if w.body == nil || at < 0 || at+n > len(w.spans) || n < 1 || w.body.text[w.spans[at].start:w.spans[at+n-1].end] != text {
		at = -1
	}
	w.pieces = append(w.pieces, responsesPiece{text, at, n})
}

// next is the position in the body behind the last piece that is of it.
func (w *responsesWriter) next() int {
	if len(w.pieces) == 0 {
		return 0
	}
	last := w.pieces[len(w.pieces)-1]
	if last.at < 0 {
		return -1
	}
	return last.at + last.n
}

func (w *responsesWriter) system(blocks []prompt.System) {
	for _, s := range blocks {
		switch {
		case responsesOwn(s.Source) && strings.HasPrefix(s.Raw, "{"):
			w.add(s.Raw, w.next(), 1)
		case s.Text != "":
			role := "developer"
			if s.Role == "system" {
				role = "system"
			}
			w.add(`{"type":"message","role":"`+role+`","content":`+rawjson.Quote(s.Text)+`}`, -1, 1)
		}
	}
}

func (w *responsesWriter) write(messages []thread.Message) {
	w.calls, w.used = map[string]responsesAnswer{}, map[string]bool{}
	if w.body == nil {
		messages = responsesUnique(messages)
	}
	w.flat = responsesFlat(messages)
	for i := range messages {
		m := &messages[i]
		if m.Frame != nil && m.Frame.API() == wire.Responses && !w.flattened(m) {
			w.add(m.Frame.Raw(), m.Frame.Position(), m.Frame.Elements())
			for _, part := range m.Parts {
				if c, ok := part.(thread.ToolCall); ok {
					w.asked(c.ID, c.ID, c.Type)
				}
			}
			continue
		}
		switch m.Role {
		case thread.Assistant:
			w.assistant(m)
		case thread.Tool:
			w.tool(m)
		default:
			w.user(m)
		}
	}
}

func (w *responsesWriter) asked(id, written, typ string) {
	w.calls[id] = responsesAnswer{written, typ}
	w.used[written] = true
}

// untouched reports whether the new input is that of the body.
func (w *responsesWriter) untouched() bool {
	at := 0
	for _, p := range w.pieces {
		if p.at != at {
			return false
		}
		at += p.n
	}
	return at == len(w.spans)
}

// input joins the pieces. What stood between two items in the body stays.
func (w *responsesWriter) input() string {
	var b strings.Builder
	size := 2
	for _, p := range w.pieces {
		size += len(p.text) + 1
	}
	b.Grow(size)
	b.WriteByte('[')
	for i, p := range w.pieces {
		if i > 0 {
			before := w.pieces[i-1]
			if p.at > 0 && before.at >= 0 && before.at+before.n == p.at {
				b.WriteString(w.body.text[w.spans[p.at-1].end:w.spans[p.at].start])
			} else {
				b.WriteByte(',')
			}
		}
		if strings.HasPrefix(p.text, `"`) { // an input that was a plain string
			b.WriteString(`{"type":"message","role":"user","content":` + p.text + `}`)
		} else {
			b.WriteString(p.text)
		}
	}
	b.WriteByte(']')
	return b.String()
}

// user writes a user or system message.
func (w *responsesWriter) user(m *thread.Message) {
	role := "user"
	if m.Role == thread.System {
		role = "developer"
	}
	var content []string
	for i := 0; i < len(m.Parts); i++ {
		source := m.Parts[i].From()
		if o, ok := m.Parts[i].(thread.Opaque); ok && o.Kind == "compaction_trigger" && responsesOwn(source) {
			w.add(source.Raw, w.next(), 1)
			continue
		}
		if responsesOwn(source) {
			if own := responsesRole(source.Raw); own == "system" && m.Role == thread.System {
				role = own
			}
			if whole, n := responsesWhole(m.Parts[i:]); n == len(m.Parts) && responsesThreadRole(whole) == m.Role {
				w.add(whole, w.next(), 1)
				return
			}
		}
		if text := responsesContentText(m.Parts[i], m.Role); text != "" {
			content = append(content, text)
		}
	}
	switch {
	case len(content) > 0:
		w.add(responsesMessage(role, content), -1, 1)
	case m.Role == thread.User: // an empty turn is still a turn, and legal
		w.add(`{"type":"message","role":"user","content":""}`, -1, 1)
	}
}

func responsesMessage(role string, content []string) string {
	return `{"type":"message","role":"` + role + `","content":[` + strings.Join(content, ",") + `]}`
}

func responsesRole(raw string) string { return gjson.Get(raw, "role").Str }

// responsesThreadRole is the role of the message that an item makes, "" for
// items that are no messages.
func responsesThreadRole(raw string) thread.Role {
	switch role := responsesRole(raw); role {
	case "system", "developer":
		return thread.System
	case "user", "assistant":
		return thread.Role(role)
	}
	if strings.HasPrefix(raw, `"`) {
		return thread.User
	}
	return ""
}

// responsesWhole reports how many of the parts at the start of the list are
// exactly the content of one message item, and that item; 0 when content parts
// of it are missing or others stand between them.
func responsesWhole(parts []thread.Part) (item string, n int) {
	raw := parts[0].From().Raw
	content := gjson.Get(raw, "content")
	if !content.IsArray() {
		return raw, 1
	}
	content.ForEach(func(_, c gjson.Result) bool {
		if n > 0 && (n >= len(parts) || !responsesOwn(parts[n].From()) || parts[n].From().Raw != c.Raw) {
			n = -1
			return false
		}
		n++
		return true
	})
	return raw, max(n, 0)
}

// responsesCallID is the id for a call of another API: its own where OpenAI
// takes it and it is still free, else a hash that stays the same while the
// conversation grows.
func (w *responsesWriter) callID(id string) string {
	ok := id != "" && len(id) <= 64
	for i := 0; ok && i < len(id); i++ {
		ok = responsesNameByte(id[i])
	}
	if ok && !w.used[id] {
		return id
	}
	for n := 0; ; n++ {
		sum := sha256.Sum256([]byte(id + "\x00" + strconv.Itoa(n)))
		if made := "call_" + hex.EncodeToString(sum[:12]); !w.used[made] {
			return made
		}
	}
}

// responsesName is a function's name in the characters and the length that
// OpenAI allows.
func responsesName(name string) string {
	ok := name != "" && len(name) <= 64
	clean := []byte(name)
	for i, c := range clean {
		if !responsesNameByte(c) {
			clean[i], ok = '_', false
		}
	}
	if ok {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return string(clean[:min(len(clean), 55)]) + "_" + hex.EncodeToString(sum[:4])
}

func responsesNameByte(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
