package daemon

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/proxy"
)

// TestProblemsAreDocumented: the type of every problem is the address of its line
// in the documentation.
func TestProblemsAreDocumented(t *testing.T) {
	table := "\n| type | status | |\n|---|---|---|\n"
	for _, k := range problemKinds {
		p := problem(k.name, "")
		if p.Kind() != k.name || !strings.HasSuffix(p.Type, "docs/operations.md#"+k.name) {
			t.Errorf("%s has the type %s", k.name, p.Type)
		}
		table += fmt.Sprintf("| <a id=%q></a>`%s` | %d | %s |\n", k.name, k.name, p.Status, p.Title)
	}
	golden.Section(t, "../../docs/operations.md", "problems", table+"\n")
}

// TestMetricsAreDocumented: every metric is in the documentation, with its labels.
func TestMetricsAreDocumented(t *testing.T) {
	counters := &event.Counters{}
	m := newMetrics(counters, proxy.NewMemory(nil), palimpsest.NewMemory(0), NewSpending(0, nil))
	// A metric with labels is there only once it has counted.
	m.observe("route", 200, time.Second)
	m.jobs.WithLabelValues("kind", "done")
	m.refused.WithLabelValues("memory")
	for _, typ := range []event.Type{event.Failed, event.Completed, event.Cleared, event.RequestProxied, event.PromptPrepared, event.PlanConflict, event.ContextRequested, event.QualityAlert, event.OverflowShortened, event.Rehydrated, event.Asked} {
		event.Emit(t.Context(), counters, event.Event{Type: typ, Err: "storage", TokensFreed: 1, Duration: 1, Details: map[string]any{"dropped_user": 1}})
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	table := "\n| metric | labels | |\n|---|---|---|\n"
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "palimpsest_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		table += fmt.Sprintf("| `%s` | %s | %s |\n", f.GetName(), strings.Join(labels, ", "), f.GetHelp())
	}
	golden.Section(t, "../../docs/operations.md", "metrics", table+"\n")
	for _, e := range event.Metrics() {
		if !strings.Contains(table, "`palimpsest_"+e.Name+"_") {
			t.Errorf("%s is not in the table: have the test count it", e.Name)
		}
	}
	source, err := os.ReadFile("metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`"palimpsest_([a-z_]+_(?:total|seconds|bytes|in_flight|streams))"`).FindAllStringSubmatch(string(source), -1) {
		if !strings.Contains(table, "`palimpsest_"+name[1]+"`") {
			t.Errorf("%s is not in the table: have the test count it", name[1])
		}
	}
}

// TestProblemOfNothingKnown: an error that nobody foresaw tells the caller nothing
// of itself.
func TestProblemOfNothingKnown(t *testing.T) {
	p := problemOf(fmt.Errorf("secret"))
	if p.Kind() != api.Internal || strings.Contains(p.Detail, "secret") {
		t.Errorf("%+v", p)
	}
}
