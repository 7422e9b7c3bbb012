package daemon

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// metrics are what /metrics shows. No label holds a tenant, a thread or a key, so the
// number of series does not grow with use.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	streams  prometheus.Gauge
	jobs     *prometheus.CounterVec
	refused  *prometheus.CounterVec
}

func newMetrics(counters *event.Counters, memory *proxy.Memory, sessions *palimpsest.Memory, spending *Spending) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palimpsest_http_requests_total", Help: "Requests by route and status.",
		}, []string{"route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "palimpsest_http_request_seconds", Help: "How long requests took, by route.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 60},
		}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "palimpsest_http_requests_in_flight", Help: "Requests that are being answered, event streams included.",
		}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "palimpsest_event_streams", Help: "Open streams of events.",
		}),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palimpsest_job_attempts_total", Help: "Background jobs that this process has tried, by kind and outcome (done, failed).",
		}, []string{"kind", "outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palimpsest_refused_total", Help: "What was refused because the process or a tenant is at its limit, by limit (memory, bodies, requests, disk).",
		}, []string{"limit"}),
	}
	m.registry.MustRegister(m.requests, m.duration, m.inFlight, m.streams, m.jobs, m.refused, &collector{counters},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, g := range []struct {
		name, help string
		value      func() float64
	}{
		{"palimpsest_proxy_memory_bytes", "Roughly how much the proxies keep in memory of conversations between their steps.", func() float64 { return float64(memory.Bytes()) }},
		{"palimpsest_session_memory_bytes", "Roughly how much is kept in memory of conversations between their steps, and of what was found in messages for summaries.", func() float64 { return float64(sessions.Bytes()) }},
		{"palimpsest_bodies_bytes", "Bodies of requests that are at work.", func() float64 { return float64(memory.Bodies()) }},
		{"palimpsest_memory_bytes", "Memory that the process takes from the operating system; the setting memory limits it.", func() float64 { return float64(memoryInUse()) }},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: g.name, Help: g.help}, g.value))
	}
	for _, c := range []struct {
		name, help string
		value      *atomic.Int64
	}{
		{"palimpsest_spent_tokens_total", "Tokens that models were asked and answered for summaries and decisions.", &spending.used},
		{"palimpsest_spending_refused_total", "Questions to models that were not asked because the tenant had spent what it may.", &spending.denied},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: c.name, Help: c.help}, func() float64 { return float64(c.value.Load()) }))
	}
	return m
}

func (m *metrics) observe(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(route).Observe(took.Seconds())
}

// countJobs wraps the handlers of jobs so that their attempts are counted.
func (m *metrics) countJobs(work job.Handlers) job.Handlers {
	out := job.Handlers{}
	for kind, do := range work {
		out[kind] = func(ctx context.Context, j job.Job) error {
			outcome := "failed" // also when it panics
			defer func() { m.jobs.WithLabelValues(kind, outcome).Inc() }()
			err := do(ctx, j)
			if err == nil {
				outcome = "done"
			}
			return err
		}
	}
	return out
}

// metricsPage serves the metrics to every key; without keys, to everybody on this
// machine.
func (s *Server) metricsPage() http.Handler {
	page := promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.access.authenticate(r, s.access.byBearer); err != nil {
			s.answerError(w, r, err)
			return
		}
		page.ServeHTTP(w, r)
	})
}

// collector exports the sums of event.Counters.
type collector struct{ counters *event.Counters }

// Describe implements prometheus.Collector. It describes nothing, which has the registry
// check the metrics when they are collected.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, f := range c.counters.Figures() {
		if f.Counts == nil {
			to <- prometheus.MustNewConstMetric(metricDesc(f.Metric), prometheus.CounterValue, f.Sum, f.Labels...)
			continue
		}
		buckets, count := map[float64]uint64{}, uint64(0)
		for i, n := range f.Counts {
			count += uint64(n)
			if i < len(f.Metric.Bounds) {
				buckets[f.Metric.Bounds[i]] = count
			}
		}
		to <- prometheus.MustNewConstHistogram(metricDesc(f.Metric), count, f.Sum, buckets, f.Labels...)
	}
}

// metricDesc names a metric of events as Prometheus does.
func metricDesc(m *event.Metric) *prometheus.Desc {
	unit := "_total"
	if m.Bounds != nil {
		unit = "_seconds"
	}
	return prometheus.NewDesc("palimpsest_"+m.Name+unit, m.Help, m.Labels, nil)
}
