package proxy

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

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

// ourPart reports whether a part is a call of one of our tools.
func ourPart(part gjson.Result) bool { return ours(part.Get("functionCall.name").Str) }

// kept are the parts that the client is shown.
func kept(parts gjson.Result) (list []string) {
	parts.ForEach(func(_, p gjson.Result) bool {
		if !ourPart(p) {
			list = append(list, p.Raw)
		}
		return true
	})
	return list
}

func (contents) joined(rounds [][]byte) []byte {
	var parts []string
	used := ""
	for _, body := range rounds {
		parts = append(parts, kept(gjson.GetBytes(body, "candidates.0.content.parts"))...)
		used = contentsFigures.joined(used, gjson.GetBytes(body, "usageMetadata").Raw)
	}
	out := set(string(rounds[len(rounds)-1]), "candidates.0.content.parts", "["+strings.Join(parts, ",")+"]")
	if used != "" {
		out = set(out, "usageMetadata", used)
	}
	return []byte(out)
}

func (contents) translator() translator {
	return &contentStream{joining{figures: contentsFigures}}
}

// contentStream joins streams of generateContent responses.
type contentStream struct{ joining }

func (m *contentStream) next(e sse.Event) (out []byte, last bool) {
	v := gjson.Parse(e.Data)
	if used := v.Get("usageMetadata"); used.IsObject() {
		m.now = over(m.now, used.Raw)
	}
	candidate := v.Get("candidates.0")
	parts := candidate.Get("content.parts")
	data := e.Data
	if shown := kept(parts); int64(len(shown)) < parts.Get("#").Int() {
		data = set(data, "candidates.0.content.parts", "["+strings.Join(shown, ",")+"]")
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
		data = set(data, "usageMetadata", m.usage())
	}
	return e.With(data), false
}

func (m *contentStream) rest() (out []byte) {
	for _, e := range m.held {
		var parts []string
		gjson.Get(e.Data, "candidates.0.content.parts").ForEach(func(_, p gjson.Result) bool {
			if !p.Get("functionCall").Exists() {
				parts = append(parts, p.Raw)
			}
			return true
		})
		if len(parts) > 0 {
			data := set(without(e.Data, "candidates.0.finishReason"), "candidates.0.content.parts", "["+strings.Join(parts, ",")+"]")
			out = append(out, e.With(data)...)
		}
	}
	return out
}

func (m *contentStream) end(how ending) []byte {
	switch {
	case gjson.Get(how.wrote, "error").Exists():
		return sse.Event{}.With(how.wrote)
	case how.failure != "":
		return sse.Event{}.With(`{"error":{"code":500,"message":` + rawjson.Quote(how.failure) + `,"status":"INTERNAL"}}`)
	}
	return m.release(func(data string) string {
		if m.round > 0 && gjson.Get(data, "usageMetadata").IsObject() {
			data = set(data, "usageMetadata", m.usage())
		}
		return data
	})
}
