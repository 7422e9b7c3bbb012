package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy/native"
)

// shaped gives an answer of the Messages API what it says of native compaction.
// An answer that cannot be read here stays as it is.
func shaped(res *http.Response, what task, add *native.Addition, failed func(error)) (*http.Response, error) {
	if !unpacked(res) {
		return res, nil
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		uncompressed(res, -1)
		res.Body = &rewritten{body: res.Body, events: newEvents(res.Body), failed: failed, change: func(e sent) []byte {
			var out []byte
			for _, data := range add.Event(e.data) {
				if data == e.data {
					out = append(out, e.raw...)
				} else {
					out = append(out, sent{name: gjson.Get(data, "type").Str}.with(data)...)
				}
			}
			return out
		}}
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

// rewritten is the body of a stream whose events are changed while they pass. Where
// that fails, the rest passes as it comes. It is read by one goroutine.
type rewritten struct {
	body   io.Closer
	events *events
	change func(sent) []byte
	failed func(error)
	asIs   bool
	due
}

// Read gives the client the next bytes.
func (s *rewritten) Read(p []byte) (int, error) { return s.give(p, s.more) }

func (s *rewritten) more() {
	e, err := s.events.next()
	s.out, s.err = e.raw, err
	if err != nil || s.asIs || e.data == "" {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.failed(fmt.Errorf("%w: %v", errPanic, p))
			s.out, s.asIs = e.raw, true
		}
	}()
	s.out = s.change(e)
}

// Close gives the connection back.
func (s *rewritten) Close() error { return s.body.Close() }
