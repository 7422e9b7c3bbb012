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

// canReadAnswer is false where several answers were asked for, and for the form of
// tools that came before today's.
func (chat) canReadAnswer(_ *http.Request, body map[string]gjson.Result) bool {
	return body["n"].Int() <= 1 && !body["functions"].Exists()
}

// textMembers are the members of a message that grow as text.
var textMembers = []string{"content", "reasoning_content", "reasoning", "refusal"}

func (chat) joinAnswers(rounds [][]byte) []byte {
	last := string(rounds[len(rounds)-1])
	said, used := map[string]string{}, ""
	var calls []string
	for _, body := range rounds {
		m := gjson.GetBytes(body, "choices.0.message")
		for _, name := range textMembers {
			if s := m.Get(name).Str; s != "" {
				said[name] = withBlankLine(said[name]) + s
			}
		}
		calls = append(calls, rawElementsWhere(m.Get("tool_calls"), func(c gjson.Result) bool { return !isOurTool(c.Get("function.name").Str) })...)
		used = chatUsage.joinUsage(used, gjson.GetBytes(body, "usage").Raw)
	}
	m := gjson.Get(last, "choices.0.message").Raw
	for _, name := range textMembers {
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

// withBlankLine puts an empty line behind what was said before, if anything was.
func withBlankLine(s string) string {
	if s == "" {
		return ""
	}
	return s + "\n\n"
}

func (chat) translator() translator {
	return &chatStream{streamJoiner: streamJoiner{usageFields: chatUsage}, earlierTexts: map[string]bool{}, roundTexts: map[string]bool{}}
}

// chatStream joins streams of chat completion chunks.
type chatStream struct {
	streamJoiner
	id           string          // of the client's answer, as JSON
	earlierTexts map[string]bool // the fields in which earlier rounds said something
	roundTexts   map[string]bool // those in which this one does
}

func (m *chatStream) startRound(counted bool) {
	maps.Copy(m.earlierTexts, m.roundTexts)
	clear(m.roundTexts)
	m.streamJoiner.startRound(counted)
}

func (m *chatStream) takeEvent(e sse.Event) (out []byte, last bool) {
	if strings.TrimSpace(e.Data) == "[DONE]" {
		m.holdBack(e)
		return nil, true
	}
	v := gjson.Parse(e.Data)
	if used := v.Get("usage"); used.IsObject() {
		m.roundUsage = used.Raw
	}
	choice := v.Get("choices.0")
	data, gone := m.shownDelta(m.withFirstID(e.Data, v.Get("id")), choice.Get("delta"))
	if choice.Get("finish_reason").Type == gjson.String {
		m.complete = true
	}
	if m.complete {
		m.holdBack(sse.Event{Name: e.Name, Data: data, Raw: e.WithData(data)})
		return nil, false
	}
	if gone {
		return nil, false
	}
	return e.WithData(data), false
}

// withFirstID gives a chunk of a further round the id of the first: the official SDK
// takes no chunk of another answer.
func (m *chatStream) withFirstID(data string, id gjson.Result) string {
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

// shownDelta takes in what a chunk adds, and returns the chunk as the client gets it,
// and whether nothing is left of it.
func (m *chatStream) shownDelta(data string, d gjson.Result) (chunk string, gone bool) {
	if !d.IsObject() {
		return data, false
	}
	for _, name := range textMembers {
		s := d.Get(name).Str
		if s == "" {
			continue
		}
		if m.earlierTexts[name] && !m.roundTexts[name] {
			data = jsonedit.Set(data, "choices.0.delta."+name, rawjson.Quote("\n\n"+s))
		}
		m.roundTexts[name] = true
	}
	if m.round > 0 && d.Get("role").Exists() {
		data = jsonedit.Delete(data, "choices.0.delta.role") // some clients would add it to the first
	}
	calls := d.Get("tool_calls")
	if calls.Get("#").Int() == 0 {
		return data, m.round > 0 && isEmptyChunk(data)
	}
	var shown []string
	for c := range rawjson.Items(calls) {
		i := c.Get("index").Int()
		if _, known := m.indexes.shownAs[i]; !known {
			m.indexes.assign(i, !isOurTool(c.Get("function.name").Str))
		}
		switch to, show := m.indexes.shownIndex(i); {
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
	return data, isEmptyChunk(data)
}

// isEmptyChunk reports whether a chunk says nothing to anybody.
func isEmptyChunk(data string) bool {
	for _, x := range rawjson.Members(gjson.Get(data, "choices.0.delta")) {
		if x.Type != gjson.Null && (x.Type != gjson.String || x.Str != "") {
			return false
		}
	}
	return gjson.Get(data, "choices.0.finish_reason").Type != gjson.String && !gjson.Get(data, "usage").IsObject()
}

func (m *chatStream) heldContent() (out []byte) {
	for _, e := range m.heldEvents {
		data := jsonedit.Delete(jsonedit.Delete(e.Data, "choices.0.delta.tool_calls"), "usage")
		if gjson.Get(data, "choices.0").Exists() {
			data = jsonedit.Set(data, "choices.0.finish_reason", "null")
		}
		if rawjson.Valid(data) && !isEmptyChunk(data) {
			out = append(out, e.WithData(data)...)
		}
	}
	return out
}

func (m *chatStream) end(end streamEnd) []byte {
	if out := end.failureEvent("", "error", `{"error":{"message":%s,"type":"server_error","code":null}}`); out != nil {
		return out
	}
	return m.releaseHeld(func(data string) string {
		if m.round > 0 && gjson.Get(data, "usage").IsObject() {
			data = jsonedit.Set(data, "usage", m.totalUsage())
		}
		if end.callsRemoved && gjson.Get(data, "choices.0.finish_reason").Str == "tool_calls" {
			data = jsonedit.Set(data, "choices.0.finish_reason", `"stop"`)
		}
		return data
	})
}
