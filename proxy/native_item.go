package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// shown is an answer of the Responses API on its way to the client: the
// compaction that was made for it stands first in its output, and once it is
// whole it is remembered, before the client has the end of it.
type shown struct {
	x      *exchange
	body   io.ReadCloser
	events *events
	item   string // the compaction; empty where there is none
	whole  func(response string)

	due
	shown bool // the item was
	moved int64
	asIs  bool // something failed here: the rest passes as it comes
}

// show hands an answer on with the compaction in it.
func (n nativeResponses) show(res *http.Response, item string, whole func(response string)) (*http.Response, error) {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return n.showWhole(res, item, whole)
	}
	if !unpacked(res) {
		return res, nil
	}
	res.ContentLength = -1
	res.Header.Del("Content-Length")
	res.Body = &shown{x: n.exchange, body: res.Body, events: newEvents(res.Body), item: item, whole: whole}
	return res, nil
}

func (n nativeResponses) showWhole(res *http.Response, item string, whole func(string)) (*http.Response, error) {
	raw, all := readAnswer(res)
	if !all {
		return res, nil
	}
	plain, err := decoded(res.Header, raw, maxAnswer)
	if err != nil || !rawjson.Valid(plain) {
		return res, nil
	}
	body := string(plain)
	if item != "" {
		body = withItem(body, "output", item)
		uncompressed(res, int64(len(body)))
		given(res, []byte(body))
	}
	whole(body)
	return res, nil
}

// withItem puts an item before the others of a list.
func withItem(doc, path, item string) string {
	list := strings.TrimSpace(gjson.Get(doc, path).Raw)
	inner := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(list, "["), "]"))
	if inner != "" {
		item += "," + inner
	}
	return set(doc, path, "["+item+"]")
}

// Read gives the client the next bytes.
func (s *shown) Read(p []byte) (int, error) { return s.give(p, s.more) }

// Close ends the answer.
func (s *shown) Close() error {
	if s.err == nil {
		s.err = http.ErrBodyReadAfterClose
	}
	return s.body.Close()
}

func (s *shown) more() {
	e, err := s.events.next()
	defer func() {
		if p := recover(); p != nil {
			s.x.fault("stream", fmt.Errorf("%w: %v", errPanic, p), nil)
			s.out, s.err, s.asIs = e.raw, err, true
		}
	}()
	if err != nil || s.asIs {
		s.out, s.err = e.raw, err
		return
	}
	v := gjson.Parse(e.data)
	kind := v.Get("type").Str
	switch {
	case kind == "" || !v.IsObject():
		s.out = e.raw
		return
	case kind == "response.created" || kind == "response.in_progress" || kind == "response.queued":
	case s.item != "" && !s.shown:
		s.begin(v)
	}
	data := e.data
	if s.moved > 0 {
		if n := v.Get("sequence_number"); n.Exists() {
			data = set(data, "sequence_number", strconv.FormatInt(n.Int()+s.moved, 10))
		}
		if n := v.Get("output_index"); n.Exists() {
			data = set(data, "output_index", strconv.FormatInt(n.Int()+1, 10))
		}
	}
	switch kind {
	case "response.completed", "response.incomplete", "response.failed":
		if s.item != "" {
			data = set(data, "response", withItem(gjson.Get(data, "response").Raw, "output", s.item))
		}
		if kind != "response.failed" {
			s.whole(gjson.Get(data, "response").Raw)
		}
	}
	if data == e.data {
		s.out = append(s.out, e.raw...)
		return
	}
	s.out = append(s.out, e.with(data)...)
}

// begin shows the compaction before the first thing that the model said.
func (s *shown) begin(first gjson.Result) {
	s.shown, s.moved = true, 2
	n := first.Get("sequence_number").Int()
	for _, kind := range []string{"response.output_item.added", "response.output_item.done"} {
		data := `{"type":"` + kind + `","sequence_number":` + strconv.FormatInt(n, 10) + `,"output_index":0,"item":` + s.item + `}`
		s.out = append(s.out, sent{name: kind}.with(data)...)
		n++
	}
}
