package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/store"
)

// hub wakes the event streams of a thread when the store has something new for them, and
// hands them what is not stored.
type hub struct {
	mu       sync.Mutex
	watchers map[string]map[*watcher]bool
	watching int
}

// watcher is an open stream: wake says that the store has something new, passing are events
// that are not stored.
type watcher struct {
	wake    chan struct{}
	passing chan event.Event
}

// maxPassing is how many events that are not stored wait for a stream; one that is slower
// misses some.
const maxPassing = 256

// watch returns a watcher of the thread, or nil when there are too many.
func (h *hub) watch(threadID string, most int) *watcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watching >= most {
		return nil
	}
	h.watching++
	w := &watcher{make(chan struct{}, 1), make(chan event.Event, maxPassing)}
	if h.watchers[threadID] == nil {
		h.watchers[threadID] = map[*watcher]bool{}
	}
	h.watchers[threadID][w] = true
	return w
}

func (h *hub) unwatch(threadID string, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watching--
	delete(h.watchers[threadID], w)
	if len(h.watchers[threadID]) == 0 {
		delete(h.watchers, threadID)
	}
}

func (h *hub) notify(threadID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[threadID] {
		select {
		case w.wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

// pass hands an event to the streams that are open now.
func (h *hub) pass(e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[e.ThreadID] {
		select {
		case w.passing <- e:
		default:
		}
	}
}

// recordTimeout bounds how long a step waits for an event to be written.
const recordTimeout = 2 * time.Second

// recordEvent stores an event and wakes the streams of its thread. It writes before it
// returns, so that events are stored in the order in which they happened. An event that
// cannot be written is lost.
func (t *tenant) recordEvent(ctx context.Context, e event.Event) {
	switch e.Type {
	case event.CheckStarted, event.ProposalGenerated, event.Asked, event.PromptPrepared:
		t.hub.pass(e) // they come with every step, and are not stored
		return
	case event.Externalized, event.Summarized, event.Cleared, event.Retrieved, event.Dropped,
		event.PlanCommitted, event.Completed, event.SessionStart, event.Boundary:
		return // the commit of a plan stores them with it
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if t.Events.Record(ctx, e) == nil {
		t.hub.notify(e.ThreadID)
	}
}

const (
	// heartbeat is how often a silent stream sends a comment, and looks for events that
	// another daemon wrote.
	heartbeat = 2 * time.Second
	// writeTimeout is how long the reader of a stream may take for one write.
	writeTimeout = 30 * time.Second
)

// followEvents streams the events of a thread. The id of an event is its position in the
// store, so that any daemon over the store can resume a stream.
func followEvents(c *call, info store.Info) (any, error) {
	after := info.Events
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.Atoi(last)
		if err != nil || n < 0 {
			return nil, problem(api.BadRequest, "Last-Event-ID is the id of an event of this stream, a number; 0 begins with the first event")
		}
		if n > info.Events {
			return nil, problem(api.BadRequest, "Last-Event-ID is ahead of the thread, which has %d events: was it deleted and created again? 0 begins with the first event", info.Events)
		}
		after = n
	}
	limit, open := c.s.config.Limits.Streams, c.s.metrics.streams
	watcher := c.tenant.hub.watch(info.ID, limit)
	if watcher == nil {
		return nil, retryLater(api.TooManyRequests, "more than %d open streams of events; close some", limit)
	}
	defer c.tenant.hub.unwatch(info.ID, watcher)
	open.Inc()
	defer open.Dec()
	header := c.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	s := eventStream{w: c.w, control: http.NewResponseController(c.w)}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	// A write fails when the reader is gone.
	for err := s.write(": watching\n\n"); err == nil; {
		var n int
		if n, err = s.send(c.r.Context(), c.tenant.Events, info.ID, after, watcher); err != nil || n > 0 {
			after += n
			continue
		}
		if now, missing := c.findThread(); missing != nil || now.Events < after {
			break // the thread was deleted
		}
		select {
		case <-watcher.wake:
		case e := <-watcher.passing:
			err = s.writeEvent("", e)
		case <-beat.C:
			err = s.write(":\n\n")
		case <-c.s.stop:
			return answerWritten{}, nil
		case <-c.r.Context().Done():
			return answerWritten{}, nil
		}
	}
	return answerWritten{}, nil
}

// eventStream writes server-sent events. A reader that is too slow is cut off; it can
// resume with Last-Event-ID.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *eventStream) write(text string) error {
	// Only the writers of tests have no deadlines. Between writes there is none: HTTP/2
	// would reset the stream.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	defer s.control.SetWriteDeadline(time.Time{})
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// send writes the events after a position, behind those that passed before they were stored,
// and returns how many there were.
func (s *eventStream) send(ctx context.Context, events store.Events, id string, after int, w *watcher) (int, error) {
	page, err := events.Events(ctx, id, after, 0)
	if err == nil {
		err = s.sendPassing(w)
	}
	if err != nil {
		return 0, err
	}
	for n, e := range page {
		if err := s.writeEvent(fmt.Sprintf("id: %d\n", after+n+1), e); err != nil {
			return n, err
		}
	}
	return len(page), nil
}

// sendPassing writes the events that wait and are not stored. They have no id.
func (s *eventStream) sendPassing(w *watcher) error {
	for {
		select {
		case e := <-w.passing:
			if err := s.writeEvent("", e); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (s *eventStream) writeEvent(id string, e event.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return s.write(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, e.Type, data))
}

// watchedPlans are the plans of a tenant, which wake the streams of a thread when it gets
// a new one.
type watchedPlans struct {
	store.Plans
	hub *hub
}

func (p watchedPlans) Commit(ctx context.Context, threadID string, expected int, c store.Commit) (int, error) {
	version, err := p.Plans.Commit(ctx, threadID, expected, c)
	if err == nil {
		p.hub.notify(threadID)
	}
	return version, err
}
