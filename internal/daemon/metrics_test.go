package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// heard keeps what it is told.
type heard struct {
	mu     sync.Mutex
	events []event.Event
}

func (h *heard) Emit(_ context.Context, e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// of returns the events of a type.
func (h *heard) of(types ...event.Type) (out []event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if slices.Contains(types, e.Type) {
			out = append(out, e)
		}
	}
	return out
}

// metricsOf reads /metrics: the counters and gauges of ours, by name and labels.
func metricsOf(t *testing.T, h *host) map[string]int {
	t.Helper()
	_, page := h.do(t, "GET", "/metrics", "")
	out := map[string]int{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		name, value := line[:max(end, 0)], line[end+1:]
		if strings.HasPrefix(name, "palimpsest_") {
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(line)
			}
			out[strings.TrimPrefix(name, "palimpsest_")] = int(x)
		}
	}
	return out
}

// TestMetricsAreTrue compares each metric, and each figure of each event, with
// what happened in a conversation. A metric that is not compared fails. F6, A18, A24
func TestMetricsAreTrue(t *testing.T) {
	const tenant, model, limit = "", "a-model", 11_000
	const by = `{policy="timeline"}`
	told, memory := &heard{}, palimpsest.NewMemory(0)
	h := start(t, daemon.Config{Compactor: palimpsest.Config{
		Memory: memory,
		Policy: policy.Timeline{MaxTokens: limit, KeepRecent: 2_000}, Recall: &palimpsest.Recall{}, Quality: &quality.Options{}, Events: told,
	}})
	c, ctx := h.client(t, ""), t.Context()
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	th, err := c.CreateThread(ctx, api.NewThread{ID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) []neutral.Part { return []neutral.Part{{Type: neutral.TextPart, Text: s}} }
	sizeOf := func(messages ...neutral.Message) (n int) {
		for i := range messages {
			m, err := messages[i].Value("m")
			if err != nil {
				t.Fatal(err)
			}
			n += counter.Message(&m)
		}
		return n
	}
	want := map[string]int{}
	news := []neutral.Message{{Role: "user", Parts: text("Find out why the build fails.")}}
	version, planVersion, asked := 0, 0, 0
	whole, last, fixed := 0, 0, 0 // tokens: of all messages, of the last prompt, of what is around messages
	var base, lastPrompt *neutral.Prompt
	type change struct{ before, after int }
	var compactions []change
	for n := range 40 {
		base = &neutral.Prompt{Model: model, Tools: []neutral.Tool{{Name: "Grep", Description: "search", Schema: json.RawMessage(`{"type":"object"}`)}}}
		p, err := c.Prepare(ctx, th.ID, version, api.Step{Base: base, Messages: news, Window: 20_000, Output: 1_000})
		if err != nil {
			t.Fatal(err)
		}
		whole += sizeOf(news...)
		if n == 0 {
			last = p.Tokens - sizeOf(news...)
		}
		before := last + sizeOf(news...)
		shown := 0
		for i := range p.Prompt.Messages {
			shown += sizeOf(p.Prompt.Messages[i])
		}
		fixed = p.Tokens - shown
		if p.PlanVersion != planVersion {
			compactions = append(compactions, change{before, p.Tokens})
			want["tokens_freed_total"+by] += before - p.Tokens
			planVersion = p.PlanVersion
		} else if p.Tokens != before {
			t.Fatalf("step %d: the prompt takes %d tokens, want %d", n, p.Tokens, before)
		}
		lastPrompt = p.Prompt
		want["prompts_total"+by]++
		want["checks_total"]++
		want["tokens_spared_total"+by] += whole + fixed - p.Tokens
		said := fmt.Sprintf("Step %d: I look further.", n)
		if planVersion > 0 && asked < 7 && n%2 == 0 { // alerts come at the third and the sixth
			said = "I no longer have the earlier output in my context."
			asked++
		}
		answer := neutral.Message{Role: "assistant", Parts: append(text(said), neutral.Part{Type: neutral.ToolCallPart, CallID: fmt.Sprint("c", n), Tool: "Grep", Arguments: fmt.Sprintf(`{"pattern":"Handle%d"}`, n)})}
		a, err := c.Finish(ctx, th.ID, p.Version, api.Answer{Messages: []neutral.Message{answer}})
		if err != nil {
			t.Fatal(err)
		}
		whole += sizeOf(answer)
		last, version = p.Tokens+sizeOf(answer), a.Version
		news = []neutral.Message{{Role: "tool", Parts: []neutral.Part{{Type: neutral.ToolResultPart, CallID: fmt.Sprint("c", n), Tool: "Grep", Content: text(output(n))}}}}
	}
	if len(compactions) < 3 || asked < 7 {
		t.Fatalf("%d compactions and %d asks: the test shows nothing", len(compactions), asked)
	}
	want[`compactions_total{error_class="",outcome="completed",policy="timeline"}`] = len(compactions)
	want["context_requests_total"+by] = asked
	want[`compaction_duration_seconds_count{outcome="completed",policy="timeline"}`] = len(compactions)

	// The plans say which records were new, what each stood for, and what stands there.
	var earlier *plan.Plan
	records := 0
	for v := 1; v <= planVersion; v++ {
		p, err := c.Plan(ctx, th.ID, v)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Plan.Since(earlier) {
			want[`records_total{policy="timeline",record="`+string(event.OfRecord(r).Type)+`",strategy="`+r.Made().Strategy+`"}`]++
			records++
		}
		earlier = p.Plan
	}
	want[`records_total{policy="timeline",record="compaction_retrieved",strategy="recall"}`] = records // each can be searched

	// Each compaction: what it is told of before and after, limit, trigger, versions.
	pre, done, bounds := told.of(event.PreCompact), told.of(event.Completed), told.of(event.Boundary)
	committed, starts := told.of(event.PlanCommitted), told.of(event.SessionStart)
	if len(pre) != len(compactions) || len(done) != len(compactions) || len(bounds) != len(compactions) || len(committed) != len(compactions) || len(starts) != len(compactions) {
		t.Fatalf("%d compactions, told of %d, %d, %d, %d, %d", len(compactions), len(pre), len(done), len(bounds), len(committed), len(starts))
	}
	for i, x := range compactions {
		for _, e := range []event.Event{pre[i], done[i], bounds[i]} {
			if e.TokensBefore != x.before || e.Type != event.PreCompact && e.TokensAfter != x.after {
				t.Errorf("compaction %d: %s tells of %d and %d tokens, want %d and %d", i, e.Type, e.TokensBefore, e.TokensAfter, x.before, x.after)
			}
		}
		if done[i].TokensFreed != x.before-x.after || done[i].BudgetLimit != limit || pre[i].BudgetLimit != limit || starts[i].TokensAfter != x.after {
			t.Errorf("compaction %d: %+v", i, done[i])
		}
		if done[i].Details["round"] != i+1 || committed[i].Details["version"] != i+1 || committed[i].Details["attempt"] != 1 || pre[i].Details["trigger"] != "auto" {
			t.Errorf("compaction %d: details %v, %v, %v", i, done[i].Details, committed[i].Details, pre[i].Details)
		}
	}
	freed := map[string]int{}
	for _, e := range told.of(event.Externalized, event.Summarized, event.Cleared, event.Dropped) {
		if e.TokensFreed != e.TokensBefore-e.TokensAfter || e.Span == nil || e.Span.Len() == 0 {
			t.Errorf("%+v", e)
		}
		freed[fmt.Sprintf(`{policy="timeline",record=%q,strategy=%q}`, e.Type, e.Strategy)] += e.TokensFreed
	}
	sum := 0
	for labels, n := range freed {
		want["record_tokens_total"+labels] = n
		sum += n
	}
	// What records freed is what compactions freed, but for the two tools and the note that
	// came with the first plan.
	first := counter.System([]prompt.System{{Text: render.Tools.Note()}}) + counter.Tools(toolsOf(t, lastPrompt)) - counter.Tools(toolsOf(t, base))
	if sum != want["tokens_freed_total"+by]+first {
		t.Errorf("records freed %d tokens, compactions %d and %d for tools", sum, want["tokens_freed_total"+by], first)
	}
	for _, e := range told.of(event.ContextRequested) {
		if e.Details["class"] != "lost_content" || e.Policy != "timeline" || e.ThreadID != th.ID || e.TenantID != tenant {
			t.Errorf("%+v", e)
		}
	}
	want["quality_alerts_total"+by] = len(told.of(event.QualityAlert))
	if want["quality_alerts_total"+by] == 0 {
		t.Error("an agent that keeps asking made no alert")
	}

	fared, err := c.Outcome(ctx, th.ID, thread.Success)
	if err != nil || fared.Task != thread.Success || fared.Compactions != len(compactions) || len(fared.Asks) != asked || fared.Alerts != want["quality_alerts_total"+by] {
		t.Errorf("how the thread fared: %+v: %v", fared, err)
	}
	if _, err := c.Outcome(ctx, th.ID, "splendid"); !api.IsKind(err, api.BadRequest) {
		t.Errorf("an outcome that is none: %v", err)
	}

	var got map[string]int
	for held := -1; held != memory.Bytes(); { // the index for searches is made beside the steps
		held = memory.Bytes()
		got, want["session_memory_bytes"] = metricsOf(t, h), held
	}
	if got["session_memory_bytes"] == 0 {
		t.Error("nothing is remembered")
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		switch {
		case strings.HasPrefix(name, "http_"), name == "event_streams", name == "memory_bytes", strings.HasPrefix(name, "job_"), // of the daemon, and not of compaction
			strings.HasPrefix(name, "compaction_duration_seconds_bucket"), strings.HasPrefix(name, "compaction_duration_seconds_sum"):
			continue
		}
		if got[name] != want[name] {
			t.Errorf("%s is %d, want %d", name, got[name], want[name])
		}
		delete(want, name)
	}
	for name, n := range want {
		t.Errorf("%s is not there, want %d", name, n)
	}
}

// toolsOf are the tools of a prompt.
func toolsOf(t *testing.T, p *neutral.Prompt) []prompt.Tool {
	t.Helper()
	v, err := (&neutral.Prompt{Tools: p.Tools}).Value("prompt")
	if err != nil {
		t.Fatal(err)
	}
	return v.Tools
}
