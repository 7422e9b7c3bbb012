package dialect

import (
	"cmp"
	"maps"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Chat is OpenAI's Chat Completions API, and that of the many servers that speak it.
var Chat = &Dialect{
	codec: openai.Chat{}, Vendor: OpenAIVendor,
	// Not read are several answers to one request, and the functions that were before tools.
	CanReadAnswer: func(_ *http.Request, body map[string]gjson.Result) bool {
		return body["n"].Int() <= 1 && !body["functions"].Exists()
	},
	list:  "choices.0.message.tool_calls",
	call:  func(c gjson.Result) (string, bool) { return c.Get("function.name").Str, true },
	usage: "usage", usageFields: usageFields{
		written: []string{"completion_tokens", "completion_tokens_details", "cost", "cost_details"},
		output:  []string{"completion_tokens"}, total: "total_tokens",
	},
	stop: "choices.0.finish_reason", eventStop: "choices.0.finish_reason", toolStop: "tool_calls", endStop: "stop",
	finishJoined: withAllTexts,
	newTranslator: func(j streamJoiner) Translator {
		return &chatStream{streamJoiner: j, earlierTexts: map[string]bool{}, roundTexts: map[string]bool{}}
	},
	errorForm: `{"error":{"message":%s,"type":"server_error","code":null}}`,
}

// textMembers are the members of a message that grow as text.
var textMembers = []string{"content", "reasoning_content", "reasoning", "refusal"}

// withAllTexts puts the texts of all rounds into the joined answer.
func withAllTexts(_ *Dialect, joined string, rounds [][]byte) string {
	const message = "choices.0.message"
	for _, name := range textMembers {
		var texts []string
		for _, body := range rounds {
			if s := gjson.GetBytes(body, message+"."+name).Str; s != "" {
				texts = append(texts, s)
			}
		}
		if len(texts) > 0 {
			joined = jsonedit.Set(joined, message+"."+name, rawjson.Quote(strings.Join(texts, "\n\n")))
		}
	}
	if gjson.Get(joined, message+".tool_calls.#").Int() == 0 {
		joined = jsonedit.Delete(joined, message+".tool_calls")
		if gjson.Get(joined, message+".content").Type == gjson.Null {
			joined = jsonedit.Set(joined, message+".content", `""`)
		}
	}
	return joined
}

type chatStream struct {
	streamJoiner
	id           string          // of the client's answer, as JSON
	earlierTexts map[string]bool // the members in which earlier rounds wrote text
	roundTexts   map[string]bool // those in which this one does
}

func (m *chatStream) StartRound(counted bool) {
	maps.Copy(m.earlierTexts, m.roundTexts)
	clear(m.roundTexts)
	m.streamJoiner.StartRound(counted)
}

func (m *chatStream) TakeEvent(e sse.Event) (out []byte, last bool) {
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

// withFirstID gives a chunk of a further round the id of the first round: the official SDK takes
// no chunk of another answer.
func (m *chatStream) withFirstID(data string, id gjson.Result) string {
	if id.Str == "" {
		return data
	}
	if m.id = cmp.Or(m.id, id.Raw); m.id == id.Raw || m.round == 0 {
		return data
	}
	return jsonedit.Set(data, "id", m.id)
}

// shownDelta takes in what a chunk adds. It returns the chunk as the client gets it, and whether
// nothing is left of it.
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
			m.indexes.assign(i, !m.dialect.IsOurTool(c.Get("function.name").Str))
		}
		if call, show := m.indexes.withShownIndex(c.Raw, "index"); show {
			shown = append(shown, call)
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

// isEmptyChunk reports whether a chunk holds nothing of an answer.
func isEmptyChunk(data string) bool {
	for _, x := range rawjson.Members(gjson.Get(data, "choices.0.delta")) {
		if x.Type != gjson.Null && (x.Type != gjson.String || x.Str != "") {
			return false
		}
	}
	return gjson.Get(data, "choices.0.finish_reason").Type != gjson.String && !gjson.Get(data, "usage").IsObject()
}

func (m *chatStream) HeldContent() (out []byte) {
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
