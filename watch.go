package palimpsest

import (
	"context"
	"sync"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/quality"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// summaries is what the summarizers of a compaction report.
type summaries struct {
	mu    sync.Mutex
	err   error  // the first failure
	by    string // who made the summary instead
	cache event.Cache
}

func (s *summaries) note(_ context.Context, r summarize.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(r.Failures) > 0 && s.err == nil {
		s.err, s.by = r.Failures[0].Err, r.By
	}
	if r.Cache != "" {
		s.cache = r.Cache
	}
}

func (s *summaries) failure() (by string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by, s.err
}

func (s *summaries) answered() event.Cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache
}

// watch tells the monitor of the messages from a position on.
func (t *Thread) watch(ctx context.Context, log *thread.Thread, from int) {
	if t.monitor == nil {
		return
	}
	for i := from; i < log.Len(); i++ {
		t.monitor.Message(ctx, *log.At(i))
	}
}

// tell tells the monitor of the plan in force, once for each version, whoever
// committed it.
func (t *Thread) tell(log *thread.Thread, p *plan.Plan, version int) {
	if t.monitor == nil || version == t.told {
		return
	}
	t.told = version
	if !p.Empty() {
		t.monitor.Compacted(log, p)
	}
}

// Quality says how the thread fared under compaction since this process first
// used it (A22). It is zero without Config.Quality.
func (t *Thread) Quality() quality.Metrics {
	if t.monitor == nil {
		return quality.Metrics{}
	}
	return t.monitor.Metrics()
}
