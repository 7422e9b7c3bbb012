package slogsink_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/slogsink"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func Example() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, nil))
	event.Emit(context.Background(), slogsink.New(logger), event.Event{
		Type: event.Completed, Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), ThreadID: "ticket-4711",
		TokensBefore: 93_600, TokensAfter: 72_100, TokensFreed: 21_500, Duration: 40 * time.Millisecond,
	})
	// Output:
	// time=2026-03-01T12:00:00.000Z level=INFO msg=compaction_completed thread_id=ticket-4711 tokens_before=93600 tokens_after=72100 tokens_freed=21500 duration=40ms
}

func TestLevels(t *testing.T) {
	tests := map[event.Type]string{
		event.CheckStarted: "DEBUG", event.ProposalGenerated: "DEBUG", event.PreCompact: "DEBUG", event.Cleared: "DEBUG",
		event.PlanCommitted: "DEBUG", event.SessionStart: "DEBUG", event.Boundary: "DEBUG", event.PromptPrepared: "DEBUG", event.OverflowShortened: "DEBUG",
		event.Rehydrated: "DEBUG", event.RequestProxied: "DEBUG",
		event.Completed: "INFO", event.ContextRequested: "INFO", "of_a_later_version": "INFO",
		event.Failed: "WARN", event.Blocked: "WARN", event.PlanConflict: "WARN", event.QualityAlert: "WARN",
	}
	for typ, want := range tests {
		var out bytes.Buffer
		s := slogsink.New(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
		s.Emit(t.Context(), event.Event{Type: typ})
		if !strings.Contains(out.String(), "level="+want+" msg="+string(typ)) {
			t.Errorf("%s: %s", typ, out.String())
		}
		out.Reset()
		s = slogsink.New(slog.New(slog.NewTextHandler(&out, nil)))
		s.Emit(t.Context(), event.Event{Type: typ})
		if (out.Len() == 0) != (want == "DEBUG") {
			t.Errorf("%s at the default level: %q", typ, out.String())
		}
	}
}

// TestModelFailed: that code wrote a summary because the model failed is a warning. B10
func TestModelFailed(t *testing.T) {
	var out bytes.Buffer
	slogsink.New(slog.New(slog.NewTextHandler(&out, nil))).Emit(t.Context(), event.Event{Type: event.Completed}.Failing(errors.New("no answer")))
	if !strings.Contains(out.String(), "level=WARN msg=compaction_completed error_class=error cause=\"no answer\"") {
		t.Error(out.String())
	}
}

func TestNoContent(t *testing.T) {
	const canary = "CANARY the user's budget"
	var out bytes.Buffer
	slogsink.New(slog.New(slog.NewJSONHandler(&out, nil))).Emit(t.Context(), event.Event{
		Type: event.Failed, Err: event.ErrorClass(errors.New(canary)), Span: &thread.Span{MessageIDs: []thread.ID{"m1", "m2", "m3"}},
		Details: map[string]any{"text": canary, "error": errors.New(canary), "message": thread.Message{Parts: []thread.Part{thread.Text{Text: canary}}}, "id": "kept"},
	})
	if strings.Contains(out.String(), "CANARY") {
		t.Errorf("content was logged: %s", out.String())
	}
	for _, want := range []string{`"details.id":"kept"`, `"span.first":"m1"`, `"span.last":"m3"`, `"error_class":"error"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing: %s", want, out.String())
		}
	}
}

// A record of a failure has its text, without what it quotes. What failed on the side of a
// provider is a warning, but not what the client broke off.
func TestCause(t *testing.T) {
	for _, c := range []struct{ e, want string }{
		{string(event.Failed), "level=WARN msg=compaction_failed error_class=error cause=\"message \\\"…\\\": the disk is full\"\n"},
		{string(event.RequestProxied), "level=WARN msg=request_proxied error_class=error cause=\"message \\\"…\\\": the disk is full\"\n"},
	} {
		var out bytes.Buffer
		s := slogsink.New(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
		s.Emit(t.Context(), event.Event{Type: event.Type(c.e)}.Failing(errors.New(`message "CANARY": the disk is full`)))
		s.Emit(t.Context(), event.Event{Type: event.RequestProxied}.Failing(context.Canceled))
		if out.String() != c.want {
			t.Errorf("got %swant %s", out.String(), c.want)
		}
	}
}

type failing struct{ slog.Handler }

func (failing) Enabled(context.Context, slog.Level) bool  { return true }
func (failing) Handle(context.Context, slog.Record) error { return errors.New("disk full") }

func TestHandlerErrorsStayThere(t *testing.T) {
	slogsink.New(slog.New(failing{slog.DiscardHandler})).Emit(t.Context(), event.Event{Type: event.Completed})
}
