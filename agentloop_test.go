package palimpsest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// recorder is a sink that keeps what it was told.
type recorder struct {
	mu     sync.Mutex
	events []event.Event
}

func (r *recorder) Emit(_ context.Context, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) count(t event.Type) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.Type == t {
			n++
		}
	}
	return n
}

// work is one step of an agent that reads long files: a call and its result.
func work(n int) (call, result thread.Message) {
	id := fmt.Sprintf("call_%d", n)
	call = thread.Message{Role: thread.Assistant, Parts: []thread.Part{
		thread.Text{Text: fmt.Sprintf("Step %d: I read queue/file%d.go next.", n, n)},
		thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":"queue/file%d.go"}`, n)},
	}}
	text := strings.Repeat(fmt.Sprintf("func handle%d(order Order) error { return nil } // line of file %d\n", n, n), 60)
	return call, toolMessage(id, text)
}

func toolMessage(id, text string) thread.Message {
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
		CallID: id, Tool: "Read", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}},
	}}}
}

const loopBudget = 12_000

// longLoop runs an agent for 60 steps and returns its conversation.
func longLoop(t testing.TB, c *palimpsest.Compactor) (*palimpsest.Session, palimpsest.Step, [][]thread.Message) {
	t.Helper()
	th := c.Session("ticket-4711")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget}
	news := []thread.Message{plain(thread.User, "Tidy the queue. Never touch internal/api.")}
	var prompts [][]thread.Message
	for n := range 60 {
		step.Messages = news
		p, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		prompts = append(prompts, p.Messages)
		call, result := work(n)
		if err := th.FinishStep(t.Context(), nil, llm.Usage{}, call); err != nil {
			t.Fatal(err)
		}
		news = []thread.Message{result}
	}
	step.Messages = news
	if _, err := th.PrepareStep(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	step.Messages = nil
	return th, step, prompts
}

// TestAgentLoop: the prompt stays within the budget over a long loop, its prefix
// stays the same between compactions, and each compaction is told of. A18
func TestAgentLoop(t *testing.T) {
	var told recorder
	c, err := palimpsest.New(palimpsest.Config{Events: &told})
	if err != nil {
		t.Fatal(err)
	}
	counter := o200k(t)
	th, _, prompts := longLoop(t, c)
	breaks := 0
	for n, messages := range prompts {
		size := 0
		for i := range messages {
			size += counter.Message(&messages[i])
		}
		if size > loopBudget {
			t.Errorf("step %d: %d tokens", n, size)
		}
		if n == 0 {
			continue
		}
		before := prompts[n-1]
		if len(messages) < len(before) || !reflect.DeepEqual(messages[:len(before)], before) {
			breaks++
		}
	}
	plans, err := th.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(plans) < 4 || breaks > len(plans) {
		t.Errorf("the prefix changed %d times over %d compactions", breaks, len(plans))
	}
	if told.count(event.Completed) != len(plans) || told.count(event.Failed) != 0 || told.count(event.CheckStarted) != 61 {
		t.Errorf("%d plans; completed %d, failed %d, checks %d", len(plans), told.count(event.Completed), told.count(event.Failed), told.count(event.CheckStarted))
	}
	last := prompts[len(prompts)-1]
	if !strings.Contains(last[0].Text(), "Never touch internal/api.") {
		t.Errorf("the task is gone: %q", last[0].Text())
	}
}

// TestUndoAndExpand give back exactly what was there.
func TestUndoAndExpand(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	th, step, _ := longLoop(t, c)
	ctx := t.Context()
	step.Budget = 0 // no limit: what is in force is what is shown
	shown := func() []thread.Message {
		t.Helper()
		p, err := th.PrepareStep(ctx, step)
		if err != nil {
			t.Fatal(err)
		}
		return p.Messages
	}
	plans, err := th.Plans(ctx)
	if err != nil {
		t.Fatal(err)
	}
	newest := shown()

	if err := th.Undo(ctx, 0); err != nil {
		t.Fatal(err)
	}
	everything := shown()
	_, first := work(0)
	if len(everything) != 121 || !reflect.DeepEqual(everything[2].Parts, first.Parts) {
		t.Errorf("undoing all shows %d messages", len(everything))
	}
	if err := th.Undo(ctx, len(plans)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(shown(), newest) {
		t.Error("putting the newest plan in force again shows something else")
	}
	if err := th.Undo(ctx, 99); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a plan that never was: %v", err)
	}

	hidden := plans[len(plans)-1].Refs()[0]
	span := plans[len(plans)-1].Record(hidden).Covers()
	if err := th.Expand(ctx, span.First()); err != nil {
		t.Fatal(err)
	}
	made := plans[len(plans)-1].Record(hidden).Made()
	if plans, err = th.Plans(ctx); err != nil {
		t.Fatal(err)
	}
	under, expanded := plans[len(plans)-2], plans[len(plans)-1]
	if expanded.CompactedTokens != under.CompactedTokens+made.TokensBefore-made.TokensAfter {
		t.Errorf("the plan without a record of %d tokens for %d says %d, before it %d", made.TokensAfter, made.TokensBefore, expanded.CompactedTokens, under.CompactedTokens)
	}
	for _, id := range span.MessageIDs {
		want, _ := indexOf(everything, id)
		got, ok := indexOf(shown(), id)
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("message %s does not stand as it was said", id)
		}
	}
	if err := th.Expand(ctx, span.First()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("expanding twice: %v", err)
	}
}

func indexOf(messages []thread.Message, id thread.ID) (thread.Message, bool) {
	for _, m := range messages {
		if m.ID == id && m.Kind != thread.Recap {
			return m, true
		}
	}
	return thread.Message{}, false
}

// TestOverflowed: a provider that counts more than we do gets a smaller request
// each time, until there is nothing left to take.
func TestOverflowed(t *testing.T) {
	var told recorder
	c, err := palimpsest.New(palimpsest.Config{Events: &told})
	if err != nil {
		t.Fatal(err)
	}
	th, step, _ := longLoop(t, c)
	counter := o200k(t)
	last := 1 << 30
	p := &palimpsest.Prepared{Step: step}
	for range 3 {
		p, err = th.Overflowed(t.Context(), p)
		if errors.Is(err, palimpsest.ErrNoRoom) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if size := counter.Prompt(p.Prompt); size >= last {
			t.Errorf("%d tokens after %d", size, last)
		} else {
			last = size
		}
	}
	if told.count(event.OverflowShortened) == 0 {
		t.Error("nobody was told")
	}
}

// failing is a policy that finds every thread due and then fails.
type failing struct{}

func (failing) Name() string                         { return "failing" }
func (failing) Due(*policy.Situation) (bool, string) { return true, "always" }
func (failing) Plan(context.Context, *policy.Situation) (*policy.Fitted, error) {
	return nil, errors.New("the summarizer is down")
}

// TestOverflowedFails: a failure is not told as a request that cannot get smaller.
func TestOverflowedFails(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: failing{}})
	if err != nil {
		t.Fatal(err)
	}
	step := palimpsest.Step{Messages: []thread.Message{plain(thread.User, "go on")}}
	if _, err := c.Session("t").Overflowed(t.Context(), &palimpsest.Prepared{Step: step}); err == nil || errors.Is(err, palimpsest.ErrNoRoom) || !strings.Contains(err.Error(), "the summarizer is down") {
		t.Errorf("%v", err)
	}
}

// TestFailureNeverStopsTheAgent: the prompt then is the one without compaction,
// and an event says so.
func TestFailureNeverStopsTheAgent(t *testing.T) {
	var told recorder
	c, err := palimpsest.New(palimpsest.Config{Policy: failing{}, Events: &told})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Messages: []thread.Message{plain(thread.User, "go on")}})
	if err != nil || len(p.Messages) != 1 || told.count(event.Failed) != 1 {
		t.Errorf("%+v, %v, %d failures told", p, err, told.count(event.Failed))
	}
}

// racing is a store in which somebody else commits a plan first.
type racing struct {
	store.Memory
	lost int
}

func (r *racing) Commit(ctx context.Context, id string, expected int, c store.Commit) (int, error) {
	if r.lost++; r.lost == 1 {
		if _, err := r.Memory.Commit(ctx, id, expected, store.Commit{Plan: &plan.Plan{Schema: plan.SchemaVersion, ThreadID: id}}); err != nil {
			return 0, err
		}
	}
	return r.Memory.Commit(ctx, id, expected, c)
}

// TestConflictIsRetried: a plan that was made for an older version is made again
// for the new one, and none is lost. A14
func TestConflictIsRetried(t *testing.T) {
	r, told := &racing{}, &recorder{}
	c, err := palimpsest.New(palimpsest.Config{Log: r, Plans: r, Events: told})
	if err != nil {
		t.Fatal(err)
	}
	th, _, _ := longLoop(t, c)
	plans, err := th.Plans(t.Context())
	if err != nil || len(plans) < 5 || !plans[0].Empty() || plans[1].Empty() {
		t.Errorf("%d plans, %v", len(plans), err)
	}
	if told.count(event.PlanConflict) != 1 || told.count(event.PlanCommitted) != len(plans)-1 {
		t.Errorf("%d conflicts told, %d plans committed", told.count(event.PlanConflict), told.count(event.PlanCommitted))
	}
}

// TestPlanIsADryRun: it shows what would be done and stores nothing.
func TestPlanIsADryRun(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	th, step, _ := longLoop(t, c)
	before, err := th.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	step.Messages, step.Budget = []thread.Message{plain(thread.User, "and now?")}, loopBudget/4
	p, err := th.Plan(t.Context(), step)
	if err != nil || p.Empty() {
		t.Fatalf("%+v, %v", p, err)
	}
	after, err := th.Plans(t.Context())
	if err != nil || len(after) != len(before) {
		t.Errorf("%d plans, then %d: %v", len(before), len(after), err)
	}
}

// TestLadderPolicy holds the budget formula of seed A. A12, A19
func TestLadderPolicy(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{MaxInputTokens: 20_000}})
	if err != nil {
		t.Fatal(err)
	}
	counter := o200k(t)
	_, _, prompts := longLoop(t, c)
	fixed := counter.Overhead()
	available := int(20_000*0.85) - (fixed + 500 + 2_000)
	if available > loopBudget { // the step's own budget is smaller
		available = int(loopBudget*0.85) - (fixed + 500 + 2_000)
	}
	for n, messages := range prompts {
		size := 0
		for i := range messages {
			size += counter.Message(&messages[i])
		}
		if size > available {
			t.Errorf("step %d: the messages take %d tokens, %d are available", n, size, available)
		}
	}
}
