package llmtest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
)

// wantAPIError checks that err is an *llm.APIError of the kind.
func wantAPIError(t *testing.T, err error, kind llm.Kind) *llm.APIError {
	t.Helper()
	e, ok := errors.AsType[*llm.APIError](err)
	if !ok || !errors.Is(err, kind) {
		t.Fatalf("error %v (%T), want an APIError of kind %q", err, err, kind)
	}
	return e
}

const message = `{"error":{"message":"not now"}}`

func testRetries(t *testing.T, maker Maker) {
	for _, first := range []Answer{
		{Status: 408, Body: message}, {Status: 409, Body: message}, {Status: 429, Body: message},
		{Status: 500, Body: message}, {Status: 502, Body: "<html>bad gateway</html>"},
		{Status: 503}, {Status: 504, Body: message}, {Status: 529, Body: message},
		{Abort: true, Events: 1}, {Abort: true, Text: "half", Status: 200, Events: 1},
	} {
		b := setUp(t, maker, first, first, Answer{Text: "Yes."})
		r, err := b.Generate(t.Context(), question(), nil)
		if err != nil || r.Text != "Yes." {
			t.Fatalf("after %+v: %v", first, err)
		}
		if got := b.waits.list; len(got) != 2 || got[0] != 500*time.Millisecond || got[1] != time.Second {
			t.Errorf("waits = %v, want the doubling 500ms, 1s", got)
		}
	}
}

func testRetryAfter(t *testing.T, maker Maker) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, test := range []struct {
		name, value string
		want        time.Duration // with a tenth on top, at most the wait of our own
	}{
		{"Retry-After", "10", 10500 * time.Millisecond},
		{"Retry-After", "0.5", 550 * time.Millisecond},
		{"Retry-After", now.Add(4 * time.Second).Format(http.TimeFormat), 4400 * time.Millisecond},
		{"Retry-After-Ms", "200", 220 * time.Millisecond},
		{"Retry-After", "soon", 500 * time.Millisecond},
	} {
		w := &waits{}
		b := setUpWith(t, maker, w, llm.Retry{
			Sleep: w.sleep, Now: func() time.Time { return now },
			Jitter: func(longest time.Duration) time.Duration { return longest },
		}, Answer{Status: 429, Body: message, Header: http.Header{test.name: {test.value}}}, Answer{Text: "Yes."})
		if _, err := b.Generate(t.Context(), question(), nil); err != nil {
			t.Fatal(err)
		}
		if len(w.list) != 1 || w.list[0] != test.want {
			t.Errorf("%s %q: waits = %v, want %v", test.name, test.value, w.list, test.want)
		}
	}
	// A wait beyond the bound is the caller's to decide.
	b := setUp(t, maker, Answer{Status: 429, Body: message, Header: http.Header{"Retry-After": {"3600"}}})
	_, err := b.Generate(t.Context(), question(), nil)
	if e := wantAPIError(t, err, llm.ErrRateLimited); e.RetryAfter != time.Hour || !e.Temporary() {
		t.Errorf("%+v, want RetryAfter of an hour", e)
	}
}

func testNoRetry(t *testing.T, maker Maker) {
	for _, test := range []struct {
		a    Answer
		kind llm.Kind
	}{
		{Answer{Status: 400, Body: `{"error":{"message":"no such field"}}`}, llm.ErrInvalid},
		{Answer{Status: 401, Body: message}, llm.ErrAuth},
		{Answer{Status: 402, Body: message}, llm.ErrQuota},
		{Answer{Status: 404, Body: message}, llm.ErrNotFound},
		{Answer{Status: 413}, llm.ErrOverflow},
		{Answer{Status: 500, Body: `{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}`}, llm.ErrOverflow},
		{Answer{Status: 429, Body: `{"error":{"type":"insufficient_quota","message":"no money"}}`}, llm.ErrQuota},
		{Answer{Status: 500, Body: message, Header: http.Header{"X-Should-Retry": {"false"}}}, llm.ErrServer},
		{Answer{Body: `{"error":{"message":"context_length_exceeded","code":"context_length_exceeded"}}`}, llm.ErrOverflow},
	} {
		b := setUp(t, maker, test.a)
		_, err := b.Generate(t.Context(), question(), nil)
		e := wantAPIError(t, err, test.kind)
		if e.RequestID != "req_1" || e.Temporary() || !strings.Contains(err.Error(), "req_1") {
			t.Errorf("%+v", e)
		}
		if (test.kind == llm.ErrOverflow) != llm.IsOverflow(err) {
			t.Errorf("IsOverflow(%v) = %v", err, llm.IsOverflow(err))
		}
	}
}

func testExhausted(t *testing.T, maker Maker) {
	a := Answer{Status: 529, Body: message}
	b := setUp(t, maker, a, a, a, a)
	_, err := b.Generate(t.Context(), question(), nil)
	e := wantAPIError(t, err, llm.ErrOverloaded)
	if e.Status != 529 || e.Message != "not now" || e.RequestID != "req_4" || len(b.waits.list) != 3 {
		t.Errorf("%+v after %v", e, b.waits.list)
	}
}

func testGarbage(t *testing.T, maker Maker) {
	for _, body := range []string{
		"<html>Sign in to the network</html>", `{"a":`, `[]`, `{}`, `{"content":7,"choices":[]}`, "null", "data: oops\n\n", "\x00\xff\xfe",
	} {
		b := setUp(t, maker, Answer{Body: body})
		r, err := b.Generate(t.Context(), question(), nil)
		if err == nil {
			t.Fatalf("%q was read as %+v", body, r)
		}
		if e := wantAPIError(t, err, llm.ErrResponse); e.RequestID != "req_1" || e.Temporary() {
			t.Errorf("%q: %+v", body, e)
		}
	}
}

func testCancel(t *testing.T, maker Maker) {
	// In the middle of the answer, and before its first byte.
	for _, a := range []Answer{{Text: "This answer hangs in the middle.", Events: 5, Hang: true}, {Hold: make(chan struct{})}} {
		b := setUp(t, maker, a)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-b.server.Received()
			cancel()
		}()
		_, err := b.Generate(ctx, question(), nil)
		wantAPIError(t, err, llm.ErrCanceled)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v does not wrap context.Canceled", err)
		}
		if _, err = b.Generate(ctx, question(), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that is done: %v", err)
		}
	}
}

// A wait for the next try ends with the context.
func testCancelWait(t *testing.T, maker Maker) {
	ctx, cancel := context.WithCancel(t.Context())
	b := setUpWith(t, maker, nil, llm.Retry{Sleep: func(ctx context.Context, _ time.Duration) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}}, Answer{Status: 529, Body: message})
	_, err := b.Generate(ctx, question(), nil)
	wantAPIError(t, err, llm.ErrCanceled)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, llm.ErrOverloaded) {
		t.Errorf("%v wraps neither the end nor what came before", err)
	}
}

func testDeadline(t *testing.T, maker Maker) {
	b := setUp(t, maker, Answer{Text: "This answer hangs in the middle.", Events: 5, Hang: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := b.Generate(ctx, question(), nil)
	e := wantAPIError(t, err, llm.ErrTimeout)
	if !errors.Is(err, context.DeadlineExceeded) || !e.Temporary() {
		t.Errorf("%+v", e)
	}
	// A wait that the deadline would cut short is not begun.
	b = setUp(t, maker, Answer{Status: 429, Body: message, Header: http.Header{"Retry-After": {"60"}}})
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err = b.Generate(ctx, question(), nil); len(b.waits.list) != 0 {
		t.Errorf("waited %v", b.waits.list)
	}
	wantAPIError(t, err, llm.ErrRateLimited)
}

func testTimeout(t *testing.T, maker Maker) {
	b := setUp(t, maker, Answer{Text: "This answer hangs in the middle.", Events: 5, Hang: true})
	_, err := b.Generate(t.Context(), question(), &llm.Options{Timeout: 50 * time.Millisecond})
	wantAPIError(t, err, llm.ErrTimeout)
}

// A redirect would carry the key to another place.
func testRedirect(t *testing.T, maker Maker) {
	b := setUp(t, maker, Answer{Status: 307, Header: http.Header{"Location": {"/v1/elsewhere"}}})
	_, err := b.Generate(t.Context(), question(), nil)
	wantAPIError(t, err, llm.ErrResponse)
}
