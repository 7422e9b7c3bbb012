package otelsink_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/otelsink"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func Example() {
	spans := tracetest.NewInMemoryExporter()
	events, err := otelsink.New(&otelsink.Options{Tracers: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	if err != nil {
		fmt.Println(err)
		return
	}
	event.Emit(context.Background(), events, event.Event{
		Type: event.Completed, ThreadID: "ticket-4711", TokensBefore: 93_600, TokensAfter: 72_100, TokensFreed: 21_500, Duration: 40 * time.Millisecond,
	})
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name, s.EndTime.Sub(s.StartTime))
	}
	// Output:
	// compact_context 40ms
}

// telemetry is a sink and what it gave.
type telemetry struct {
	testing.TB
	event.Sink
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
	tracer *sdktrace.TracerProvider
}

func collect(t testing.TB) *telemetry {
	c := &telemetry{TB: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	c.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(c.spans))
	var err error
	c.Sink, err = otelsink.New(&otelsink.Options{
		Meters: sdkmetric.NewMeterProvider(sdkmetric.WithReader(c.reader)), Tracers: c.tracer,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// metrics gives one line for each figure: name, attributes, value, unit.
func (c *telemetry) metrics() []string {
	var data metricdata.ResourceMetrics
	if err := c.reader.Collect(context.Background(), &data); err != nil {
		c.Fatal(err)
	}
	var lines []string
	enc := attribute.DefaultEncoder()
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					lines = append(lines, fmt.Sprintf("%s{%s} %d %s", m.Name, p.Attributes.Encoded(enc), p.Value, m.Unit))
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					lines = append(lines, fmt.Sprintf("%s{%s} %d in %.3f %s", m.Name, p.Attributes.Encoded(enc), p.Count, p.Sum, m.Unit))
				}
			default:
				c.Errorf("%s is a %T", m.Name, d)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// trouble is a compaction with records, then one that fails, and the rest.
func trouble() []event.Event {
	span := &thread.Span{MessageIDs: []thread.ID{"m1", "m2"}, FirstTurn: 1, LastTurn: 2}
	events := []event.Event{
		{Type: event.PreCompact, TokensBefore: 93_600},
		{Type: event.CheckStarted, TokensBefore: 93_600, BudgetLimit: 85_000},
		{Type: event.ProposalGenerated, Strategy: "clear", Span: span, TokensFreed: 4_000},
		{Type: event.Summarized, Strategy: "summarize", Span: span, TokensFreed: 17_500, Cache: event.Miss},
		{Type: event.Cleared, Strategy: "clear", Span: span, TokensFreed: 4_000},
		{Type: event.Cleared, Strategy: "clear", Span: span, TokensFreed: -10, Cache: event.Hit},
		{Type: event.PlanConflict, Details: map[string]any{"attempt": 1}},
		{Type: event.Completed, TokensBefore: 93_600, TokensAfter: 72_100, TokensFreed: 21_500, Duration: 1500 * time.Millisecond, Details: map[string]any{"model": "small-1", "provider": "openai", "records": uint64(3), "share": 0.25, "cold": true}},
		{Type: event.Failed, Err: "rate_limited", Duration: 500 * time.Millisecond, Details: map[string]any{"fallback": "passthrough"}},
		{Type: event.Failed},
		{Type: event.Failed, Err: "internal", Duration: time.Minute, Details: map[string]any{"where": "proxy_invalid"}}, // of a whole request
		{Type: event.Rehydrated}, {Type: event.Blocked}, {Type: event.OverflowShortened}, {Type: event.ContextRequested}, {Type: event.QualityAlert},
		{Type: event.RequestProxied, Details: map[string]any{"route": "anthropic", "action": "passed", "reason": "below-mark", "status": 200}},
		{Type: event.SessionStart}, {Type: event.PromptPrepared, TokensBefore: 90_000, TokensAfter: 60_000, TokensFreed: 30_000}, {Type: "of a later version"},
	}
	for i := range events {
		events[i].Time = noon.Add(time.Duration(i) * time.Second)
		events[i].ThreadID, events[i].TenantID, events[i].Policy = "ticket-4711", "acme", "auto"
	}
	return events
}

// A24
func TestMetrics(t *testing.T) {
	c := collect(t)
	for _, e := range trouble() {
		event.Emit(t.Context(), c, e)
	}
	want := []string{
		"palimpsest.cache.hits{} 1 {lookup}",
		"palimpsest.cache.misses{} 1 {lookup}",
		"palimpsest.checks{} 1 {check}",
		"palimpsest.compaction.duration{palimpsest.outcome=completed,palimpsest.policy=auto} 1 in 1.500 s",
		"palimpsest.compaction.duration{palimpsest.outcome=failed,palimpsest.policy=auto} 1 in 0.500 s",
		"palimpsest.compactions{error.type=error,palimpsest.outcome=failed,palimpsest.policy=auto} 1 {compaction}",
		"palimpsest.compactions{error.type=internal,palimpsest.outcome=failed,palimpsest.policy=auto} 1 {compaction}",
		"palimpsest.compactions{error.type=rate_limited,palimpsest.outcome=failed,palimpsest.policy=auto} 1 {compaction}",
		"palimpsest.compactions{palimpsest.outcome=completed,palimpsest.policy=auto} 1 {compaction}",
		"palimpsest.context.requests{palimpsest.policy=auto} 1 {request}",
		"palimpsest.overflows.shortened{palimpsest.policy=auto} 1 {request}",
		"palimpsest.plan.conflicts{palimpsest.policy=auto} 1 {conflict}",
		"palimpsest.prompts{palimpsest.policy=auto} 1 {prompt}",
		"palimpsest.proxy.requests{palimpsest.action=passed,palimpsest.reason=below-mark,palimpsest.route=anthropic,palimpsest.status=200} 1 {request}",
		"palimpsest.quality.alerts{palimpsest.policy=auto} 1 {alert}",
		"palimpsest.record.tokens{palimpsest.policy=auto,palimpsest.record=compaction_cleared,palimpsest.strategy=clear} 4000 {token}",
		"palimpsest.record.tokens{palimpsest.policy=auto,palimpsest.record=compaction_summarized,palimpsest.strategy=summarize} 17500 {token}",
		"palimpsest.records{palimpsest.policy=auto,palimpsest.record=compaction_cleared,palimpsest.strategy=clear} 2 {record}",
		"palimpsest.records{palimpsest.policy=auto,palimpsest.record=compaction_summarized,palimpsest.strategy=summarize} 1 {record}",
		"palimpsest.rehydrations{palimpsest.outcome=blocked} 1 {artifact}",
		"palimpsest.rehydrations{palimpsest.outcome=shown} 1 {artifact}",
		"palimpsest.tokens.freed{palimpsest.policy=auto} 21500 {token}",
		"palimpsest.tokens.spared{palimpsest.policy=auto} 30000 {token}",
	}
	got := c.metrics()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A18: one span for each compaction, with the GenAI names, its parent and what
// happened meanwhile.
func TestSpans(t *testing.T) {
	c := collect(t)
	ctx, parent := c.tracer.Tracer("test").Start(t.Context(), "agent step")
	for _, e := range trouble() {
		event.Emit(ctx, c, e)
	}
	spans := c.spans.GetSpans()
	if len(spans) != 4 {
		t.Fatalf("%d spans, want 4", len(spans))
	}
	s := spans[0]
	if s.Name != "compact_context" || s.Parent.SpanID() != parent.SpanContext().SpanID() || s.Status.Code != codes.Unset {
		t.Errorf("%+v", s)
	}
	if end := noon.Add(7 * time.Second); !s.EndTime.Equal(end) || !s.StartTime.Equal(end.Add(-1500*time.Millisecond)) {
		t.Errorf("from %v to %v", s.StartTime, s.EndTime)
	}
	attributes := map[string]any{}
	for _, a := range s.Attributes {
		attributes[string(a.Key)] = a.Value.AsInterface()
	}
	want := map[string]any{
		"gen_ai.operation.name": "compact_context", "gen_ai.conversation.id": "ticket-4711", "gen_ai.request.model": "small-1", "gen_ai.provider.name": "openai",
		"palimpsest.tenant_id": "acme", "palimpsest.policy": "auto", "palimpsest.outcome": "completed", "palimpsest.tokens_before": int64(93_600), "palimpsest.tokens_after": int64(72_100),
		"palimpsest.tokens_freed": int64(21_500), "palimpsest.duration": 1.5, "palimpsest.details.records": "3", "palimpsest.details.share": 0.25, "palimpsest.details.cold": true,
	}
	if diff := cmp.Diff(want, attributes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var inside []string
	for _, e := range s.Events {
		inside = append(inside, e.Name)
	}
	if diff := cmp.Diff([]string{"pre_compact", "compaction_check_started", "compaction_proposal_generated", "compaction_summarized", "compaction_cleared", "compaction_cleared", "plan_conflict"}, inside); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, failed := range spans[1:] {
		if failed.Status.Code != codes.Error || len(failed.Events) != 0 {
			t.Errorf("a failure is %+v", failed)
		}
	}
}

// What belongs to another thread, or to a check that led to nothing, is not in
// the span; without a duration it begins with its first event.
func TestSpansKeepApart(t *testing.T) {
	c := collect(t)
	for i, e := range []event.Event{
		{Type: event.CheckStarted, ThreadID: "a"}, {Type: event.ProposalGenerated, ThreadID: "a"},
		{Type: event.CheckStarted, ThreadID: "b"},
		{Type: event.CheckStarted, ThreadID: "a"},
		{Type: event.Cleared, ThreadID: "a", TenantID: "other"},
		{Type: event.Cleared, ThreadID: "b"},
		{Type: event.Completed, ThreadID: "a"},
	} {
		e.Time = noon.Add(time.Duration(i) * time.Second)
		c.Emit(t.Context(), e)
	}
	s := c.spans.GetSpans()[0]
	if len(s.Events) != 1 || !s.StartTime.Equal(noon.Add(3*time.Second)) || !s.EndTime.Equal(noon.Add(6*time.Second)) {
		t.Errorf("%d events from %v to %v", len(s.Events), s.StartTime, s.EndTime)
	}
}

func TestNoContent(t *testing.T) {
	const canary = "CANARY the user's budget"
	c := collect(t)
	for _, typ := range []event.Type{event.CheckStarted, event.Summarized, event.PlanConflict, event.Blocked, event.ContextRequested, event.QualityAlert, event.Failed, event.Completed, canary} {
		c.Emit(t.Context(), event.Event{
			Type: typ, ThreadID: canary, TenantID: canary, Policy: canary, Strategy: canary, Cache: canary, Duration: time.Second,
			Err: event.ErrorClass(errors.New(canary)), Details: map[string]any{"model": canary, "error": errors.New(canary), "inf": math.Inf(1), "list": []string{canary}, canary: canary},
		})
	}
	spans, err := json.Marshal(c.spans.GetSpans().Snapshots())
	if err != nil {
		t.Fatal(err)
	}
	written := string(spans) + fmt.Sprintf("%+v", c.spans.GetSpans()) + strings.Join(c.metrics(), "\n")
	if strings.Contains(written, "CANARY") {
		t.Errorf("content was written: %s", written)
	}
	if !strings.Contains(written, "[24_bytes]") {
		t.Errorf("the test sees too little: %s", written)
	}
}

// Run with -race. With more threads under way than are kept, no span is lost.
func TestManyThreads(t *testing.T) {
	c := collect(t)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for n := range 600 {
				id := fmt.Sprint(g, "-", n)
				c.Emit(t.Context(), event.Event{Type: event.CheckStarted, ThreadID: id, Time: noon})
				for range 3 {
					c.Emit(t.Context(), event.Event{Type: event.Cleared, ThreadID: id, Time: noon})
				}
				if n%2 == 0 {
					c.Emit(t.Context(), event.Event{Type: event.Completed, ThreadID: id, Time: noon})
				}
			}
		})
	}
	group.Wait()
	if got := len(c.spans.GetSpans()); got != 1200 {
		t.Errorf("%d spans, want 1200", got)
	}
}

// Threads that are checked at each step and never compact, and compactions that
// came to nothing, do not keep those of others from having their events.
func TestManyIdleThreads(t *testing.T) {
	for _, e := range []event.Event{
		{Type: event.CheckStarted, Details: map[string]any{"due": false}},
		{Type: event.PreCompact},
	} {
		c := collect(t)
		e.Time = noon
		for n := range 2000 {
			e.ThreadID = fmt.Sprint(n)
			c.Emit(t.Context(), e)
		}
		for _, typ := range []event.Type{event.CheckStarted, event.Cleared, event.Completed} {
			c.Emit(t.Context(), event.Event{Type: typ, ThreadID: "busy", Time: noon.Add(time.Second), Details: map[string]any{"due": true}})
		}
		if s := c.spans.GetSpans()[0]; len(s.Events) != 2 {
			t.Errorf("after 2000 of %s: %d events", e.Type, len(s.Events))
		}
	}
}

type refusing struct{ noop.MeterProvider }

type refusingMeter struct{ noop.Meter }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

func (refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errors.New("no more instruments")
}

func TestRefusedInstrument(t *testing.T) {
	if _, err := otelsink.New(&otelsink.Options{Meters: refusing{}}); err == nil || !strings.Contains(err.Error(), "no more instruments") {
		t.Errorf("got %v", err)
	}
	if _, err := otelsink.New(nil); err != nil {
		t.Errorf("with the program's providers: %v", err)
	}
}
