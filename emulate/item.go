package emulate

import (
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// insertItem puts a compaction first in an answer of the Responses API.
func (w work) insertItem(res *http.Response, item string) {
	inserter := &itemInserter{item: item}
	httpbody.RewriteAnswer(res, w.streamFault, func(body string) string {
		if !rawjson.Valid(body) {
			return body
		}
		return prependItem(body, item)
	}, inserter.insertInto)
}

// itemInserter puts the compaction first in the output of a stream.
type itemInserter struct {
	item  string
	shift int64 // how many events were put before those of the provider
}

func prependItem(response, item string) string {
	return jsonedit.Set(response, "output", rawjson.Array(append([]string{item}, rawjson.RawItems(gjson.Get(response, "output"), nil)...)))
}

func (s *itemInserter) insertInto(e sse.Event) (out []byte) {
	v := gjson.Parse(e.Data)
	kind := v.Get("type").Str
	switch {
	case kind == "" || !v.IsObject():
		return e.Raw
	case kind == "response.created" || kind == "response.in_progress" || kind == "response.queued":
	case s.shift == 0:
		out = s.itemEvents(v)
	}
	data := e.Data
	if s.shift > 0 {
		if n := v.Get("sequence_number"); n.Exists() {
			data = jsonedit.Set(data, "sequence_number", strconv.FormatInt(n.Int()+s.shift, 10))
		}
		if n := v.Get("output_index"); n.Exists() {
			data = jsonedit.Set(data, "output_index", strconv.FormatInt(n.Int()+1, 10))
		}
	}
	switch kind {
	case "response.completed", "response.incomplete", "response.failed":
		data = jsonedit.Set(data, "response", prependItem(gjson.Get(data, "response").Raw, s.item))
	}
	return append(out, e.WithData(data)...)
}

func (s *itemInserter) itemEvents(first gjson.Result) (out []byte) {
	n := first.Get("sequence_number").Int()
	for _, kind := range []string{"response.output_item.added", "response.output_item.done"} {
		data := `{"type":"` + kind + `","sequence_number":` + strconv.FormatInt(n+s.shift, 10) + `,"output_index":0,"item":` + s.item + `}`
		out = append(out, sse.Event{Name: kind}.WithData(data)...)
		s.shift++
	}
	return out
}
