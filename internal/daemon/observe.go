package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/pattern"
)

// request is what is known of a request for the log: never its content, its key,
// or an error's text that may quote either.
type request struct {
	id string

	mu    sync.Mutex
	who   identity
	kind  string
	cause error
}

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	return &request{}
}

func requestID(ctx context.Context) string { return requestOf(ctx).id }

func (r *request) known(who identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.who = who
}

func (r *request) failed(p *api.Problem, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kind = p.Kind()
	if p.Status >= http.StatusInternalServerError && p.RetryAfter == 0 && p.Kind() != api.OverQuota { // those are limits that were set
		r.cause = cause
	}
}

// knownID is the form of a request id that is taken from the caller.
var knownID = pattern.New(`^[A-Za-z0-9._-]{1,64}$`)

// observed gives a request its id, catches panics, counts it and writes one
// record of it.
func (s *Server) observed(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	start := s.config.Now()
	seen := &request{id: r.Header.Get("X-Request-Id")}
	if !knownID().MatchString(seen.id) {
		seen.id = "req_" + strings.ToLower(rand.Text())
	}
	w.Header().Set("X-Request-Id", seen.id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	written := &recorder{ResponseWriter: w}
	_, route := s.mux.Handler(r)
	route = cmp.Or(route, "none")
	ctx := context.WithValue(r.Context(), requestKey{}, seen)
	s.metrics.inFlight.Inc()
	defer s.metrics.inFlight.Dec()
	defer func() {
		if fault := recover(); fault != nil {
			if fault == http.ErrAbortHandler {
				panic(fault)
			}
			// The value of a panic may quote what was sent; the stack does not.
			s.log.ErrorContext(ctx, "panic", "request", seen.id, "route", route, "stack", string(debug.Stack()))
			if written.status == 0 {
				written.Header().Set("X-Request-Id", seen.id) // a proxied request lost it
				s.fail(written, r.WithContext(ctx), errPanic)
			}
		}
		s.record(ctx, r, route, written, s.config.Now().Sub(start))
	}()
	next(written, r.WithContext(ctx))
}

// errPanic stands for a panic where an error is wanted.
var errPanic = &panicError{}

type panicError struct{}

func (*panicError) Error() string { return "panic; the stack is in the log" }

func (s *Server) record(ctx context.Context, r *http.Request, route string, w *recorder, took time.Duration) {
	seen := requestOf(ctx)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	status := cmp.Or(w.status, http.StatusOK)
	s.metrics.observe(route, status, took)
	attrs := []slog.Attr{
		slog.String("request", seen.id), slog.String("method", method(r.Method)), slog.String("route", route), slog.Int("status", status),
		slog.Duration("took", took), slog.Int64("bytes_in", max(r.ContentLength, 0)), slog.Int64("bytes_out", w.bytes),
	}
	for _, known := range []struct{ name, value string }{{"tenant", seen.who.tenant}, {"key", seen.who.key}, {"problem", seen.kind}} {
		if known.value != "" {
			attrs = append(attrs, slog.String(known.name, known.value))
		}
	}
	level := slog.LevelInfo
	if seen.cause != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String("class", event.ErrorClass(seen.cause)), slog.String("cause", causeOf(seen.cause)))
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
}

// causeOf is an error's text for the log, without anything in quotes: our errors
// quote ids and what callers sent, and need neither to be understood.
func causeOf(err error) string {
	const most = 300
	return clip.Short(quoted().ReplaceAllString(err.Error(), `"…"`), most)
}

var quoted = pattern.New(`(?s)"(?:[^"\\]|\\.)*"?` + "|`[^`]*`?")

// method keeps what callers make up out of the log.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(data []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)
	n, err := r.ResponseWriter.Write(data)
	r.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
