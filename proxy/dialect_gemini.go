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

// readable is false for streams that are one JSON array, and where several
// answers were asked for.
func (contents) readable(r *http.Request, body map[string]gjson.Result) bool {
	if strings.HasSuffix(r.URL.Path, ":streamGenerateContent") && r.URL.Query().Get("alt") != "sse" {
		return false
	}
	return body["generationConfig"].Get("candidateCount").Int() <= 1
}

// shownPart reports whether the client is shown a part: any but a call of one of our tools.
func shownPart(part gjson.Result) bool { return !isOurTool(part.Get("functionCall.name").Str) }

func (contents) joined(rounds [][]byte) []byte {
	return []byte(joined(rounds, "candidates.0.content.parts", "usageMetadata", contentsUsage, func(p gjson.Result, _ int) bool { return shownPart(p) }))
}

func (contents) translator() translator {
	return &contentStream{streamJoiner{usageFields: contentsUsage}}
}

// contentStream joins streams of generateContent responses.
type contentStream struct{ streamJoiner }

func (m *contentStream) next(e sse.Event) (out []byte, last bool) {
	v := gjson.Parse(e.Data)
	if used := v.Get("usageMetadata"); used.IsObject() {
		m.now = over(m.now, used.Raw)
	}
	candidate := v.Get("candidates.0")
	parts := candidate.Get("content.parts")
	data := e.Data
	if shown := selected(parts, shownPart); int64(len(shown)) < parts.Get("#").Int() {
		data = jsonedit.Set(data, "candidates.0.content.parts", rawjson.Array(shown))
		if len(shown) == 0 && !candidate.Get("finishReason").Exists() && !m.stopped {
			return nil, false
		}
	}
	if candidate.Get("finishReason").Type == gjson.String {
		m.stopped = true
	}
	if m.stopped {
		m.hold(sse.Event{Name: e.Name, Data: data, Raw: e.With(data)})
		return nil, false
	}
	if m.round > 0 && m.now != "" {
		data = jsonedit.Set(data, "usageMetadata", m.usage())
	}
	return e.With(data), false
}

func (m *contentStream) rest() (out []byte) {
	for _, e := range m.held {
		parts := selected(gjson.Get(e.Data, "candidates.0.content.parts"), func(p gjson.Result) bool { return !p.Get("functionCall").Exists() })
		if len(parts) > 0 {
			data := jsonedit.Set(jsonedit.Delete(e.Data, "candidates.0.finishReason"), "candidates.0.content.parts", rawjson.Array(parts))
			out = append(out, e.With(data)...)
		}
	}
	return out
}

func (m *contentStream) end(how streamEnd) []byte {
	if out := how.failed("", "error", `{"error":{"code":500,"message":%s,"status":"INTERNAL"}}`); out != nil {
		return out
	}
	return m.release(func(data string) string {
		if m.round > 0 && gjson.Get(data, "usageMetadata").IsObject() {
			data = jsonedit.Set(data, "usageMetadata", m.usage())
		}
		return data
	})
}
