package proxy

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// responses is OpenAI's Responses API.
type responses struct{}

// readable is false for answers that are fetched later.
func (responses) readable(_ *http.Request, body map[string]gjson.Result) bool {
	return !body["background"].Bool()
}

// ourItem reports whether an item of the output is a call of one of our tools.
func ourItem(item gjson.Result) bool {
	return item.Get("type").Str == "function_call" && isOurTool(item.Get("name").Str)
}

// withoutOurTools leaves our tools out of what a response says of its request.
func withoutOurTools(response string) string {
	declared := gjson.Get(response, "tools")
	theirs := selected(declared, func(tool gjson.Result) bool { return !isOurTool(tool.Get("name").Str) })
	if len(theirs) == len(elements(declared)) {
		return response
	}
	return jsonedit.Set(response, "tools", rawjson.Array(theirs))
}

// joined is the last response, by whose id the provider holds all of them.
func (responses) joined(rounds [][]byte) []byte {
	return []byte(withoutOurTools(joined(rounds, "output", "usage", responsesUsage, func(item gjson.Result, _ int) bool { return !ourItem(item) })))
}

func (responses) translator() translator {
	return &responseStream{streamJoiner: streamJoiner{usageFields: responsesUsage}}
}

// responseStream joins streams of response events.
type responseStream struct {
	streamJoiner
	id       string   // of the first response, as JSON: that of the client's
	last     string   // of this round's
	items    int      // of this round
	shown    []string // of all rounds, as the client was shown them
	sequence int64    // the client's next number
	then     struct { // what was so at the mark
		shown    int
		sequence int64
	}
}

func (m *responseStream) mark() {
	m.streamJoiner.mark()
	m.then.shown, m.then.sequence = len(m.shown), m.sequence
}

func (m *responseStream) withdraw() {
	m.streamJoiner.withdraw()
	m.shown, m.sequence = m.shown[:m.then.shown], m.then.sequence
}

func (m *responseStream) again(counted bool) {
	m.items = 0
	m.streamJoiner.again(counted)
}

func (m *responseStream) next(e sse.Event) (out []byte, last bool) {
	v := gjson.Parse(e.Data)
	kind := v.Get("type").Str
	if id := v.Get("response.id"); id.Type == gjson.String {
		m.id, m.last = cmp.Or(m.id, id.Raw), id.Raw
	}
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if m.round > 0 {
			return nil, false
		}
	case "response.output_item.added":
		m.indexes.put(v.Get("output_index").Int(), !ourItem(v.Get("item")))
	case "response.output_item.done":
		item := v.Get("item")
		m.items++
		if !ourItem(item) {
			m.shown = append(m.shown, item.Raw)
		}
	case "response.completed", "response.incomplete":
		m.now = v.Get("response.usage").Raw
		m.stopped = true
		m.hold(e)
		return nil, true
	}
	data := m.told(e.Data)
	if index := v.Get("output_index"); index.Exists() {
		to, shown := m.indexes.of(index.Int())
		switch {
		case !shown:
			return nil, false
		case to != index.Int():
			data = jsonedit.Set(data, "output_index", strconv.FormatInt(to, 10))
		}
	}
	return m.numbered(e, data), false
}

// told is an event as the client's response has it: with the id under which that
// began, and without our tools.
func (m *responseStream) told(data string) string {
	response := gjson.Get(data, "response")
	if !response.IsObject() {
		return data
	}
	own := withoutOurTools(response.Raw)
	if id := gjson.Get(own, "id"); id.Exists() && id.Raw != m.id {
		own = jsonedit.Set(own, "id", m.id)
	}
	if own == response.Raw {
		return data
	}
	return jsonedit.Set(data, "response", own)
}

// numbered gives an event the next number of the client's stream.
func (m *responseStream) numbered(e sse.Event, data string) []byte {
	if n := gjson.Get(data, "sequence_number"); n.Exists() {
		if n.Int() != m.sequence {
			data = jsonedit.Set(data, "sequence_number", strconv.FormatInt(m.sequence, 10))
		}
		m.sequence++
	}
	return e.With(data)
}

func (m *responseStream) end(how streamEnd) []byte {
	if how.failure != "" {
		wrote := gjson.Get(how.wrote, "error")
		if failed := gjson.Get(how.wrote, "response.error"); failed.IsObject() {
			wrote = failed
		}
		code := `"server_error"`
		for _, name := range []string{"type", "code"} {
			if v := wrote.Get(name); v.Type == gjson.String {
				code = v.Raw
			}
		}
		data := `{"type":"error","sequence_number":0,"code":` + code + `,"message":` + rawjson.Quote(how.failure) + `,"param":null}`
		return m.numbered(sse.Event{Name: "error"}, data)
	}
	var out []byte
	for _, e := range m.held {
		data := m.told(e.Data)
		if m.round > 0 || len(m.shown) < m.items {
			data = jsonedit.Set(data, "response.output", rawjson.Array(m.shown))
			if used := m.usage(); used != "" {
				data = jsonedit.Set(data, "response.usage", used)
			}
		}
		out = append(out, m.numbered(e, data)...)
	}
	m.held = nil
	return out
}
