// Package slogsink writes events as structured records of log/slog: the type is
// the message, everything else an attribute, and the cause of a failure the
// last one. Records never hold what a conversation said; see package event.
package slogsink

import (
	"context"
	"log/slog"

	"github.com/palimpsest-ai/palimpsest/event"
)

// New returns a sink that writes to l; nil stands for slog.Default(), asked for
// each time. A record has the event's time. Failures and alerts are warnings,
// and so is a compaction whose model failed.
// Information is what ends something: a compaction, or an agent's search for
// what was removed. What happens on the way there, or at every step, is for
// debugging.
//
// It is as safe for concurrent use, and as quick, as the logger's handler: one
// that writes over the network should have a buffer before it.
func New(l *slog.Logger) event.Sink { return sink{l} }

type sink struct{ logger *slog.Logger }

func (s sink) Emit(ctx context.Context, e event.Event) {
	l := s.logger
	if l == nil {
		l = slog.Default()
	}
	level := levelOf(e)
	if !l.Enabled(ctx, level) {
		return
	}
	r := slog.NewRecord(e.Time, level, string(e.Type), 0)
	r.AddAttrs(e.Attrs()...)
	if cause := event.CauseText(e.Cause); cause != "" {
		r.AddAttrs(slog.String("cause", cause))
	}
	// A handler's error has nowhere to go: a sink cannot fail.
	_ = l.Handler().Handle(ctx, r)
}

func levelOf(e event.Event) slog.Level {
	switch e.Type {
	case event.Failed, event.Blocked, event.PlanConflict, event.QualityAlert, event.ModelAssumed:
		return slog.LevelWarn
	case event.Completed:
		if e.Err != "" { // a model failed, and code took over
			return slog.LevelWarn
		}
	case event.RequestProxied:
		if e.Err == "" || e.Err == "canceled" || e.Err == "client" {
			return slog.LevelDebug
		}
		return slog.LevelWarn
	case event.CheckStarted, event.ProposalGenerated, event.PreCompact, event.Asked,
		event.Externalized, event.Summarized, event.Cleared, event.Retrieved, event.Dropped,
		event.PlanCommitted, event.SessionStart, event.Boundary, event.OverflowShortened,
		event.PromptPrepared, event.Rehydrated:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
