package palimpsest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
)

// TestEventsOfACompaction: a compaction is told of step by step, and why it was
// made, as a name. A18
func TestEventsOfACompaction(t *testing.T) {
	told := &recorder{}
	c, err := palimpsest.New(palimpsest.Config{Events: told, Recall: &palimpsest.Recall{}})
	if err != nil {
		t.Fatal(err)
	}
	th, _, _ := longLoop(t, c)
	plans, err := th.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	records := 0 // that are new: those that stay are not told again
	for n, p := range plans {
		var before *plan.Plan
		if n > 0 {
			before = plans[n-1]
		}
		records += len(p.Since(before))
	}
	for typ, want := range map[event.Type]int{
		event.PreCompact: len(plans), event.PlanCommitted: len(plans), event.Completed: len(plans), event.Retrieved: records, event.PlanConflict: 0,
	} {
		if got := told.count(typ); got != want {
			t.Errorf("%s: %d times, want %d", typ, got, want)
		}
	}
	if got := told.count(event.ProposalGenerated); got < records {
		t.Errorf("%d proposals for %d records", got, records)
	}
	for _, e := range told.events {
		why, _ := e.Details["why"].(string)
		due, _ := e.Details["due"].(bool)
		if (e.Type == event.PreCompact || e.Type == event.CheckStarted && due) && !strings.HasPrefix(why, "the-request-takes-") {
			t.Errorf("%s: why %q", e.Type, why)
		}
		for _, attr := range e.Attrs() {
			if strings.HasPrefix(attr.Key, "details.why") && attr.Value.String() != why {
				t.Errorf("the gate stops %q: %s", why, attr.Value)
			}
		}
	}
}

// TestEveryTypeIsEmitted: there is no type of event that nothing emits.
func TestEveryTypeIsEmitted(t *testing.T) {
	source := func(path string) string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var code strings.Builder
	for _, pattern := range []string{"*.go", "policy/*.go", "rehydrate/*.go", "event/quality/*.go", "summarize/*.go", "proxy/*.go", "event/event.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				code.WriteString(source(f))
			}
		}
	}
	names := regexp.MustCompile(`(?m)^\t([A-Z]\w+) +(?:Type )?= "`).FindAllStringSubmatch(source("event/type.go"), -1)
	types := regexp.MustCompile(`(?m)^\t([A-Z]\w+) +Type = "`).FindAllStringSubmatch(source("event/type.go"), -1)
	if len(types) < 15 || len(names) != len(types) {
		t.Fatalf("%d types of %d names were found", len(types), len(names))
	}
	for _, name := range types {
		if !strings.Contains(code.String(), "event."+name[1]) && !strings.Contains(code.String(), "Type = "+name[1]) && !strings.Contains(code.String(), "Type: "+name[1]) {
			t.Errorf("nothing emits event.%s", name[1])
		}
	}
}
