package otelsink

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/palimpsest-ai/palimpsest/event"
)

const scope = "github.com/palimpsest-ai/palimpsest"

// Options say where telemetry goes. A nil *Options and the zero value take the
// providers that the program registered with OpenTelemetry.
type Options struct {
	// Meters makes the meter; nil stands for otel.GetMeterProvider().
	Meters metric.MeterProvider
	// Tracers makes the tracer; nil stands for otel.GetTracerProvider().
	Tracers trace.TracerProvider
}

// New returns a sink that is safe for concurrent use. It is as quick as the
// providers, which by default only add up and buffer. The error is the
// provider's, when it refuses an instrument.
func New(o *Options) (event.Sink, error) {
	var opt Options
	if o != nil {
		opt = *o
	}
	if opt.Meters == nil {
		opt.Meters = otel.GetMeterProvider()
	}
	if opt.Tracers == nil {
		opt.Tracers = otel.GetTracerProvider()
	}
	s := &sink{tracer: opt.Tracers.Tracer(scope), open: map[threadKey][]moment{}}
	if err := s.instruments(opt.Meters.Meter(scope)); err != nil {
		return nil, fmt.Errorf("otelsink.New: %w", err)
	}
	return s, nil
}

type sink struct {
	tracer trace.Tracer

	compactions, freed, records, recordTokens, lookups, rehydrations, conflicts, overflows, requests, alerts, prompts, spared, proxied metric.Int64Counter
	duration                                                                                                                           metric.Float64Histogram

	mu   sync.Mutex
	open map[threadKey][]moment
}

type threadKey struct{ tenant, thread string }

// moment is what will be an event of the span.
type moment struct {
	event      event.Event // its type and times only
	attributes []attribute.KeyValue
}

// Bounds of what is kept for spans that are still to come: threads whose
// compaction never ends must not fill the memory.
const (
	maxOpen    = 1024
	maxMoments = 128 // as many as the SDK keeps of a span
)

func (s *sink) instruments(m metric.Meter) error {
	for _, c := range []struct {
		to               *metric.Int64Counter
		name, unit, what string
	}{
		{&s.compactions, "compactions", "{compaction}", "Compactions that ended."},
		{&s.freed, "tokens.freed", "{token}", "Tokens that completed compactions freed."},
		{&s.records, "records", "{record}", "Records of plans."},
		{&s.recordTokens, "record.tokens", "{token}", "Tokens that records of plans free."},
		{&s.lookups, "cache.lookups", "{lookup}", "Questions to the cache of summaries."},
		{&s.rehydrations, "rehydrations", "{artifact}", "Artifacts shown again, or not."},
		{&s.conflicts, "plan.conflicts", "{conflict}", "Plans that came after another one."},
		{&s.overflows, "overflows.shortened", "{request}", "Requests that were too long for the provider and were made smaller."},
		{&s.requests, "context.requests", "{request}", "Signs that an agent misses what was removed."},
		{&s.prompts, "prompts", "{prompt}", "Prompts that were handed out."},
		{&s.spared, "tokens.spared", "{token}", "Tokens that prompts were smaller by than their conversations."},
		{&s.proxied, "proxy.requests", "{request}", "Requests that went through the proxy."},
		{&s.alerts, "quality.alerts", "{alert}", "Agents that kept asking for what was removed."},
	} {
		var err error
		if *c.to, err = m.Int64Counter(prefix+c.name, metric.WithUnit(c.unit), metric.WithDescription(c.what)); err != nil {
			return err
		}
	}
	var err error
	s.duration, err = m.Float64Histogram(prefix+"compaction.duration", metric.WithUnit("s"), metric.WithDescription("How long compactions took."),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.025, 0.1, 0.25, 1, 2.5, 5, 10, 30, 60))
	return err
}

// Emit counts the event, and ends a span with it if it ends a compaction.
func (s *sink) Emit(ctx context.Context, e event.Event) {
	hits, misses := e.Lookups()
	for answer, n := range map[event.Cache]int64{event.Hit: hits, event.Miss: misses} {
		if n > 0 {
			s.lookups.Add(ctx, n, metric.WithAttributes(keyCache.String(string(answer))))
		}
	}
	policy := func() metric.MeasurementOption { return metric.WithAttributes(few(e, "policy")...) }
	switch e.Type {
	case event.PreCompact, event.CheckStarted:
		s.begin(e)
	case event.ProposalGenerated, event.PlanCommitted:
		s.keep(e)
	case event.Externalized, event.Summarized, event.Cleared, event.Retrieved, event.Dropped:
		s.keep(e)
		with := metric.WithAttributes(append(few(e, "policy", "strategy"), keyAction.String(string(e.Type)))...)
		s.records.Add(ctx, 1, with)
		s.recordTokens.Add(ctx, int64(max(e.TokensFreed, 0)), with)
	case event.Completed, event.Failed:
		s.end(ctx, e)
	case event.Rehydrated:
		s.rehydrations.Add(ctx, 1, metric.WithAttributes(keyOutcome.String("done")))
	case event.Blocked:
		s.rehydrations.Add(ctx, 1, metric.WithAttributes(keyOutcome.String("blocked")))
	case event.PlanConflict:
		s.keep(e)
		s.conflicts.Add(ctx, 1, policy())
	case event.PromptPrepared:
		s.prompts.Add(ctx, 1, policy())
		s.spared.Add(ctx, int64(max(e.TokensFreed, 0)), policy())
	case event.OverflowShortened:
		s.overflows.Add(ctx, 1, policy())
	case event.RequestProxied:
		s.proxied.Add(ctx, 1, metric.WithAttributes(few(e, "details.route", "details.action", "details.reason", "details.status", "error_class")...))
	case event.ContextRequested:
		s.requests.Add(ctx, 1, policy())
	case event.QualityAlert:
		s.alerts.Add(ctx, 1, policy())
	}
}

// begin starts to keep what belongs to the span. A check after pre_compact is
// of the same compaction, any other beginning is of a new one. Each step is
// checked: where nothing is due, nothing begins.
func (s *sink) begin(e event.Event) {
	if due, known := e.Details["due"].(bool); known && !due {
		return
	}
	s.mu.Lock()
	key := threadKey{e.TenantID, e.ThreadID}
	kept, known := s.open[key]
	if e.Type == event.CheckStarted && len(kept) == 1 && kept[0].event.Type == event.PreCompact {
		s.mu.Unlock()
		s.keep(e)
		return
	}
	defer s.mu.Unlock()
	if !known && len(s.open) >= maxOpen {
		s.forgetOldest()
	}
	s.open[key] = []moment{{e, attributes(e)}}
}

// forgetOldest forgets what began first: that compaction may have come to nothing.
func (s *sink) forgetOldest() {
	var oldest threadKey
	var began time.Time
	for key, kept := range s.open {
		if at := kept[0].event.Time; began.IsZero() || at.Before(began) {
			oldest, began = key, at
		}
	}
	delete(s.open, oldest)
}

func (s *sink) keep(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := threadKey{e.TenantID, e.ThreadID}
	if kept, ok := s.open[key]; ok && len(kept) < maxMoments {
		s.open[key] = append(kept, moment{e, attributes(e)})
	}
}

func (s *sink) end(ctx context.Context, e event.Event) {
	outcome := keyOutcome.String("completed")
	with := few(e, "policy", "error_class")
	if e.Type == event.Failed {
		outcome = keyOutcome.String("failed")
		if e.Err == "" {
			with = append(with, semconv.ErrorTypeOther)
		}
	}
	with = append(with, outcome)
	s.compactions.Add(ctx, 1, metric.WithAttributes(with...))
	if took := e.Latency(); took > 0 {
		s.duration.Record(ctx, took.Seconds(), metric.WithAttributes(with...))
	}
	if e.Type == event.Completed {
		s.freed.Add(ctx, int64(max(e.TokensFreed, 0)), metric.WithAttributes(few(e, "policy")...))
	}

	s.mu.Lock()
	key := threadKey{e.TenantID, e.ThreadID}
	moments := s.open[key]
	delete(s.open, key)
	s.mu.Unlock()

	start := e.Time.Add(-e.Duration)
	if e.Duration == 0 && len(moments) > 0 {
		start = moments[0].event.Time
	}
	_, span := s.tracer.Start(ctx, operation, trace.WithTimestamp(start), trace.WithAttributes(operationName, outcome), trace.WithAttributes(attributes(e)...))
	for _, m := range moments {
		span.AddEvent(string(m.event.Type), trace.WithTimestamp(m.event.Time), trace.WithAttributes(m.attributes...))
	}
	if e.Type == event.Failed {
		if e.Err == "" {
			span.SetAttributes(semconv.ErrorTypeOther)
		}
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(e.Time))
}
