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

// canReadAnswer is false for answers that are fetched later.
func (responses) canReadAnswer(_ *http.Request, body map[string]gjson.Result) bool {
	return !body["background"].Bool()
}

// isOurCall reports whether an item of the output is a call of one of our tools.
func isOurCall(item gjson.Result) bool {
	return item.Get("type").Str == "function_call" && isOurTool(item.Get("name").Str)
}

// withoutOurTools leaves our tools out of what a response says of its request.
func withoutOurTools(response string) string {
	declared := gjson.Get(response, "tools")
	theirs := rawElementsWhere(declared, func(tool gjson.Result) bool { return !isOurTool(tool.Get("name").Str) })
	if len(theirs) == len(rawElements(declared)) {
		return response
	}
	return jsonedit.Set(response, "tools", rawjson.Array(theirs))
}

// joinAnswers is the last response, by whose id the provider holds all of them.
func (responses) joinAnswers(rounds [][]byte) []byte {
	return []byte(withoutOurTools(joinLists(rounds, "output", "usage", responsesUsage, func(item gjson.Result, _ int) bool { return !isOurCall(item) })))
}

func (responses) translator() translator {
	return &responseStream{streamJoiner: streamJoiner{usageFields: responsesUsage}}
}

// responseStream joins streams of response events.
type responseStream struct {
	streamJoiner
	firstID  string   // of the first response, as JSON: that of the client's
	lastID   string   // of this round's
	items    int      // of this round
	shown    []string // of all rounds, as the client was shown them
	sequence int64    // the client's next number
	saved    struct { // what was so at the mark
		shown    int
		sequence int64
	}
}

func (m *responseStream) savePosition() {
	m.streamJoiner.savePosition()
	m.saved.shown, m.saved.sequence = len(m.shown), m.sequence
}

func (m *responseStream) rewind() {
	m.streamJoiner.rewind()
	m.shown, m.sequence = m.shown[:m.saved.shown], m.saved.sequence
}

func (m *responseStream) startRound(counted bool) {
	m.items = 0
	m.streamJoiner.startRound(counted)
}

func (m *responseStream) takeEvent(e sse.Event) (out []byte, last bool) {
	v := gjson.Parse(e.Data)
	kind := v.Get("type").Str
	if id := v.Get("response.id"); id.Type == gjson.String {
		m.firstID, m.lastID = cmp.Or(m.firstID, id.Raw), id.Raw
	}
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if m.round > 0 {
			return nil, false
		}
	case "response.output_item.added":
		m.indexes.assign(v.Get("output_index").Int(), !isOurCall(v.Get("item")))
	case "response.output_item.done":
		item := v.Get("item")
		m.items++
		if !isOurCall(item) {
			m.shown = append(m.shown, item.Raw)
		}
	case "response.completed", "response.incomplete":
		m.roundUsage = v.Get("response.usage").Raw
		m.complete = true
		m.holdBack(e)
		return nil, true
	}
	data := m.withFirstResponse(e.Data)
	if index := v.Get("output_index"); index.Exists() {
		to, shown := m.indexes.shownIndex(index.Int())
		switch {
		case !shown:
			return nil, false
		case to != index.Int():
			data = jsonedit.Set(data, "output_index", strconv.FormatInt(to, 10))
		}
	}
	return m.withNextNumber(e, data), false
}

// withFirstResponse is an event as the client's response has it: with the id under which that
// began, and without our tools.
func (m *responseStream) withFirstResponse(data string) string {
	response := gjson.Get(data, "response")
	if !response.IsObject() {
		return data
	}
	own := withoutOurTools(response.Raw)
	if id := gjson.Get(own, "id"); id.Exists() && id.Raw != m.firstID {
		own = jsonedit.Set(own, "id", m.firstID)
	}
	if own == response.Raw {
		return data
	}
	return jsonedit.Set(data, "response", own)
}

// withNextNumber gives an event the next number of the client's stream.
func (m *responseStream) withNextNumber(e sse.Event, data string) []byte {
	if n := gjson.Get(data, "sequence_number"); n.Exists() {
		if n.Int() != m.sequence {
			data = jsonedit.Set(data, "sequence_number", strconv.FormatInt(m.sequence, 10))
		}
		m.sequence++
	}
	return e.WithData(data)
}

func (m *responseStream) end(end streamEnd) []byte {
	if end.failure != "" {
		wrote := gjson.Get(end.providerError, "error")
		if failed := gjson.Get(end.providerError, "response.error"); failed.IsObject() {
			wrote = failed
		}
		code := `"server_error"`
		for _, name := range []string{"type", "code"} {
			if v := wrote.Get(name); v.Type == gjson.String {
				code = v.Raw
			}
		}
		data := `{"type":"error","sequence_number":0,"code":` + code + `,"message":` + rawjson.Quote(end.failure) + `,"param":null}`
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
