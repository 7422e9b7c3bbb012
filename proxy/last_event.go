package proxy

import (
	"bytes"
	"cmp"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// lastEvent keeps the beginning of the last event of a stream while it passes: a provider that fails
// on the way says so there, under status 200. It does not change and does not hold up the stream. It
// is used by one goroutine.
type lastEvent struct {
	event   []byte // the last one that is whole
	current []byte // the one that is coming
	line    int    // bytes of its current line
}

// maxEventHead is how much of an event is kept, in bytes: the error of a failed response stands
// before what repeats its request.
const maxEventHead = 4 << 10

func (l *lastEvent) add(p []byte) {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		l.line += len(bytes.TrimSuffix(line, []byte("\r")))
		l.current = append(l.current, line[:min(len(line), max(0, maxEventHead-len(l.current)))]...)
		if ended && l.line == 0 {
			l.endEvent()
		} else if ended && len(l.current) < maxEventHead {
			l.current = append(l.current, '\n')
		}
		if ended {
			l.line = 0
		}
		p = rest
	}
}

// endEvent keeps the current event, unless it says nothing.
func (l *lastEvent) endEvent() {
	if said := bytes.TrimSpace(l.current); len(said) > 0 && !bytes.HasSuffix(said, []byte("[DONE]")) {
		l.event, l.current = l.current, l.event
	}
	l.current = l.current[:0]
}

// failure is the error that the stream ended with; nil for none. api is the API of the stream.
func (l *lastEvent) failure(api string) error {
	l.endEvent()
	e, _ := sse.NewReader(bytes.NewReader(l.event), 0).Next()
	if !isError(e) {
		return nil
	}
	body := e.Data
	for _, path := range []string{"error", "response.error"} {
		if said := gjson.Get(e.Data, path); said.IsObject() { // the event may be cut off behind it
			body = `{"error":` + said.Raw + `}`
		}
	}
	return &llm.APIError{Kind: cmp.Or(llm.Classify(api, 0, []byte(body)), llm.ErrServer)}
}
