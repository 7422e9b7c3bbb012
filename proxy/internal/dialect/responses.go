package dialect

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Responses is OpenAI's Responses API. Of several responses the provider holds all under the id
// of the last, which is therefore that of the joined one.
var Responses = &Dialect{
	codec: openai.Responses{}, Vendor: OpenAIVendor,
	// Not read are answers that are fetched later.
	CanReadAnswer: func(_ *http.Request, body map[string]gjson.Result) bool { return !body["background"].Bool() },
	list:          "output",
	call: func(item gjson.Result) (string, bool) {
		kind := item.Get("type").Str
		if kind != "function_call" {
			return "", strings.HasSuffix(kind, "_call")
		}
		return item.Get("name").Str, true
	},
	usage: "usage", usageFields: usageFields{
		written: []string{"output_tokens", "output_tokens_details", "cost", "cost_details"},
		output:  []string{"output_tokens"}, total: "total_tokens",
	},
	finishJoined:  func(d *Dialect, joined string, _ [][]byte) string { return d.withoutOurTools(joined) },
	newTranslator: func(j streamJoiner) Translator { return &ResponseStream{streamJoiner: j} },
}

// withoutOurTools takes our tools out of those that a response repeats from its request.
func (d *Dialect) withoutOurTools(response string) string {
	declared := gjson.Get(response, "tools")
	theirs := rawjson.RawItems(declared, func(tool gjson.Result) bool { return !d.IsOurTool(tool.Get("name").Str) })
	if len(theirs) == len(rawjson.RawItems(declared, nil)) {
		return response
	}
	return jsonedit.Set(response, "tools", rawjson.Array(theirs))
}

type ResponseStream struct {
	streamJoiner
	FirstID  string   // of the first response, as JSON: that of the client's
	LastID   string   // of this round's
	items    int      // of this round
	shown    []string // the items of all rounds, as the client was shown them
	sequence int64    // the client's next sequence number
	saved    struct { // by SavePosition
		shown    int
		sequence int64
	}
}

func (m *ResponseStream) SavePosition() {
	m.streamJoiner.SavePosition()
	m.saved.shown, m.saved.sequence = len(m.shown), m.sequence
}

func (m *ResponseStream) Rewind() {
	m.streamJoiner.Rewind()
	m.shown, m.sequence = m.shown[:m.saved.shown], m.saved.sequence
}

func (m *ResponseStream) StartRound(counted bool) {
	m.items = 0
	m.streamJoiner.StartRound(counted)
}

func (m *ResponseStream) TakeEvent(e sse.Event) (out []byte, last bool) {
	v := gjson.Parse(e.Data)
	kind := v.Get("type").Str
	if id := v.Get("response.id"); id.Type == gjson.String {
		m.FirstID, m.LastID = cmp.Or(m.FirstID, id.Raw), id.Raw
	}
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if m.round > 0 {
			return nil, false
		}
	case "response.output_item.added":
		m.indexes.assign(v.Get("output_index").Int(), m.dialect.isShown(v.Get("item"), m.round))
	case "response.output_item.done":
		item := v.Get("item")
		m.items++
		if m.dialect.isShown(item, m.round) {
			m.shown = append(m.shown, item.Raw)
		}
	case "response.completed", "response.incomplete":
		m.roundUsage = v.Get("response.usage").Raw
		m.complete = true
		m.holdBack(e)
		return nil, true
	}
	data := m.withFirstResponse(e.Data)
	if v.Get("output_index").Exists() {
		var shown bool
		if data, shown = m.indexes.withShownIndex(data, "output_index"); !shown {
			return nil, false
		}
	}
	return m.withNextNumber(e, data), false
}

// withFirstResponse is an event as one of the client's response: with the id of the first, and
// without our tools.
func (m *ResponseStream) withFirstResponse(data string) string {
	response := gjson.Get(data, "response")
	if !response.IsObject() {
		return data
	}
	own := m.dialect.withoutOurTools(response.Raw)
	if id := gjson.Get(own, "id"); id.Exists() && id.Raw != m.FirstID {
		own = jsonedit.Set(own, "id", m.FirstID)
	}
	if own == response.Raw {
		return data
	}
	return jsonedit.Set(data, "response", own)
}

// withNextNumber gives an event the next number of the client's stream.
func (m *ResponseStream) withNextNumber(e sse.Event, data string) []byte {
	if n := gjson.Get(data, "sequence_number"); n.Exists() {
		if n.Int() != m.sequence {
			data = jsonedit.Set(data, "sequence_number", strconv.FormatInt(m.sequence, 10))
		}
		m.sequence++
	}
	return e.WithData(data)
}

func (m *ResponseStream) End(end StreamEnd) []byte {
	if end.Failure != "" {
		wrote := gjson.Get(end.ProviderError, "error")
		if failed := gjson.Get(end.ProviderError, "response.error"); failed.IsObject() {
			wrote = failed
		}
		code := `"server_error"`
		for _, name := range []string{"type", "code"} {
			if v := wrote.Get(name); v.Type == gjson.String {
				code = v.Raw
			}
		}
		data := `{"type":"error","sequence_number":0,"code":` + code + `,"message":` + rawjson.Quote(end.Failure) + `,"param":null}`
		return m.withNextNumber(sse.Event{Name: "error"}, data)
	}
	var out []byte
	for _, e := range m.heldEvents {
		data := m.withFirstResponse(e.Data)
		if m.round > 0 || len(m.shown) < m.items {
			data = jsonedit.Set(data, "response.output", rawjson.Array(m.shown))
			if used := m.totalUsage(); used != "" {
				data = jsonedit.Set(data, "response.usage", used)
			}
		}
		out = append(out, m.withNextNumber(e, data)...)
	}
	m.heldEvents = nil
	return out
}
