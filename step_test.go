package palimpsest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
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
		if err := th.FinishStep(t.Context(), nil, wire.Usage{}, call); err != nil {
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
	// To and fro, as one looks at both: the figures stay.
	var sizes []int
	for range 6 {
		all, err := th.Plans(ctx)
		if err == nil {
			sizes = append(sizes, all[len(all)-1].CompactedTokens)
			err = th.Undo(ctx, len(all)-1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if sizes[0] != sizes[2] || sizes[1] != sizes[3] || sizes[1] != sizes[5] {
		t.Errorf("what is in force after each undo is said to take %d tokens", sizes)
	}
	if err := th.Undo(ctx, len(plans)); err != nil {
		t.Fatal(err)
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
	less := made.TokensBefore - expanded.Record(hidden).Made().TokensBefore
	if less <= 0 || less > made.TokensBefore/2 || expanded.CompactedTokens != under.CompactedTokens+less {
		t.Errorf("the plan with a record for %d tokens less says %d, before it %d", less, expanded.CompactedTokens, under.CompactedTokens)
	}
	want, _ := indexOf(everything, span.First())
	if got, ok := indexOf(shown(), span.First()); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("message %s does not stand as it was said", span.First())
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
		p, err = th.Overflowed(t.Context(), p, nil)
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
	if _, err := c.Session("t").Overflowed(t.Context(), &palimpsest.Prepared{Step: step}, nil); err == nil || errors.Is(err, palimpsest.ErrNoRoom) || !strings.Contains(err.Error(), "the summarizer is down") {
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
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: r, Plans: r}, Events: told})
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

// TestDurableLoop: an agent that goes on in another process finds the same
// prompt, and what its compactions did is in the store: each with its round, its
// tokens, its summary and the messages that it took, written in one step with
// the plan. B8, B11, D8, A1, A14
func TestDurableLoop(t *testing.T) {
	for _, p := range []policy.Policy{policy.Auto{}, policy.Session{ContextLimit: 16_000}, policy.Workstream{ContextSize: 50_000}} {
		t.Run(p.Name(), func(t *testing.T) { durableLoop(t, p) })
	}
}

func durableLoop(t *testing.T, p policy.Policy) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "p.db")
	begin := func() (*sqlite.DB, *palimpsest.Compactor) {
		t.Helper()
		db, err := sqlite.Open(ctx, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := db.Tenant("acme")
		c, err := palimpsest.New(palimpsest.Config{Policy: p, Store: store.Tenant{Log: s.Log, Plans: s.Plans}})
		if err != nil {
			t.Fatal(err)
		}
		return db, c
	}
	db, c := begin()
	th, step, _ := longLoop(t, c)
	before, err := th.PrepareStep(ctx, step)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	db, c = begin()
	defer db.Close()
	after, err := c.Session("ticket-4711").PrepareStep(ctx, step)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Prompt, after.Prompt, cmpopts.IgnoreUnexported(prompt.Prompt{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("after the restart the prompt is another (-before +after):\n%s", diff)
	}

	s := db.Tenant("acme")
	current, rounds, err := s.Plans.Current(ctx, "ticket-4711")
	if err != nil || rounds == 0 {
		t.Fatalf("%d rounds, %v", rounds, err)
	}
	events, err := s.Events.Events(ctx, "ticket-4711", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	completed := 0
	for _, e := range events {
		if e.Type != event.Completed {
			continue
		}
		completed++
		made, err := s.Plans.Plan(ctx, "ticket-4711", completed)
		if err != nil || e.Details["round"] != float64(completed) || e.TokensBefore == 0 || e.TokensAfter == 0 || e.Time.IsZero() || made.Empty() {
			t.Errorf("round %d: %+v, %v", completed, e, err)
		}
	}
	if completed != rounds {
		t.Errorf("%d compactions told, %d plans", completed, rounds)
	}
	marks, err := s.Plans.Compacted(ctx, "ticket-4711")
	if err != nil {
		t.Fatal(err)
	}
	actions := current.Actions()
	for id := range actions {
		if since := marks[id]; since < 1 || since > rounds {
			t.Errorf("message %s is covered and marked %d", id, since)
		}
	}
	if len(marks) != len(actions) {
		t.Errorf("%d marks, %d messages are covered", len(marks), len(actions))
	}

	// What was removed is found again: log and plan hold all of it. A22
	log, err := s.Log.Load(ctx, "ticket-4711")
	if err != nil {
		t.Fatal(err)
	}
	entries := recall.Removed(log, current)
	if len(entries) != len(actions) || len(recall.NewIndex(entries).Search(entries[0].Text, nil)) == 0 {
		t.Errorf("%d of %d removed messages can be searched", len(entries), len(actions))
	}
}

var codecs = []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}}

// depots is how many places the scripted agent must visit.
const depots = 30

// TestTaskGoesOn: a scripted agent that knows nothing but the request it is
// sent finishes a long task over several compactions, and has to do little of
// it twice. A21
func TestTaskGoesOn(t *testing.T) {
	counter := o200k(t)
	for n, c := range []struct {
		name         string
		every        int // visits from one writing of the list to the next; 0 is no list
		hard, target int
		visits       int // the most that are allowed, those made again included
	}{
		{"list each time", 1, 6_000, 4_000, depots},
		{"list each time, in little room", 1, 4_000, 3_000, depots},
		{"list every second time", 2, 6_000, 4_000, depots},
		{"list every third time", 3, 8_000, 5_000, depots},
		{"list every fifth time", 5, 8_000, 6_000, depots},
		{"from results alone", 0, 5_000, 3_500, depots + 2},
	} {
		for i, codec := range codecs {
			if !corpus.Long() && i != n%len(codecs) {
				continue // each case with one of them
			}
			t.Run(c.name+", "+codec.API(), func(t *testing.T) {
				agent := scriptedAgent{every: c.every}
				loop := newLoop(t, counter, codec.API(), &prompt.Prompt{Model: "scripted", Tools: scriptedTools, System: []prompt.System{{Text: "You count stock.", Role: "system"}}}, c.hard, c.target)
				loop.append(plain(thread.User, depotTask()))
				answer, visits := "", 0
				for range 300 {
					res, _ := loop.request()
					seen := overTheWire(t, codec, res.Prompt)
					m, done := agent.act(seen)
					loop.append(m)
					if done {
						answer = m.Text()
						break
					}
					for _, call := range m.Calls() {
						if call.Name == "visit_depot" {
							visits++
						}
						loop.append(runScripted(call))
					}
				}
				if answer != fmt.Sprintf("The total is %d.", depotTotal()) {
					t.Errorf("the agent said %q after %d visits, the total is %d", answer, visits, depotTotal())
				}
				if loop.cycles < 3 || visits > c.visits {
					t.Errorf("%d visits, %d compactions", visits, loop.cycles)
				}
				t.Logf("%d visits of %d depots, %d compactions, %d messages", visits, depots, loop.cycles, loop.thread.Len())
			})
		}
	}
}

// overTheWire gives the prompt as the provider reads it from the body.
func overTheWire(t testing.TB, codec wire.Codec, p *prompt.Prompt) *prompt.Prompt {
	t.Helper()
	body, err := codec.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range codec.Validate(body) {
		if !problem.Advice {
			t.Errorf("%s: %v", codec.API(), problem)
		}
	}
	read, err := codec.Decode(string(body))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// scriptedAgent decides by the request alone; it remembers nothing.
type scriptedAgent struct {
	every int // see TestTaskGoesOn
	calls int // only to give calls ids
}

var (
	depotName = regexp.MustCompile(`\bD-\d{4}\b`)
	stockLine = regexp.MustCompile(`\b(D-\d{4}): stock (\d+)\b`)
)

// act finds in the request which depots there are and which stocks are known,
// and goes on from there.
func (a *scriptedAgent) act(p *prompt.Prompt) (m thread.Message, done bool) {
	all := shown(p)
	_, list, found := strings.Cut(all, "Depots: ")
	if !found {
		return plain(thread.Assistant, "What is my task?"), true
	}
	list, _, _ = strings.Cut(list, ".")
	known := map[string]int{}
	for _, m := range stockLine.FindAllStringSubmatch(all, -1) {
		known[m[1]], _ = strconv.Atoi(m[2])
	}
	written := 0 // in the last list that is still to be seen
	for _, m := range p.Messages {
		for _, c := range m.Calls() {
			if c.Name == "todo_write" {
				written = strings.Count(c.Arguments, "completed")
			}
		}
	}
	names, total := depotName.FindAllString(list, -1), 0
	var open []string
	for _, name := range names {
		if stock, ok := known[name]; ok {
			total += stock
		} else {
			open = append(open, name)
		}
	}
	a.calls++
	id := fmt.Sprintf("call_%03d", a.calls)
	switch {
	case len(open) == 0:
		return plain(thread.Assistant, fmt.Sprintf("The total is %d.", total)), true
	case a.every > 0 && len(known) >= written+a.every:
		type todo struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		}
		var todos []todo
		for _, name := range names {
			if stock, ok := known[name]; ok {
				todos = append(todos, todo{fmt.Sprintf("%s: stock %d", name, stock), "completed"})
			}
		}
		args, _ := json.Marshal(map[string]any{"todos": todos}) // always marshals
		return call(id, "todo_write", string(args)), false
	}
	return call(id, "visit_depot", fmt.Sprintf(`{"depot":%q}`, open[0])), false
}

func call(id, tool, arguments string) thread.Message {
	return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: tool, Arguments: arguments}}}
}

var scriptedTools = []prompt.Tool{
	{Name: "visit_depot", Description: "Goes to a depot and counts.", Schema: `{"type":"object","properties":{"depot":{"type":"string"}},"required":["depot"]}`},
	{Name: "todo_write", Description: "Replaces the list.", Schema: `{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","properties":{"content":{"type":"string"},"status":{"type":"string"}}}}},"required":["todos"]}`},
}

// runScripted is what the tools answer.
func runScripted(c thread.ToolCall) thread.Message {
	text := "The list was saved."
	if c.Name == "visit_depot" {
		name := depotName.FindString(c.Arguments)
		var b strings.Builder
		fmt.Fprintf(&b, "Visit of %s\n", name)
		for aisle := range 28 {
			fmt.Fprintf(&b, "aisle %d: %d pallets, shelf labels in order, no damage reported by the night shift\n", aisle+1, (aisle*7+len(name))%13)
			if aisle == 13 {
				fmt.Fprintf(&b, "%s: stock %d\n", name, depotStock(name))
			}
		}
		text = b.String()
	}
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
		CallID: c.ID, Tool: c.Name, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}},
	}}}
}

func depotNames() []string {
	names := make([]string, depots)
	for n := range names {
		names[n] = fmt.Sprintf("D-%04d", 1000+n*n*37%8999)
	}
	return names
}

func depotStock(name string) int {
	n, _ := strconv.Atoi(name[2:])
	return n*31%977 + 1
}

func depotTotal() int {
	total := 0
	for _, name := range depotNames() {
		total += depotStock(name)
	}
	return total
}

func depotTask() string {
	return "Visit every depot of this list, one by one, and tell me the total stock at the end. Depots: " + strings.Join(depotNames(), ", ") + "."
}
