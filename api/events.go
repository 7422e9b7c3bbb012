package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// StreamedEvent is an event of a thread, with its id in the stream.
type StreamedEvent struct {
	// ID resumes the stream after this event: give it to Events. It is empty for events that are
	// not stored, which only streams that are open get.
	ID string
	// Event is what happened. It never holds content.
	Event event.Event
}

// Events yields the events of a thread from now on, or after the one with the id last.
// It ends with the context, with the connection, and when the daemon stops. To go on,
// call it again with the id of the last event.
func (c *Client) Events(ctx context.Context, threadID, last string) iter.Seq2[StreamedEvent, error] {
	return func(yield func(StreamedEvent, error) bool) {
		r, err := http.NewRequestWithContext(ctx, "GET", c.address(nil, threadID, "events"), nil)
		if err != nil {
			yield(StreamedEvent{}, fmt.Errorf("api: %w", err))
			return
		}
		r.Header.Set("Accept", "text/event-stream")
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		answer, err := c.send(r)
		if err != nil {
			yield(StreamedEvent{}, err)
			return
		}
		defer answer.Body.Close()
		events := sse.NewReader(answer.Body, 0)
		for {
			e, err := events.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(StreamedEvent{}, fmt.Errorf("api: events of %s: %w", threadID, err))
				return
			}
			if e.Data == "" {
				continue
			}
			w := StreamedEvent{ID: e.ID}
			if err := json.Unmarshal([]byte(e.Data), &w.Event); err != nil {
				yield(w, fmt.Errorf("api: event %s of %s: %w", e.ID, threadID, err))
				return
			}
			if !yield(w, nil) {
				return
			}
		}
	}
}
