package proxy

import (
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// chat is OpenAI's Chat Completions API, and that of the many servers that speak
// it.
type chat struct{}

// readable is false where several answers were asked for, and for the form of
// tools that came before today's.
func (chat) readable(_ *http.Request, body map[string]gjson.Result) bool {
	return body["n"].Int() <= 1 && !body["functions"].Exists()
}

// texts are the members of a message that grow as text.
var texts = []string{"content", "reasoning_content", "reasoning", "refusal"}

func (chat) joined(rounds [][]byte) []byte {
	last := string(rounds[len(rounds)-1])
	said, used := map[string]string{}, ""
	var calls []string
	for _, body := range rounds {
		m := gjson.GetBytes(body, "choices.0.message")
		for _, name := range texts {
			if s := m.Get(name).Str; s != "" {
				said[name] = apart(said[name]) + s
			}
		}
		calls = append(calls, selected(m.Get("tool_calls"), func(c gjson.Result) bool { return !isOurTool(c.Get("function.name").Str) })...)
		used = chatUsage.joined(used, gjson.GetBytes(body, "usage").Raw)
	}
	m := gjson.Get(last, "choices.0.message").Raw
	for _, name := range texts {
		if said[name] != "" {
			m = jsonedit.Set(m, name, rawjson.Quote(said[name]))
		}
	}
	if len(calls) > 0 {
		m = jsonedit.Set(m, "tool_calls", rawjson.Array(calls))
	} else {
		m = jsonedit.Delete(m, "tool_calls")
		if gjson.Get(last, "choices.0.finish_reason").Str == "tool_calls" {
			last = jsonedit.Set(last, "choices.0.finish_reason", `"stop"`)
		}
		if gjson.Get(m, "content").Type == gjson.Null {
			m = jsonedit.Set(m, "content", `""`)
		}
	}
	last = jsonedit.Set(last, "choices.0.message", m)
	if used != "" {
		last = jsonedit.Set(last, "usage", used)
	}
	return []byte(last)
}

// apart puts an empty line behind what was said before, if anything was.
func apart(s string) string {
	if s == "" {
		return ""
	}
	return s + "\n\n"
}

func (chat) translator() translator {
	return &chatStream{streamJoiner: streamJoiner{usageFields: chatUsage}, spoke: map[string]bool{}, speaks: map[string]bool{}}
}

// chatStream joins streams of chat completion chunks.
type chatStream struct {
	streamJoiner
	id     string          // of the client's answer, as JSON
	spoke  map[string]bool // the fields in which earlier rounds said something
	speaks map[string]bool // those in which this one does
}

func (m *chatStream) again(counted bool) {
	maps.Copy(m.spoke, m.speaks)
	clear(m.speaks)
	m.streamJoiner.again(counted)
}

func (m *chatStream) next(e sse.Event) (out []byte, last bool) {
	if strings.TrimSpace(e.Data) == "[DONE]" {
		m.hold(e)
		return nil, true
	}
	v := gjson.Parse(e.Data)
	if used := v.Get("usage"); used.IsObject() {
		m.now = used.Raw
	}
	choice := v.Get("choices.0")
	data, gone := m.delta(m.named(e.Data, v.Get("id")), choice.Get("delta"))
	if choice.Get("finish_reason").Type == gjson.String {
		m.stopped = true
	}
	if m.stopped {
		m.hold(sse.Event{Name: e.Name, Data: data, Raw: e.With(data)})
		return nil, false
	}
	if gone {
		return nil, false
	}
	return e.With(data), false
}

// named gives a chunk of a further round the id of the first: the official SDK
// takes no chunk of another answer.
func (m *chatStream) named(data string, id gjson.Result) string {
	switch {
	case id.Str == "" || id.Raw == m.id:
		return data
	case m.id == "":
		m.id = id.Raw
		return data
	case m.round == 0:
		return data
	}
	return jsonedit.Set(data, "id", m.id)
}

// delta takes in what a chunk adds, and returns the chunk as the client gets it,
// and whether nothing is left of it.
func (m *chatStream) delta(data string, d gjson.Result) (chunk string, gone bool) {
	if !d.IsObject() {
		return data, false
	}
	for _, name := range texts {
		s := d.Get(name).Str
		if s == "" {
			continue
		}
		if m.spoke[name] && !m.speaks[name] {
			data = jsonedit.Set(data, "choices.0.delta."+name, rawjson.Quote("\n\n"+s))
		}
		m.speaks[name] = true
	}
	if m.round > 0 && d.Get("role").Exists() {
		data = jsonedit.Delete(data, "choices.0.delta.role") // some clients would add it to the first
	}
	calls := d.Get("tool_calls")
	if calls.Get("#").Int() == 0 {
		return data, m.round > 0 && nothing(data)
	}
	var shown []string
	for c := range rawjson.Items(calls) {
		i := c.Get("index").Int()
		if _, known := m.indexes.at[i]; !known {
			m.indexes.put(i, !isOurTool(c.Get("function.name").Str))
		}
		switch to, show := m.indexes.of(i); {
		case !show:
		case to == i:
			shown = append(shown, c.Raw)
		default:
			shown = append(shown, jsonedit.Set(c.Raw, "index", strconv.FormatInt(to, 10)))
		}
	}
	if len(shown) > 0 {
		list := rawjson.Array(shown)
		if list == strings.TrimSpace(calls.Raw) {
			return data, false
		}
		return jsonedit.Set(data, "choices.0.delta.tool_calls", list), false
	}
	data = jsonedit.Delete(data, "choices.0.delta.tool_calls")
	return data, nothing(data)
}

// nothing reports whether a chunk says nothing to anybody.
func nothing(data string) bool {
	for _, x := range rawjson.Members(gjson.Get(data, "choices.0.delta")) {
		if x.Type != gjson.Null && (x.Type != gjson.String || x.Str != "") {
			return false
		}
	}
	return gjson.Get(data, "choices.0.finish_reason").Type != gjson.String && !gjson.Get(data, "usage").IsObject()
}

func (m *chatStream) rest() (out []byte) {
	for _, e := range m.held {
		data := jsonedit.Delete(jsonedit.Delete(e.Data, "choices.0.delta.tool_calls"), "usage")
		if gjson.Get(data, "choices.0").Exists() {
			data = jsonedit.Set(data, "choices.0.finish_reason", "null")
		}
		if rawjson.Valid(data) && !nothing(data) {
			out = append(out, e.With(data)...)
		}
	}
	return out
}

func (m *chatStream) end(how streamEnd) []byte {
	if out := how.failed("", "error", `{"error":{"message":%s,"type":"server_error","code":null}}`); out != nil {
		return out
	}
	return m.release(func(data string) string {
		if m.round > 0 && gjson.Get(data, "usage").IsObject() {
			data = jsonedit.Set(data, "usage", m.usage())
		}
		if how.dangling && gjson.Get(data, "choices.0.finish_reason").Str == "tool_calls" {
			data = jsonedit.Set(data, "choices.0.finish_reason", `"stop"`)
		}
		return data
	})
}
