package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// requestRecord is what the log says of a request: never its content, its key, or the
// text of an error that may quote either.
type requestRecord struct {
	id string

	mu    sync.Mutex
	who   identity
	kind  string
	cause error
}

type requestKey struct{}

func requestOf(ctx context.Context) *requestRecord {
	if r, ok := ctx.Value(requestKey{}).(*requestRecord); ok {
		return r
	}
	return &requestRecord{}
}

func requestID(ctx context.Context) string { return requestOf(ctx).id }

func (r *requestRecord) setCaller(who identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.who = who
}

func (r *requestRecord) setProblem(p *api.Problem, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kind = p.Kind()
	_, ours := cause.(*api.Problem)
	if limit := ours && p.RetryAfter > 0; p.Status >= http.StatusInternalServerError && !limit && p.Kind() != api.OverQuota { // not for limits that somebody set
		r.cause = cause
	}
}

// requestIDForm is the form that the request id of a caller must have to be used.
var requestIDForm = lazyregexp.New(`^[A-Za-z0-9._-]{1,64}$`)

// serveObserved gives a request its id, catches panics, and counts and logs it.
func (s *Server) serveObserved(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	start := s.config.Now()
	seen := &requestRecord{id: r.Header.Get("X-Request-Id")}
	if !requestIDForm().MatchString(seen.id) {
		seen.id = "req_" + strings.ToLower(rand.Text())
	}
	w.Header().Set("X-Request-Id", seen.id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	written := &responseRecorder{ResponseWriter: w}
	_, route := s.mux.Handler(r)
	if route == "" && s.isProxied(r) {
		route = proxiedRoutes + proxy.Route(r.URL.Path)
	}
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
				written.Header().Set("X-Request-Id", seen.id) // it is taken off proxied requests
				s.answerError(written, r.WithContext(ctx), errPanic)
			}
		}
		s.logRequest(ctx, r, route, written, s.config.Now().Sub(start))
	}()
	next(written, r.WithContext(ctx))
}

// errPanic is the error of a request that panicked.
var errPanic = &panicError{}

type panicError struct{}

func (*panicError) Error() string { return "panic; the stack is in the log" }

func (s *Server) logRequest(ctx context.Context, r *http.Request, route string, w *responseRecorder, took time.Duration) {
	seen := requestOf(ctx)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	status, method := cmp.Or(w.status, http.StatusOK), r.Method
	if !slices.Contains(knownMethods, method) {
		method = "other"
	}
	s.metrics.observe(route, status, took)
	attrs := []slog.Attr{
		slog.String("request", seen.id), slog.String("method", method), slog.String("route", route), slog.Int("status", status),
		slog.Duration("took", took), slog.Int64("bytes_in", max(r.ContentLength, 0)), slog.Int64("bytes_out", w.bytes),
	}
	for _, known := range []struct{ name, value string }{{"tenant", seen.who.tenant}, {"key", seen.who.key}, {"problem", seen.kind}} {
		if known.value != "" {
			attrs = append(attrs, slog.String(known.name, known.value))
		}
	}
	if strings.HasPrefix(route, proxiedRoutes) {
		attrs = append(attrs, proxiedAttrs(w.Header())...)
	}
	level := slog.LevelInfo
	if seen.cause != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String("class", event.ErrorClass(seen.cause)), slog.String("cause", event.CauseText(seen.cause)))
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
}

// proxiedRoutes begins the routes of requests that are the proxy's.
const proxiedRoutes = "proxy/"

// proxiedAttrs are what the proxy did with a request, as its answer says, under the names that
// they have in events.
func proxiedAttrs(answer http.Header) (attrs []slog.Attr) {
	for _, text := range []struct{ name, header string }{{"thread_id", proxy.ThreadHeader}, {"action", proxy.ActionHeader}, {"reason", proxy.ReasonHeader}} {
		if v := answer.Get(text.header); v != "" {
			attrs = append(attrs, slog.String(text.name, v))
		}
	}
	for _, count := range []struct{ name, header string }{{"tokens_before", proxy.BeforeHeader}, {"tokens_after", proxy.SentHeader}} {
		if n, err := strconv.Atoi(answer.Get(count.header)); err == nil {
			attrs = append(attrs, slog.Int(count.name, n))
		}
	}
	return attrs
}

// knownMethods stand in the log: what callers make up does not.
var knownMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// responseRecorder remembers status and size of an answer.
type responseRecorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *responseRecorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *responseRecorder) Write(data []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)
	n, err := r.ResponseWriter.Write(data)
	r.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (r *responseRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
