package event_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/event"
)

// Every metric counts the events that it is of, and no other. A24
func TestCounters(t *testing.T) {
	var c event.Counters
	for _, e := range lifecycle() {
		e.Policy = "auto"
		event.Emit(t.Context(), &c, e)
	}
	for _, e := range []event.Event{
		{Type: event.Cleared, Strategy: "clear", TokensFreed: 6, Cache: event.Hit},
		{Type: event.Completed, Duration: time.Millisecond}, // on a bound: within it
		{Type: event.Completed, Err: "rate_limited", Details: map[string]any{"fallback": "extractive", "proposed": 13, "kept": 10, "dropped_number": 2, "dropped_user": 1}},
		{Type: event.Failed, Duration: time.Hour},
		{Type: event.Failed, Duration: time.Minute, Details: map[string]any{"where": "proxy_invalid"}}, // of a request
		{Type: event.RequestProxied, Details: map[string]any{"action": "passed", "reason": "fault", "status": 200}},
		{Type: "of a later version"},
		{Type: event.Asked, Details: map[string]any{"proposed": 13, "kept": 10, "dropped_number": 2, "dropped_user": 1}}, // which need not be in a plan
	} {
		event.Emit(t.Context(), &c, e)
	}
	want := []string{
		"cache_hits{} 1",
		"cache_misses{} 1",
		"checks{} 1",
		"compaction_duration{,completed} 0.001 [1 0 0 0 0 0 0 0 0 0 0 0]",
		"compaction_duration{,failed} 3600 [0 0 0 0 0 0 0 0 0 0 0 1]",
		"compaction_duration{auto,completed} 1.601 [0 0 0 0 0 0 1 0 0 0 0 0]",
		"compaction_duration{auto,failed} 30 [0 0 0 0 0 0 0 0 0 1 0 0]",
		"compaction_fallbacks{,extractive} 1",
		"compactions{,completed,} 1",
		"compactions{,completed,rate_limited} 1",
		"compactions{,failed,error} 2",
		"compactions{auto,completed,} 1",
		"compactions{auto,failed,deadline_exceeded} 1",
		"context_requests{auto} 1",
		"overflows_shortened{auto} 1",
		"plan_conflicts{auto} 1",
		"proxy_requests{,passed,fault,200,} 1",
		"proxy_requests{anthropic,recovered,,200,} 1",
		"quality_alerts{auto} 1",
		"record_tokens{,clear,compaction_cleared} 6",
		"record_tokens{auto,clear,compaction_cleared} 4000",
		"record_tokens{auto,drop,compaction_dropped} 100",
		"record_tokens{auto,externalize,compaction_externalized} 9000",
		"record_tokens{auto,retrieve,compaction_retrieved} 400",
		"record_tokens{auto,summarize,compaction_summarized} 8000",
		"records{,clear,compaction_cleared} 1",
		"records{auto,clear,compaction_cleared} 1",
		"records{auto,drop,compaction_dropped} 1",
		"records{auto,externalize,compaction_externalized} 1",
		"records{auto,retrieve,compaction_retrieved} 1",
		"records{auto,summarize,compaction_summarized} 1",
		"rehydrations{blocked} 1",
		"rehydrations{shown} 1",
		"summary_left_out{number} 2",
		"summary_left_out{user} 1",
		"summary_sentences{} 13",
		"tokens_freed{auto} 21500",
	}
	var got []string
	for _, f := range c.Figures() {
		line := fmt.Sprintf("%s{%s} %.6g", f.Name, strings.Join(f.Labels, ","), f.Sum)
		if f.Counts != nil {
			line += fmt.Sprint(" ", f.Counts)
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all := c.Figures()
	if got := all.Sum("summary_sentences"); got != 13 {
		t.Errorf("%v sentences", got)
	}
	if diff := cmp.Diff(map[string]int{"number": 2, "user": 1}, all.By("summary_left_out", "cause")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all[3].Counts[0] = 99
	if c.Figures()[3].Counts[0] == 99 {
		t.Error("figures share memory with the counters")
	}
}

// Names that come without end, or that are sentences, do not fill the memory
// or the metrics.
func TestCountersBoundNames(t *testing.T) {
	var c event.Counters
	for n := range 1000 {
		c.Emit(t.Context(), event.Event{Type: event.Cleared, Strategy: string(rune('a'+n%26)) + time.Duration(n).String()})
	}
	c.Emit(t.Context(), event.Event{Type: event.Failed, Err: canary})
	strategies := c.Figures().By("records", "strategy")
	if len(strategies) != 129 || strategies["other"] != 1000-128 {
		t.Errorf("%d names, %v others", len(strategies), strategies["other"])
	}
	for _, f := range c.Figures() {
		if strings.Contains(strings.Join(f.Labels, " "), canary) {
			t.Error("content became a name")
		}
	}
}

// Run with -race.
func TestCountersConcurrently(t *testing.T) {
	var c event.Counters
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 500 {
				event.Emit(t.Context(), &c, event.Event{Type: event.Cleared, Strategy: "clear", TokensFreed: 2, Cache: event.Hit})
				event.Emit(t.Context(), &c, event.Event{Type: event.Completed, TokensFreed: 2, Duration: time.Second})
				if s := c.Figures(); s.Sum("records") < s.Sum("compactions") {
					t.Error("figures of different moments")
				}
			}
		})
	}
	group.Wait()
	got := c.Figures()
	for name, want := range map[string]float64{"records": 4000, "record_tokens": 8000, "tokens_freed": 8000, "cache_hits": 4000, "compaction_duration": 4000} {
		if got.Sum(name) != want {
			t.Errorf("%s: %v, want %v", name, got.Sum(name), want)
		}
	}
}

func BenchmarkCounters(b *testing.B) {
	var c event.Counters
	e := lifecycle()[4]
	b.ReportAllocs()
	for b.Loop() {
		event.Emit(b.Context(), &c, e)
	}
}
