package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy/native"
)

// shaped gives an answer of the Messages API what it says of native compaction.
// An answer that cannot be read here stays as it is.
func shaped(res *http.Response, what task, add *native.Addition) (*http.Response, error) {
	if !unpacked(res) {
		return res, nil
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		uncompressed(res, -1)
		res.Body = &shapedStream{body: res.Body, events: newEvents(res.Body), add: add}
		return res, nil
	}
	said, all := readAnswer(res)
	if !all {
		return res, nil
	}
	body := string(said)
	if what == count {
		body = add.Counted(body)
	} else {
		body = add.Whole(body)
	}
	uncompressed(res, int64(len(body)))
	return given(res, []byte(body)), nil
}

// shapedStream is the body of an answer that is changed while it passes. It is
// read by one goroutine.
type shapedStream struct {
	body   io.Closer
	events *events
	add    *native.Addition
	due
}

// Read gives the client the next bytes.
func (s *shapedStream) Read(p []byte) (int, error) { return s.give(p, s.more) }

func (s *shapedStream) more() {
	e, err := s.events.next()
	s.out, s.err = e.raw, err
	if err != nil || e.data == "" {
		return
	}
	if data := s.add.Event(e.data); len(data) != 1 || data[0] != e.data {
		s.out = s.written(e, data)
	}
}

// written are events in place of one, named as their data are.
func (s *shapedStream) written(e sent, data []string) []byte {
	var out bytes.Buffer
	for _, d := range data {
		if d == e.data {
			out.Write(e.raw)
			continue
		}
		out.Write(sent{name: typeOf(d)}.with(d))
	}
	return out.Bytes()
}

// typeOf is the type of an event, which is its name too.
func typeOf(data string) string { return gjson.Get(data, "type").Str }

// Close gives the connection back.
func (s *shapedStream) Close() error { return s.body.Close() }
