package proxy

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// contents is Gemini's generateContent.
type contents struct{}

// canReadAnswer is false for streams that are one JSON array, and where several
// answers were asked for.
func (contents) canReadAnswer(r *http.Request, body map[string]gjson.Result) bool {
	if strings.HasSuffix(r.URL.Path, ":streamGenerateContent") && r.URL.Query().Get("alt") != "sse" {
		return false
	}
	return body["generationConfig"].Get("candidateCount").Int() <= 1
}

// isShownPart reports whether the client is shown a part: any but a call of one of our tools.
func isShownPart(part gjson.Result) bool { return !isOurTool(part.Get("functionCall.name").Str) }

func (contents) joinAnswers(rounds [][]byte) []byte {
	return []byte(joinLists(rounds, "candidates.0.content.parts", "usageMetadata", contentsUsage, func(p gjson.Result, _ int) bool { return isShownPart(p) }))
}

func (contents) translator() translator {
	return &contentStream{streamJoiner{usageFields: contentsUsage}}
}

// contentStream joins streams of generateContent responses.
type contentStream struct{ streamJoiner }

func (m *contentStream) takeEvent(e sse.Event) (out []byte, last bool) {
	v := gjson.Parse(e.Data)
	if used := v.Get("usageMetadata"); used.IsObject() {
		m.roundUsage = mergeMembers(m.roundUsage, used.Raw)
	}
	candidate := v.Get("candidates.0")
	parts := candidate.Get("content.parts")
	data := e.Data
	if shown := rawElementsWhere(parts, isShownPart); int64(len(shown)) < parts.Get("#").Int() {
		data = jsonedit.Set(data, "candidates.0.content.parts", rawjson.Array(shown))
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

func (m *contentStream) heldContent() (out []byte) {
	for _, e := range m.heldEvents {
		parts := rawElementsWhere(gjson.Get(e.Data, "candidates.0.content.parts"), func(p gjson.Result) bool { return !p.Get("functionCall").Exists() })
		if len(parts) > 0 {
			data := jsonedit.Set(jsonedit.Delete(e.Data, "candidates.0.finishReason"), "candidates.0.content.parts", rawjson.Array(parts))
			out = append(out, e.WithData(data)...)
		}
	}
	return out
}

func (m *contentStream) end(end streamEnd) []byte {
	if out := end.failureEvent("", "error", `{"error":{"code":500,"message":%s,"status":"INTERNAL"}}`); out != nil {
		return out
	}
	return m.releaseHeld(func(data string) string {
		if m.round > 0 && gjson.Get(data, "usageMetadata").IsObject() {
			data = jsonedit.Set(data, "usageMetadata", m.totalUsage())
		}
		return data
	})
}
