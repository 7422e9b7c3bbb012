package event

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Metric says what is measured of events under one name. What exports measurements makes its own of each
// (Prometheus: palimpsest_tokens_freed_total, OpenTelemetry: palimpsest.tokens.freed).
type Metric struct {
	// Name is words joined by "_".
	Name string
	// Unit is what one is, in the braces of UCUM ("{token}"), or "s" for a duration.
	Unit string
	Help string
	// Labels name what the figures are told apart by. Their values are names of small number,
	// never ids.
	Labels []string
	// Bounds are the upper bounds of a histogram, inclusive, in seconds; nil for a counter.
	Bounds []float64

	types []Type                                            // of the events that count
	value func(e *Event) float64                            // nil for one each
	each  func(e *Event, add func(n float64, label string)) // in place of value, where the label is not of the whole event
}

// Metrics returns all metrics, by name. Callers must not change them.
func Metrics() []*Metric { return metrics }

var metrics = []*Metric{
	{Name: "cache_hits", Unit: "{lookup}", Help: "Summaries and plans that came from a cache.", value: func(e *Event) float64 { hits, _ := e.lookups(); return hits }},
	{Name: "cache_misses", Unit: "{lookup}", Help: "Summaries and plans that a cache did not have.", value: func(e *Event) float64 { _, misses := e.lookups(); return misses }},
	{Name: "checks", Unit: "{check}", Help: "Checks whether a compaction is due.", types: []Type{CheckStarted}},
	{
		Name: "compaction_duration", Unit: "s", Help: "How long compactions took.",
		Labels: []string{"policy", "outcome"}, Bounds: []float64{0.001, 0.005, 0.025, 0.1, 0.25, 1, 2.5, 5, 10, 30, 60},
		types: []Type{Completed, Failed}, value: (*Event).latency,
	},
	{
		Name: "compaction_fallbacks", Unit: "{compaction}", Help: "Completed compactions in which something failed, by what was done instead.",
		Labels: []string{"policy", "fallback"}, types: []Type{Completed},
		value: func(e *Event) float64 { return float64(min(len(e.Err), 1)) },
	},
	{
		Name: "compactions", Unit: "{compaction}", Help: "Compactions that ended (outcome completed or failed), by the class of the error that made them fail or that was overcome.",
		Labels: []string{"policy", "outcome", "error_class"}, types: []Type{Completed, Failed},
	},
	{Name: "context_requests", Unit: "{request}", Help: "Signs that an agent misses what was removed: it asks for it, says so, or looks at it again.", Labels: []string{"policy"}, types: []Type{ContextRequested}},
	{Name: "overflows_shortened", Unit: "{request}", Help: "Requests that were made smaller after a provider refused them as too long.", Labels: []string{"policy"}, types: []Type{OverflowShortened}},
	{Name: "plan_conflicts", Unit: "{conflict}", Help: "Plans that were not stored because another one had been stored first.", Labels: []string{"policy"}, types: []Type{PlanConflict}},
	{Name: "prompts", Unit: "{prompt}", Help: "Prompts that were handed out.", Labels: []string{"policy"}, types: []Type{PromptPrepared}},
	{
		Name: "proxy_requests", Unit: "{request}", Help: `Requests of agents that went through the proxy, by API, what it did and why (as the response headers say), status, and the class of the error of those that got no answer of a model's; "provider" stands for its refusals too.`,
		Labels: []string{"route", "action", "reason", "status", "error_class"}, types: []Type{RequestProxied},
	},
	{Name: "quality_alerts", Unit: "{alert}", Help: "Alerts that an agent kept asking for what was removed.", Labels: []string{"policy"}, types: []Type{QualityAlert}},
	{
		Name: "record_tokens", Unit: "{token}", Help: "Tokens freed by records of plans: what stood in the request before, less what stands there in its place.",
		Labels: []string{"policy", "strategy", "record"}, types: records, value: (*Event).freed,
	},
	{Name: "records", Unit: "{record}", Help: "Records of plans.", Labels: []string{"policy", "strategy", "record"}, types: records},
	{Name: "rehydrations", Unit: "{artifact}", Help: "Artifacts that were shown again (outcome shown), or not (blocked).", Labels: []string{"outcome"}, types: []Type{Rehydrated, Blocked}},
	{
		Name: "summary_left_out", Unit: "{sentence}", Help: "Sentences of models that completed compactions did not use in summaries, by cause.",
		Labels: []string{"cause"}, types: []Type{Completed}, each: func(e *Event, add func(n float64, cause string)) {
			for key := range e.Details {
				if cause, ok := strings.CutPrefix(key, "dropped_"); ok {
					add(e.number(key), cause)
				}
			}
		},
	},
	{Name: "summary_sentences", Unit: "{sentence}", Help: "Sentences of models that were proposed for the summaries of completed compactions.", types: []Type{Completed}, value: func(e *Event) float64 { return e.number("proposed") }},
	{Name: "tokens_freed", Unit: "{token}", Help: "Tokens freed by completed compactions, each counted once: what the request took before, less what it took after.", Labels: []string{"policy"}, types: []Type{Completed}, value: (*Event).freed},
	{Name: "tokens_spared", Unit: "{token}", Help: "By how many tokens the prompts that were handed out were smaller than their whole conversations, added up.", Labels: []string{"policy"}, types: []Type{PromptPrepared}, value: (*Event).freed},
}

// records are the events of records of plans.
var records = []Type{Externalized, Summarized, Cleared, Retrieved, Dropped}

// outcomes are what the label of that name says of an event.
var outcomes = map[Type]string{Completed: "completed", Failed: "failed", Rehydrated: "shown", Blocked: "blocked"}

// Measure calls add with what an event adds to the metric: a number above 0, and the values of
// its labels in their order.
func (m *Metric) Measure(e Event, add func(n float64, labels []string)) {
	if m.types != nil && !slices.Contains(m.types, e.Type) {
		return
	}
	if m.each != nil {
		m.each(&e, func(n float64, label string) {
			if n > 0 {
				add(n, []string{name(label)})
			}
		})
		return
	}
	n := 1.0
	if m.value != nil {
		n = m.value(&e)
	}
	if !(n > 0) {
		return
	}
	labels := make([]string, len(m.Labels))
	for i, l := range m.Labels {
		labels[i] = name(e.label(l))
	}
	add(n, labels)
}

// label returns the value of a label; empty if the event has none.
func (e *Event) label(of string) string {
	switch of {
	case "policy":
		return e.Policy
	case "strategy":
		return cmp.Or(e.Strategy, string(e.Type))
	case "record":
		return string(e.Type)
	case "outcome":
		return outcomes[e.Type]
	case "error_class":
		if e.Type == Failed {
			return cmp.Or(e.Err, "error")
		}
		return e.Err
	}
	switch v := value(e.Details[of]).(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	}
	return ""
}

// lookups are the hits and misses of a cache that an event reports: details cache_hits and
// cache_misses if it reports several, else Cache.
func (e *Event) lookups() (hits, misses float64) {
	switch {
	case e.Details["cache_hits"] != nil || e.Details["cache_misses"] != nil:
		return e.number("cache_hits"), e.number("cache_misses")
	case e.Cache == Hit:
		return 1, 0
	case e.Cache == Miss:
		return 0, 1
	}
	return 0, 0
}

// latency is how long a compaction took, in seconds; 0 if that is unknown. Of a failure with
// details.where, Duration is that of a whole request.
func (e *Event) latency() float64 {
	if _, elsewhere := e.Details["where"]; elsewhere {
		return 0
	}
	return e.Duration.Seconds()
}

func (e *Event) freed() float64 { return float64(e.TokensFreed) }

func (e *Event) number(detail string) float64 {
	n, _ := e.Details[detail].(int)
	return float64(n)
}
