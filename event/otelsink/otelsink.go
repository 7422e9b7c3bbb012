// Package otelsink gives events to OpenTelemetry: metrics, and one span for each
// compaction. Nothing in them is content; see package event.
//
// The metrics are those of event.Metrics, under "palimpsest." and with dots in
// place of "_": palimpsest.tokens.freed, palimpsest.compaction.duration. Their
// labels are attributes under "palimpsest.", error_class is error.type, and what an
// event does not have is left out. None is an id.
//
// Span "compact_context", of kind internal, made when a compaction is completed
// or has failed and dated back by its duration; its parent is the span of the
// context that the event came with. It has every attribute of the event
// (event.Event.Attrs) under "palimpsest.", but for those that the semantic
// conventions name, most of them for generative AI:
//
//	gen_ai.operation.name   "compact_context"
//	gen_ai.conversation.id  the thread's id
//	gen_ai.request.model    details: model
//	gen_ai.provider.name    details: provider
//	error.type              the class of the error, also of one that was overcome
//
// What happened in the thread since its compaction began is in the span as
// events under the type's name, with attributes named in the same way.
package otelsink

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
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
	opt := *cmp.Or(o, &Options{})
	if opt.Meters == nil {
		opt.Meters = otel.GetMeterProvider()
	}
	if opt.Tracers == nil {
		opt.Tracers = otel.GetTracerProvider()
	}
	s := &sink{tracer: opt.Tracers.Tracer(scope), open: map[threadKey][]moment{}, counters: map[*event.Metric]metric.Int64Counter{}, durations: map[*event.Metric]metric.Float64Histogram{}}
	if err := s.instruments(opt.Meters.Meter(scope)); err != nil {
		return nil, fmt.Errorf("otelsink.New: %w", err)
	}
	return s, nil
}

type sink struct {
	tracer trace.Tracer

	counters  map[*event.Metric]metric.Int64Counter
	durations map[*event.Metric]metric.Float64Histogram

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
	for _, row := range event.Metrics() {
		name, help, unit := prefix+strings.ReplaceAll(row.Name, "_", "."), metric.WithDescription(row.Help), metric.WithUnit(row.Unit)
		var err error
		if row.Bounds != nil {
			s.durations[row], err = m.Float64Histogram(name, help, unit, metric.WithExplicitBucketBoundaries(row.Bounds...))
		} else {
			s.counters[row], err = m.Int64Counter(name, help, unit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Emit counts the event, and ends a span with it if it ends a compaction.
func (s *sink) Emit(ctx context.Context, e event.Event) {
	for _, m := range event.Metrics() {
		m.Measure(e, func(n float64, labels []string) {
			with := metric.WithAttributes(few(m, labels)...)
			if m.Bounds != nil {
				s.durations[m].Record(ctx, n, with)
			} else {
				s.counters[m].Add(ctx, int64(n), with)
			}
		})
	}
	switch e.Type {
	case event.PreCompact, event.CheckStarted:
		s.begin(e)
	case event.ProposalGenerated, event.PlanCommitted, event.PlanConflict, event.Externalized, event.Summarized, event.Cleared, event.Retrieved, event.Dropped:
		s.keep(e)
	case event.Completed, event.Failed:
		s.end(ctx, e)
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
	if e.Type == event.Failed {
		outcome = keyOutcome.String("failed")
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

// The generative-AI conventions still move between versions: this file is the
// only one that knows theirs.

const operation = "compact_context"

var operationName = semconv.GenAIOperationNameKey.String(operation)

// conventional are the attributes of events that the conventions name.
var conventional = map[string]attribute.Key{
	"thread_id":        semconv.GenAIConversationIDKey,
	"error_class":      semconv.ErrorTypeKey,
	"details.model":    semconv.GenAIRequestModelKey,
	"details.provider": semconv.GenAIProviderNameKey,
}

const (
	prefix     = "palimpsest."
	keyOutcome = attribute.Key(prefix + "outcome")
)

// attributes gives all attributes of an event.
func attributes(e event.Event) []attribute.KeyValue {
	attrs := e.Attrs()
	out := make([]attribute.KeyValue, len(attrs))
	for i, a := range attrs {
		out[i] = convert(a)
	}
	return out
}

// few gives the labels of a figure. What an event does not have is left out.
func few(m *event.Metric, labels []string) []attribute.KeyValue {
	var out []attribute.KeyValue
	for i, value := range labels {
		if value != "" {
			out = append(out, convert(slog.String(m.Labels[i], value)))
		}
	}
	return out
}

func convert(a slog.Attr) attribute.KeyValue {
	key, ok := conventional[a.Key]
	if !ok {
		key = attribute.Key(prefix + a.Key)
	}
	switch v := a.Value; v.Kind() {
	case slog.KindBool:
		return key.Bool(v.Bool())
	case slog.KindInt64:
		return key.Int64(v.Int64())
	case slog.KindUint64:
		return key.String(strconv.FormatUint(v.Uint64(), 10)) // OpenTelemetry has no unsigned numbers
	case slog.KindFloat64:
		return key.Float64(v.Float64())
	case slog.KindDuration:
		return key.Float64(v.Duration().Seconds())
	default:
		return key.String(v.String())
	}
}
