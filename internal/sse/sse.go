// Package sse reads server-sent events, the form in which model providers
// stream their answers (https://html.spec.whatwg.org/multipage/server-sent-events.html,
// section 9.2.6). Reconnection times are not read: whoever can resume decides for
// himself when.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultLimit is the largest event, in bytes, that a reader takes when none is
// given. Providers send pieces of a few hundred bytes; a whole block at once
// (compaction, inline images) can have some megabytes.
const DefaultLimit = 16 << 20

// ErrTooLarge says that an event is larger than the limit.
var ErrTooLarge = errors.New("event too large")

// Event is one event of a stream.
type Event struct {
	// Name is the event field, or empty.
	Name string
	// ID is the id field, or empty; of this event alone, not the last of the
	// stream. Providers send none.
	ID string
	// Data is the data lines, joined by newlines.
	Data string
	// Cut marks the last event of a stream that ended inside it, before the
	// empty line that closes an event. The standard drops it; some servers never
	// send that line at the end, so the caller decides.
	Cut bool
}

// Reader reads events from a stream. It is not safe for concurrent use.
type Reader struct {
	r     *bufio.Reader
	limit int
	line  []byte
	begun bool
	after bool // the last line ended in CR: an LF that follows belongs to it
	err   error
}

// NewReader returns a reader of r that takes events of up to limit bytes;
// DefaultLimit when limit is 0 or less.
func NewReader(r io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Reader{r: bufio.NewReaderSize(r, 8<<10), limit: limit}
}

// Next returns the next event that carries data. At the end of the stream the
// error is io.EOF; it is ErrTooLarge for an event over the limit, and else what
// the stream returned. After an error every further call returns the same one.
func (r *Reader) Next() (Event, error) {
	if r.err != nil {
		return Event{}, r.err
	}
	var e Event
	var data []byte
	has, size := false, 0
	for {
		line, err := r.readLine(r.limit - size)
		if err != nil {
			r.err = err
			// What came before a broken connection is as good as at a clean end.
			if has && !errors.Is(err, ErrTooLarge) {
				e.Data, e.Cut = string(data), true
				return e, nil
			}
			return Event{}, err
		}
		size += len(line)
		if len(line) == 0 {
			if has {
				e.Data = string(data)
				return e, nil
			}
			e, size = Event{}, 0
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.Name = string(value)
		case "id":
			e.ID = string(value)
		case "data":
			if has {
				data = append(data, '\n')
			}
			data = append(data, value...)
			has = true
		}
	}
}

// readLine returns the next line without its end, which is CR, LF or both. The
// bytes are good until the next call. A last line without an end is a line.
func (r *Reader) readLine(limit int) ([]byte, error) {
	r.line = r.line[:0]
	for {
		b, err := r.r.ReadByte()
		if err != nil {
			if len(r.line) > 0 {
				break
			}
			return nil, err
		}
		if r.after {
			r.after = false
			if b == '\n' {
				continue
			}
		}
		if b == '\n' {
			break
		}
		if b == '\r' {
			r.after = true
			break
		}
		if len(r.line) >= limit {
			return nil, fmt.Errorf("sse: %w: more than %d bytes", ErrTooLarge, r.limit)
		}
		r.line = append(r.line, b)
	}
	if !r.begun {
		r.begun = true
		r.line = bytes.TrimPrefix(r.line, []byte("\xef\xbb\xbf"))
	}
	return r.line, nil
}
