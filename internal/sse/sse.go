// Package sse reads server-sent events, the form in which model providers
// stream their answers (https://html.spec.whatwg.org/multipage/server-sent-events.html,
// section 9.2.6). Reconnection times are ignored: callers decide when to resume. A line
// ends with LF or CRLF; no provider ends one with CR alone.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DefaultLimit is the default limit of an event, in bytes. Most events have a few hundred; a
// whole block at once (compaction, inline images) can have some megabytes.
const DefaultLimit = 16 << 20

// ErrTooLarge says that an event is larger than the limit.
var ErrTooLarge = errors.New("event too large")

// Event is one event of a stream.
type Event struct {
	// Name is the event field, or empty.
	Name string
	// ID is the id field of this event, or empty. Providers send none.
	ID string
	// Data is the data lines, joined by newlines. A comment has none.
	Data string
	// Raw is the event as received.
	Raw []byte
}

// WithData returns the bytes of the event with other data: Raw if the data is the same.
func (e Event) WithData(data string) []byte {
	if data == e.Data && e.Raw != nil {
		return e.Raw
	}
	var b bytes.Buffer
	if e.Name != "" {
		b.WriteString("event: " + e.Name + "\n")
	}
	b.WriteString("data: " + data + "\n\n")
	return b.Bytes()
}

// Reader reads events from a stream without losing a byte. It is not safe for concurrent
// use.
type Reader struct {
	r       *bufio.Reader
	limit   int
	started bool
}

// NewReader returns a reader of r that takes events of up to limit bytes;
// DefaultLimit when limit is 0 or less.
func NewReader(r io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Reader{r: bufio.NewReaderSize(r, 16<<10), limit: limit}
}

// Rest returns a reader of everything after the last event.
func (r *Reader) Rest() io.Reader { return r.r }

// HasEvent reports whether Next would not block: a whole event is buffered. It knows only
// lines that end in LF.
func (r *Reader) HasEvent() bool {
	held, err := r.r.Peek(r.r.Buffered())
	return err == nil && (bytes.HasPrefix(held, []byte("\n")) || bytes.Contains(held, []byte("\n\n")))
}

// HasBlankLine reports whether an empty line is next in the buffer.
func (r *Reader) HasBlankLine() bool {
	held, err := r.r.Peek(min(1, r.r.Buffered()))
	return err == nil && string(held) == "\n"
}

// Next returns the next event. The error is io.EOF at the end of the stream, or the error
// of the stream; the event then holds what was read before, because some servers never send
// the empty line that closes the last event. For an event over the limit the error wraps
// ErrTooLarge, and Raw is what was read of it; the caller may go on reading after that.
func (r *Reader) Next() (Event, error) {
	var e Event
	var data []string
	for {
		line, err := r.readLine(&e)
		if err == nil && len(e.Raw) > r.limit {
			return Event{Raw: e.Raw}, fmt.Errorf("sse: %w: more than %d bytes", ErrTooLarge, r.limit)
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.Name = value
		case "id":
			e.ID = value
		case "data":
			data = append(data, value)
		}
		if err != nil || line == "" {
			e.Data = strings.Join(data, "\n")
			return e, err
		}
	}
}

// readLine adds the next line to an event, and returns it without its end.
func (r *Reader) readLine(e *Event) (string, error) {
	from := len(e.Raw)
	for {
		piece, err := r.r.ReadSlice('\n')
		e.Raw = append(e.Raw, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			if err = nil; len(e.Raw) <= r.limit {
				continue
			}
		}
		line := strings.TrimRight(string(e.Raw[from:]), "\r\n")
		if !r.started {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		r.started = true
		return line, err
	}
}
