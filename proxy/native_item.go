package proxy

import (
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// itemFirst changes a stream of the Responses API: the compaction that was made for it
// stands first in its output, and once it is whole it is remembered, before the client
// has the end of it.
type itemFirst struct {
	item  string // the compaction; empty where there is none
	whole func(response string)
	moved int64 // how many events stand before those of the provider
}

// show hands an answer on with the compaction in it.
func (n nativeResponses) show(res *http.Response, item string, whole func(response string)) {
	first := &itemFirst{item: item, whole: whole}
	n.shaped(res, func(body string) string {
		if !rawjson.Valid(body) {
			return body
		}
		if item != "" {
			body = withItem(body, "output", item)
		}
		whole(body)
		return body
	}, first.change)
}

// withItem puts an item before the others of a list.
func withItem(doc, path, item string) string {
	return jsonedit.Set(doc, path, rawjson.Array(append([]string{item}, elements(gjson.Get(doc, path))...)))
}

func (s *itemFirst) change(e sse.Event) (out []byte) {
	v := gjson.Parse(e.Data)
	kind := v.Get("type").Str
	switch {
	case kind == "" || !v.IsObject():
		return e.Raw
	case kind == "response.created" || kind == "response.in_progress" || kind == "response.queued":
	case s.item != "" && s.moved == 0:
		out = s.begin(v)
	}
	data := e.Data
	if s.moved > 0 {
		if n := v.Get("sequence_number"); n.Exists() {
			data = jsonedit.Set(data, "sequence_number", strconv.FormatInt(n.Int()+s.moved, 10))
		}
		if n := v.Get("output_index"); n.Exists() {
			data = jsonedit.Set(data, "output_index", strconv.FormatInt(n.Int()+1, 10))
		}
	}
	switch kind {
	case "response.completed", "response.incomplete", "response.failed":
		if s.item != "" {
			data = jsonedit.Set(data, "response", withItem(gjson.Get(data, "response").Raw, "output", s.item))
		}
		if kind != "response.failed" {
			s.whole(gjson.Get(data, "response").Raw)
		}
	}
	return append(out, e.With(data)...)
}

// begin are the events of the compaction, before the first thing that the model said.
func (s *itemFirst) begin(first gjson.Result) (out []byte) {
	n := first.Get("sequence_number").Int()
	for _, kind := range []string{"response.output_item.added", "response.output_item.done"} {
		data := `{"type":"` + kind + `","sequence_number":` + strconv.FormatInt(n+s.moved, 10) + `,"output_index":0,"item":` + s.item + `}`
		out = append(out, sse.Event{Name: kind}.With(data)...)
		s.moved++
	}
	return out
}
