package dialect

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
)

// Gemini is Gemini's generateContent.
var Gemini = &Dialect{
	codec: gemini.Codec{}, Vendor: GeminiVendor,
	// Not read are streams that are one JSON array, and several answers to one request.
	CanReadAnswer: func(r *http.Request, body map[string]gjson.Result) bool {
		if strings.HasSuffix(r.URL.Path, ":streamGenerateContent") && r.URL.Query().Get("alt") != "sse" {
			return false
		}
		return body["generationConfig"].Get("candidateCount").Int() <= 1
	},
	list: partsPath,
	call: func(part gjson.Result) (string, bool) {
		c := part.Get("functionCall")
		return c.Get("name").Str, c.Exists()
	},
	// https://ai.google.dev/gemini-api/docs/thought-signatures has the value for calls without one.
	signature: "thoughtSignature", noSignature: "skip_thought_signature_validator",
	usage: "usageMetadata", usageFields: usageFields{
		written: []string{"candidatesTokenCount", "thoughtsTokenCount"},
		output:  []string{"candidatesTokenCount", "thoughtsTokenCount"}, total: "totalTokenCount",
	},
	newTranslator: func(j streamJoiner) Translator { return &contentStream{streamJoiner: j} },
	errorForm:     `{"error":{"code":500,"message":%s,"status":"INTERNAL"}}`,
}

const partsPath = "candidates.0.content.parts"

type contentStream struct {
	streamJoiner
	calls batch // of this round
}

func (m *contentStream) StartRound(counted bool) {
	m.calls = batch{}
	m.streamJoiner.StartRound(counted)
}

func (m *contentStream) TakeEvent(e sse.Event) (out []byte, last bool) {
	v := gjson.Parse(e.Data)
	if used := v.Get("usageMetadata"); used.IsObject() {
		m.roundUsage = native.MergeUsage(m.roundUsage, used.Raw)
	}
	candidate := v.Get("candidates.0")
	parts := candidate.Get("content.parts")
	data := e.Data
	if shown, changed := m.dialect.shownElements(parts, m.round, &m.calls); changed {
		data = jsonedit.Set(data, partsPath, rawjson.Array(shown))
		if len(shown) == 0 && !candidate.Get("finishReason").Exists() && !m.complete {
			return nil, false
		}
	}
	if candidate.Get("finishReason").Type == gjson.String {
		m.complete = true
	}
	if m.complete {
		m.holdBack(sse.Event{Name: e.Name, Data: data, Raw: e.WithData(data)})
		return nil, false
	}
	if m.round > 0 && m.roundUsage != "" {
		data = jsonedit.Set(data, "usageMetadata", m.totalUsage())
	}
	return e.WithData(data), false
}

func (m *contentStream) HeldContent() (out []byte) {
	for _, e := range m.heldEvents {
		parts := rawjson.RawItems(gjson.Get(e.Data, partsPath), func(p gjson.Result) bool { return !p.Get("functionCall").Exists() })
		if len(parts) > 0 {
			data := jsonedit.Set(jsonedit.Delete(e.Data, "candidates.0.finishReason"), partsPath, rawjson.Array(parts))
			out = append(out, e.WithData(data)...)
		}
	}
	return out
}
